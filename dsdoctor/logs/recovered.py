"""Whether the run continued after what was recognized, so that was only a warning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.logs.hits import TAIL, Scan
from dsdoctor.logs.progress import LOADING, step_of
from dsdoctor.model.diagnosis import Cause


def training_continued(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Whether training continues after all hits of the causes, so they were only warnings."""
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


def log_continued(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Whether the logs continue long after all hits of the causes, so they were only warnings."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        hits = [hit for hit in scan.hits if hit.known.condition in named]
        if not hits:
            continue
        seen = True
        if len(scan.tail) < TAIL or any(hit.line >= scan.tail[0][0] for hit in hits):
            return False
        # of a repeated message only the first lines are kept
        patterns = {hit.known.signature.pattern for hit in hits}
        if any(re.search(pattern, text) for pattern in patterns for _, text in scan.tail):
            return False
    return seen
