"""`sinfo` in any of its formats, and `scontrol show node`: which nodes are out of service, and why.

Columns are found by the words of the heading, since sites choose their own (`sinfo -o`).
Source: Slurm 17.11 to 25.05, src/sinfo/sinfo.c and print.c, src/api/node_info.c, and
`node_state_string_compact` of src/common/slurm_protocol_defs.c, read 2026-11-23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.cluster import ClusterNodes
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

#: Words of a heading of `sinfo`, which has at least two of them, including a state or a reason.
_COLUMNS = frozenset(
    {
        "PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST", "REASON", "USER",
        "TIMESTAMP", "CPUS", "S:C:T", "MEMORY", "TMP_DISK", "WEIGHT", "AVAIL_FE", "HOSTNAMES",
        "NODE", "GRES", "GRES_USED", "FEATURES", "AVAIL_FEATURES", "ACTIVE_FEATURES",
        "NODES(A/I)", "NODES(A/I/O/T)", "CPUS(A/I/O/T)", "FREE_MEM", "CPU_LOAD", "JOB_SIZE",
        "ROOT", "OVERSUBS", "GROUPS", "SOCKETS", "CORES", "THREADS", "STATELONG", "STATECOMPACT",
    }
)  # fmt: skip
_NAMES = ("NODELIST", "HOSTNAMES", "NODE")
_STATES = ("STATE", "STATELONG", "STATECOMPACT")
_STATE = re.compile(r"[A-Za-z_]{2,20}[*~#!%$@^-]{0,2}(?:\+[A-Za-z_]{2,20}[*~#!%$@^-]{0,2})*\+?$")
#: A host list, not a word of prose: letters, digits, brackets.
_HOST = r"[A-Za-z][\w.-]*(?:\[[\d,-]+\][\w.-]*)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*$")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d|Unknown$")
#: Printed instead of a reason if there is none.
_NO_REASON = frozenset({"", "none", "(null)", "n/a"})
#: Flags of a state (`idle~`): maintenance, a pending reboot, power saving. `*` = no answer.
_PLANNED_FLAGS = frozenset("$@^~#!%-")
_PLANNED = frozenset(
    {"maint", "maintenance", "reboot", "reboot_issued", "reboot_requested", "powered_down",
     "powering_down", "powering_up", "power_down", "power_up", "future", "futr", "planned"}
)  # fmt: skip
_NODE = re.compile(r"\s*NodeName=(?P<name>\S+)(?:\s|$)")
_FIELD = re.compile(r"(?:^|\s)State=(?P<state>\S+)")
_REASON = re.compile(r"(?:^|\s)Reason=(?P<reason>.+?)(?:\s\[\S+@[\dT:-]+\])?\s*$")
#: A reason with its author and date, quoted without the rest; only a node out of service has one.
_REASON_ALONE = re.compile(r"(?:^|\s)Reason=(?P<reason>\S.{0,150}?) \[\w+@\d{4}-\d\d-\d\dT[\d:]+\]")
#: A row of the default list without its heading; partition, its state and limit may be missing.
_BARE = re.compile(
    r"\s*(?P<head>\S+\s+(?:up|down|drain|inact)\s+\S+\s+)?\d{1,5}\s+"
    r"(?P<state>(?:alloc|comp|down|drain|drng|fail|failg|futr|idle|inval|maint|mix|plnd|pow_dn|resv"
    r"|unk)[*~#!%$@^-]?)\s+(?P<names>[A-Za-z][\w.-]*\[[\d,-]+\](?:,\S+)?|[A-Za-z][\w.-]*\d)\s*$"
)
#: Lines of the longest block of `scontrol show node`, and rows of the longest list.
_BLOCK = 40
#: More rows than any cluster's list has: the cost of a list grows with its square.
MOST_NODES = 400
_ROWS = 2000


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = _Rows(into)
    place = 0
    while place < len(lines):
        head = _heading(lines[place].text)
        if head:
            place = _list(lines, place, head, found)
        elif node := _NODE.match(lines[place].text):
            place = _shown(lines, place, node["name"], found)
        elif told := _REASON_ALONE.search(lines[place].text):
            found.add("", "", told["reason"], lines[place])
        elif _BARE.match(lines[place].text):
            place = _bare(lines, place, found)
        place += 1


def _bare(lines: Sequence[Line], place: int, found: _Rows) -> int:
    """Reads rows without a heading; returns the last one. A truncated row needs another row."""
    rows: list[tuple[re.Match[str], Line]] = []
    for line in lines[place : place + _ROWS]:
        row = _BARE.match(line.text)
        if row is None:
            break
        rows.append((row, line))
    if len(rows) > 1 or rows[0][0]["head"]:
        for row, line in rows:
            found.add(row["names"], row["state"], "", line)
    return place + len(rows) - 1


class _Rows:
    """Rows in the order of the text."""

    def __init__(self, into: Statements) -> None:
        self._into = into
        self._count = 0

    def add(self, names: str, state: str, reason: str, line: Line) -> None:
        """Adds a row; one without a state is from `sinfo -R`, which lists only unusable nodes."""
        if self._count >= MOST_NODES:
            return
        found = _STATE.match(state)
        words = re.findall(r"[a-z_]+", state.lower()) if found else ["unavailable"]
        flags = set(re.sub(r"[\w+]", "", state)) if found else set()
        say = f"nodes.{self._count}"
        for field, value in (
            ("names", names),
            ("scheduler", "slurm"),
            ("states", words),
            ("planned", bool(flags & _PLANNED_FLAGS) or bool(_PLANNED.intersection(words))),
            ("responds", "*" not in flags and "not_responding" not in words),
            ("reason", "" if reason.lower() in _NO_REASON else reason[:200]),
            ("gpus", None),
            ("gpus_usable", None),
            ("gpu_labelled", False),
        ):
            self._into.state(ClusterNodes, f"{say}.{field}", value, line)
        self._into.state(ClusterNodes, "nodes[]", None, line)
        if not self._count:
            self._into.state(ClusterNodes, "gpus_requested", value=False, line=line)
        self._count += 1


def _heading(text: str) -> list[str] | None:
    """The columns of a heading; it may follow the command on the same line."""
    words = text.replace("|", " ").split()
    while words and words[0] not in _COLUMNS:
        words = words[1:]
    known = len(words) > 1 and all(word in _COLUMNS for word in words)
    if not known or not any(name in words for name in _NAMES):
        return None
    return words if any(name in words for name in (*_STATES, "REASON")) else None


def _list(lines: Sequence[Line], place: int, head: list[str], found: _Rows) -> int:
    """Reads rows up to the first other line; returns the last line that was read."""
    last = place
    for at in range(place + 1, min(len(lines), place + _ROWS)):
        line = lines[at]
        row = None if line.fence or _heading(line.text) else _row(line.text, head)
        if row is None:
            break
        names = next((row[name] for name in _NAMES if row.get(name)), "")
        state = next((row[name] for name in _STATES if row.get(name)), "")
        found.add(names, state, row.get("REASON", ""), line)
        last = at
    return last


def _row(text: str, head: list[str]) -> dict[str, str] | None:
    """The cells by column; None for a line that is not a row of this list.

    Only a reason contains spaces, so the other columns are counted from both ends.
    """
    words = text.replace("|", " ").split()
    at = head.index("REASON") if "REASON" in head else len(head)
    after = max(0, len(head) - at - 1)
    if len(words) < at + after or ("REASON" not in head and len(words) != len(head)):
        return None
    row = dict(zip(head[:at], words[:at], strict=True))
    end = len(words) - after
    row.update(zip(head[at + 1 :], words[end:], strict=True))
    if at < len(head):
        row["REASON"] = " ".join(words[at:end])
    names = [row[name] for name in _NAMES if name in row]
    states = [row[name] for name in _STATES if name in row]
    if not all(_HOSTS.match(name) for name in names):
        return None
    if not all(_STATE.match(state) for state in states):
        return None
    if "TIMESTAMP" in row and not _TIME.match(row["TIMESTAMP"]):
        return None
    return row


def _shown(lines: Sequence[Line], place: int, name: str, found: _Rows) -> int:
    """Reads one block of `scontrol show node`; returns its last line."""
    state, reason, at, last = "", "", lines[place], place
    for number, line in enumerate(lines[place : place + _BLOCK], place):
        if number > place and (_NODE.match(line.text) or line.fence):
            break
        last = number
        if stated := _FIELD.search(line.text):
            state, at = stated["state"], line
        if told := _REASON.search(line.text):
            reason = told["reason"]
    if _STATE.match(state):
        found.add(name, state, reason, at)
    return last


READER = Reader("sinfo", _read)
