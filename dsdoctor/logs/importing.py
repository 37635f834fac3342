"""Exceptions that were raised while an installed package was being imported."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.outlived import same_rank
from dsdoctor.logs.products import package_of

#: The function of CPython's `runpy` that runs a module, for `python -m`.
RUNS = "_run_code"


def is_importing(error: Error) -> bool:
    """Whether an installed package failed to import: it is incompatible with another, or Python.

    What `python -m` runs is a script, though it is part of a package.
    """
    below: list[Frame] = []
    for frame in reversed(error.frames):
        if frame.function == RUNS:
            if below and below[-1].function == "<module>":
                below.pop()
            break
        if not package_of(frame.file):
            break
        below.append(frame)
    return any(
        frame.function == "<module>" and package_of(frame.file) != "python" for frame in below
    )


def suits(hit: Hit, errors: Iterable[Error]) -> bool:
    """Whether a hit is where its signature counts: in an import, outside one, or anywhere."""
    wanted = hit.known.signature.importing
    if wanted is None:
        return True
    return wanted is any(
        error.begun <= hit.line <= error.line
        and same_rank(error.rank, hit.rank)
        and is_importing(error)
        for error in errors
    )
