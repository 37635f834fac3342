"""The interpreter is older than an installed package allows.

## Why it matters
Wheels say which Python they need, but a copied environment, an upgraded package under
`--ignore-requires-python` or a replaced interpreter goes round that; new syntax or a missing module
of the standard library then stops the import.

## What to do
Make an environment with the Python that is named, or newer, and install there.

## References
- `Requires-Python` in the METADATA of torch, transformers and accelerate
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    Packages,
    Patient,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import at_least, pair

from ._tables import OLDEST_PYTHON

CONDITION = Condition("python-too-old", id="DSD907", scope=Scope.USER_ENV, since="0.1")
#: DeepSpeed's oldest Python (classifiers in setup.py of 0.19.8).
FLOOR = (3, 8)


@check(CONDITION)
def python_is_new_enough(
    patient: Patient, packages: Packages | Missing, torch: TorchLive | Missing
) -> Iterator[Finding]:
    """Compares the interpreter with the floor of each package."""
    python = pair(patient.version)
    if python is None:
        return
    needs = [("deepspeed", "", FLOOR)]
    if isinstance(packages, Packages):
        for name, release, oldest in OLDEST_PYTHON:
            version = packages.version(name)
            if version is not None and at_least(version, release):
                needs.append((name, f" {version}", oldest))
    name, version, oldest = max(needs, key=lambda need: need[2])
    if python >= oldest:
        yield ok(python=patient.version)
        return
    works = name == "torch" and isinstance(torch, TorchLive) and torch.imported.ok
    yield (warn if works else fail)(
        f"`{patient.executable}` is Python {patient.version}, but {name}{version} needs "
        f"{oldest[0]}.{oldest[1]} or newer",
        effect="imports end in a `SyntaxError` or `ImportError`",
        hint=f"make an environment with Python {oldest[0]}.{oldest[1]} or newer",
        python=patient.version,
        package=name,
        version=version.strip() or None,
        oldest=f"{oldest[0]}.{oldest[1]}",
    )
