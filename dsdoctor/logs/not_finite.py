"""A training that reports NaN to its end: it goes on, so nothing of it looks like a failure."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs.candidates import Choice, conditions_of
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.marks import TRAINED
from dsdoctor.logs.progress import step_of

#: Lines between the last step and the metrics of the training: a bar, a message of the trainer.
NEAR = 10


def to_the_end(scans: Sequence[Scan], condition: str) -> Choice | None:
    """What the last step above the metrics of a training reported, if it is not finite.

    Steps that go on do not mean that NaN was survived: weights that are NaN stay so.

    Args:
        scans: of the logs.
        condition: that of a loss that is not finite.
    """
    found: list[Hit] = []
    for scan in scans:
        if TRAINED not in scan.marks:
            continue
        end = scan.marks[TRAINED][0]
        last = [
            hit
            for hit in scan.outlived
            if isinstance(hit, Hit)
            and hit.known.condition == condition
            and 0 < end - hit.line <= NEAR
        ]
        since = [text for number, text in scan.tail if last and last[-1].line < number < end]
        if last and not any("loss" in text and step_of(text) for text in since):
            found += last[-1:]
    return Choice(conditions_of(found, many=len(scans) > 1), {}) if found else None
