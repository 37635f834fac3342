"""A launch plan as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import msgspec

from dsdoctor.model.launch_plan import LaunchPlan, MemoryItem, MemoryOption, Reason, peak, place
from dsdoctor.model.units import gib
from dsdoctor.recommend.output import command_line
from dsdoctor.report.demand import HOST_SHORT, batch_cell

#: Below this width, figures go below each other.
NARROW = 80
_OFFLOAD = {"none": "", "optimizer": "+o", "optimizer+parameters": "+op"}
_COLUMN = 8
_NAME = 24


def _wrap(text: str, width: int, subsequent_indent: str = "") -> list[str]:
    """Lines of a width; an option such as `--seq-len` stays whole."""
    return textwrap.wrap(text, width, subsequent_indent=subsequent_indent, break_on_hyphens=False)


def _clean(text: str) -> str:
    """Text from files and the command line, without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def bar(used: int, limit: int | None, width: int) -> str:
    """A bar of the share in use; it ends in `!` if the limit is exceeded.

    >>> bar(5, 10, 10)
    '#####.....'
    >>> bar(20, 10, 10)
    '#########!'
    """
    if not limit:
        return "." * width
    if used > limit:
        return "#" * (width - 1) + "!"
    filled = min(width, round(width * used / limit))
    return "#" * filled + "." * (width - filled)


def _used_of_limit(place: str, used: int, limit: int | None) -> str:
    of = f" of {gib(limit)}" if limit else ""
    return f"{place} {gib(used)}{of} GiB"


def _setting(option: MemoryOption) -> str:
    setting = f"micro-batch {option.micro_batch}"
    if option.accumulation > 1:
        setting += f" × {option.accumulation}"
    return setting + (", activation checkpointing" if option.checkpointing else "")


def _shares(option: MemoryOption) -> list[str]:
    on_gpu = option.gpu_limit_bytes is not None
    shares = [_used_of_limit("GPU", option.gpu_bytes, option.gpu_limit_bytes)] if on_gpu else []
    return [*shares, _used_of_limit("host", option.host_bytes, option.host_limit_bytes)]


def _option(option: MemoryOption, width: int, *, verbose: bool) -> list[str]:
    """One option: what it is, a bar for the scarcest memory, its figures, the verdict and why.

    What fits as well is told without its reason, unless that is asked for.
    """
    mark = ">" if option.verdict == "chosen" else " "
    setting, shares = _setting(option), _shares(option)
    on_gpu = option.gpu_limit_bytes is not None
    used = option.gpu_bytes if on_gpu else option.host_bytes
    limit = option.gpu_limit_bytes if on_gpu else option.host_limit_bytes
    if width < NARROW:
        lines = [f"{mark} {option.name}", f"    {setting}"]
        lines += [f"    {share}" for share in shares]
        lines.append(f"    [{bar(used, limit, max(4, min(24, width - 8)))}]")
    else:
        lines = [f"{mark} {option.name:<28}{setting}"]
        lines.append(f"    [{bar(used, limit, 24)}] {', '.join(shares)}")
    if option.verdict == "alternative" and not verbose:
        return lines
    wrapped = _wrap(f"{option.verdict}: {option.reason}", max(16, width - 4))
    return lines + [f"    {line}" for line in wrapped]


def _column_head(option: MemoryOption) -> str:
    """A column's head: `z2+o` is ZeRO-2 with the optimizer on the host."""
    return f"z{option.stage}{_OFFLOAD.get(option.offload, '+?')}"


def _names(columns: Iterable[tuple[MemoryItem, ...]]) -> list[tuple[str, str]]:
    """Name and phase of every item of any column, in the order in which they appear."""
    phases = ("load", "resident", "training", "loss", "backward", "clip", "step")
    found = dict.fromkeys((item.name, item.phase) for items in columns for item in items)
    return sorted(found, key=lambda key: phases.index(key[1]) if key[1] in phases else 9)


