"""PBS's health check: sets a faulty node offline, and online again if dsdoctor set it offline.

Sources: pbsnodes(8B) of OpenPBS 20 to 23: `-o` and `-r` need the privilege of a PBS manager or
operator, a comment has at most 80 characters, and a node prints as lines of `name = value`.
"""

from __future__ import annotations

import re
import sys

from dsdoctor.hook import health
from dsdoctor.hook.decide import Decision
from dsdoctor.hook.request import Request
from dsdoctor.model.plain import one_line, shortened

#: Limit of pbsnodes(8B).
_COMMENT_LENGTH = 80


def parse_node(text: str) -> tuple[frozenset[str], str]:
    r"""States and comment in the output of `pbsnodes NODE`.

    >>> states, comment = parse_node("n1\n  state = offline,job-busy\n  comment = dsdoctor: x")
    >>> sorted(states), comment
    (['job-busy', 'offline'], 'dsdoctor: x')
    """
    state = re.search(r"(?m)^\s+state = (\S+)", text)
    comment = re.search(r"(?m)^\s+comment = (.*?)\s*$", text)
    flags = frozenset(state[1].split(",")) if state else frozenset()
    return flags, comment[1] if comment else ""


def act(request: Request, decision: Decision, node: str) -> int:
    """Sets the node offline or online as `health.plan` decides; returns 0 unless it is faulty."""
    status = 1 if decision.block else 0
    text = _pbsnodes(node)
    if text is None:
        return status
    states, comment = parse_node(text)
    drained = frozenset({"DRAIN"} if "offline" in states else ())
    for what, reason in health.plan(drained, comment, "", decision, None):
        words = {
            "drain": ("-o", "-C", shortened(one_line(reason), _COMMENT_LENGTH)),
            "resume": ("-r", "-C", ""),
        }[what]
        said = {"drain": "offline", "resume": "online"}[what]
        if request.dry_run:
            sys.stdout.write(f"dry run: would set {node} {said} {reason}\n")
        elif _pbsnodes(*words, node) is not None:
            sys.stdout.write(f"{said} {node} {reason}\n")
    return status


def _pbsnodes(*words: str) -> str | None:
    return health.call("DSDOCTOR_PBSNODES", "pbsnodes", words)
