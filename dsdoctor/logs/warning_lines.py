"""Whether a line is a warning: its program continued, so the line did not end the run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.prefixes import strip_prefixes

#: Lines on either side that are searched for the rest of a warning.
REACH = 3
#: A shorter line may stand in any other.
LEAST = 16
#: A line of Python's `warnings`, of a logger at the level of a warning, or, at that level or below,
#: of torch's C++ (c10 1.0-2.15 util/logging_is_not_google_glog.h) or TensorFlow's and XLA's
#: (tensorflow 1.0-2.20, tsl/platform/default/logging.cc).
WARNING = lazy(
    r"(?:^|[\s\].:])\w{0,40}Warning: |(?:^|[\s\[|-])WARN(?:ING)?(?:[\]\s:|-]|$)"
    r"|^\[[IW]\d{0,4} ?[^\]]{0,120}\.(?:cpp|cc|h):\d+\]"
    r"|^(?:[\d-]{10} [\d:.]{8,15}: )?[IW] (?:external|tensorflow|xla|tsl)/\S{1,120}"
    r"\.(?:cc|h):\d+\] ",
)
#: Python's head of a warning (Lib/warnings.py: file, line, category).
HEAD = lazy(r":\d+: \w*Warning: ")
#: The source line that Python quotes below a warning.
QUOTED = lazy(r"^  \s*(?:\w+\.)?(?:warn|warnings\.warn|warn_\w+|warning_once)\(")
#: The head of conflicts that pip reports but accepts (pip 20.3-25 commands/install.py).
NOTICE = "dependency resolver does not currently"
SOURCE = lazy(r"^  \S")
#: The tag of a line with which a program reports what it skips.
LEFT_OUT = lazy(r"(?i)^\W{0,3}skip(?:ped|ping)?[\]:)]")
#: How a line says that what failed is tried again: NCCL (2.18-2.28 misc/socket.cc), pip,
#: huggingface_hub (utils/_http.py), and what scripts print of their own. The kubelet's "Back-off
#: restarting" says that it has failed again and again.
TRIES_AGAIN = lazy(
    r"(?i)\b(?:re-?trying|trying again|(?:will|to) (?:retry|try again)"
    r"|(?<!back-off )restarting|will restart"
    r"|will be (?:retried|tried again))\b"
)

#: What follows the warning that a request failed, behind the head of a logger: huggingface_hub
#: 0.22-1.0 utils/_http.py.
RETRIED = lazy(r"^(?:\S{0,80}[\]:]\s?)?Retrying (?:in|after) \d")


def tries_again(text: str) -> bool:
    """Whether a line says itself that what failed is tried again.

    >>> tries_again("NCCL WARN Connect to 10.0.0.4<41611> failed : Connection refused, retrying")
    True
    >>> tries_again("Connect to 10.0.0.4<41611> returned Connection refused, exceeded retries (35)")
    False
    >>> tries_again("OCI runtime create failed: x: unknown Back-off restarting failed container")
    False
    """
    return TRIES_AGAIN.search(text) is not None


def warnings_among(lines: Sequence[str]) -> list[str]:
    """The lines that are warnings, or belong to one of several lines.

    >>> warnings_among(["step 4", "x.py:1: UserWarning: no GPU", "  warnings.warn(", "step 5"])
    ['x.py:1: UserWarning: no GPU']
    """
    found = []
    for at, text in enumerate(lines):
        own = strip_prefixes(text)[0].strip()
        if len(own) >= LEAST and is_warning(
            own, lines[max(0, at - REACH) : at], lines[at + 1 : at + 1 + REACH]
        ):
            found.append(own)
    return found


def is_left_out(text: str) -> bool:
    """Whether a line states that the program continued without what failed.

    >>> is_left_out("[skip] Failed to load a.ckpt: CUDA error: invalid device ordinal")
    True
    >>> is_left_out("Skipping backward and optimizer step for nan or inf in metrics/loss!")
    False
    """
    return LEFT_OUT.search(text) is not None


def is_warning(text: str, front: Sequence[str], behind: Sequence[str]) -> bool:
    """Whether a line is a warning, or belongs to one of several lines.

    Args:
        text: the line, without prefixes.
        front: the lines above it, the nearest last.
        behind: the lines below it.

    >>> is_warning("x.py:141: UserWarning: CUDA initialization: driver too old", [], [])
    True
    >>> is_warning("Cannot access gated repo for url x", [], ["Please log in.", "  warnings.warn("])
    True
    >>> is_warning("HTTP Error 429 thrown while requesting x", [], ["Retrying in 2s [Retry 1/5]."])
    True
    >>> is_warning("HTTP Error 502", [], ["WARNING:hub:HTTP Error 502", "Retrying in 1s."])
    True
    >>> is_warning("n1:7:7 [0] NCCL WARN Call to connect failed", [], [])
    False
    >>> is_warning("2024-03-01 10:00:00.123456: I external/local_tsl/a.cc:31] No GPU", [], [])
    True
    >>> is_warning("2024-03-01 10:00:00.123456: E external/local_tsl/a.cc:31] No GPU", [], [])
    False
    """
    if WARNING.search(text) and "CCL WARN " not in text:
        return True
    if NOTICE in text or any(NOTICE in line for line in front):
        return True
    below = [strip_prefixes(line)[0] for line in behind[:REACH]]
    others = (line for line in below if text not in line)  # a second logger may print it as well
    if RETRIED.search(next(others, "")):
        return True
    own = itertools.takewhile(lambda line: HEAD.search(line) is None, below)
    if any(QUOTED.search(line) for line in own):
        return True
    above = strip_prefixes(front[-1])[0] if front else ""
    return bool(below) and HEAD.search(above) is not None and SOURCE.search(below[0]) is not None
