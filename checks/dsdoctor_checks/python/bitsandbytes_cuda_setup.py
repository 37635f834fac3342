"""bitsandbytes cannot find or load its CUDA library.

## Why it matters
8-bit optimizers and quantized loading use a CUDA library that bitsandbytes ships. If it has none for
torch's CUDA version, its import stops the run.

## What to do
Upgrade `bitsandbytes` to a release that supports torch's CUDA version, and unset `BNB_CUDA_VERSION`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("bitsandbytes-cuda-setup", id="DSD950", scope=Scope.USER_ENV, since="0.1")

HINT = "upgrade `bitsandbytes` to a release that supports torch's CUDA version, and unset `BNB_CUDA_VERSION`"

SIGNATURES = (
    Signature(
        pattern="CUDA Setup failed|CUDA SETUP: (?:ERROR|CUDA detection failed|Problem|Solution|WARNING!.*not found|Required library|Setup Failed)",
        source="bitsandbytes 0.35-0.42 cuda_setup/main.py, cextension.py",
        examples=(
            "CUDA Setup failed despite a GPU",
            "CUDA SETUP: Setup Failed!",
        ),
        not_examples=("CUDA SETUP: Loading binary libbitsandbytes_cuda118.so",),
        level=Level.CERTAIN,
        masks=("cuda-runtime-lib-mismatch",),
    ),
    Signature(
        pattern=r"libbitsandbytes_\w+\.so: (?:undefined symbol|cannot open)|(?:undefined symbol|No such file).{0,80}libbitsandbytes|Configured CUDA binary not found|libbitsandbytes_cpu\.so: undefined symbol",
        source=(
            "glibc 2.17-2.41 elf/dl-load.c, elf/dl-lookup.c; bitsandbytes 0.43-0.50 cextension.py"
        ),
        examples=(
            "OSError: /x/libbitsandbytes_cuda126.so: cannot open shared object file: No such file or directory",
            "AttributeError: /x/libbitsandbytes_cpu.so: undefined symbol: cquantize_blockwise_fp16_nf4",
            "undefined symbol ... libbitsandbytes",
            "bitsandbytes library load error: Configured CUDA binary not found at /opt/env/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cuda130.so",
        ),
        not_examples=(
            "/opt/env/lib/python3.8/site-packages/deepspeed/ops/csrc/lamb/fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such file or directory",
        ),
        level=Level.CERTAIN,
        masks=("cuda-runtime-lib-mismatch", "cxx-abi-undefined-symbol"),
    ),
    Signature(
        pattern="bitsandbytes was compiled without GPU",
        source="bitsandbytes 0.45.5 cextension.py",
        examples=(
            "The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are unavailable.",
        ),
        level=Level.HINT,
        echo=True,  # a warning, after which training continues without it
    ),
    Signature(
        pattern="bitsandbytes library load error",
        source="bitsandbytes 0.46-0.50 cextension.py",
        examples=("bitsandbytes library load error: no library",),
    ),
    Signature(
        pattern="Configured CUDA binary not found",
        source="bitsandbytes 0.43-0.50 cextension.py",
        examples=("RuntimeError: Configured CUDA binary not found at /x/y",),
    ),
    Signature(
        pattern="CUDA is required but not available for bitsandbytes",
        source="transformers 4.51.3 integrations/bitsandbytes.py",
        examples=(
            "RuntimeError: CUDA is required but not available for bitsandbytes. Please consider installing",
        ),
    ),
    Signature(
        pattern="Could not find the bitsandbytes CUDA binary",
        source="bitsandbytes 0.45.5 cextension.py",
        examples=(
            "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/env/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda128.so')",
        ),
    ),
    Signature(
        pattern="'NoneType' object has no attribute '(?:cquantize|cadam|cget|cdequant)",
        source="python 3.3-3.14 Objects/object.c",
        examples=(
            "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_fp16_nf4'",
            "'NoneType' object has no attribute 'cadam",
            "'NoneType' object has no attribute 'cget",
            "'NoneType' object has no attribute 'cdequant",
        ),
    ),
    Signature(
        pattern=r"CUDA_SETUP: WARNING! lib\S+ not found",
        source="bitsandbytes 0.35-0.42 cuda_setup/main.py",
        examples=("CUDA_SETUP: WARNING! libx1 not found",),
        not_examples=("CUDA_SETUP: WARNING! libx1 not",),
        unless=("CUDA SETUP: CUDA runtime path found:",),  # in one of the backup paths
    ),
    Signature(
        pattern=r"Error: .{0,200}the latest version of bitsandbytes|quantization requires bitsandbytes",
        source=(
            "transformers 4.30-5.24 quantizers/quantizer_bnb_8bit.py; accelerate 0.20-1.15 "
            "utils/bnb.py"
        ),
        message="`bitsandbytes` is not installed, or is older than transformers or accelerate needs",
        hint="run `python -m pip install -U bitsandbytes`, or turn off quantization",
        examples=(
            "ImportError: Using `bitsandbytes` 8-bit quantization requires the latest version of bitsandbytes: `pip install -U bitsandbytes`",
            "quantization requires bitsandbytes",
        ),
        not_examples=("pip installs the latest version of bitsandbytes",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"name 'str2optimizer\w{0,40}' is not defined",
        source="python 3.3-3.14 Python/ceval.c, for bitsandbytes 0.35-0.42 functional.py",
        examples=("NameError: name 'str2optimizer8bit' is not defined",),
        not_examples=("NameError: name 'str2optimizer8bit' is not",),
    ),
    Signature(
        pattern="name 'cuda_setup' is not defined",
        source="python 3.3-3.14 Python/ceval.c",
        examples=("name 'cuda_setup' is not defined",),
    ),
    Signature(
        pattern="CUDA exception! Error code",
        source="bitsandbytes 0.35-0.42 cuda_setup/main.py",
        examples=("CUDA exception! Error code",),
    ),
    Signature(
        pattern=r"No libcudart\.so found",
        source="bitsandbytes 0.35-0.42 cuda_setup/main.py",
        examples=(
            "WARNING: No libcudart.so found! Install CUDA or the cudatoolkit package (anaconda)!",
        ),
    ),
    Signature(
        pattern="cublasLt ran into an error",
        source="bitsandbytes 0.45.5 functional.py",
        examples=("Exception: cublasLt ran into an error!",),
    ),
    Signature(
        pattern="cuBLAS API failed with status",
        source="bitsandbytes 0.45.5 libbitsandbytes_cuda126.so, libbitsandbytes_cuda117.so",
        examples=("cuBLAS API failed with status",),
    ),
    Signature(
        pattern="Forgot to compile the bitsandbytes",
        source="bitsandbytes 0.43-0.50 cextension.py",
        examples=("Forgot to compile the bitsandbytes",),
    ),
    Signature(
        pattern="CUDA VERSION MISMATCH",
        source="bitsandbytes 0.46-0.50 cextension.py",
        examples=("CUDA VERSION MISMATCH",),
    ),
    Signature(
        pattern="load CPU-only library",
        source="bitsandbytes 0.35-0.42 cuda_setup/main.py",
        examples=("load CPU-only library",),
    ),
    Signature(
        pattern="metadata was found for bitsandbytes",
        source="python 3.8-3.14 Lib/importlib/metadata/__init__.py",
        message="`bitsandbytes` is not installed, and the run asks for 4-bit or 8-bit weights or optimizers",
        hint="run `python -m pip install -U bitsandbytes`, or turn off quantization",
        examples=("metadata was found for bitsandbytes",),
    ),
    Signature(
        pattern=r"bitsandbytes::\w{1,60}'? (?:does not exist|is not implemented)",
        source="torch 2.4-2.13 library.py, csrc/jit/frontend; bitsandbytes 0.46-0.50 _ops.py",
        examples=(
            "RuntimeError: operator bitsandbytes::dequantize_4bit does not exist",
            "bitsandbytes::name is not implemented",
        ),
        not_examples=(
            "ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.",
        ),
    ),
    Signature(
        pattern=r"libbitsandbytes_c\w{1,40}\.(?:dll'? ?\(or|dll not found|so: mach-o)",
        source="python 3.8-3.14 Lib/ctypes/__init__.py",
        examples=(
            "FileNotFoundError: Could not find module 'D:\\x\\libbitsandbytes_cuda121.dll' (or one of its dependencies).",
            "libbitsandbytes_cname.dll not found",
            "libbitsandbytes_cname.so: mach-o",
        ),
        not_examples=("loaded libbitsandbytes_cuda121.dll",),
    ),
)
