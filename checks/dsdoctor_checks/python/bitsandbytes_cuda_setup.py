"""bitsandbytes cannot find or load its CUDA library.

## Why it matters
8-bit optimizers and quantised loading need a CUDA library of bitsandbytes' own; without the right
one its import ends the run.

## What to do
Upgrade `bitsandbytes` to a release for the CUDA of torch, and unset `BNB_CUDA_VERSION`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("bitsandbytes-cuda-setup", id="DSD950", scope=Scope.USER_ENV, since="0.1")

HINT = "upgrade `bitsandbytes` to a release for the CUDA of torch, and unset `BNB_CUDA_VERSION`"

SIGNATURES = (
    Signature(
        anchor=("CUDA Setup failed", "CUDA SETUP"),
        pattern=(
            r"CUDA Setup failed|CUDA SETUP: (?:ERROR|CUDA detection failed"
            r"|Problem|Solution|WARNING!.*not found|Required library|Setup Failed)"
        ),
        examples=("CUDA Setup failed despite a GPU", "CUDA SETUP: Setup Failed!"),
        not_examples=("CUDA SETUP: Loading binary libbitsandbytes_cuda118.so",),
        weight=75,
        masks=("cuda-runtime-lib-mismatch",),
    ),
    Signature(
        anchor=("libbitsandbytes", "Configured CUDA binary not found"),
        pattern=(
            r"libbitsandbytes_\w+\.so: (?:undefined symbol|cannot open)"
            r"|(?:undefined symbol|No such file).{0,80}libbitsandbytes"
            r"|Configured CUDA binary not found|libbitsandbytes_cpu\.so: undefined symbol"
        ),
        examples=(
            "OSError: /x/libbitsandbytes_cuda126.so: cannot open shared object file: No such file or directory",
            "AttributeError: /x/libbitsandbytes_cpu.so: undefined symbol: cquantize_blockwise_fp16_nf4",
        ),
        not_examples=("binary libbitsandbytes_cuda121.so loaded",),
        weight=75,
        masks=("cuda-runtime-lib-mismatch", "cxx-abi-undefined-symbol"),
    ),
    Signature(
        anchor=(
            "bitsandbytes was compiled without GPU",
            "bitsandbytes library load error",
            "available for bitsandbytes",
            "bitsandbytes CUDA binary",
            "cquantize_blockwise",
            "cadam32bit_grad",
            "cget_col_row_stats",
            "CUDA_SETUP: ",
            "Configured CUDA binary not found",
            "'NoneType' object has no attribute 'cquantize",
            "'NoneType' object has no attribute 'cdequant",
            "'NoneType' object has no attribute 'cadam",
            "'NoneType' object has no attribute 'cget",
        ),
        pattern=(
            r"bitsandbytes was compiled without GPU|bitsandbytes library load error"
            r"|Configured CUDA binary not found|CUDA is required but not available for bitsandbytes"
            r"|Could not find the bitsandbytes CUDA binary|'NoneType' object has no attribute '(?:cquantize|cadam|cget|cdequant)"
            r"|CUDA_SETUP: WARNING! lib\S+ not found"
        ),
        examples=(
            "RuntimeError: CUDA is required but not available for bitsandbytes. Please consider installing",
            "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_fp16_nf4'",
            "RuntimeError: Configured CUDA binary not found at /x/y",
            "bitsandbytes library load error: no library",
        ),
        not_examples=(
            "bitsandbytes 0.43 loaded",
            "an update is available for bitsandbytes",
        ),
        weight=55,
    ),
    Signature(
        anchor=("bitsandbytes/csrc", "version of bitsandbytes", "quantization requires bitsandb"),
        pattern=(
            r"bitsandbytes/csrc/\w+\.cu|Error: .{0,200}the latest version of bitsandbytes"
            r"|quantization requires bitsandbytes"
        ),
        examples=(
            "Error named symbol not found at line 74 in file /mmfs1/home/dettmers/git/bitsandbytes/csrc/ops.cu",
            "ImportError: Using `bitsandbytes` 8-bit quantization requires the latest version of bitsandbytes: `pip install -U bitsandbytes`",
        ),
        not_examples=("pip installs the latest version of bitsandbytes",),
        weight=60,
    ),
    Signature(
        anchor=(
            "name 'str2optimizer",
            "name 'cuda_setup' is not",
            "CUDA exception! Error code",
            "No libcudart.so found",
            "cublasLt ran into an error",
            "cuBLAS API failed with status",
            "Forgot to compile the bitsandbytes",
            "CUDA VERSION MISMATCH",
            "load CPU-only library",
            "metadata was found for bitsandbytes",
            "requires bitsandbytes but",
            "CUDA Setup Failed",
            "bitsandbytes::",
            "libbitsandbytes_c",
        ),
        pattern=(
            r"name 'str2optimizer\w{0,40}' is not defined|name 'cuda_setup' is not defined"
            r"|CUDA exception! Error code|No libcudart\.so found|cublasLt ran into an error"
            r"|cuBLAS API failed with status|Forgot to compile the bitsandbytes"
            r"|CUDA VERSION MISMATCH|load CPU-only library|metadata was found for bitsandbytes"
            r"|requires bitsandbytes but|CUDA Setup Failed"
            r"|bitsandbytes::\w{1,60}'? (?:does not exist|is not implemented)"
            r"|libbitsandbytes_c\w{1,40}\.(?:dll'? ?\(or|dll not found|so: mach-o)"
        ),
        examples=(
            "NameError: name 'str2optimizer8bit' is not defined",
            "Exception: cublasLt ran into an error!",
            "RuntimeError: operator bitsandbytes::dequantize_4bit does not exist",
            "FileNotFoundError: Could not find module 'D:\\x\\libbitsandbytes_cuda121.dll' (or one of its dependencies).",
        ),
        not_examples=(
            "registered bitsandbytes::dequantize_4bit",
            "loaded libbitsandbytes_cuda121.dll",
        ),
        weight=58,
    ),
    Signature(
        anchor="bitsandbytes",
        pattern=r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): .{0,200}\bbitsandbytes\b",
        examples=(
            "RuntimeError: bitsandbytes found no usable back end",
            "ValueError: please install bitsandbytes for this optimizer",
        ),
        not_examples=("warning: bitsandbytes is old",),
        weight=27,
    ),
)
