"""What the last lines of a log say of how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.hits import Scan

#: Lines behind the last frame of a traceback that is not cut off.
CUT_LINES = 3
#: How native libraries report what failed; a log that ends with it is not sound.
LAST_WORDS = lazy(
    r"NCCL WARN |\[E\d{3,4}[ \d:.]+ \S+\.(?:cpp|cc|cu):|\bCaught signal \d|received SIGTERM\b"
    r"|(?:^|[\]\s])Terminated$"
)
#: Last lines in which they are looked for.
LAST_LINES = 8
BEGINNING = lazy(r"real_accelerator\.py|PyTorch extensions root")


def is_changed(scan: Scan) -> bool:
    """The last lines hold drawn boxes or words of other languages."""
    return not all(text.isascii() for _, text in scan.tail)


def only_began(scans: Sequence[Scan]) -> bool:
    """The logs hold nothing but the first words of DeepSpeed."""
    tails = [text for scan in scans for _, text in scan.tail]
    return bool(tails) and all(BEGINNING.search(text) for text in tails)


def last_words(scans: Sequence[Scan]) -> str:
    """A failure that a native library reports with the last lines of a log, "" without one."""
    if any("finished" in scan.marks for scan in scans):
        return ""
    lines = [text for scan in scans for _, text in scan.tail[-LAST_LINES:]]
    return next((text for text in lines if LAST_WORDS.search(text)), "")


def is_cut_off(tail: Sequence[tuple[int, str]]) -> bool:
    """The log breaks off in the middle of a traceback."""
    return bool(frames_of(text for _, text in tail[-CUT_LINES:]))
