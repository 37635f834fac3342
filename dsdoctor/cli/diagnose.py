"""`dsdoctor diagnose`: from a dead run's log to its cause."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
import msgspec

from dsdoctor import logs
from dsdoctor.cli import html, loading, log_heads, options
from dsdoctor.cli.numbers import Finite
from dsdoctor.cli.output import show, wants_colour
from dsdoctor.errors import UsageError
from dsdoctor.logs import prepared
from dsdoctor.model.diagnosis import Diagnosis, Outcome, exit_code
from dsdoctor.report import diagnosis as report

if TYPE_CHECKING:  # few logs state an environment
    from dsdoctor.model.snapshot import Snapshot

#: Ends of the names of files that are passed here by mistake.
_NO_LOGS = (
    ".json", ".hjson", ".yaml", ".yml", ".py", ".sh", ".bash", ".sbatch", ".slurm", ".pbs", ".lsf",
    ".bsub",
)  # fmt: skip


def _expected(text: str | None) -> list[str]:
    names = [name.strip().lower() for name in re.split(r"[,\s]+", text or "") if name.strip()]
    if text is not None and not names:
        raise UsageError("`--expect` is empty; expected names such as `zero3,offload,4gpus`")
    if not names:
        return []
    from dsdoctor.logs.expect import GPUS, known_expectations  # noqa: PLC0415  # few runs ask

    for name in names:
        if name not in known_expectations() and not GPUS.fullmatch(name):
            choice = ", ".join((*known_expectations(), "4gpus"))
            raise UsageError(f"`--expect {name}` is not known; expected {choice}")
    return list(dict.fromkeys(names))


@click.command("diagnose")
@click.argument("paths", metavar="LOG…", nargs=-1, required=True)
@options.report_format
@click.option(
    "--expect",
    metavar="NAMES",
    help="Features that should have been active, such as zero3,offload,4gpus.",
)
@click.option("--snapshot", metavar="FILE", help="Check the causes against a saved snapshot.")
@click.option("--here", is_flag=True, help="Check the causes against this machine.")
@click.option(
    "--python", metavar="PATH", help="With --here: interpreter or virtual environment to examine."
)
@click.option("--config", metavar="FILE", help="With --here: DeepSpeed config of the job.")
@click.option(
    "--timeout",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    help="Read the logs for at most this long; the report says what was not read.",
    show_default="600",
)
@click.option(
    "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
)
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@options.language_option
def command(
    *,
    paths: tuple[str, ...],
    form: str,
    expect: str | None,
    snapshot: str | None,
    here: bool,
    python: str | None,
    config: str | None,
    timeout: float | None,
    checks_dir: tuple[str, ...],
    output: str | None,
    lang: str | None,
) -> int:
    """Find out from the logs why a run died.

    LOG is a file (plain, gzip, xz or zstd), a directory of rank logs, or `-` for standard input.
    If it contains output of `collect_env`, `ds_report` or `nvidia-smi`, that is checked as well.

    Exit status: 0 no failure, or an error in the script itself; 1 a cause or a failure was found;
    2 misuse; 3 the run died of an unknown cause, or the log is empty or truncated.

    \b
    Examples:
      dsdoctor diagnose train.log
      dsdoctor diagnose logs/ --here
      kubectl logs train-0 | dsdoctor diagnose -
      dsdoctor diagnose train.log --expect zero3,offload,4gpus
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    form = html.form_of(form, output)
    expected = _expected(expect)
    _refuse_conflicts(paths, snapshot=snapshot, here=here, python=python, config=config)
    known = prepared.knowledge(checks_dir)
    registry = None
    if known is None:
        registry = loading.load_registry(checks_dir)
        known = logs.signatures_of(registry)
    try:
        budget = logs.Budget() if timeout is None else logs.Budget(seconds=timeout)
        found, dumps = logs.find(paths, budget)
        sources, texts = log_heads.heads(found, paths)
        diagnosis = logs.diagnose(sources, known, expect=expected, dumps=dumps, budget=budget)
    except logs.ReadError as error:
        raise UsageError(str(error)) from None
    if diagnosis.outcome is Outcome.CLEAN and all(one.lower().endswith(_NO_LOGS) for one in paths):
        from dsdoctor.cli import no_logs  # noqa: PLC0415  # few logs have such names

        no_logs.refuse(sources, paths)
    stated = _first_environment(texts)
    if snapshot is not None or here or stated is not None:
        # the checks, which a log alone does not need
        from dsdoctor.cli import diagnosed_machine, pasted  # noqa: PLC0415  # see above

        registry = registry or loading.load_registry(checks_dir)
        if snapshot is not None or here:
            diagnosis = diagnosed_machine.compared(diagnosis, registry, snapshot, python, config)
        diagnosis = pasted.with_environment(diagnosis, stated, registry)
    diagnosis = msgspec.structs.replace(
        diagnosis,
        causes=tuple(
            msgspec.structs.replace(
                cause, formerly=known.formerly.get(cause.condition, msgspec.UNSET)
            )
            for cause in diagnosis.causes
        ),
    )
    if form == "json":
        document = msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
        loading.write(document, output)
        return exit_code(diagnosis)
    diagnosis = msgspec.structs.replace(
        diagnosis, causes=options.fixed_in(diagnosis.causes, python)
    )
    if form == "html":
        from dsdoctor.logs.quote import around  # noqa: PLC0415  # only where a page is asked for
        from dsdoctor.report.html import diagnosis as pages  # noqa: PLC0415  # an extra

        near = around(paths, pages.places(diagnosis))
        loading.write(pages.page(translated(diagnosis, lang), near), output)
    else:
        shown = translated(diagnosis, lang)
        if output is None and wants_colour():
            show(lambda width: report.lines(shown, width=width))
        else:
            loading.write(report.render(shown), output)
    return exit_code(diagnosis)


def _first_environment(texts: Iterable[str]) -> Snapshot | None:
    """The environment that the first of the texts to state one states."""
    for text in texts:
        from dsdoctor.paste.environment import environment_of  # noqa: PLC0415  # few logs need the readers

        if (found := environment_of(text)) is not None:
            return found
    return None


def translated(diagnosis: Diagnosis, lang: str | None) -> Diagnosis:
    """The diagnosis in the reader's language."""
    wanted = options.reader_language(lang)
    if wanted is None:
        return diagnosis
    from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

    return language.of_diagnosis(diagnosis, wanted)


def _refuse_conflicts(
    paths: tuple[str, ...],
    *,
    snapshot: str | None,
    here: bool,
    python: str | None,
    config: str | None,
) -> None:
    if snapshot is not None and here:
        raise UsageError("`--snapshot` and `--here` are mutually exclusive; pass one of them")
    if not here and (python is not None or config is not None):
        raise UsageError("`--python` and `--config` apply only to this machine; add `--here`")
    if list(paths).count("-") + (snapshot == "-") > 1:
        raise UsageError("standard input can be read only once; pass `-` once")
