"""A smoke report as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsdoctor.logs.presentable import presentable
from dsdoctor.model.smoke import Comparison, Figures, Phase, Rank, SmokeReport
from dsdoctor.model.units import GIB, MIB
from dsdoctor.report.text import Line
from dsdoctor.report.wrap import wrap

WORDS = {"ok": "ok", "fail": "FAIL", "stopped": "stop", "not-reached": "-"}
#: Styles of the first word of a line.
STYLES = {"FAIL": "fail", "CAUSE": "fail", "stop": "unknown"}
VERDICTS = {"pass": "ok", "fail": "fail", "unknown": "unknown"}
SHOWN_LINES = 8
#: Below this many columns a detail has a line of its own.
NARROW = 60


def _size(count: int) -> str:
    return f"{count / GIB:.2f} GiB" if count >= GIB else f"{count / MIB:.1f} MiB"


def _bytes(count: int) -> str:
    return f"{count >> 20} MiB" if count >= MIB else f"{count >> 10} KiB"


def _wrap(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    indent = rest if rest is not None else " " * len(first)
    return wrap(presentable(text), max(24, width), first, indent, break_long=False)


def _phases(phases: Iterable[Phase], width: int) -> Iterator[str]:
    for phase in phases:
        seconds = f"{phase.seconds:6.1f} s" if phase.status != "not-reached" else " " * 8
        head = f"  {WORDS[phase.status]:<5} {phase.name:<12} {seconds}"
        if width < NARROW and phase.detail:
            yield head.rstrip()
            yield from _wrap(phase.detail, width, " " * 8)
            continue
        yield from _wrap(phase.detail, width, head + "  ", " " * 31) or [head.rstrip()]


def _memory(row: Comparison) -> str:
    return (
        f"{row.what}: {_size(row.measured_bytes)} measured, {_size(row.predicted_bytes)} predicted "
        f"({row.ratio:.2f})"
    )


def figure_lines(figures: Figures) -> Iterator[str]:
    """The figures, one line each."""
    if figures.step_ms is not None:
        yield (
            f"step {figures.step_ms:.1f} ms (median; {figures.step_ms_low:.1f} to "
            f"{figures.step_ms_high:.1f}), {figures.tokens_per_s:,.0f} tokens/s"
        )
    if figures.bandwidth:
        rows = ", ".join(f"{row.gb_per_s:.2f} at {_bytes(row.bytes)}" for row in figures.bandwidth)
        yield f"all-reduce bus bandwidth, GB/s: {rows}"
    if figures.reference:
        yield f"reference: {figures.reference}"
    if figures.slowest_ratio is not None:
        yield (
            f"slowest rank: {figures.slowest_rank}, its own work takes "
            f"{figures.slowest_ratio:.2f} × as long as the others'"
        )
    if figures.build_seconds:
        yield f"ops compiled or loaded in {figures.build_seconds:.1f} s"
    if figures.first_loss is not None and figures.last_loss is not None:
        single = ""
        if figures.reference_loss is not None:
            single = f" (single process: {figures.reference_loss:.4f})"
        yield f"loss {figures.first_loss:.4f} to {figures.last_loss:.4f}{single}"
    yield from (_memory(row) for row in figures.memory)


def _rank(rank: Rank, width: int, *, brief: bool) -> Iterator[str]:
    """A rank that did not finish; `brief` leaves out the traceback if its failure has a name."""
    outcome = rank.outcome.replace("-", " ")
    where = f" in {rank.last_phase}" if rank.last_phase else ""
    yield from _wrap(f"rank {rank.rank} {outcome}{where} {rank.error}", width, "  ", "    ")
    if brief and rank.outcome == "failed":
        return
    # a stack explains a hang, the last output a death
    lines = rank.stack[:SHOWN_LINES] if rank.stack else rank.log_tail[-SHOWN_LINES:]
    yield from (f"    | {presentable(line)}" for line in lines if line.strip())


def _quoted(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Output of a program, with its indentation."""
    rows = [line for line in lines if line.strip()]
    if rows:
        yield from ("", title)
        for row in rows:
            indent = len(row) - len(row.lstrip(" "))
            yield f"  | {' ' * indent}{presentable(row)}"


def _list(title: str, lines: Iterable[str], width: int) -> Iterator[str]:
    rows = list(lines)
    if rows:
        yield ""
        yield title
        for row in rows:
            yield from _wrap(row, width, "  - ")


def lines(report: SmokeReport, width: int = 80, *, verbose: bool = False) -> Iterator[Line]:
    """The lines of the report with their styles; a style only repeats what the words say."""
    for number, row in enumerate(render(report, width, verbose=verbose).splitlines()):
        word = row.split(maxsplit=1)[0] if row.strip() else ""
        if number == 0:
            yield Line(row, VERDICTS[report.verdict])
        elif word in STYLES and row.startswith((f"  {word} ", f"{word}  ")):
            yield Line(row, STYLES[word])
        elif row.startswith("       hint: "):
            yield Line(row, "hint")
        else:
            yield Line(row, "head" if row.strip() and row[0] != " " else "body")


def render(report: SmokeReport, width: int = 80, *, verbose: bool = False) -> str:
    """The report for a reader."""
    head = f"{report.verdict.upper()}  {report.summary} ({report.seconds:.1f} s)"
    out = _wrap(head, width, "", "      ")
    if report.partial:
        out += _wrap("interrupted: this report is partial", width, "      ")
    for cause in report.causes:
        out += ["", f"CAUSE  {cause.condition}"]
        out += _wrap(cause.message, width, "       ")
        out += [f"       | {presentable(line)}" for line in cause.evidence if line.strip()]
        if cause.hint:
            out += _wrap(f"hint: {cause.hint}", width, "       ")
        for fix in cause.fixes:
            out += _wrap(f"fix: `dsdoctor fix {fix}`", width, "       ")
        out += _wrap(f"for details, run `dsdoctor explain {cause.condition}`", width, "       ")
    out.append("")
    out += _phases(report.phases, width)
    if report.verdict != "pass":
        out += [""] + [
            line
            for rank in report.ranks
            if rank.outcome != "done"
            for line in _rank(rank, width, brief=bool(report.causes) and not verbose)
        ]
        if not report.causes or verbose:
            out += _quoted("last lines of the launcher", report.log_tail[-SHOWN_LINES:])
    out += _list("measured", figure_lines(report.figures), width)
    out += _list("warnings", report.warnings, width)
    tries = [
        f"{row.knob}={row.value}: {row.verdict} ({row.seconds:.0f} s)"
        + (f", costs: {row.cost}" if row.verdict == "pass" else "")
        for row in report.bisect
    ]
    out += _list("tried", tries, width)
    if report.works_with:
        setting = ", ".join(f"`{name}={value}`" for name, value in report.works_with.items())
        out += ["", *_wrap(f"works with {setting}; without it the run fails", width, "")]
    out += _list("proved", report.proved, width)
    out += _list("not tested", report.not_proved, width)
    out += _list("changed for this run", report.launch.changed, width)
    out += _list("left behind", report.leftovers, width)
    return "\n".join(out) + "\n"
