"""Predictions of `recommend` compared with measurements that others have published.

    python benchmarks/accuracy.py [--write docs/accuracy.md]

Facts with their sources are in published.json: nothing there is ours. Writes the section "Memory
plans" of the page, and leaves its other sections as they are. Formula, no measurement.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsdoctor.recommend import memory
from dsdoctor.recommend.models import from_config
from dsdoctor.recommend.saved import saved_of
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

FACTS = Path(__file__).with_name("published.json")
NOTES = Path(__file__).with_name("accuracy_notes.md")
UNITS = {"GB": 10**9, "GiB": 1 << 30, "MiB": 1 << 20}
HEADING = "## Memory plans"
#: What torch's allocator does not count, and the allowance for its cache.
OUTSIDE = ("CUDA context", "NCCL", "workspaces", "fragmentation")
#: What the allocator has not reserved.
RESERVED_OUTSIDE = ("CUDA context", "NCCL")


def rows(model: ModelShape, row: dict[str, Any]) -> Iterator[tuple[int, float, float]]:
    """Sequence, measured and predicted, in the unit of the row."""
    saved = saved_of(row.get("modules_to_save", ()), model)
    beside = {"saved": saved.parameters, "saved_head": saved.head}
    for sequence, measured in zip(row["sequences"], row["measured"], strict=True):
        sized = memory.estimate(model, Setting(sequence=sequence, **beside, **row["setting"]))
        size = sized.host_bytes if row.get("host") else sized.gpu_bytes
        if row.get("allocated"):
            size = memory.peak(item for item in sized.gpu if item.name not in OUTSIDE)
        if row.get("reserved"):
            size = memory.peak(item for item in sized.gpu if item.name not in RESERVED_OUTSIDE)
        yield sequence, measured, size / UNITS[row["unit"]]


def summary(ratios: list[float], what: str) -> str:
    """The errors in words."""
    within = sum(0.9 <= ratio <= 1.1 for ratio in ratios)
    return (
        f"{len(ratios)} {what}: median ratio {statistics.median(ratios):.2f}, lowest "
        f"{min(ratios):.2f}, highest {max(ratios):.2f}; {within} within 10%"
    )


def page(facts: dict[str, Any]) -> str:
    """The section."""
    about, _, found = NOTES.read_text(encoding="utf-8").partition("<!-- tables -->")
    text = [f"{HEADING}\n\n{about.strip()}\n"]
    ratios: list[float] = []
    reserved: list[float] = []
    tables: list[str] = []
    for source in facts["sources"]:
        tables.append(f"\n### {source['name']}\n")
        tables.append(
            f"<{source['url']}>, read {source.get('read', facts['read'])}. {source['about']}\n"
        )
        tables.append("| model | what | tokens | measured | predicted | ratio |")
        tables.append("|---|---|---|---|---|---|")
        for row in source["rows"]:
            model = from_config(facts["models"][row["model"]], row["model"])
            for sequence, measured, predicted in rows(model, row):
                ratio = predicted / measured
                if row.get("reserved"):
                    reserved.append(ratio)
                elif not row.get("host"):
                    ratios.append(ratio)
                tables.append(
                    f"| {row['model']} | {row['what']} | {sequence} | {measured:g} {row['unit']} | "
                    f"{predicted:.{0 if predicted >= 1000 else 2}f} | {ratio:.2f} |"
                )
    text.append(f"{summary(ratios, 'GPU figures')}. {summary(reserved, 'of reserved memory')}.")
    return "\n".join([*text, *tables, "\n" + found.strip() + "\n"])


def replaced(old: str, section: str) -> str:
    """The page with its section replaced."""
    if HEADING not in old:
        return (old.rstrip() or "# Accuracy") + "\n\n" + section
    before, _, rest = old.partition(HEADING)
    later = re.search(r"^## ", rest, re.MULTILINE)
    return before + section + ("\n" + rest[later.start() :] if later else "")


def main() -> None:
    """Prints the section, or writes it into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    section = page(json.loads(FACTS.read_text(encoding="utf-8")))
    if args.write is None:
        print(section)
        return
    old = args.write.read_text(encoding="utf-8") if args.write.exists() else ""
    args.write.write_text(replaced(old, section), encoding="utf-8")


if __name__ == "__main__":
    main()
