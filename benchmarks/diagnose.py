"""Accuracy of `diagnose` on a file of cases (JSON lines) or on an index of provoked logs.

    python benchmarks/diagnose.py --cases FILE [--wrong]

Prints the accuracy per label, the confusion pairs, the share of `none` cases left in peace, and
the same for cases whose label stands in their thread (`label_basis: thread`).
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "checks")]

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome


def load(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    if path.suffix == ".json":
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [(row, (path.parent / row["file"]).read_bytes()) for row in rows]
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [(row, row["text"].encode()) for row in rows]


def answer(data: bytes, signatures: list[Any]) -> tuple[str, float]:
    """What is said, and how sure (0 if no cause is named)."""
    diagnosis = diagnose([Source(name="log", data=data)], signatures)
    if diagnosis.outcome is Outcome.CAUSE:
        return diagnosis.causes[0].condition, diagnosis.causes[0].confidence
    return {"clean": "none"}.get(diagnosis.outcome.value, diagnosis.outcome.value), 0.0


def fits(row: dict[str, Any], said: str) -> bool:
    wanted = {row["label"], *row["also_ok"]}
    if row["label"] == "none":
        return said in wanted or said in {"none", "user-code"}
    return said in wanted


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True, type=Path)
    parser.add_argument("--wrong", action="store_true", help="name the cases that are wrong")
    options = parser.parse_args()
    registry = packs.load(builtin_only=True)
    signatures = signatures_of(registry)
    # cases may use the name that a condition had when they were labelled
    now = {old: unit.condition.name for unit in registry for old in unit.condition.formerly}
    results: list[tuple[dict[str, Any], str]] = []
    reliability: dict[float, list[bool]] = collections.defaultdict(list)
    for row, data in load(options.cases):
        named = [now.get(name, name) for name in (row["label"], *row["also_ok"])]
        said, sure = answer(data, signatures)
        results.append(({**row, "label": named[0], "also_ok": named[1:]}, said))
        if sure:
            reliability[sure].append(fits(*results[-1]))
    groups = {"all": results}
    thread = [pair for pair in results if pair[0].get("label_basis") == "thread"]
    if thread:
        groups["label_basis: thread"] = thread
    for name, pairs in groups.items():
        faults = [p for p in pairs if p[0]["label"] != "none"]
        peace = [p for p in pairs if p[0]["label"] == "none"]
        right = sum(fits(*p) for p in faults)
        print(f"{name}: {right}/{len(faults)} causes right = {right / max(1, len(faults)):.1%}")
        if peace:
            calm = sum(fits(*p) for p in peace)
            print(f"{name}: {calm}/{len(peace)} `none` left in peace = {calm / len(peace):.1%}")
    for sure, right in sorted(reliability.items(), reverse=True):
        print(f"  said with {sure:.2f}: {sum(right)}/{len(right)} right")
    labels: dict[str, list[bool]] = collections.defaultdict(list)
    for row, said in results:
        labels[row["label"]].append(fits(row, said))
    for label, marks in sorted(labels.items()):
        print(f"  {label:40} {sum(marks)}/{len(marks)}")
    pairs_wrong = collections.Counter((r["label"], s) for r, s in results if not fits(r, s))
    for (label, said), count in pairs_wrong.most_common():
        print(f"  {label} taken for {said}: {count}")
    if options.wrong:
        for row, said in results:
            if not fits(row, said):
                print(f"  wrong: {row.get('id', row.get('name'))}: {row['label']} -> {said}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
