"""`recommend --format html`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from dsdoctor.model.launch_plan import (
    RESIDENT,
    LaunchPlan,
    MemoryItem,
    MemoryOption,
    peak,
    place,
)
from dsdoctor.recommend import files
from dsdoctor.recommend.output import command_line
from dsdoctor.report.html.page import gib, render
from dsdoctor.report.html.svg import COLORS, Drawing, Part, stacked

OTHERS = "others"
#: A bar ends at this multiple of the limit; a part below this share of the bar is not drawn
#: on its own.
LONGEST, THINNEST = 1.5, 0.012
STATUS = {"chosen": "ok", "alternative": "skip", "not advised": "warn", "too large": "skip"}


@dataclasses.dataclass(frozen=True)
class Bar:
    """The memory that one option takes in one place.

    Attributes:
        place: `GPU` or `host`.
        words: peak and limit.
        over: the peak is above the limit.
        cut: the bar is longer than what is drawn.
        phase: when the peak is reached.
        drawing: the bar.
    """

    place: str
    words: str
    over: bool
    cut: bool
    phase: str
    drawing: Drawing


def _colors(plan: LaunchPlan) -> dict[str, int]:
    """The color of each item: the largest ones have their own, all others share the last."""
    sizes: dict[str, int] = {}
    for option in plan.memory.options:
        for item in (*peak(option.gpu)[1], *peak(option.host)[1]):
            share = option.gpu_limit_bytes if item in option.gpu else option.host_limit_bytes
            weight = item.bytes * 1000 // (share or item.bytes or 1)
            sizes[item.name] = max(sizes.get(item.name, 0), weight)
    largest = sorted(sizes, key=lambda name: -sizes[name])[: COLORS - 1]
    return {name: number for number, name in enumerate(largest, start=1)}


def _bar(
    place: str,
    items: Sequence[MemoryItem],
    total: int,
    limit: int | None,
    colors: dict[str, int],
) -> Bar:
    phase, there = peak(items)
    scale = limit * LONGEST if limit else max(total, 1)
    parts: list[Part] = []
    rest, room = 0, scale
    # the same order in every bar, so that options can be compared by eye
    for item in sorted(there, key=lambda item: colors.get(item.name, COLORS)):
        if item.name not in colors or item.bytes < scale * THINNEST:
            rest += item.bytes
            continue
        size = min(item.bytes, room)
        room -= size
        parts.append(Part(f"{item.name}: {gib(item.bytes)}", size, colors[item.name]))
    if rest:
        parts.append(Part(f"{OTHERS}: {gib(rest)}", min(rest, room), COLORS))
    words = f"{gib(total)} of {gib(limit)}" if limit else gib(total)
    return Bar(
        place=place,
        words=words,
        over=bool(limit) and total > (limit or 0),
        cut=total > scale,
        phase="" if phase == RESIDENT else phase,
        drawing=stacked(f"{place}: {words}", parts, limit, scale),
    )


def bars(option: MemoryOption, colors: dict[str, int]) -> list[Bar]:
    """The bars of an option: GPU, if there is one, and host."""
    found = []
    if option.gpu_limit_bytes is not None:
        found.append(_bar("GPU", option.gpu, option.gpu_bytes, option.gpu_limit_bytes, colors))
    host = _bar("host", option.host, option.host_bytes, option.host_limit_bytes, colors)
    return [*found, host]


def by_choice(options: Sequence[MemoryOption]) -> list[MemoryOption]:
    """The chosen option, then the others in their order."""
    return sorted(options, key=lambda option: option.verdict != "chosen")


def summary(plan: LaunchPlan) -> str:
    """What was chosen, in one line; "" if nothing fits."""
    chosen = next((one for one in plan.memory.options if one.verdict == "chosen"), None)
    if chosen is None:
        return ""
    words = [f"ZeRO stage {plan.stage}"]
    if plan.offload != "none":
        words.append(f"offload: {plan.offload}")
    words.append(f"micro-batch {plan.micro_batch}")
    if plan.checkpointing:
        words.append("activation checkpointing")
    if chosen.gpu_limit_bytes:
        words.append(f"{gib(chosen.gpu_bytes)} of {gib(chosen.gpu_limit_bytes)} on each GPU")
    return ", ".join(words)


def page(plan: LaunchPlan, folder: str | None) -> str:
    """The page.

    Args:
        plan: the plan.
        folder: where `-o DIR` wrote the launch files; None = they were not written.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    colors = _colors(plan)
    ranks = f"{plan.gpus_per_node} × {place(plan)}"
    if plan.nodes > 1:
        ranks = f"{plan.nodes} nodes × {ranks}"
    settings = [
        ("ZeRO stage", str(plan.stage)),
        ("offload", plan.offload),
        ("precision", plan.precision),
        ("micro-batch", str(plan.micro_batch)),
        ("gradient accumulation", str(plan.accumulation)),
        ("global batch", str(plan.global_batch)),
        ("sequence", f"{plan.sequence} tokens"),
        ("activation checkpointing", "on" if plan.checkpointing else "off"),
        ("attention", plan.attention),
        ("fine-tuning", plan.finetune),
        ("optimizer", plan.optimizer),
        ("launcher", plan.launcher),
        ("ranks", ranks),
        ("data loader workers", f"{plan.workers} for each rank"),
    ]
    return render(
        "launch_plan.html.j2",
        title=f"{plan.model.name} · dsdoctor recommend",
        plan=plan,
        settings=settings,
        size=f"{plan.model.parameters / 1e9:.2f}B parameters",
        ranks=ranks,
        options=[(option, bars(option, colors)) for option in by_choice(plan.memory.options)],
        summary=summary(plan),
        colors=[*colors.items(), (OTHERS, COLORS)],
        status=STATUS,
        notes=[reason for reason in plan.reasons if reason.verdict == "note"],
        command=command_line(plan, folder),
        folder=folder,
        files=files.files(plan),
        env=plan.env,
        config=json.dumps(plan.ds_config, indent=2, ensure_ascii=False),
    )
