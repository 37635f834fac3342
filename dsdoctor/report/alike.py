"""Merges findings that differ only in the GPU, and lines of a paste that differ only in numbers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.plain import printable

_GPU = lazy(r"\bGPU (\d{1,4})\b")
_NUMBER = lazy(r"\d+")


def one_for_all(findings: Iterable[Finding]) -> list[Finding]:
    """Merges findings of one condition that differ only in the GPU's number, in the first's place.

    Reports for programs keep them all.
    """
    kept: list[Finding] = []
    places: dict[tuple[object, ...], int] = {}
    others: dict[int, list[int]] = {}
    for finding in findings:
        numbers = set(_GPU.findall(finding.message))
        bad = finding.status not in (Status.OK, Status.SKIP)
        if not bad or len(numbers) != 1:
            kept.append(finding)
            continue
        texts = (finding.message, finding.effect, finding.hint)
        key = (finding.condition, finding.status, *(_GPU.sub("GPU", text) for text in texts))
        if key in places:
            others.setdefault(places[key], []).append(int(numbers.pop()))
        else:
            places[key] = len(kept)
            kept.append(finding)
    for place, gpus in others.items():
        message = f"{kept[place].message}; the same is true of GPU {ranges(gpus)}"
        kept[place] = msgspec.structs.replace(kept[place], message=message)
    return kept


def by_gpu(findings: Iterable[Finding]) -> dict[int, list[tuple[str, str]]]:
    """Status and condition of the bad findings that are about one GPU, by its number."""
    found: dict[int, list[tuple[str, str]]] = {}
    for finding in findings:
        numbers = set(_GPU.findall(finding.message))
        if finding.status not in (Status.OK, Status.SKIP) and len(numbers) == 1:
            row = (finding.status.value, finding.condition)
            found.setdefault(int(numbers.pop()), []).append(row)
    return found


def ranges(numbers: Iterable[int]) -> str:
    """Numbers, with runs of them as ranges.

    >>> ranges([1, 2, 3, 5, 7, 6])
    '1-3, 5-7'
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def stated_lines(finding: Finding) -> list[str]:
    """The lines of a paste that support a finding; of those that differ only in numbers, one."""
    rows = finding.evidence.get("stated_at")
    shown: dict[str, tuple[str, list[int]]] = {}
    for row in rows if isinstance(rows, list) else ():
        text = printable(" ".join(str(row["text"]).split()))
        key = _NUMBER.sub("0", text)
        shown.setdefault(key, (text, []))[1].append(int(row["line"]))
    found = []
    for text, numbers in shown.values():
        first, more = numbers[0], len(numbers) - 1
        alike = f" (and {more} similar line{'s' if more > 1 else ''})" if more else ""
        found.append(f"line {first}: {text}{alike}")
    return found
