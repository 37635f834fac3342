"""How the budget of a gate is divided among its script, dsdoctor and `logger`.

    first line of the script                                                    budget
    |------------------------------------|------------------------|----------------|
                                     `decide`             given up (`end`)
      the script starts dsdoctor,     verdict, log,         `logger`, which may
      which reads the node            scontrol              hang; tidying

If dsdoctor has not ended by then, the script gives it up and can report no more than that. dsdoctor
therefore decides earlier, so that a slow check can still report its reason.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path

from dsdoctor.hook.request import Request

#: Seconds that the script needs after it has given dsdoctor up.
_SCRIPT_RESERVE = 0.7
#: Seconds that dsdoctor needs after its decision, with and without a script around it.
_RESERVE_IN_SCRIPT, _RESERVE = 0.8, 0.5
#: Largest share of a small budget that is reserved.
_MOST_RESERVED = 0.25
#: Seconds for exiting, at the end of that reserve.
_LEAVE_SECONDS = 0.2
#: Prolog and task prolog of one job together take at most this many budgets.
_BOTH = 1.4
#: The script sets this variable to the uptime at which it gives dsdoctor up. It is not an option,
#: because an older dsdoctor that is reinstalled under the same scripts would reject it.
VARIABLE = "DSDOCTOR_GATE_ENDS"


def given_up_after(budget: float) -> float:
    """Seconds after its first line at which a script gives dsdoctor up.

    >>> given_up_after(5.0), given_up_after(1.0)
    (4.3, 0.75)
    """
    return budget - min(_SCRIPT_RESERVE, _MOST_RESERVED * budget)


def free_seconds(budget: float) -> float:
    """How long a prolog may take before its task prolog must be shorter.

    >>> round(free_seconds(5.0), 1)
    2.0
    """
    return (_BOTH - 1) * budget


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of one run of dsdoctor, on the monotonic clock.

    Attributes:
        decide: when it must have decided.
        end: when it must have ended.
    """

    decide: float
    end: float


def limits(request: Request, begun: float, given_up: float | None) -> Limits:
    """The limits of one run.

    Args:
        request: its budget and token count.
        begun: when this process was started.
        given_up: when its script gives it up; None = not known.

    >>> limits(Request("npd"), 100.0, None)
    Limits(decide=104.5, end=105.0)
    >>> limits(Request("npd", token="x"), 100.0, 104.0)
    Limits(decide=103.2, end=103.8)
    """
    budget = request.budget
    if not request.token:
        return Limits(begun + budget - _RESERVE, begun + budget)
    end = begun + given_up_after(budget)
    if given_up is not None:
        end = min(end, given_up)
    reserve = min(_RESERVE_IN_SCRIPT, _MOST_RESERVED * budget)
    return Limits(end - reserve, end - min(_LEAVE_SECONDS, reserve))


def given_up(env: Mapping[str, str] = os.environ) -> float | None:
    """When the script gives this process up, on the monotonic clock; None if that is not set."""
    try:
        now, _ = Path("/proc/uptime").read_text(encoding="ascii").split()
        left = float(env[VARIABLE]) - float(now)
    except (KeyError, OSError, ValueError):
        return None
    return time.monotonic() + left