def _table(
    title: str, columns: list[tuple[str, tuple[MemoryItem, ...], int]], width: int
) -> list[str]:
    """Items as rows, options as columns; as many columns side by side as the width holds."""
    if not any(items for _, items, _ in columns):
        return []
    lines: list[str] = []
    fit = max(1, (width - _NAME - 11) // _COLUMN)
    for start in range(0, len(columns), fit):
        part = columns[start : start + fit]
        heads = "".join(f"{head:>{_COLUMN}}" for head, _, _ in part)
        lines += ["", *_wrap(title, width), f"  {'':<{_NAME}}{heads}".rstrip()]
        for name, phase in _names(items for _, items, _ in part):
            cells = ""
            for _, items, _ in part:
                size = sum(item.bytes for item in items if (item.name, item.phase) == (name, phase))
                cells += f"{gib(size) if size else '-':>{_COLUMN}}"
            when = "" if phase == "resident" else f"  {phase}"
            label = name.removesuffix(" (ranks)")
            lines.append(f"  {label:<{_NAME}}{cells}{when}")
        peaks = "".join(f"{gib(total):>{_COLUMN}}" for _, _, total in part)
        lines.append(f"  {'peak':<{_NAME}}{peaks}")
    return lines


def _tables(plan: LaunchPlan, width: int, *, verbose: bool) -> list[str]:
    """What the peaks consist of; every item if that is asked for, or if only one option is."""
    near = (plan.stage, plan.offload)  # what is chosen, or comes closest
    chosen = [row for row in plan.memory.options if (row.stage, row.offload) == near]
    shown = list(plan.memory.options) if verbose else chosen
    whole = _itemized(plan, verbose=verbose)
    when = "" if whole else " at the peak"

    def items(of: tuple[MemoryItem, ...]) -> tuple[MemoryItem, ...]:
        largest = peak(of)[1]
        return of if whole else tuple(item for item in of if item in largest)

    ranks = f" ({plan.gpus_per_node} ranks together)" if plan.gpus_per_node > 1 else ""
    lines = _table(
        f"memory of each GPU{when}, GiB",
        [(_column_head(row), items(row.gpu), row.gpu_bytes) for row in shown],
        width,
    )
    lines += _table(
        f"memory of each host{when}{ranks}, GiB",
        [(_column_head(row), items(row.host), row.host_bytes) for row in shown],
        width,
    )
    if not whole:
        lines += _wrap(
            "`-v` shows every phase and the reason for every option, and what fits on other GPUs",
            width,
        )
    return lines


def _itemized(plan: LaunchPlan, *, verbose: bool) -> bool:
    """Whether everything is shown: on request, or if only one option was asked for."""
    return verbose or len(plan.memory.options) == 1


def _reach(plan: LaunchPlan) -> list[str]:
    """What fits with the chosen option, with and without checkpointing, on several GPUs."""
    rows = plan.memory.reach
    if not rows:
        return []
    unit = "GPUs" if plan.gpu_ids else "ranks"
    lines = [
        "",
        f"what fits at {plan.sequence} tokens, or with micro-batch {plan.micro_batch}",
        f"  {unit:<6}{'checkpointing':<14}{'GiB each':>9}{'batch':>8}{'tokens':>9}",
    ]
    for row in rows:
        mode = "yes" if row.checkpointing else "no"
        batch, tokens = batch_cell(row), row.sequence or "-"
        lines.append(f"  {row.gpus:<6}{mode:<14}{gib(row.gpu_bytes):>9}{batch:>8}{tokens:>9}")
    return [*lines, *([HOST_SHORT] if any(row.host_short for row in rows) else [])]


def _head(plan: LaunchPlan) -> str:
    model = plan.model
    size = f"{model.parameters / 1e9:.2f}B parameters"
    if model.trainable != model.parameters:
        size += f", {model.trainable / 1e6:.1f}M trained"
    ranks = f"{plan.gpus_per_node} × {_clean(place(plan))}"
    if plan.nodes > 1:
        ranks = f"{plan.nodes} nodes × {ranks}"
    name = _clean(model.name)
    return f"{name} · {size} · {ranks} · {plan.precision} · {plan.sequence} tokens"


def _note(reason: Reason, width: int) -> list[str]:
    return _wrap(_clean(f"{reason.subject}: {reason.text}"), width, subsequent_indent="  ")


#: Notes that belong to the verdict, and what the script must do for it to hold.
_FIRST = ("batch", "fit", "host")
_REQUIRED = ("checkpointing", "loading")


def _verdict(
    plan: LaunchPlan, notes: Iterable[Reason], folder: str | None, width: int
) -> list[str]:
    """What the reader came for: whether it fits, with what, and the line that starts it."""
    near = (plan.stage, plan.offload)
    lines: list[str] = []
    for option in plan.memory.options:
        if (option.stage, option.offload) == near:
            what = _fits(option) if plan.fits else "comes closest"
            said = f"{option.name} {what}: {', '.join([_setting(option), *_shares(option)])}"
            lines = _wrap(said if plan.fits else f"nothing fits; {said}", width)
    for reason in notes:
        if reason.subject in _FIRST:  # what the line above has said is not repeated
            text = reason.text.removeprefix("nothing fits; ")
            lines += _note(msgspec.structs.replace(reason, text=text), width)
    lines += ["launch with" if plan.fits else "its launch line:"]
    lines.append(f"  {_clean(command_line(plan, folder))}")
    for reason in notes:
        told = reason.subject not in _FIRST and reason.subject in _first(plan)
        lines += _note(reason, width) if told else []
    return [*lines, ""]


def _fits(option: MemoryOption) -> str:
    """How sure it is that the chosen option fits: the host's memory may not be known."""
    if option.host_limit_bytes is None and option.offload != "none":
        return f"fits if each host has {gib(option.host_bytes)} GiB"
    return "fits"


def _first(plan: LaunchPlan) -> tuple[str, ...]:
    """Subjects of the notes that stand with the verdict."""
    return (*_FIRST, *_REQUIRED) if plan.fits else _FIRST


def render(
    plan: LaunchPlan, width: int = 80, folder: str | None = None, *, verbose: bool = False
) -> str:
    """The plan for a reader: the verdict and the launch line, then what they rest on.

    The launch line is never wrapped, so that it can be copied.

    Args:
        plan: the plan.
        width: columns of the terminal.
        folder: where `-o` wrote its files; None = they were not written.
        verbose: itemize every phase of every option, not only the peak of the chosen one, and show
            what fits on other numbers of GPUs.
    """
    wide = max(20, min(width, 120))
    lines = _wrap(_head(plan), wide)
    notes = [reason for reason in plan.reasons if reason.verdict == "note"]
    hardware = [reason for reason in notes if reason.subject == "machine"]
    for reason in hardware:  # first, as everything below depends on these assumptions
        lines += _note(reason, wide)
    lines += ["", *_verdict(plan, notes, folder, wide)]
    for option in plan.memory.options:
        lines += _option(option, wide, verbose=verbose)
    lines += _tables(plan, wide, verbose=verbose)
    lines += [*(_reach(plan) if _itemized(plan, verbose=verbose) else ()), ""]
    for reason in notes:
        told = reason in hardware or reason.subject in _first(plan)
        lines += [] if told else _note(reason, wide)
    if plan.facts_as_of:
        lines.append(f"built-in tables as of {_clean(plan.facts_as_of)}")
    if folder is None:
        lines += _wrap("`-o DIR` writes ds_config.json, launch.sh and launch.json", wide)
    return "\n".join([*lines, ""])
