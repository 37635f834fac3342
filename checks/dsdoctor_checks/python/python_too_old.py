"""The interpreter is older than an installed package allows.

## Why it matters
Wheels declare which Python they need, but a copied environment, `--ignore-requires-python` or a
replaced interpreter bypasses the check. Then new syntax or a missing standard-library module stops
the import.

## What to do
Create an environment with the Python named in the finding, or a newer one, and install there.

## References
- `Requires-Python` in the METADATA of torch, transformers and accelerate
- classifiers in DeepSpeed's setup.py, which sets no `python_requires`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    NotStated,
    Packages,
    Patient,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least, pair

from ._tables import OLDEST_PYTHON

CONDITION = Condition("python-too-old", id="DSD907", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def python_is_new_enough(
    patient: Patient, packages: Packages | Missing, torch: TorchLive | Missing
) -> Iterator[Finding]:
    """Compares the interpreter with the oldest Python that each package supports."""
    python = pair(patient.version)
    if python is None:
        return
    if isinstance(packages, Missing):
        yield skip(f"the installed packages are unknown: {packages.detail}")
        return
    needs, gap = _needs(packages)
    if not needs or python >= max(oldest for _, _, oldest in needs):
        if gap is not None:
            raise gap  # a package that the paste leaves out may need a newer one
        yield ok(python=patient.version)
        return
    name, version, oldest = max(needs, key=lambda need: need[2])
    which = f"`{patient.executable}` is" if patient.executable else "the environment has"
    works = name == "torch" and isinstance(torch, TorchLive) and torch.imported.ok
    yield (warn if works else fail)(
        f"{which} Python {patient.version}, but {name} {version} needs "
        f"{oldest[0]}.{oldest[1]} or newer",
        effect="imports fail with `SyntaxError` or `ImportError`",
        hint=f"create an environment with Python {oldest[0]}.{oldest[1]} or newer",
        python=patient.version,
        package=name,
        version=version,
        oldest=f"{oldest[0]}.{oldest[1]}",
    )


def _needs(packages: Packages) -> tuple[list[tuple[str, str, tuple[int, int]]], NotStated | None]:
    """The oldest Python of each package that is known, and a package about which nothing is known."""
    found: list[tuple[str, str, tuple[int, int]]] = []
    gap: NotStated | None = None
    for name, release, oldest in OLDEST_PYTHON:
        try:
            version = packages.version(name)
        except NotStated as unstated:
            gap = gap or unstated
            continue
        if version is not None and at_least(version, release):
            found.append((name, version, oldest))
    return found, gap


HINT = "create the environment with a newer Python, as the message asks"

SIGNATURES = (
    Signature(
        pattern=r"\bPackage '(?P<package>[^']{1,100})' requires a different Python: (?P<found>\d[\w.+]*) not in '>= ?(?P<needed>\d[\d.]*)'",
        source="pip 19.2-20.1 _internal/legacy_resolve.py, 20.2-26 _internal/resolution",
        message="{package} needs Python {needed} or newer, and this is {found}",
        examples=("ERROR: Package 'vllm' requires a different Python: 3.8.10 not in '>=3.9'",),
        not_examples=(
            "ERROR: Package 'vllm' requires a different Python: 3.14.0 not in '>=3.9,<3.14'",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\b(?P<package>\S{1,100}) requires Python '>= ?(?P<needed>\d[\d.]*)' but the running Python is (?P<found>\d[\w.]*)",
        source="pip 9 utils/packaging.py, 10-19.1 _internal/utils/packaging.py",
        message="{package} needs Python {needed} or newer, and this is {found}",
        examples=(
            "ERROR: deepspeed-kernels requires Python '>=3.8' but the running Python is 3.6.9",
        ),
        not_examples=("x requires Python '>=3.8' but the running Python is unknown",),
        level=Level.STRONG,
    ),
)
