"""`ip addr`, `ip -br addr` and `ifconfig`: the network interfaces of a node.

A list counts if it is whole: it has the loopback interface, and a closed block or a prompt follows
it. Of two lists nobody says which node is which. The forms are those of iproute2 6.1.0 and
net-tools 2.10 (run 2026-11-28), and of net-tools 1.60, which busybox kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.facts.network import Network
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_NAME = r"(?P<name>[\w.-]{1,15})"
_HEADS = (
    re.compile(rf"\s*\d{{1,4}}: {_NAME}(?:@\w{{1,20}})?: <(?P<flags>[A-Z_,-]{{2,200}})> mtu \d"),
    re.compile(rf"\s*{_NAME}: flags=\d{{1,6}}<(?P<flags>[A-Z_,]{{0,200}})> +mtu \d"),
    re.compile(rf"{_NAME}\s+Link encap:(?P<kind>\w+)"),
)
#: `ip -br addr`: name, state, addresses.
_BRIEF = re.compile(
    rf"\s*{_NAME}(?:@\w{{1,20}})?\s+(?P<state>UP|DOWN|UNKNOWN)(?P<rest>(?:\s+[\da-f.:]{{3,39}}/\d{{1,3}}){{0,40}})\s*$"
)
_ADDRESS = re.compile(r"\s+inet6? (?:addr: ?)?(?P<address>[\da-f.:]{3,39})(?=[/%\s]|$)")
#: The flags of old versions of `ifconfig`, on a line of their own.
_FLAGS = re.compile(
    r"\s+(?P<flags>(?:UP |LOOPBACK |BROADCAST |RUNNING |NOARP |MULTICAST ){1,6}) ?MTU:"
)
_MOST_LINES = 2000


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = []
    place = 0
    while place < len(lines):
        if not _begins(lines[place]):
            place += 1
            continue
        items, end = _listed(lines, place)
        if any(item["loopback"] for item in items) and _is_whole(lines, end):
            found.append((items, lines[place]))
        place = end
    if len(found) == 1:
        items, line = found[0]
        into.state(Network, "interfaces", items, line)


def _begins(line: Line) -> bool:
    return any(head.match(line.text) for head in _HEADS) or _BRIEF.match(line.text) is not None


def _listed(lines: Sequence[Line], place: int) -> tuple[list[dict[str, Any]], int]:
    """The interfaces from a line on, and the place after them."""
    items: list[dict[str, Any]] = []
    end = place
    for at in range(place, min(len(lines), place + _MOST_LINES)):
        text = lines[at].text
        head = next(filter(None, (form.match(text) for form in _HEADS)), None)
        brief = _BRIEF.match(text)
        if head:
            items.append(_item(head["name"], head.groupdict().get("flags") or ""))
            if head.groupdict().get("kind") == "Local":
                items[-1]["loopback"] = True
        elif brief:
            items.append(_item(brief["name"], brief["state"]))
            items[-1]["up"] = brief["state"] != "DOWN"
            items[-1]["loopback"] = brief["name"] == "lo"
            items[-1]["addresses"] = [word.partition("/")[0] for word in brief["rest"].split()]
        elif text.strip() and not text[0].isspace():
            break
        elif address := _ADDRESS.match(text):
            items[-1]["addresses"].append(address["address"])
        elif flags := _FLAGS.match(text):
            items[-1]["up"] = "UP" in flags["flags"].split()
        if lines[at].fence:
            break
        end = at + 1
    return items, end


def _item(name: str, flags: str) -> dict[str, Any]:
    words = flags.split(",")
    return {"name": name, "up": "UP" in words, "loopback": "LOOPBACK" in words, "addresses": []}


def _is_whole(lines: Sequence[Line], end: int) -> bool:
    """Whether something follows that shows that the list was not cut."""
    return end < len(lines) and bool(lines[end].text.strip())


READER = Reader("ip addr", _read)
