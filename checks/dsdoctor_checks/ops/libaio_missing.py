"""libaio is missing, but async_io needs it.

## Why it matters
NVMe offload uses the async_io op, which is built on libaio. DeepSpeed's error message does not name it.

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
    Level,
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

from ._tables import OF_A_BUILD, OF_DS_REPORT
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
    """Judges header and library, found as the compiler would, if the config needs `async_io`."""
    ops = jit_ops(run, deepspeed, cache)
    if not ops or "async_io" not in ops:
        yield skip("nothing in this run uses libaio")
        return
    if libaio.header and libaio.library:
        yield ok(header=libaio.header, library=libaio.library)
        return
    what = _WHAT.get((not libaio.header, not libaio.library), "header and library of libaio")
    compiler = compilers.cc.path if isinstance(compilers, Compilers) else None
    yield fail(
        f"the config offloads to NVMe, which needs `async_io`, but the compiler finds no {what}",
        effect="DeepSpeed refuses to build the op: `Unable to JIT load the async_io op`",
        hint="install `libaio-dev` (Debian) or `libaio-devel` (Red Hat), or run `conda install -c conda-forge libaio`",
        header=libaio.header,
        library=libaio.library,
        compiler=compiler,
    )


HINT = "install `libaio-dev` (Debian) or `libaio-devel` (Red Hat)"

SIGNATURES = (
    Signature(
        pattern="Unable to (?:JIT load the|pre-compile) async_io",
        source="deepspeed 0.3-0.19 ops/op_builder/builder.py, setup.py",
        examples=(
            "AssertionError: Unable to pre-compile async_io",
            "RuntimeError: Unable to JIT load the async_io op due to it not being compatible due to hardware/software issue. None",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"fatal error: libaio\.h",
        source="gcc 4.8-14 libcpp/files.cc",
        examples=(
            "csrc/aio/common/deepspeed_aio_utils.h:14:10: fatal error: libaio.h: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="cannot find -laio",
        source="binutils 2.20-2.44 ld/ldmain.c",
        examples=("/usr/bin/ld: cannot find -laio",),
        level=Level.STRONG,
        near=OF_A_BUILD,
        masks=("cpu-adam-unbuilt",),
    ),
    # without a build around it: DeepSpeed links a program of one line to see whether the op could be
    # built (ops/op_builder/builder.py, has_function), and goes on if that fails
    Signature(
        pattern="cannot find -laio",
        source="binutils 2.20-2.44 ld/ldmain.c; deepspeed 0.6-0.19 ops/op_builder/async_io.py",
        examples=("/usr/bin/ld: cannot find -laio",),
        level=Level.HINT,
        not_near=OF_DS_REPORT,
    ),
    Signature(
        pattern=r"libaio\.so\S*: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libaio.so.1: cannot open shared object file: No such file or directory",
        ),
        not_examples=(
            "ImportError: /root/.cache/torch_extensions/py311_cu121/fused_adam/fused_adam.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"undefined symbol: io_(?:setup|submit|getevents|destroy|pgetevents|prep)\w*",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "undefined symbol: io_setupname",
            "undefined symbol: io_submitname",
            "undefined symbol: io_geteventsname",
            "undefined symbol: io_destroyname",
            "undefined symbol: io_pgeteventsname",
            "undefined symbol: io_prepname",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
)
