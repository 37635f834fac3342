"""Whether the run went on below what was recognized, so that it was no more than a warning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.logs.hits import TAIL, Scan
from dsdoctor.logs.progress import LOADING, step_of
from dsdoctor.model.diagnosis import Cause


def went_on(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Training goes on below everything that was recognized, so that was no more than a warning."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        last = max((hit.line for hit in scan.hits if hit.known.condition in named), default=None)
        if last is None:
            continue
        seen = True
        behind = (text for number, text in scan.tail if number > last)
        if not any(step_of(text) and not LOADING.search(text) for text in behind):
            return False
    return seen


def outran(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """The logs go on for long below all that was recognized, so that was no more than a warning."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        hits = [hit for hit in scan.hits if hit.known.condition in named]
        if not hits:
            continue
        seen = True
        if len(scan.tail) < TAIL or any(hit.line >= scan.tail[0][0] for hit in hits):
            return False
        # of a message that goes on, only the first lines are kept
        patterns = {hit.known.signature.pattern for hit in hits}
        if any(re.search(pattern, text) for pattern in patterns for _, text in scan.tail):
            return False
    return seen
