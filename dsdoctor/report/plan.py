"""A launch plan as plain text."""

from __future__ import annotations

import textwrap

from dsdoctor.model.launch import LaunchPlan, MemoryItem, MemoryOption
from dsdoctor.recommend.output import command_line

GIB = 1 << 30
NARROW = 72


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"


def bar(used: int, limit: int | None, width: int) -> str:
    """A bar of the share in use; `!` at its end when it is more than there is.

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


def _row(option: MemoryOption, width: int) -> list[str]:
    mark = ">" if option.verdict == "chosen" else " "
    recompute = " recompute" if option.checkpointing else ""
    figures = f"{_gib(option.gpu_bytes):>7}"
    figures += f" / {_gib(option.gpu_limit_bytes)}" if option.gpu_limit_bytes else " / -"
    host = _gib(option.host_bytes)
    host += f" / {_gib(option.host_limit_bytes)}" if option.host_limit_bytes else " / -"
    on_gpu = option.gpu_limit_bytes is not None
    used = option.gpu_bytes if on_gpu else option.host_bytes
    limit = option.gpu_limit_bytes if on_gpu else option.host_limit_bytes
    head = f"{mark} {option.name:<28} micro-batch {option.micro_batch}{recompute}"
    if width < NARROW:
        lines = [f"{mark} {option.name}", f"    micro-batch {option.micro_batch}{recompute}"]
        lines += [f"    GPU {figures.strip()} GiB", f"    host {host} GiB"]
        lines.append(f"    {bar(used, limit, max(4, width - 6))}")
    else:
        lines = [head, f"    {bar(used, limit, 24)} GPU {figures} GiB, host {host} GiB"]
    wrapped = textwrap.wrap(f"{option.verdict}: {option.reason}", max(20, width - 4))
    return lines + [f"    {line}" for line in wrapped]


def _items(title: str, items: tuple[MemoryItem, ...], total: int) -> list[str]:
    if not items:
        return []
    lines = ["", title]
    for item in items:
        when = "" if item.phase == "resident" else f"  ({item.phase})"
        lines.append(f"  {item.name:<24}{_gib(item.bytes):>8}{when}")
    return [*lines, f"  {'peak':<24}{_gib(total):>8}"]


def render(plan: LaunchPlan, width: int = 80) -> str:
    """The plan for a reader; the launch line is never wrapped, so that it can be copied."""
    model = plan.model
    size = f"{model.parameters / 1e9:.2f}B parameters"
    if model.trainable != model.parameters:
        size += f", {model.trainable / 1e6:.1f}M trained"
    place = "GPU" if plan.gpu_ids else "CPU rank"
    head = f"{model.name} · {size} · {plan.world} × {place} · {plan.precision} · "
    head += f"{plan.sequence} tokens"
    lines = textwrap.wrap(head, max(20, width))
    lines.append("")
    for option in plan.memory.options:
        lines += _row(option, width)
    best = next(
        (option for option in plan.memory.options if option.name == plan.memory.chosen), None
    )
    if best is not None:
        lines += _items("memory of each GPU, GiB", best.gpu, best.gpu_bytes)
        lines += _items("memory of each host, GiB", best.host, best.host_bytes)
    lines.append("")
    for reason in plan.reasons:
        if reason.verdict == "note":
            lines += textwrap.wrap(
                f"{reason.subject}: {reason.text}", max(20, width), subsequent_indent="  "
            )
    lines += ["", "launch with" if plan.fits else "nothing fits; the nearest would be"]
    return "\n".join([*lines, f"  {command_line(plan)}", ""])
