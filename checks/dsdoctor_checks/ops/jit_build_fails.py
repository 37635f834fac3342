"""A trivial C++ extension cannot be built in this environment.

## Why it matters
DeepSpeed compiles its ops at the first start, with the C++ compiler, ninja, Python's headers and
torch's. Each of these can be there and still not fit the others; only a build tells.

## What to do
Read the compiler's words. Try it by hand with
`python -c "import torch.utils.cpp_extension as c; c.verify_ninja_availability()"` and the same
compiler (`CXX`); a compiler of the conda environment (`conda install gxx_linux-64`) often helps.

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

from ._util import jit_ops, lacking

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
    """The outcome of a real build; a failure where the config makes one certain, else a warning."""
    if trial.ok:
        yield ok(seconds=trial.seconds)
        return
    if isinstance(compilers, Compilers) and (compilers.cxx.path is None or not compilers.ninja):
        yield skip("compiler or ninja is not there, which has a condition of its own")
        return
    where = f" (at step `{trial.stopped_at}`)" if trial.stopped_at else ""
    yield lacking(
        jit_ops(run, deepspeed, cache),
        f"a trivial C++ extension could not be built{where}: {trial.error}",
        effect="DeepSpeed's ops cannot be built either: the run ends when it needs the first",
        hint="mend what the compiler complains of, or name another one in `CXX`",
        error_text=trial.error or "",
        seconds=trial.seconds,
        stopped_at=trial.stopped_at,
    )
