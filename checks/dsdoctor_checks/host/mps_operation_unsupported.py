"""Apple's MPS backend does not support a type or an operation.

## Why it matters
The MPS backend does not support float64, bf16 before macOS 14, and some operations.

## What to do
Use float32 or float16, or set `PYTORCH_ENABLE_MPS_FALLBACK=1`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "mps-operation-unsupported",
    id="DSD1050",
    scope=Scope.NODE,
    since="0.1",
    formerly=("mps-apple",),
)

HINT = "use float32 or float16, or set `PYTORCH_ENABLE_MPS_FALLBACK=1`"

SIGNATURES = (
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*not supported on MPS",
        source="torch 1.12-2.13 aten/src/ATen/native/mps",
        examples=("TypeError: BFloat16 is not supported on MPS",),
        not_examples=("int64 input is not supported on MPS backend. Falling back on CPU.",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*MPS framework doesn't support",
        source=(
            "torch 1.13-2.13 aten/src/ATen/native/mps/OperationUtils.mm, csrc/utils/tensor_new.cpp"
        ),
        examples=(
            "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead.",
        ),
        not_examples=("UserWarning: the MPS framework doesn't support float64",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*not currently (?:supported|implemented) (?:on|for) the MPS",
        source="torch 1.12-2.13 aten/src/ATen/mps/MPSFallback.mm, aten/src/ATen/native/mps",
        examples=(
            "NotImplementedError: The operator 'x' is not currently implemented for the MPS device.",
            "RuntimeError: x is not currently supported on the MPS backend",
        ),
        not_examples=(
            "UserWarning: The operator 'aten::unique' is not currently supported on the MPS backend and will fall back to run on the CPU.",
            "[W MPSFallback.mm:7] Warning: The operator 'aten::sort' is not currently supported on the MPS backend",
        ),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*requires a GPU \(not 'mps",
        source="accelerate 0.30-1.15 accelerator.py",
        examples=("ValueError: fp16 mixed precision requires a GPU (not 'mps').",),
        not_examples=("Warning: requires a GPU (not 'mps')",),
        level=Level.CERTAIN,
        message="This release of accelerate does not train in fp16 on Apple's MPS",
        hint="set `mixed_precision` to `no`, or upgrade accelerate to 1.11 or newer, and torch to 2.5 or newer",
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*(?:BFloat16|bfloat16|Float64|float64).{0,40}\bMPS\b",
        source="torch 1.12-2.13 aten/src/ATen/native/mps/OperationUtils.mm, aten/src/ATen/mps",
        examples=(
            "TypeError: BFloat16 is not supported on MPS",
            "RuntimeError: bfloat16 needs macOS 14 on MPS",
            "TypeError: Float64 has no MPS kernel",
            "TypeError: cannot cast to float64 on MPS",
        ),
        not_examples=("Warning: bfloat16 is slow on MPS",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back )).*(?:not|n't) (?:available|supported|implemented).{0,40}\bMPS\b",
        source="torch 1.12-2.13 aten/src/ATen/native/mps",
        examples=(
            "RuntimeError: this op isn't implemented for MPS",
            "RuntimeError: nonzero is not supported with MPS",
            "RuntimeError: torch.compile is not available with MPS",
        ),
        not_examples=(
            "RuntimeError: nonzero is not supported; falling back to CPU from MPS",
            "torch.compile is not available",
        ),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"\"\w{1,60}_mps\w{0,40}\" not implemented for",
        source="torch 2.13.0 include/torch/headeronly/core/Dispatch.h, libtorch_cpu.so",
        examples=(
            "RuntimeError: \"arange_mps\" not implemented for 'BFloat16'",
            "RuntimeError: \"binary_op_mps\" not implemented for 'Double'",
        ),
        not_examples=('" not implemented for is fine',),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="unsupported autocast device_type 'mps'",
        source="torch 2.0-2.13 amp/autocast_mode.py",
        examples=("RuntimeError: User specified an unsupported autocast device_type 'mps'",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="Unsupported device type: mps",
        source="accelerate 0.20-1.15; torch 2.0-2.13 distributed",
        examples=("Unsupported device type: mps",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="Exception raised from .{0,200}native/mps/",
        source="torch 1.12-2.13 aten/src/ATen/native/mps, as c10/util/Exception.cpp prints it",
        examples=(
            "Exception raised from gather at /src/aten/src/ATen/native/mps/operations/View.mm:12 (most recent call first):",
        ),
        not_examples=(
            "Exception raised from throwTimeoutError at /__w/pytorch/pytorch/torch/csrc/distributed/c10d/socket.cpp:1030 (most recent call first):",
        ),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"failed assertion .{0,40}\[?MPS",
        source="macOS 12-15 MetalPerformanceShaders",
        examples=("failed assertion MPS",),
        not_examples=("NVRM: failed assertion in x.c:3",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"MPSNDArray.{0,80}(?:rror|assert|> 2\*\*32)",
        source="macOS 12-15 MetalPerformanceShaders",
        examples=(
            "MPSNDArray ... rror",
            "MPSNDArray ... assert",
            "MPSNDArray ... > 2**32",
        ),
        not_examples=("MPSNDArray ...",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"AppleInternal/\S{0,200}MPS",
        source="macOS 12-15 MetalPerformanceShaders",
        examples=("AppleInternal/x1MPS",),
        not_examples=("AppleInternal/ is fine",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="to the MPS backend but it does not",
        source="torch 1.12-2.13 aten/src/ATen/native/mps/OperationUtils.mm",
        examples=(
            "TypeError: Trying to convert Float8_e5m2 to the MPS backend but it does not have support for that dtype.",
        ),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="allocated on MPS device",
        source="torch 1.12-2.13 aten/src/ATen/native/mps/OperationUtils.mm",
        examples=("RuntimeError: Placeholder storage has not been allocated on MPS device!",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"Error: .{0,200}(?:not|n't) .{0,80}\b(?:the MPS (?:device|backend)|on MPS\b)",
        source="torch 1.12-2.13 aten/src/ATen/mps, aten/src/ATen/native/mps",
        examples=(
            "RuntimeError: Placeholder storage has not been allocated on MPS device!",
            "RuntimeError: n't the MPS device",
        ),
        not_examples=("RuntimeError: MPS client failed to connect to the MPS control daemon",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"from the '\w{0,20}MPS' backend",
        source="torch 1.5-2.13 aten/src/ATen/core/dispatch/OperatorEntry.cpp",
        examples=(
            "NotImplementedError: Could not run 'aten::empty' with arguments from the 'SparseMPS' backend.",
        ),
        not_examples=("the 'SparseMPS' backend.",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="Unsupported type byte size: Complex",
        source="torch 1.12-2.13 aten/src/ATen/native/mps/OperationUtils.mm",
        examples=("Unsupported type byte size: Complex",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="Error: MPS device does not",
        source="torch 1.12-2.13 aten/src/ATen/native/mps",
        examples=("RuntimeError: MPS device does not",),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern="convert a MPS Tensor to",
        source=(
            "torch 1.13-2.13 csrc/utils/tensor_new.cpp, aten/src/ATen/native/mps/operations/Copy.mm"
        ),
        examples=(
            "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead.",
        ),
        level=Level.CERTAIN,
        masks=("bf16-unsupported",),
    ),
    Signature(
        pattern=r"invalid (?:low|high) watermark ratio|^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): .{0,200}(?:'mps'|'mps:0'| mps )",
        source=(
            "torch 1.13-2.13 aten/src/ATen/mps/MPSAllocator.mm; any package that names the device"
        ),
        examples=(
            "RuntimeError: invalid low watermark ratio 1.4",
            "ValueError: this model does not run on device 'mps'",
        ),
        not_examples=(
            "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_fp16_nf4'",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="\\\" not implemented for '(?:Half|BFloat16|ComplexFloat)'",
        source="torch 1.0-2.13 aten/src/ATen/Dispatch.h",
        examples=(
            "RuntimeError: \"LayerNormKernelImpl\" not implemented for 'Half'",
            "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
            "\" not implemented for 'BFloat16'",
            "\" not implemented for 'ComplexFloat'",
        ),
        level=Level.STRONG,
        requires=("Darwin", "macOS", "/Users/", "arm64", "osx-"),
    ),
    Signature(
        pattern="MPS does not support",
        source="torch 1.12-2.13 aten/src/ATen/native/mps",
        examples=("RuntimeError: MPS does not support cumsum op with int64 input",),
    ),
    Signature(
        pattern=r"_mps\(\)' operation does not support",
        source="torch 1.12-2.13 aten/src/ATen/native/mps",
        examples=(
            "RuntimeError: 'abs_out_mps()' operation does not support input type 'int64' in MPS backend",
        ),
    ),
    Signature(
        pattern=r"Invalid buffer size: \d",
        source="transformers 5.23.0 modeling_utils.py",
        examples=("RuntimeError: Invalid buffer size: 12.00 GB",),
        not_examples=("Invalid buffer size: is fine",),
    ),
    Signature(
        pattern=r"mps_(?:multiply|add|matmul)\"?\): error",
        source="macOS 12-15 MetalPerformanceShaders",
        examples=(
            "mps_multiply): error",
            "mps_add): error",
            "mps_matmul): error",
        ),
    ),
    Signature(
        pattern="MPS backend is supported on",
        source="torch 1.12-2.13 aten/src/ATen/mps/MPSDevice.mm",
        examples=("MPS backend is supported on",),
    ),
    Signature(
        pattern="MPS(?:Float|Half)Type",
        source="torch 1.12-2.13 aten/src/ATen/native/Convolution.cpp, c10/core/DispatchKey",
        examples=(
            "RuntimeError: Input type (MPSFloatType) and weight type (torch.FloatTensor) should be the same",
            "RuntimeError: Input type (MPSHalfType) and weight type (torch.FloatTensor) should be the same",
        ),
    ),
    Signature(
        pattern=r"\(tagged with mps\)",
        source="torch 1.12-2.13 serialization.py",
        examples=("(tagged with mps)",),
    ),
    Signature(
        pattern="type MPS is not supported",
        source="torch 1.12-2.13 aten/src/ATen/Context.h, csrc/Generator.cpp",
        examples=("RuntimeError: Device type MPS is not supported for torch.Generator() api.",),
    ),
    Signature(
        pattern="MPS(?:NDArray|Core).{0,200}failed assertion",
        source="macOS 12-15 MetalPerformanceShaders",
        examples=(
            "MPSNDArray ... failed assertion",
            "MPSCore ... failed assertion",
        ),
        not_examples=("... failed assertion",),
    ),
    Signature(
        pattern=r"Torch not compiled with CUDA enabled|\b(?:bf16|fp16|fp8) mixed precision requires",
        source="torch 0.4-2.13 cuda/__init__.py; accelerate 0.20-1.15 accelerator.py, state.py",
        examples=(
            "AssertionError: Torch not compiled with CUDA enabled",
            "ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.",
        ),
        level=Level.STRONG,
        requires=('File "/Users/', "Darwin", "macOS-", "/opt/homebrew/", "Apple M", "arm64-apple"),
        masks=("cpu-only-torch", "bf16-unsupported"),
    ),
    Signature(
        pattern=r"evice(?:: |=| )mps\b",
        source="accelerate, transformers and training scripts print the device in use",
        examples=(
            "using device: mps",
            "Using device mps",
            "evice=mps",
        ),
        not_examples=("device: mpsx",),
        level=Level.HINT,
        requires=("bus error", "abort ", "segmentation fault", "Segmentation fault", "Abort trap"),
        masks=("shm-too-small",),
    ),
    Signature(
        pattern=r"module 'torch\.distributed' has no attribute|cannot import name '\w{1,60}' from 'torch\.distributed'|No module named 'torch\._C\._distributed_c10d'",
        source="python 3.5-3.14 Objects/moduleobject.c, python 3.7-3.14 Python/ceval.c import_from, python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "AttributeError: module 'torch.distributed' has no attribute 'ReduceOp'",
            "ImportError: cannot import name 'Store' from 'torch.distributed' (/Users/me/x/torch/distributed/__init__.py)",
            "No module named 'torch._C._distributed_c10d'",
        ),
        not_examples=(
            "import name 'Store' from 'torch.distributed' (/Users/me/x/torch/distributed/__init__.py)",
        ),
        level=Level.STRONG,
        requires=("/Users/", "Darwin", "macOS", "Mac OS", "MacOS:", "/opt/homebrew"),
        masks=("deepspeed-torch-incompatible", "dependency-version-conflict"),
    ),
    Signature(
        pattern=r"\(not a mach-o file\)|incompatible architecture \(have '(?:x86_64|arm64\w?)'",
        source="macOS 11-15 dyld",
        examples=(
            "dlopen(/Users/me/env/libodd.so, 0x0006): tried: '/Users/me/env/libodd.so' (not a mach-o file)",
            "(mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64'))",
        ),
        not_examples=("incompatible architecture (have ' is fine",),
        level=Level.WEAK,
    ),
)
