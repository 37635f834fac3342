"""Triton is missing or its version does not match torch.

## Why it matters
Each torch release works with one Triton release. Another one fails at import or at the first
compiled kernel.

## What to do
Reinstall torch, which installs the Triton release that it requires. Upgrade the package that imports
Triton.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "triton-unusable",
    id="DSD952",
    scope=Scope.USER_ENV,
    since="0.1",
    formerly=("triton-missing-or-incompatible",),
)

HINT = "reinstall torch, which installs the Triton that it requires, and upgrade the package that imports Triton"

SIGNATURES = (
    Signature(
        pattern=r"No module named '?triton[\w.]*'?(?![\w.]*'?; 'triton' is not a package)|cannot import name '\w+' from 'triton[\w.]*'|module 'triton[\w.]*' has no attribute",
        source=(
            "python 3.6-3.14 Lib/importlib/_bootstrap.py, python 3.7-3.14 Python/ceval.c "
            "import_from, python 3.5-3.14 Objects/moduleobject.c"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'triton.ops'",
            "ModuleNotFoundError: No module named 'triton'",
            "ImportError: cannot import name 'get_cuda_stream' from 'triton.runtime.jit' (/opt/env/lib/python3.10/site-packages/triton/runtime/jit.py)",
            "AttributeError: module 'triton.language' has no attribute 'libdevice'",
        ),
        not_examples=(
            "AttributeError: module 'deepspeed' has no attribute 'initialize'",
            "ModuleNotFoundError: No module named 'triton.language'; 'triton' is not a package",
        ),
        level=Level.STRONG,
        not_near=(
            "A matching Triton is not available",
            "import error: No module named 'triton'",  # printed on a machine without GPUs
        ),
    ),
    Signature(
        pattern="Cannot find a working triton installation",
        source="torch 2.13.0 _inductor/exc.py",
        examples=(
            "RuntimeError: Cannot find a working triton installation. More information on installing Triton can be found at https://github.com/openai/triton",
        ),
    ),
    Signature(
        pattern="PY_SSIZE_T_CLEAN macro must be defined",
        source="CPython 3.11.7 libpython3.11.so.1.0",
        examples=("SystemError: PY_SSIZE_T_CLEAN macro must be defined for '#' formats",),
    ),
    Signature(
        pattern=r"Triton Error \[CUDA\]: (?!out of memory|out of resource|device kernel image)",
        source="torch 2.13.0 sparse/_triton_ops.py",
        examples=("RuntimeError: Triton Error [CUDA]: invalid argument",),
        not_examples=("RuntimeError: Triton Error [CUDA]: device kernel image is invalid",),
    ),
    Signature(
        pattern="Triton only support CUDA",
        source="triton 3.1.0 backends/nvidia/compiler.py",
        examples=("Triton only support CUDA",),
    ),
    Signature(
        pattern=r"\b(?:dot|load|store|jit|autotune|Config|compile|trans)\(\) got an unexpected keyword argument '(?:trans_[ab]|num_warps|num_stages|allow_tf32|interpret|eviction_policy|num_ctas|signature|prune_configs_by)'",
        source="python 3.3-3.14 Python/ceval.c",
        examples=(
            "TypeError: dot() got an unexpected keyword argument 'trans_b'",
            "TypeError: compile() got an unexpected keyword argument 'num_warps'",
            "load() got an unexpected keyword argument 'trans_a'",
            "store() got an unexpected keyword argument 'trans_a'",
            "jit() got an unexpected keyword argument 'trans_a'",
            "autotune() got an unexpected keyword argument 'trans_a'",
            "Config() got an unexpected keyword argument 'trans_a'",
            "trans() got an unexpected keyword argument 'trans_a'",
            "dot() got an unexpected keyword argument 'num_stages'",
            "dot() got an unexpected keyword argument 'allow_tf32'",
            "dot() got an unexpected keyword argument 'interpret'",
            "dot() got an unexpected keyword argument 'eviction_policy'",
            "dot() got an unexpected keyword argument 'num_ctas'",
            "dot() got an unexpected keyword argument 'signature'",
            "dot() got an unexpected keyword argument 'prune_configs_by'",
        ),
        not_examples=("TypeError: load() got an unexpected keyword argument 'path'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?:/sbin/)?ldconfig'",
        source="triton 2.0-2.1 common/build.py, 2.2-3.6 backends/nvidia/driver.py: libcuda_dirs",
        message="Triton looks for libcuda with `ldconfig`, which was not found",
        hint=(
            "add its directory to PATH (`export PATH=$PATH:/usr/sbin:/sbin`); where there is no "
            "/sbin/ldconfig, set `TRITON_LIBCUDA_PATH` to the directory of libcuda.so.1"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'ldconfig'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/sbin/ldconfig'",
        ),
        level=Level.STRONG,
        requires=("/triton/", "/_inductor/"),
    ),
    Signature(
        pattern="Cannot find ptxas",
        source="triton 2.0-3.5 backends/nvidia/compiler.py, common/backend.py",
        examples=("RuntimeError: Cannot find ptxas",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="Triton is not installed",
        source="xformers 0.0.29 _flash_attn/modules/block.py, third_party/flash-attention/flash_attn/modules/block.py",
        examples=("Triton is not installed",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="Error: [Tt]riton not found",
        source="programs' own checks, such as nemo 2 automodel/loss/linear_ce.py",
        examples=("RuntimeError: Triton not found",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"satisfies the requirement triton\b",
        source="pip 9-26 _internal/resolution, _internal/index/package_finder.py",
        examples=("satisfies the requirement triton",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"No matching distribution found for triton\b",
        source="pip 9-26 _internal/resolution, _internal/index/package_finder.py",
        examples=("ERROR: No matching distribution found for triton==2.1.0",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"\bcuda_utils\.so: undefined symbol: (?P<symbol>cu[A-Z]\w{1,60})",
        source="triton 2.0-3.5 backends/nvidia/driver.py, with ld.so's words (glibc)",
        message="Triton's library for the driver was linked without `{symbol}` of libcuda",
        hint="remove Triton's cache (`rm -r ~/.triton/cache`), which may come from another machine; if it happens again, `ldconfig -p | grep libcuda` must list the driver's library",
        examples=(
            "ImportError: /root/.triton/cache/41ce1f58/cuda_utils.so: undefined symbol: cuModuleGetFunction",
        ),
        not_examples=("cuda_utils.so: undefined symbol: _ZN3c10",),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"libtriton\.so: undefined symbol",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=("ImportError: /x/triton/_C/libtriton.so: undefined symbol: _ZN4mlir9Operation",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="importing libtriton",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=("ImportError: DLL load failed while importing libtriton: not found",),
        masks=("cxx-abi-undefined-symbol",),
        not_near=("A matching Triton is not available",),
    ),
    Signature(
        pattern=r"Error: .{0,80}install triton\b",
        source=(
            "programs' own checks, such as bitsandbytes 0.41-0.43 nn/triton_based_modules.py, "
            "deepspeed 0.12-0.19 ops/op_builder"
        ),
        examples=("RuntimeError: install triton",),
        not_examples=("install triton",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="'launch_enter_hook'",
        source="python 3.3-3.14 Objects/typeobject.c, for triton 3.0-3.3 compiler/compiler.py",
        examples=("'launch_enter_hook'",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"Unsupported \.version [\d.]{1,8}; current version is '",
        source="cuda toolkit 12.9.86 ptxas",
        examples=(
            "ptxas x.ptx, line 9; fatal   : Unsupported .version 8.7; current version is '8.4'",
        ),
        not_examples=("the loaded file is old; current version is '3'",),
        masks=("cxx-abi-undefined-symbol",),
        message="Triton's ptxas is older than the PTX that it is given",
        hint="upgrade torch, which installs the matching Triton, and unset `TRITON_PTXAS_PATH`",
    ),
    Signature(
        pattern=r"ptxas fatal +: Value '(?P<arch>sm_\w{2,8})' is not defined for option 'gpu-name'",
        source="cuda toolkit 11.0-13.1 ptxas, which triton 2.0-3.5 brings",
        examples=("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",),
        not_examples=("Value 'sm_121a' is not defined for option 'gpu-name'",),
        level=Level.CERTAIN,
        near=("PTXASError", "Triton", "triton"),
        masks=("nvcc-arch-unsupported",),
        message="Triton's ptxas does not know this GPU ({arch})",
        hint="upgrade torch together with its Triton, or set `TRITON_PTXAS_PATH` to the `ptxas` of a CUDA toolkit that supports this GPU",
    ),
    Signature(
        pattern="Error: .{0,40}Triton requires",
        source="triton 2.0-2.1 compiler/compiler.py",
        examples=("RuntimeError: Triton requires",),
        not_examples=("Triton requires",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern="HAS_TRITON is",
        source=(
            "a line of a traceback: programs' own checks, such as vllm 0.8-0.11 and `assert "
            "HAS_TRITON is True`"
        ),
        examples=("HAS_TRITON is",),
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"\b0 active drivers \(\[\]\)",
        source="torch 2.13.0 _inductor/runtime/autotune_cache.py",
        examples=(
            "RuntimeError: 0 active drivers ([]). There should only be one.",
            "  RuntimeError: 0 active drivers ([]). There should only be one.",
        ),
        level=Level.CERTAIN,
        near=("/triton/matmul_ext", "inference/triton", "triton_matmul", "import deepspeed"),
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"KeyError: \('\d-\.-\d-\.-\d-[0-9a-f]{8}",
        source="python 3.3-3.14 Objects/dictobject.c",
        examples=(
            "KeyError: ('2-.-0-.-0-d82511111ad12829-d6252949da17ceb5', (torch.float16,), (64,))",
            "KeyError: ('2-.-0-.-0-83ca8b715a9dc5f3', (torch.float32, 'i32'), (1024,), (True,))",
        ),
        not_examples=("KeyError: ('train', 0)",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Triton PTX codegen error|/triton/backends/nvidia/bin/ptxas .{0,400}--gpu-name",
        source="triton 3.0-3.5 backends/nvidia/compiler.py",
        examples=(
            "RuntimeError: Internal Triton PTX codegen error",
            "Repro command: /x/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_103a /tmp/a.ptx -o /tmp/a.o",
        ),
        not_examples=("Repro command: /x/triton/backends/nvidia/bin/ptxas -lineinfo -v",),
        level=Level.CERTAIN,
        masks=("nvcc-arch-unsupported",),
    ),
    Signature(
        pattern=r"UNREACHABLE executed at \S{0,200}[Tt]riton|Cannot select: intrinsic %llvm\.nvvm|PY_SSIZE_T_CLEAN macro must be defined",
        source=(
            "LLVM 3-20 lib/Support/ErrorHandling.cpp, "
            "lib/CodeGen/SelectionDAG/SelectionDAGISel.cpp; python 3.10-3.12 Python/getargs.c"
        ),
        examples=(
            "UNREACHABLE executed at /project/lib/Conversion/TritonGPUToLLVM/DotOpToLLVM.cpp:12!",
            "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32",
            "SystemError: PY_SSIZE_T_CLEAN macro must be defined for '#' formats",
        ),
        not_examples=("UNREACHABLE executed at /src/json/parse.cpp:9!",),
    ),
)
