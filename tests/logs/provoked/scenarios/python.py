"""Python packages that do not fit each other, and libraries that do not load."""

from __future__ import annotations

from ._bench import EXTRA, RUN, TRAIN, Bench, scenario

CONFLICT = "dependency-version-conflict"
SYMBOL = "cxx-abi-undefined-symbol"
TORCH_LIB = TRAIN / "lib/python3.11/site-packages/torch/lib"


def _with(bench: Bench, script: str, *extras: str) -> int:
    return bench.py(script, env={"PYTHONPATH": ":".join(str(EXTRA / name) for name in extras)})


@scenario("numpy-abi-2", r"compiled using NumPy 1\.x", extra=("bottleneck==1.3.7",))
def python_numpy1_extension(bench: Bench) -> int:
    """A package built for NumPy 1 under NumPy 2."""
    return _with(bench, "import bottleneck\n\nprint(bottleneck.__version__)\n", "bottleneck-1.3.7")


@scenario(
    "cpu-only-torch",
    r"(?i)undefined symbol|cannot open shared object|OSError",
    extra=("torchaudio==2.5.1",),
    also_ok=(CONFLICT, SYMBOL, "cuda-runtime-lib-mismatch"),
)
def python_torchaudio_of_other_torch(bench: Bench) -> int:
    """torchaudio built for torch 2.5 with CUDA, under another torch."""
    return _with(bench, "import torchaudio\n", "torchaudio-2.5.1")


@scenario(
    CONFLICT,
    r"(?i)torchvision::nms does not exist|undefined symbol|operator",
    extra=("torchvision==0.20.1",),
    also_ok=(SYMBOL, "cpu-only-torch"),
)
def python_torchvision_of_other_torch(bench: Bench) -> int:
    """torchvision of torch 2.5 under another torch."""
    return _with(bench, "import torchvision\n", "torchvision-0.20.1")


@scenario(
    "cuda-runtime-lib-mismatch",
    r"(?i)libcudart|libtorch_cuda|cannot open shared object",
    extra=("torchvision==0.20.1",),
    also_ok=("cpu-only-torch", SYMBOL),
)
def python_extension_wants_cuda_libs(bench: Bench) -> int:
    """A CUDA extension is loaded under a CPU build of torch."""
    script = "import torch\n\ntorch.ops.load_library('/opt/extra/torchvision-0.20.1/torchvision/_C.so')\n"
    return _with(bench, script, "torchvision-0.20.1")


@scenario(
    "cuda-runtime-lib-mismatch",
    r"libcudart\.so\.12: cannot open shared object file",
    needs=("gcc",),
    simulated="a small extension linked against an empty libcudart.so.12 that is then taken away; the loader's words are real",
)
def python_libcudart_12_missing(bench: Bench) -> int:
    """An extension built for CUDA 12 finds no libcudart.so.12."""
    bench.write("empty.c", "void cudaFree(void) {}\n")
    bench.write(
        "flash_attn_2_cuda.c",
        "void cudaFree(void);\nvoid PyInit_flash_attn_2_cuda(void) { cudaFree(); }\n",
    )
    bench.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wl,-soname,libcudart.so.12",
            "-o",
            "libcudart.so.12",
            "empty.c",
        ]
    )
    module = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
    bench.run(["gcc", "-shared", "-fPIC", "-o", module, "flash_attn_2_cuda.c", "./libcudart.so.12"])
    (RUN / "libcudart.so.12").unlink()
    return bench.py("import torch\nimport flash_attn_2_cuda as flash_attn_gpu\n")


@scenario(SYMBOL, r"undefined symbol: _ZN", needs=("g++",))
def python_old_cxx_abi(bench: Bench) -> int:
    """An extension really compiled with the old C++ ABI against torch's headers."""
    script = """\
from torch.utils.cpp_extension import load

load(name="fast_norm_cuda", sources=["op.cpp"], extra_cflags=["-D_GLIBCXX_USE_CXX11_ABI=0"], is_python_module=False)
"""
    bench.write(
        "op.cpp",
        '#include <c10/util/Exception.h>\nvoid check(int n) { TORCH_CHECK(n > 0, std::string("bad")); }\nvoid go() { check(1); }\n',
    )
    return bench.py(script)


@scenario(
    "libstdcxx-too-old",
    r"GLIBCXX_3\.4\.\d+' not found",
    needs=("gcc",),
    simulated="the old libstdc++.so.6 is an empty library without versions past 3.4.19; the loader's words are real",
)
def python_libstdcxx_too_old(bench: Bench) -> int:
    """An older libstdc++ (of a conda environment, say) comes first in LD_LIBRARY_PATH."""
    old = [
        "GLIBCXX_3.4",
        *(f"GLIBCXX_3.4.{n}" for n in range(1, 20)),
        "CXXABI_1.3",
        *(f"CXXABI_1.3.{n}" for n in range(1, 14)),
    ]
    bench.write("conda/lib/old.map", "".join(f"{name} {{}};\n" for name in old))
    bench.write("conda/lib/old.c", "int old;\n")
    library = [
        "gcc",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libstdc++.so.6",
        "-Wl,--version-script=old.map",
        "-o",
        "libstdc++.so.6",
        "old.c",
    ]
    bench.run(library, cwd=RUN / "conda/lib")
    return bench.py("import torch\n", env={"LD_LIBRARY_PATH": str(RUN / "conda/lib")})


