"""The loaded libstdc++ is too old.

## Why it matters
A compiled package needs a newer C++ library than the first one that the loader finds.

## What to do
Install a newer libstdc++ (`conda install -c conda-forge libstdcxx-ng`), or remove the directory of
the old one from `LD_LIBRARY_PATH`.

## References
- https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html (GLIBCXX by release of GCC), read 2026-11-29
- libstdc++ config/abi/pre/gnu.ver: `__throw_bad_array_new_length` (3.4.29), `ios_base_library_init`
  (3.4.31 and 3.4.32), which almost every C++ file that GCC 11, or 13, compiles refers to
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
    LibraryPath,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    skip,
    warn,
)
from dsdoctor_checks._util import listed

from ..ops._util import jit_ops  # noqa: TID252  # families of one pack share it

CONDITION = Condition("libstdcxx-too-old", id="DSD951", scope=Scope.USER_ENV, since="0.1")
#: Release of GCC to the N of GLIBCXX_3.4.N that DeepSpeed's ops refer to if it compiles them: the
#: newest entry that is not newer than the compiler.
_REFERS_TO = {11: 29, 13: 31}
#: Ops with threads that wait (`std::condition_variable::wait` has this version since GCC 12: a
#: library of gcc 12.2 that calls it, read with objdump 2026-11-30).
_WITH_THREADS = frozenset({"async_io", "gds"})
_WAITS = (12, 30)


@check(CONDITION)
def runtime_serves_the_compiler(
    library_path: LibraryPath,
    compilers: Compilers,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
) -> Iterator[Finding]:
    """Compares the libstdc++ that a job loads with the compiler of the ops that it builds."""
    runtime, release = library_path.cxx_runtime, library_path.cxx_release
    if runtime is None or release is None:
        yield skip("a job loads the libstdc++ of the system")
        return
    ops = jit_ops(run, deepspeed, cache)
    if not ops:
        yield skip("no op of a config remains to be built")
        return
    version = compilers.cxx.version if compilers.cxx.kind == "gcc" else None
    major = int(version.split(".")[0]) if version else 0
    needed = max((number for gcc, number in _REFERS_TO.items() if gcc <= major), default=0)
    if major >= _WAITS[0] and _WITH_THREADS.intersection(ops):
        needed = max(needed, _WAITS[1])
    if release >= needed:
        return
    yield warn(
        f"`{runtime}` has GLIBCXX_3.4.{release}, but ops that gcc {version} builds refer to"
        f" GLIBCXX_3.4.{needed}",
        effect=f"{listed(ops)} may not load: `version `GLIBCXX_3.4.{needed}' not found`",
        hint="run `conda install -c conda-forge libstdcxx-ng`, or remove the directory from"
        " `LD_LIBRARY_PATH`",
        path=runtime,
        release=release,
        needed=needed,
        gcc=version,
        ops=list(ops),
    )


HINT = "install a newer libstdc++ (`conda install -c conda-forge libstdcxx-ng`), or remove the old one's directory from `LD_LIBRARY_PATH`"

SIGNATURES = (
    Signature(
        pattern=r"version `?(?:GLIBCXX|CXXABI)_[\d.]+['’]? not found",
        source="glibc 2.17-2.41 elf/dl-version.c",
        examples=(
            "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by x.so)",
            "ImportError: /usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `CXXABI_1.3.15' not found (required by /opt/env/lib/python3.12/site-packages/x.so)",
        ),
        not_examples=("ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not",),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"undefined (?:symbol|reference).{0,300}(?:, version (?:GLIBCXX|CXXABI)_|@(?:GLIBCXX|CXXABI|GLIBC)_)[\d.]",
        source="glibc 2.17-2.41 elf/dl-lookup.c, binutils 2.20-2.44 ld/ldmain.c",
        examples=(
            "symbol lookup error: /x/liby.so: undefined symbol: _ZSt28__throw_bad_array_new_lengthv, version GLIBCXX_3.4.29",
            "/x/libtorch_cpu.so: undefined reference to `std::__throw_bad_array_new_length()@GLIBCXX_3.4.29'",
        ),
        not_examples=(
            "ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommInitRankConfig",
        ),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"libstdc\+\+\.so\.6: cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libstdc++.so.6: cannot open shared object file: No such file or directory",
            "OSError: libstdc++.so.6: cannot open shared object file: Permission denied",
        ),
    ),
)
