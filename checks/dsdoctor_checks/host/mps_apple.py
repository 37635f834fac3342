"""Apple's MPS back end lacks the type or operation.

## Why it matters
Apple's back end lacks some types (float64, bf16 before macOS 14) and operations.

## What to do
Use float32 or float16, or set `PYTORCH_ENABLE_MPS_FALLBACK=1`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("mps-apple", id="DSD1050", scope=Scope.NODE, since="0.1")

HINT = "use float32 or float16, or set `PYTORCH_ENABLE_MPS_FALLBACK=1`"

SIGNATURES = (
    Signature(
        anchor=("MPS", "not 'mps"),
        pattern=(
            r"^(?!.*(?:Warning: |\b[Ff]all(?:s|ing)? back ))(?:.*(?:not supported on MPS"
            r"|MPS framework doesn't support|not currently (?:supported"
            r"|implemented) (?:on|for) the MPS|MPS backend out of memory"
            r"|requires a GPU \(not 'mps|(?i:bf16|bfloat16|float64).{0,40}\bMPS\b|(?:not|n't) (?:available"
            r"|supported|implemented).{0,40}\bMPS\b))"
        ),
        examples=(
            "TypeError: BFloat16 is not supported on MPS",
            "NotImplementedError: The operator 'x' is not currently implemented for the MPS device.",
        ),
        not_examples=(
            "device: mps",
            "MPS is available",
            "UserWarning: The operator 'aten::unique' is not currently supported on the MPS backend and will fall back to run on the CPU.",
            "[W MPSFallback.mm:7] Warning: The operator 'aten::sort' is not currently supported on the MPS backend",
            "int64 input is not supported on MPS backend. Falling back on CPU.",
        ),
        weight=72,
        masks=("bf16-unsupported",),
    ),
    Signature(
        anchor=("_mps",),
        pattern='\\"\\w{1,60}_mps\\w{0,40}\\" not implemented for',
        examples=(
            "RuntimeError: \"arange_mps\" not implemented for 'BFloat16'",
            "RuntimeError: \"binary_op_mps\" not implemented for 'Double'",
        ),
        not_examples=("using arange_mps",),
        weight=76,
        masks=("bf16-unsupported",),
    ),
    Signature(
        anchor=(
            "device_type 'mps'",
            "device type: mps",
            "native/mps/",
            "MPSNDArray",
            "MPSGraph",
            "MPS backend",
            "on MPS device",
            "the MPS device",
            "MPS' backend",
            "failed assertion",
            "on MPS",
            "byte size: Complex",
            "MPS device",
            "MPS Tensor",
            "AppleInternal",
        ),
        pattern=(
            r"unsupported autocast device_type 'mps'|Unsupported device type: mps"
            r"|Exception raised from .{0,200}native/mps/|failed assertion .{0,40}\[?MPS"
            r"|MPSNDArray.{0,80}(?:rror|assert|> 2\*\*32)|AppleInternal/\S{0,200}MPS"
            r"|to the MPS backend but it does not|allocated on MPS device"
            r"|Error: .{0,200}(?:not|n't) .{0,80}\b(?:the MPS (?:device|backend)|on MPS\b)"
            r"|from the '\w{0,20}MPS' backend|Unsupported type byte size: Complex"
            r"|Error: MPS device does not|convert a MPS Tensor to"
        ),
        examples=(
            "RuntimeError: User specified an unsupported autocast device_type 'mps'",
            "RuntimeError: Placeholder storage has not been allocated on MPS device!",
            "TypeError: Trying to convert Float8_e5m2 to the MPS backend but it does not have support for that dtype.",
            "Exception raised from gather at /src/aten/src/ATen/native/mps/operations/View.mm:12 (most recent call first):",
            "NotImplementedError: Could not run 'aten::empty' with arguments from the 'SparseMPS' backend.",
        ),
        not_examples=(
            "loading of the MPS backend done",
            "NVRM: failed assertion in x.c:3",
            "RuntimeError: MPS client failed to connect to the MPS control daemon",
        ),
        weight=70,
        masks=("bf16-unsupported",),
    ),
    Signature(
        anchor=("'mps'", "'mps:0'", "watermark ratio", " mps "),
        pattern=(
            r"invalid (?:low|high) watermark ratio"
            r"|^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): .{0,200}(?:'mps'|'mps:0'| mps )"
        ),
        examples=(
            "RuntimeError: invalid low watermark ratio 1.4",
            "ValueError: this model does not run on device 'mps'",
        ),
        not_examples=("using device 'mps'",),
        weight=45,
    ),
    Signature(
        anchor="not implemented for '",
        pattern=r"\" not implemented for '(?:Half|BFloat16|ComplexFloat)'",
        examples=(
            "RuntimeError: \"LayerNormKernelImpl\" not implemented for 'Half'",
            "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
        ),
        not_examples=("x is not implemented for 'Half'",),
        weight=66,
        requires=("Darwin", "macOS", "/Users/", "arm64", "osx-"),
    ),
    Signature(
        anchor=(
            "MPS does not support",
            "Invalid buffer size",
            "mps_multiply",
            "mps_add",
            "mps_matmul",
            "_mps()' operation does not",
            "MPS backend is supported on",
            "MPSFloatType",
            "MPSHalfType",
            "(tagged with mps)",
            "type MPS is not supported",
            "mps dtype",
            "MPSNDArray",
            "MPSCore",
        ),
        pattern=(
            r"MPS does not support|_mps\(\)' operation does not support|Invalid buffer size: \d|mps_(?:multiply|add|matmul)\"?\): error"
            r"|MPS backend is supported on|MPS(?:Float|Half)Type|\(tagged with mps\)"
            r"|type MPS is not supported|Unsupported mps dtype"
            r"|MPS(?:NDArray|Core).{0,200}failed assertion"
        ),
        examples=(
            "RuntimeError: MPS does not support cumsum op with int64 input",
            "RuntimeError: Invalid buffer size: 12.00 GB",
            "RuntimeError: 'abs_out_mps()' operation does not support input type 'int64' in MPS backend",
            "RuntimeError: Input type (MPSFloatType) and weight type (torch.FloatTensor) should be the same",
        ),
        not_examples=("MPSCore loaded", "mps_add done"),
        weight=58,
    ),
    Signature(
        anchor=("not compiled with CUDA", "mixed precision requires"),
        pattern=r"Torch not compiled with CUDA enabled|\b(?:bf16|fp16|fp8) mixed precision requires",
        examples=(
            "AssertionError: Torch not compiled with CUDA enabled",
            "ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.",
        ),
        not_examples=("it is not compiled with CUDA",),
        weight=66,
        requires=('File "/Users/', "Darwin", "macOS-", "/opt/homebrew/", "Apple M", "arm64-apple"),
        masks=("cpu-only-torch", "bf16-unsupported"),
    ),
    Signature(
        anchor=("evice: mps", "evice=mps", "evice='mps'", "evice mps"),
        pattern=r"evice(?:: |=| )mps\b",
        examples=(
            "using device: mps",
            "Using device mps",
        ),
        not_examples=("device: mpsx",),
        weight=30,
        requires=("bus error", "abort ", "segmentation fault", "Segmentation fault", "Abort trap"),
        masks=("shm-too-small",),
    ),
    Signature(
        anchor=("module 'torch.distributed' has no", "from 'torch.distributed'", "c10d"),
        pattern=(
            r"module 'torch\.distributed' has no attribute|cannot import name '\w{1,60}' from 'torch\.distributed'"
            r"|No module named 'torch\._C\._distributed_c10d'"
        ),
        examples=(
            "AttributeError: module 'torch.distributed' has no attribute 'ReduceOp'",
            "ImportError: cannot import name 'Store' from 'torch.distributed' (/Users/me/x/torch/distributed/__init__.py)",
        ),
        not_examples=("c10d on macOS-14",),
        weight=60,
        requires=("/Users/", "Darwin", "macOS", "Mac OS", "MacOS:", "/opt/homebrew"),
        masks=("deepspeed-torch-incompatible", "dependency-version-conflict"),
    ),
    Signature(
        anchor=("not a mach-o file", "have 'arm64'", "incompatible architecture"),
        pattern=r"\(not a mach-o file\)|incompatible architecture \(have '(?:x86_64|arm64\w?)'",
        examples=(
            "dlopen(/Users/me/env/libodd.so, 0x0006): tried: '/Users/me/env/libodd.so' (not a mach-o file)",
            "(mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64'))",
        ),
        not_examples=("file(1) says it is not a mach-o file",),
        weight=46,
    ),
)
