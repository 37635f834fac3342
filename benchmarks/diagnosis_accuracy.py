"""The section "Diagnosis" of docs/accuracy.md, from the figures that runs left.

    python benchmarks/diagnosis_accuracy.py [--write docs/accuracy.md]

Leaves the other sections of the page as they are.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("diagnosis_figures.json")
HEADING = "## Diagnosis"
ABOUT = """\
How often `diagnose` is right, from `benchmarks/diagnosis_figures.json`; made by
`python benchmarks/diagnosis_accuracy.py --write docs/accuracy.md`. A *first run* is one on cases
that were labeled before any version of the tool had read them: only those say what to expect.
Of a set that was *held back* nothing had been learned at that commit, but an earlier version had
read it.
"False causes" counts logs of healthy runs, of the script's own errors and of failures that no
condition names, for which a cause was named.
"""
#: What is shown of each level, and the confidences that it was named with.
LEVELS = {
    "0.95": ("0.95",),
    "0.90": ("0.90",),
    "0.80": ("0.80",),
    "0.70": ("0.70",),
    "0.40 (stated as 0.60 until 2026-11-22)": ("0.60", "0.40"),
}


def share(pair: list[int]) -> str:
    """`7/9 (78%)`, or `-` for none.

    >>> share([7, 9]), share([0, 0])
    ('7/9 (78%)', '-')
    """
    return f"{pair[0]}/{pair[1]} ({100 * pair[0] / pair[1]:.0f}%)" if pair[1] else "-"


def page(figures: dict[str, Any]) -> str:
    """The section."""
    runs = figures["runs"]
    text = [f"{HEADING}\n", ABOUT]
    text += ["| cases | run | commit | right | of 50 lines or more | false causes |"]
    text += ["|---|---|---|---|---|---|"]
    for run in runs:
        kind = "held back" if run.get("held") else "learned from"
        kind = "**first run**" if run["first"] else kind
        text.append(
            f"| {run['set']} | {kind}, {run['date']} | `{run['commit']}` | "
            f"{share([run['right'], run['all']])} | {share(run['long'])} | {share(run['false'])} |"
        )
    text += ["\n### What a confidence means\n"]
    text += ["How often the cause named first was right, by the confidence it was named with.\n"]
    text += ["| confidence | first runs | all runs |", "|---|---|---|"]
    for level, named in LEVELS.items():
        sums = [
            [
                sum(run["levels"].get(one, [0, 0])[at] for run in some for one in named)
                for at in (0, 1)
            ]
            for some in ([run for run in runs if run["first"]], runs)
        ]
        text.append(f"| {level} | {share(sums[0])} | {share(sums[1])} |")
    return "\n".join(text) + "\n"


def replaced(old: str, section: str) -> str:
    """The page with its section made anew, or added at its end."""
    if HEADING not in old:
        return (old.rstrip() or "# Accuracy") + "\n\n" + section
    before, _, rest = old.partition(HEADING)
    later = re.search(r"^## ", rest, re.MULTILINE)
    return before + section + ("\n" + rest[later.start() :] if later else "")


def main() -> None:
    """Prints the section, or writes it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    section = page(json.loads(FIGURES.read_text(encoding="utf-8")))
    if args.write is None:
        print(section)
        return
    old = args.write.read_text(encoding="utf-8") if args.write.exists() else ""
    args.write.write_text(replaced(old, section), encoding="utf-8")


if __name__ == "__main__":
    main()
