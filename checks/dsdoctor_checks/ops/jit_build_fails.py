"""A trivial C++ extension cannot be built in this environment.

## Why it matters
DeepSpeed compiles its ops at first use, with the C++ compiler, ninja, Python's headers and torch's
headers. All may be present and still not work together; only a build shows that.

## What to do
Read the compiler's message. Check ninja with
`python -c "import torch.utils.cpp_extension as c; c.verify_ninja_availability()"`, then try another
compiler through `CXX`. A compiler inside the conda environment (`conda install gxx_linux-64`) often
helps.

## References
- `dsdoctor check --deep`
- torch/utils/cpp_extension.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    ExtensionCache,
    ExtensionTrial,
    Finding,
    Missing,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
)

from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-fails",
    id="DSD440",
    scope=Scope.USER_ENV,
    since="0.1",
    narrower=(
        "jit-build-compiler-missing",
        "jit-build-python-headers-missing",
        "jit-build-gcc-too-old",
        "jit-build-ninja-missing",
    ),
)


@check(CONDITION)
def an_extension_builds(
    trial: ExtensionTrial,
    run: RunNeeds,
    compilers: Compilers | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
) -> Iterator[Finding]:
    """Judges a real build; a failure if the config makes one certain, else a warning."""
    if trial.ok:
        yield ok(seconds=trial.seconds)
        return
    if isinstance(compilers, Compilers) and (compilers.cxx.path is None or not compilers.ninja):
        yield skip("the compiler or ninja is missing, which another condition reports")
        return
    where = f" (at step `{trial.stopped_at}`)" if trial.stopped_at else ""
    yield tool_unusable(
        jit_ops(run, deepspeed, cache),
        f"a trivial C++ extension cannot be built{where}: {trial.error}",
        effect="DeepSpeed's ops cannot be built either; the run fails at the first one",
        hint="fix what the compiler reports, or set `CXX` to another compiler",
        error_text=trial.error or "",
        seconds=trial.seconds,
        stopped_at=trial.stopped_at,
    )
