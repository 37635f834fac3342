"""Triton is absent or of a wrong version.

## Why it matters
Each torch release works with one triton; another one fails at import or at the first compiled
kernel.

## What to do
Install the triton of this torch (`pip install -U triton`), and upgrade what imports it.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition(
    "triton-missing-or-incompatible", id="DSD952", scope=Scope.USER_ENV, since="0.1"
)

HINT = "install the triton of this torch (`pip install -U triton`), and upgrade what imports it"

SIGNATURES = (
    Signature(
        anchor="triton",
        pattern=(
            r"No module named '?triton[\w.]*'?|cannot import name '\w+' from 'triton[\w.]*'"
            r"|module 'triton[\w.]*' has no attribute|triton\S*\.(?:CompilationError"
            r"|compiler\.errors)"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'triton.ops'",
            "ModuleNotFoundError: No module named 'triton'",
        ),
        not_examples=("[WARNING] using untested triton version (2.1.0)",),
        weight=64,
        not_near=("A matching Triton is not available",),
    ),
    Signature(
        anchor=("triton", "Triton", "PY_SSIZE_T_CLEAN"),
        pattern=(
            r"Cannot find a working triton installation|PY_SSIZE_T_CLEAN macro must be defined"
            r"|Triton Error \[CUDA\]: (?!out of memory|device kernel image)"
            r"|Triton only support CUDA|is not a supported.{0,20}[Tt]riton version"
        ),
        examples=(
            "RuntimeError: Cannot find a working triton installation. More information on installing Triton can be found at https://github.com/openai/triton",
            "SystemError: PY_SSIZE_T_CLEAN macro must be defined for '#' formats",
            "RuntimeError: Triton Error [CUDA]: invalid argument",
        ),
        not_examples=(
            "A matching Triton is not available, some optimizations will not be enabled",
            "RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
        ),
        weight=58,
    ),
    Signature(
        anchor="() got an unexpected keyword argument",
        pattern=(
            r"\b(?:dot|load|store|jit|autotune|Config|compile"
            r"|trans)\(\) got an unexpected keyword argument '(?:trans_[ab]"
            r"|num_warps|num_stages|allow_tf32|interpret|eviction_policy"
            r"|num_ctas|signature|prune_configs_by)'"
        ),
        examples=(
            "TypeError: dot() got an unexpected keyword argument 'trans_b'",
            "TypeError: compile() got an unexpected keyword argument 'num_warps'",
        ),
        not_examples=("TypeError: load() got an unexpected keyword argument 'path'",),
        weight=60,
    ),
    Signature(
        anchor=(
            "Cannot find ptxas",
            "Triton is not installed",
            "riton not found",
            "requirement triton",
            "distribution found for triton",
            "libtriton",
            "install triton",
            "'launch_enter_hook'",
            "; current version is '",
            "Triton requires",
            "HAS_TRITON is",
        ),
        pattern=(
            r"Cannot find ptxas|Triton is not installed|Error: [Tt]riton not found"
            r"|satisfies the requirement triton\b|No matching distribution found for triton\b"
            r"|libtriton\.so: undefined symbol|importing libtriton"
            r"|Error: .{0,80}install triton\b|'launch_enter_hook'"
            r"|Unsupported \.version [\d.]{1,8}; current version is '|Error: .{0,40}Triton requires"
            r"|HAS_TRITON is"
        ),
        examples=(
            "RuntimeError: Cannot find ptxas",
            "ERROR: No matching distribution found for triton==2.1.0",
            "ImportError: /x/triton/_C/libtriton.so: undefined symbol: _ZN4mlir9Operation",
            "ptxas x.ptx, line 9; fatal   : Unsupported .version 8.7; current version is '8.4'",
            "ImportError: DLL load failed while importing libtriton: not found",
        ),
        not_examples=(
            "found libtriton.so",
            "the loaded file is old; current version is '3'",
        ),
        weight=52,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        anchor="active drivers (",
        pattern=r"\b0 active drivers \(\[\]\)",
        examples=(
            "RuntimeError: 0 active drivers ([]). There should only be one.",
            "  RuntimeError: 0 active drivers ([]). There should only be one.",
        ),
        not_examples=(
            "RuntimeError: 2 active drivers (['cuda', 'hip']). There should only be one.",
        ),
        weight=74,
        near=("/triton/matmul_ext", "inference/triton", "triton_matmul", "import deepspeed"),
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor="KeyError: ('",
        pattern=r"KeyError: \('\d-\.-\d-\.-\d-[0-9a-f]{8}",
        examples=(
            "KeyError: ('2-.-0-.-0-d82511111ad12829-d6252949da17ceb5', (torch.float16,), (64,))",
            "KeyError: ('2-.-0-.-0-83ca8b715a9dc5f3', (torch.float32, 'i32'), (1024,), (True,))",
        ),
        not_examples=("KeyError: ('train', 0)",),
        weight=46,
    ),
    Signature(
        anchor=("riton",),
        pattern=(
            r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception|Failed): (?!.{0,200}[Tt]riton ?(?:[Ss]erver"
            r"|[Ii]nference|[Cc]lient)).{0,200}\b[Tt]riton\b"
        ),
        examples=(
            "ImportError: Failed to import Triton RMSNorm kernels",
            "ValueError: this attention needs triton",
        ),
        not_examples=(
            "RuntimeError: Triton server did not answer",
            "INFO: triton kernels are used",
        ),
        weight=27,
    ),
    Signature(
        anchor=("Triton PTX codegen error", "triton/backends/nvidia/bin/ptxas"),
        pattern=r"Triton PTX codegen error|/triton/backends/nvidia/bin/ptxas .{0,400}--gpu-name",
        examples=(
            "RuntimeError: Internal Triton PTX codegen error",
            "Repro command: /x/triton/backends/nvidia/bin/ptxas -lineinfo -v --gpu-name=sm_103a /tmp/a.ptx -o /tmp/a.o",
        ),
        not_examples=("found /x/triton/backends/nvidia/bin/ptxas",),
        weight=74,
        masks=("nvcc-arch-unsupported",),
    ),
    Signature(
        anchor=("UNREACHABLE executed at", "Cannot select: intrinsic", "PY_SSIZE_T_CLEAN macro"),
        pattern=(
            r"UNREACHABLE executed at \S{0,200}[Tt]riton|Cannot select: intrinsic %llvm\.nvvm"
            r"|PY_SSIZE_T_CLEAN macro must be defined"
        ),
        examples=(
            "UNREACHABLE executed at /project/lib/Conversion/TritonGPUToLLVM/DotOpToLLVM.cpp:12!",
            "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32",
        ),
        not_examples=("UNREACHABLE executed at /src/json/parse.cpp:9!",),
        weight=50,
    ),
)
