"""Libaio is absent while async_io is required.

## Why it matters
NVMe offload and async_io are built on libaio. DeepSpeed's message for a failed load does not name
it.

## What to do
Install `libaio-dev` (`libaio-devel`).

## References
- DeepSpeed 0.19.8 op_builder/async_io.py: `has_function("io_submit", ("aio",))`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    ExtensionCache,
    Finding,
    Libaio,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

from ._util import jit_ops

CONDITION = Condition(
    "libaio-missing", id="DSD453", scope=Scope.USER_ENV, since="0.1", fixes=("install-libaio",)
)

_WHAT = {(True, False): "header `libaio.h`", (False, True): "library `libaio.so`"}


@check(CONDITION)
def libaio_is_there(
    libaio: Libaio,
    run: RunNeeds,
    compilers: Compilers | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
) -> Iterator[Finding]:
    """Header and library, by the compiler's own search, where the config needs `async_io`."""
    ops = jit_ops(run, deepspeed, cache)
    if not ops or "async_io" not in ops:
        yield skip("nothing in this run is built with libaio")
        return
    if libaio.header and libaio.library:
        yield ok(header=libaio.header, library=libaio.library)
        return
    what = _WHAT.get((not libaio.header, not libaio.library), "header and library of libaio")
    compiler = compilers.cc.path if isinstance(compilers, Compilers) else None
    yield fail(
        f"the config offloads to NVMe, which needs `async_io`, but the compiler finds no {what}",
        effect="DeepSpeed refuses to build the op: `Unable to JIT load the async_io op`",
        hint="install `libaio-dev` (Debian), `libaio-devel` (Red Hat), or `conda install libaio`",
        header=libaio.header,
        library=libaio.library,
        compiler=compiler,
    )


HINT = "install `libaio-dev` (`libaio-devel`)"

SIGNATURES = (
    Signature(
        anchor=("async_io", "libaio", "-laio", "undefined symbol: io_"),
        pattern=(
            r"Unable to (?:JIT load the|pre-compile) async_io|fatal error: libaio\.h"
            r"|cannot find -laio|libaio\.so\S*: cannot open|undefined symbol: io_(?:setup|submit|getevents|destroy|pgetevents|prep)\w*"
        ),
        examples=(
            "AssertionError: Unable to pre-compile async_io",
            "/usr/bin/ld: cannot find -laio",
        ),
        not_examples=(
            "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
        ),
        weight=68,
        masks=("cpu-adam-unbuilt",),
    ),
)