@scenario("torch-import-broken", r"Bus error", needs=("root",), also_ok=("shm-too-small",))
def python_torch_library_truncated(bench: Bench) -> int:
    """The disk was full when torch was installed: libtorch_cpu.so is cut off; the loader dies of SIGBUS."""
    short = RUN / "short.so"
    with (TORCH_LIB / "libtorch_cpu.so").open("rb") as whole:
        short.write_bytes(whole.read(4096))
    bench.mount("--bind", str(short), str(TORCH_LIB / "libtorch_cpu.so"))
    bench.write("train.py", "import torch\n")
    job = bench.write("job.sh", f"#!/bin/bash\n{bench.python} train.py\nexit $?\n", mode=0o755)
    return bench.run([str(job)])


@scenario("torch-import-broken", r"file too short", needs=("root",))
def python_torch_library_empty(bench: Bench) -> int:
    """libc10.so has no bytes."""
    empty = RUN / "empty.so"
    empty.touch()
    bench.mount("--bind", str(empty), str(TORCH_LIB / "libc10.so"))
    return bench.py("import torch\n")


@scenario(
    SYMBOL,
    r"undefined symbol",
    needs=("gcc",),
    also_ok=("torch-import-broken",),
    simulated="the foreign libc10.so is an empty one; the loader's words are real",
)
def python_libc10_shadowed(bench: Bench) -> int:
    """LD_PRELOAD brings a foreign libc10.so."""
    bench.write("old.c", "int old;\n")
    bench.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libc10.so", "-o", "libc10.so", "old.c"])
    return bench.py("import torch\n", env={"LD_PRELOAD": str(RUN / "libc10.so")})


@scenario(
    "deepspeed-torch-incompatible",
    r"cannot import name 'log' from 'torch\.distributed\.elastic",
    extra=("sdist:deepspeed==0.14.0",),
)
def python_deepspeed_0_14_0(bench: Bench) -> int:
    """DeepSpeed 0.14.0 under a torch that dropped what it imports."""
    return _with(bench, "import deepspeed\n", "deepspeed-0.14.0")


@scenario(
    "deepspeed-torch-incompatible",
    r"torch\._six",
    extra=("sdist:deepspeed==0.8.0",),
    also_ok=(CONFLICT,),
)
def python_deepspeed_0_8_0(bench: Bench) -> int:
    """DeepSpeed 0.8.0 wants torch._six."""
    script = "import sys, types\nimport deepspeed\n"
    script = "import deepspeed.runtime.utils\n"
    return _with(bench, script, "deepspeed-0.8.0", "pydantic-1.10.13")


@scenario(CONFLICT, r"cannot import name '\w+' from 'pydantic'", extra=("pydantic==1.10.13",))
def python_pydantic_1(bench: Bench) -> int:
    """pydantic 1 under a DeepSpeed that wants 2."""
    return _with(bench, "import deepspeed\n", "pydantic-1.10.13")


@scenario(CONFLICT, r"No module named 'pkg_resources'")
def python_pkg_resources_gone(bench: Bench) -> int:
    """A script that wants pkg_resources under a setuptools that dropped it."""
    return bench.py("import pkg_resources\n\nprint(pkg_resources.get_distribution('torch'))\n")


@scenario("triton-unusable", r"(?i)triton")
def python_triton_missing(bench: Bench) -> int:
    """A kernel of DeepSpeed's that wants triton, which is not installed."""
    return bench.py(
        "from deepspeed.ops.transformer.inference.triton.matmul_ext import Fp16Matmul\n\nprint(Fp16Matmul)\n"
    )


@scenario("cpu-only-torch", r"Torch not compiled with CUDA enabled")
def python_cuda_on_cpu_torch(bench: Bench) -> int:
    """.cuda() under a CPU build of torch."""
    return bench.py("import torch\n\nnet = torch.nn.Linear(4, 4).cuda()\n")


REQUESTS = ("requests==2.32.5", "urllib3==2.5.0", "certifi==2025.8.3", "charset_normalizer==3.4.3")
HUB = (
    "transformers==5.23.0",
    "huggingface_hub==2.4.0",
    "tokenizers==0.23.3",
    "safetensors==0.8.0",
    "pyyaml==6.0.3",
    "regex==2026.11.15",
    "httpx2==2.16.2",
    "httpcore2==2.16.2",
    "anyio==4.16.0",
    "idna==3.20",
    "h11==0.16.0",
    "truststore==0.10.5",
    "typer==0.29.2",
    "shellingham==1.5.4",
    "annotated-doc==0.0.7",
    "hf_xet==1.8.0",
)


@scenario("hub-unreachable", r"(?i)couldn't connect|offline|huggingface", extra=HUB)
def python_hub_unreachable(bench: Bench) -> int:
    """A model is named that is not cached, on a node without network."""
    script = "from transformers import AutoConfig\n\nAutoConfig.from_pretrained('gpt2')\n"
    return _with(bench, script, *(spec.replace("==", "-").replace("_", "-") for spec in HUB))


@scenario("hub-unreachable", r"(?i)offline|cached", extra=HUB)
def python_hub_offline_mode(bench: Bench) -> int:
    """HF_HUB_OFFLINE=1 and nothing cached."""
    bench.env["HF_HUB_OFFLINE"] = "1"
    return python_hub_unreachable(bench)


@scenario(
    CONFLICT,
    r"is required for a normal functioning of this module",
    extra=("transformers==4.30.2", *REQUESTS, *HUB[1:]),
)
def python_transformers_pins_tokenizers(bench: Bench) -> int:
    """transformers 4.30 beside the tokenizers and huggingface_hub of today."""
    script = "from transformers import AutoConfig\n"
    return _with(
        bench,
        script,
        "transformers-4.30.2",
        *(spec.replace("==", "-").replace("_", "-") for spec in REQUESTS + HUB[1:]),
    )
