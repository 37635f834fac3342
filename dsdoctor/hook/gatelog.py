"""The log of a node's gate, in its run folder, and a summary of the last day.

The script of `hook install` writes a line when a run begins and one when it ends, so that a run
that was killed, or whose interpreter is missing, is counted too; a hook that is started without the
script writes its own line. The log is in /run, so each boot begins a new one; at most two files of
2 MiB each exist. Standard library only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dsdoctor import files
from dsdoctor.hook.request import masked_name
from dsdoctor.safe_path import UnsafePathError

if sys.platform != "win32":
    import fcntl

#: In the run folder; the script of `hook install` writes to it too.
NAME = "gate.log"
OLD_NAME = "gate.log.1"
LIMIT_KIB = 2048
#: How much of each file is read, from its end, in case nothing has rotated it.
READ_BYTES = 16 << 20
DAY_SECONDS = 86400.0
#: Longest word, latest time and longest duration that the gate itself writes.
_WORD = 200
_LATEST, _LONGEST_SECONDS = 1e11, 1e6
#: A run that began this long ago and has no end was killed: no budget in `[hook]` is longer.
_KILLED_AFTER_SECONDS = 700.0
_MEDIAN, _TAIL = 0.5, 0.99
#: Cached, because all lines of a log of 16 MiB contain the same names.
_masked = functools.lru_cache(maxsize=4096)(masked_name)


@dataclasses.dataclass
class Summary:
    """What one hook did on one node.

    Attributes:
        node, hook: which.
        ran: runs that were begun.
        passed: runs that let a job pass after a verdict.
        unjudged: number of runs that let a job pass without a verdict, by cause.
        blocked: number of runs that blocked, by condition, or by cause under --fail-closed.
        would_block: the same for runs that passed because of --dry-run.
        noted: number of epilogs that reported what their job left, by condition.
        killed: runs that began and did not end; Slurm kills a prolog that is too slow.
        seconds: wall time of each run that ended, sorted.
    """

    node: str
    hook: str
    ran: int = 0
    passed: int = 0
    unjudged: dict[str, int] = dataclasses.field(default_factory=dict)
    blocked: dict[str, int] = dataclasses.field(default_factory=dict)
    would_block: dict[str, int] = dataclasses.field(default_factory=dict)
    noted: dict[str, int] = dataclasses.field(default_factory=dict)
    killed: int = 0
    seconds: list[float] = dataclasses.field(default_factory=list)

    def quantile(self, share: float) -> float | None:
        """Seconds within which this share of the runs ended (nearest rank); None without runs."""
        if not self.seconds:
            return None
        return self.seconds[max(0, math.ceil(share * len(self.seconds)) - 1)]

    def as_json(self) -> dict[str, Any]:
        """For `--format json`."""
        return {
            "node": self.node,
            "hook": self.hook,
            "ran": self.ran,
            "passed": self.passed,
            "unjudged": self.unjudged,
            "blocked": self.blocked,
            "would_block": self.would_block,
            "noted": self.noted,
            "killed": self.killed,
            "seconds_p50": self.quantile(_MEDIAN),
            "seconds_p99": self.quantile(_TAIL),
        }


def write(folder: Path, **words: object) -> None:
    """Appends a line of key=value pairs with the time; errors are ignored."""
    words = {"time": int(time.time()), **words}
    # a space in a value would begin another pair
    line = " ".join(
        f"{name}={'_'.join(str(value).split())}"
        for name, value in words.items()
        if value not in ("", None)
    )
    with contextlib.suppress(OSError):
        handle = files.open_append(folder / NAME, mode=0o644, strict=True)
        try:
            os.write(handle, f"{line}\n".encode())
        finally:
            os.close(handle)


def rotate(folder: Path, limit_kib: int = LIMIT_KIB) -> None:
    """Begins a new file if the log is too large; of several hooks at once, only one does so."""
    path = folder / NAME
    try:
        if path.stat().st_size <= limit_kib * 1024 or sys.platform == "win32":
            return
        handle = files.open_append(path, mode=0o644, strict=True)
    except OSError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == path.stat().st_ino:
            files.rename(path, OLD_NAME, strict=True)
    except OSError:
        return
    finally:
        os.close(handle)


def parse(line: str) -> dict[str, str]:
    """The pairs of a line.

    >>> parse("time=1 event=end hook=npd cause=")
    {'time': '1', 'event': 'end', 'hook': 'npd', 'cause': ''}
    """
    pairs = (word.partition("=") for word in line.split())
    return {name: _sanitized(value) for name, equals, value in pairs if equals}


def _sanitized(word: str) -> str:
    """A value without characters that control a terminal or end a label of Prometheus."""
    return "".join(
        c if c.isprintable() and c not in '"\\' else "\N{REPLACEMENT CHARACTER}"
        for c in word[:_WORD]
    )


def read(folder: Path) -> list[dict[str, str]]:
    """All lines, oldest first, except those that a full disk has truncated.

    Raises:
        UnsafePathError: another account could have written the log of root's gate, or it is not a
            regular file.
    """
    rows = []
    for name in (OLD_NAME, NAME):
        try:
            text = _end_of(folder / name)
        except UnsafePathError:
            raise
        except OSError:
            continue
        rows += [parse(line) for line in text.split("\n")[:-1]]
    return [row for row in rows if row.get("hook") and _is_time(row.get("time"))]


def _end_of(path: Path) -> str:
    """The last READ_BYTES of a file, without a line that begins before them."""
    with os.fdopen(files.open_read(path, strict=True), "rb") as file:
        skipped = max(0, os.fstat(file.fileno()).st_size - READ_BYTES)
        file.seek(skipped)
        data = file.read(READ_BYTES)
    if skipped:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


def _is_time(text: str | None) -> bool:
    value = _number(text)
    return value is not None and 0 <= value <= _LATEST


def summarize(
    rows: Iterable[dict[str, str]], node: str, now: float | None = None, day: float = DAY_SECONDS
) -> list[Summary]:
    """One summary for each node and hook.

    Args:
        rows: what `read` returned.
        node: name of this node, for lines without one.
        now: seconds since the epoch; None = the current time.
        day: how far back to look, in seconds.
    """
    now = time.time() if now is None else now
    runs: dict[str, list[dict[str, str]]] = {}
    for number, row in enumerate(rows):
        if now - float(row["time"]) <= day:
            runs.setdefault(row.get("run") or f"line {number}", []).append(row)
    found: dict[tuple[str, str], Summary] = {}
    for lines in runs.values():
        first = lines[0]
        key = (_masked(first.get("node") or node), _masked(first["hook"]))
        ends = [row for row in lines if row.get("event") == "end"]
        _add(found.setdefault(key, Summary(*key)), first, ends[-1] if ends else None, now)
    for summary in found.values():
        summary.seconds.sort()
    return [found[key] for key in sorted(found)]


def _add(summary: Summary, first: dict[str, str], end: dict[str, str] | None, now: float) -> None:
    summary.ran += 1
    if end is None:
        summary.killed += now - float(first["time"]) > _KILLED_AFTER_SECONDS
        return
    seconds = _number(end.get("seconds"))
    if seconds is not None and 0 <= seconds <= _LONGEST_SECONDS:
        summary.seconds.append(seconds)
    for word in filter(None, _masked(end.get("noted", "")).split("+")):
        summary.noted[word] = summary.noted.get(word, 0) + 1
    cause = _masked(end.get("cause", ""))
    if end.get("decision") == "block":
        word = _masked(end.get("condition", "")) or cause or "unnamed"
        summary.blocked[word] = summary.blocked.get(word, 0) + 1
    elif would := _masked(end.get("would", "")):
        summary.would_block[would] = summary.would_block.get(would, 0) + 1
    elif cause:
        summary.unjudged[cause] = summary.unjudged.get(cause, 0) + 1
    else:
        summary.passed += 1


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def text(summaries: Iterable[Summary], hours: float) -> str:
    """The summaries as text: a block for each hook of each node."""
    lines: list[str] = []
    for one in summaries:
        lines.append(f"{one.node} · {one.hook} · last {hours:g} h")
        unjudged, blocked = sum(one.unjudged.values()), sum(one.blocked.values())
        would = sum(one.would_block.values())
        going = one.ran - one.passed - unjudged - blocked - would - one.killed
        lines.append(
            f"  {one.ran} ran: {one.passed} passed, {unjudged} passed without a verdict, "
            f"{blocked} blocked"
            + (f", {would} passed because of dry run" if would else "")
            + (f", {one.killed} killed" if one.killed else "")
            + (f", {going} running" if going else "")
        )
        for title, counts in (
            ("passed without a verdict", one.unjudged),
            ("blocked", one.blocked),
            ("would have blocked without dry run", one.would_block),
            ("left behind by jobs", one.noted),
        ):
            if counts:
                pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
                lines.append(f"  {title}: " + ", ".join(f"{word} {count}" for word, count in pairs))
        if one.seconds:
            p50, p99 = one.quantile(_MEDIAN), one.quantile(_TAIL)
            lines.append(f"  seconds: p50 {p50:.2f}, p99 {p99:.2f}, max {one.seconds[-1]:.2f}")
    return "\n".join(lines) + "\n" if lines else ""


def metrics(summaries: Iterable[Summary]) -> list[str]:
    """The summaries for Prometheus' textfile collector."""
    listed = list(summaries)
    lines = [
        "# HELP dsdoctor_gate_runs runs of the last 24 h, by what was decided and why",
        "# TYPE dsdoctor_gate_runs gauge",
    ]
    for one in listed:
        rows = [("pass", "", one.passed), ("killed", "", one.killed)]
        rows += [("pass-unjudged", word, count) for word, count in sorted(one.unjudged.items())]
        rows += [("block", word, count) for word, count in sorted(one.blocked.items())]
        rows += [("would-block", word, count) for word, count in sorted(one.would_block.items())]
        lines += [
            f'dsdoctor_gate_runs{{node="{one.node}",hook="{one.hook}",decision="{decision}",'
            f'cause="{word}"}} {count}'
            for decision, word, count in rows
        ]
    lines += [
        "# HELP dsdoctor_gate_noted epilogs of the last 24 h that noted what their job left",
        "# TYPE dsdoctor_gate_noted gauge",
    ]
    lines += [
        f'dsdoctor_gate_noted{{node="{one.node}",hook="{one.hook}",condition="{word}"}} {count}'
        for one in listed
        for word, count in sorted(one.noted.items())
    ]
    lines += [
        "# HELP dsdoctor_gate_seconds wall time of the runs of the last 24 h",
        "# TYPE dsdoctor_gate_seconds gauge",
    ]
    for one in listed:
        for share in (_MEDIAN, _TAIL):
            value = one.quantile(share)
            if value is not None:
                lines.append(
                    f'dsdoctor_gate_seconds{{node="{one.node}",hook="{one.hook}",'
                    f'quantile="{share:g}"}} {value:.3f}'
                )
    return lines
