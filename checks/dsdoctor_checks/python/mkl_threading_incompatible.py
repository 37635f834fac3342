"""MKL is set to Intel's threads, which do not work in a process with torch.

## Why it matters
torch includes GNU's OpenMP library. With `MKL_THREADING_LAYER=INTEL`, the package mkl-service,
which conda's NumPy imports, stops a process that has loaded it with `MKL_THREADING_LAYER=INTEL is
incompatible with libgomp.so.1`. This hits the ranks that a launcher starts: they inherit the
variable.

## What to do
Unset the variable, or set it to `GNU`.

## References
- mkl-service 2.4.0 mkl/_mkl_service.pyx, _mklinitmodule.c
- https://github.com/pytorch/pytorch/issues/37377
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Level,
    Packages,
    Scope,
    Signature,
    check,
    ok,
    warn,
)

CONDITION = Condition(
    "mkl-threading-incompatible",
    id="DSD915",
    scope=Scope.USER_ENV,
    since="0.1",
)


@check(CONDITION)
def threads_of_mkl_suit_torch(packages: Packages, env: Environment) -> Iterator[Finding]:
    """Judges the variable only where mkl-service, which reads it so strictly, is installed."""
    layer = env.get("MKL_THREADING_LAYER") or ""
    forced = env.get("MKL_SERVICE_FORCE_INTEL") is not None
    here = packages.version("mkl-service") is not None and packages.version("torch") is not None
    if layer.upper() != "INTEL" or forced or not here:
        yield ok(mkl_threading_layer=layer)
        return
    yield warn(
        f"`MKL_THREADING_LAYER={layer}` is set, but mkl-service {packages.version('mkl-service')} rejects that"
        " in a process in which torch has loaded GNU's OpenMP library",
        effect="a process that imports torch before NumPy stops with `incompatible with libgomp.so.1`",
        hint="run `export MKL_THREADING_LAYER=GNU`",
        mkl_threading_layer=layer,
        mkl_service=packages.version("mkl-service"),
    )


HINT = "run `export MKL_THREADING_LAYER=GNU`"

SIGNATURES = (
    Signature(
        pattern="MKL_THREADING_LAYER=INTEL is incompatible with lib",
        source="mkl-service 2.3-2.4 mkl/_mklinitmodule.c",
        examples=(
            "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 library.",
        ),
        level=Level.STRONG,
    ),
)
