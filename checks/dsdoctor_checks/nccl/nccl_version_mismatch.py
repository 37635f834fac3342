"""The loaded NCCL is not the one that torch was built with.

## Why it matters
torch calls functions of the NCCL it was built with. An older NCCL on `LD_LIBRARY_PATH` does not have all
of them, and `import torch` fails with `undefined symbol: ncclXxx`. A newer one usually works, but torch
was not tested with it, and all nodes of a job need the same version.

## What to do
Find the other NCCL (`pip list | grep nccl`, the folders of `LD_LIBRARY_PATH`) and remove it from the path.

## References
- ld.so(8): LD_LIBRARY_PATH is searched before the RUNPATH of torch's libraries
- Versions in torch's wheels: their metadata (`nvidia-nccl-cu12`, `nvidia-nccl-cu13`)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    LibraryPath,
    Missing,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import numbers

CONDITION = Condition("nccl-version-mismatch", id="DSD855", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def torch_loads_its_nccl(
    library_path: LibraryPath, torch: TorchBuild, live: TorchLive | Missing
) -> Iterator[Finding]:
    """Compares the NCCL on LD_LIBRARY_PATH with torch's own."""
    shadow = next((one for one in library_path.shadows if one.name.startswith("libnccl.")), None)
    own = torch.nccl
    if shadow is None:
        loaded = live.nccl if isinstance(live, TorchLive) else None
        yield ok(nccl=loaded or own)
        return
    if shadow.version is None or own is None:
        yield skip(f"the version of `{shadow.path}` or of torch's own NCCL is not known")
        return
    theirs, mine = numbers(shadow.version), numbers(own)
    if theirs == mine:
        yield ok(nccl=own, path=shadow.path)
        return
    older = theirs < mine
    yield (fail if older else warn)(
        f"`{shadow.path}` on `LD_LIBRARY_PATH` is NCCL {shadow.version}, but torch "
        f"{torch.version} includes {own}",
        effect="`import torch` or the first collective fails with `undefined symbol: nccl…`"
        if older
        else "torch uses an NCCL that it was not tested with",
        hint=f"remove `{posixpath.dirname(shadow.path)}` from `LD_LIBRARY_PATH`",
        path=shadow.path,
        found=shadow.version,
        own=own,
        torch=torch.version,
    )


HINT = "remove the other NCCL (`pip list | grep nccl`, `LD_LIBRARY_PATH`)"

SIGNATURES = (
    Signature(
        pattern=r"undefined symbol: nccl\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=("ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister",),
        not_examples=("undefined symbol: nccl is fine",),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="Mismatched NCCL version",
        source="nccl 2.7-2.32 src/init.cc",
        examples=(
            "NCCL WARN Mismatched NCCL version detected : rank 0 version 21403 rank 1 version 21005",
        ),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"libnccl\.so\S*: cannot open",
        message="The NCCL that torch needs is not found",
        hint="reinstall torch with its dependencies, which include NCCL (`nvidia-nccl-cu…`)",
        source="glibc 2.17-2.41 elf/dl-load.c, for torch's libtorch_cuda.so",
        examples=("libnccl.sox1: cannot open",),
        not_examples=(
            "ImportError: /root/.cache/torch_extensions/py311_cu121/fused_adam/fused_adam.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="NCCL version mismatch",
        source="nccl 2.19-2.32 src/bootstrap.cc",
        examples=(
            "NCCL WARN NCCL version mismatch with remote peer 10.0.0.2<1> (local: 21805, remote 22005)",
        ),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="NCCL library is (?:too old|not backwards compatible)",
        source="nccl 2.29-2.32 src/init.cc",
        examples=(
            "NCCL library is too old",
            "NCCL library is not backwards compatible",
        ),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="compiled with too old version of NCCL",
        source="nccl 2.29-2.32 src/init.cc",
        examples=("compiled with too old version of NCCL",),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"symbol nccl\w+, version \S+ not defined in file libnccl|NCCL library version mismatch",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/libtorch_cuda.so: symbol ncclCommShrink, version libnccl.so.2 not defined in file libnccl.so.2 with link time reference",
            "RuntimeError: NCCL library version mismatch",
        ),
        not_examples=("symbol foo, version 2 not defined in file libnccl_helper",),
        level=Level.CERTAIN,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"name 'nccl\w+' is not defined|Failed to (?:import|load) NCCL library|Cannot find libnccl\.so\.2 in the system",
        source=(
            "python 3.3-3.14 Python/ceval.c, for cupy; vllm 0.4-0.11 "
            "distributed/device_communicators/pynccl_wrapper.py; torch 2.0-2.13"
        ),
        examples=(
            "NameError: name 'ncclGetVersion' is not defined",
            "ERROR Failed to load NCCL library from libnccl.so.2 .",
            "Cannot find libnccl.so.2 in the system",
        ),
        not_examples=("NameError: name 'str2optimizer16bit' is not defined",),
    ),
)
