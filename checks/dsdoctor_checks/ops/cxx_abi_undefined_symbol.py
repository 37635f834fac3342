"""A prebuilt extension was built for another torch release or C++ ABI.

## Why it matters
torch's C++ symbols change from release to release. An extension built for another release or ABI fails
at import with an undefined symbol.

## What to do
Reinstall the extension for this torch. If there is no matching wheel, build it from source:
`pip install --force-reinstall --no-deps --no-cache-dir --no-build-isolation --no-binary :all: PACKAGE`.
Without `--no-cache-dir`, pip takes the wheel that it built for the other torch.

## References
Detected from logs, from the imports that `compiled-extension-broken` tries, and from the version of a
wheel that names its torch:
- https://pytorch-geometric.readthedocs.io/en/latest/install/installation.html (`+pt24cu121`)
- https://github.com/SHI-Labs/NATTEN, releases (`+torch230cu121`)
- setup.py of flash-attn 2.0-2.8, causal-conv1d 1.0-1.5 and mamba-ssm 1.0-2.2 (`+cu12torch2.4cxx11abiFALSE`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    ModuleImports,
    Packages,
    Patient,
    Scope,
    Signature,
    TorchBuild,
    check,
    ok,
    skip,
    warn,
    without_fix,
)
from dsdoctor_checks._pip import pip

CONDITION = Condition(
    "cxx-abi-undefined-symbol",
    id="DSD451",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("remove-stale-builds",),
)

HINT = (
    "reinstall the extension for this torch; without a matching wheel, build it from source with `pip"
    " install --force-reinstall --no-deps --no-cache-dir --no-build-isolation --no-binary :all: PACKAGE`"
)

#: The torch that a wheel was built for, in its local version; PyG leaves out the patch release.
_BUILT_FOR = (
    re.compile(r"\+pt(?P<major>\d)(?P<minor>\d{1,2})(?=cu\d|cpu)"),
    re.compile(r"\+torch(?P<major>\d)(?P<minor>\d{1,2})\d(?=cu\d|cpu)"),
    re.compile(r"\+(?:cu\d{2,3})?torch(?P<major>\d)\.(?P<minor>\d{1,2})(?!\d)"),
)
#: Where PyG keeps its wheels, by release of torch (2026-11-30).
_PYG = frozenset({"pyg-lib", "torch-cluster", "torch-scatter", "torch-sparse", "torch-spline-conv"})


@check(CONDITION)
def wheels_are_for_this_torch(
    packages: Packages,
    torch: TorchBuild,
    imports: ModuleImports | Missing,
    patient: Patient | Missing,
) -> Iterator[Finding]:
    """Warns of wheels that name another torch release, unless their import was seen to work."""
    named = {
        name: built
        for name, package in packages.packages.items()
        if (built := _built_for(package.version))
    }
    if torch.version is None or not named:
        yield skip("no wheel names the torch that it was built for")
        return
    release = ".".join(torch.version.split(".")[:2])
    # `compiled-extension-broken` judges what was imported
    seen = imports.outcomes if isinstance(imports, ModuleImports) else {}
    wrong = {
        name: built
        for name, built in named.items()
        if built != release and name.replace("-", "_") not in seen
    }
    for name, built in sorted(wrong.items()):
        version = packages.version(name)
        source = (
            f" -f https://data.pyg.org/whl/torch-{release}.0+{_build_of(torch)}.html"
            if name in _PYG
            else " --no-build-isolation"
        )
        install = f"install --force-reinstall --no-deps --no-cache-dir{source} {name}"
        found = warn(
            f"`{name}` {version} was built for torch {built}, but torch {torch.version} is installed",
            effect="its libraries ask for symbols of the other release, so importing it fails",
            hint=f"run `{pip(patient, packages, install)}`",
            package=name,
            version=version,
            built_for=built,
            torch=torch.version,
        )
        yield without_fix(found)
    if not wrong:
        yield ok(built_for=named)


def _built_for(version: str) -> str:
    """Major and minor release of the torch that a wheel names; "" if it names none.

    >>> _built_for("2.1.1+pt113cu117"), _built_for("0.17.1+torch230cu121"), _built_for("2.1.1")
    ('1.13', '2.3', '')
    """
    for pattern in _BUILT_FOR:
        if found := pattern.search(version):
            return f"{found['major']}.{found['minor']}"
    return ""


def _build_of(torch: TorchBuild) -> str:
    return f"cu{torch.cuda.replace('.', '')}" if torch.cuda else "cpu"


SIGNATURES = (
    Signature(
        pattern=r"undefined symbol: _Z(?!N5cudnn)\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/y.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E",
            "OSError: /x/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev",
        ),
        not_examples=(
            "undefined symbol: _Z is fine",
            "/usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn6launchEv",
        ),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"\.so\S*: undefined symbol: (?!nccl|curand|_Z|__nvJit|cudnn|cublas|cusparse|cufft|cusolver|cuda|nvrtc|MPI|ompi|pmix|io_)\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
            "ImportError: /x/amp_C.cpython-38-x86_64-linux-gnu.so: undefined symbol: THPVariableClass",
        ),
        not_examples=(
            "ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommInitRankConfig",
        ),
    ),
    Signature(
        # as people shorten it in a title
        pattern=r"ImportError: \S{1,80}[ :]+undefined symbol(?!:)",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=("ImportError: flash_attn_2_cuda undefined symbol on a new machine",),
        not_examples=("ImportError: what an undefined symbol is",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"DLL load failed while importing \w+: The specified procedure",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=(
            "ImportError: DLL load failed while importing _C: The specified procedure could not be found.",
            "ImportError: DLL load failed while importing ext: The specified procedure could not be found.",
        ),
        not_examples=(
            "ImportError: DLL load failed while importing _C: %1 is not a valid Win32 application.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"torchvision::nms does not exist|Couldn't load custom C\+\+ ops",
        source="torch 1.8-2.13 aten/src/ATen/core/dispatch/Dispatcher.cpp, torchvision 0.8-0.28 extension.py",
        examples=(
            "RuntimeError: x has no attribute; torchvision::nms does not exist",
            "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are incompatible",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"PyTorch version mismatch! DeepSpeed ops were compiled|dynamic module does not define module export function \(PyInit_",
        source="deepspeed 0.9-0.19 ops/op_builder/builder.py",
        examples=(
            "RuntimeError: PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime.",
            "ImportError: dynamic module does not define module export function (PyInit_transformer_op)",
        ),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"DLL load failed while importing (?!_?torch|_C\b)\w*(?:flash|cuda|ext)\w*: The specified (?:module|procedure) could not",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=(
            "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure could not be found.",
            "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified module could not be found.",
            "DLL load failed while importing nameextname: The specified module could not",
        ),
        not_examples=(
            "ImportError: DLL load failed while importing _ssl: The specified module could not be found.",
        ),
    ),
    Signature(
        pattern=r"libtorch_cuda_c(?:u|pp)\.so: cannot open shared object|lib(?:c10|torch|torch_cpu|torch_python)\.so: cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory",
            "ImportError: libtorch_cuda_cpp.so: cannot open shared object file: No such file or directory",
            "ImportError: libc10.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"can't load C\+\+/CUDA extensions|xFormers was built for:",
        source="xformers 0.0.29 _cpp_lib.py",
        examples=(
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
            "xFormers was built for:",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"'_OpNamespace' '\w+' object has no attribute '|[Ss]ymbol not found(?: in flat namespace|:) ['\u2018(]*__?Z|No module named 'flash_attn_2_cuda'",
        source=(
            "torch 1.8-2.13 _ops.py; macOS 11-15 dyld; python 3.6-3.14 Lib/importlib/_bootstrap.py"
        ),
        examples=(
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
            "ImportError: dlopen(/x/_C.so, 0x0002): symbol not found in flat namespace '__ZN2at5equalE'",
            "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        ),
        not_examples=("AttributeError: 'Trainer' object has no attribute '_OpNamespace'",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="xFormers wasn't buil[dt] with CUDA",
        source="xformers 0.0.29 ops/fmha/common.py",
        examples=(
            "    xFormers wasn't build with CUDA support",
            "`cutlassF` is not supported because: xFormers wasn't build with CUDA support",
        ),
        level=Level.WEAK,
    ),
)
