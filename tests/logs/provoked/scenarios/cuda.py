"""What CUDA code says on a machine that has none."""

from __future__ import annotations

from ._bench import Bench, scenario
from ._scripts import config, train

ARGS = ("--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("no-gpu-visible", r"no GPU resources available", also_ok=("cpu-only-torch",))
def cuda_accelerator_forced(bench: Bench) -> int:
    """DS_ACCELERATOR=cuda under a CPU build of torch."""
    bench.write("ds_config.json", config())
    return bench.deepspeed(train(), *ARGS, env={"DS_ACCELERATOR": "cuda"})


@scenario("cpu-only-torch", r"doesn't have NCCL built in", also_ok=("no-gpu-visible",))
def cuda_accelerator_forced_torchrun(bench: Bench) -> int:
    """The same under torchrun, one rank."""
    bench.write("ds_config.json", config())
    return bench.torchrun(train(), *ARGS, ranks=1, env={"DS_ACCELERATOR": "cuda"})


@scenario("cpu-only-torch", r"(?i)not compiled with CUDA|_cuda_setDevice|cuda")
def cuda_set_device(bench: Bench) -> int:
    """torch.cuda.set_device under a CPU build of torch, two ranks."""
    script = "import os\n\nimport torch\n\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))\nprint(torch.cuda.get_device_name())\n"
    return bench.torchrun(script)


@scenario(
    "cpu-only-torch",
    r"Attempting to deserialize object on a CUDA device",
    also_ok=("no-gpu-visible",),
    simulated="the checkpoint was written on the CPU and tagged cuda:0; the loader and its message are real",
)
def cuda_checkpoint_on_cpu(bench: Bench) -> int:
    """A checkpoint with CUDA tensors is loaded where there is no CUDA."""
    script = """\
import torch

if True:  # stands for the machine that wrote the file
    real = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: "cuda:0"
    torch.save({"w": torch.zeros(10)}, "model.pt")
    torch.serialization.location_tag = real
state = torch.load("model.pt")
"""
    return bench.py(script)


@scenario("cpu-only-torch", r"nvidia-smi: (command )?not found", also_ok=("no-gpu-visible",))
def cuda_no_nvidia_smi(bench: Bench) -> int:
    """A job script that looks at its GPUs first, on a machine without any; then torch says so too."""
    check = "import torch; print('cuda available:', torch.cuda.is_available()); torch.zeros(1, device='cuda:0')"
    job = bench.write(
        "job.sh", f'#!/bin/bash\nnvidia-smi\n{bench.python} -c "{check}"\n', mode=0o755
    )
    return bench.run([str(job)])


@scenario(
    "cuda-toolkit-mismatch",
    r"mismatches the version that was used to compile",
    needs=("nvcc",),
    simulated="nvcc is real; a CPU build of torch was told that it is of CUDA 12.8",
)
def cuda_torch_extension_mismatch(bench: Bench) -> int:
    """torch's BuildExtension finds nvcc 13 and a torch of CUDA 12.8."""
    setup = """\
import torch
import torch.utils.cpp_extension as ext
from setuptools import setup

torch.version.cuda = "12.8"
ext.CUDA_HOME = "/usr/local/cuda"
setup(name="my_op", ext_modules=[ext.CUDAExtension("my_op", ["kernel.cu"])], cmdclass={"build_ext": ext.BuildExtension})
"""
    bench.write("kernel.cu", "#include <torch/extension.h>\n")
    bench.write("setup.py", setup)
    return bench.run([bench.python, "setup.py", "build_ext", "--inplace"])


@scenario(
    "cuda-toolkit-mismatch",
    r"CUDAMismatchException",
    needs=("nvcc",),
    simulated="nvcc and DeepSpeed's check are real; a CPU build of torch was told that it is of CUDA 12.8",
)
def cuda_deepspeed_mismatch(bench: Bench) -> int:
    """DeepSpeed's own check of nvcc 13 against a torch of CUDA 12.8, as in an ahead-of-time build."""
    script = """\
import torch
import torch.utils.cpp_extension

torch.version.cuda = "12.8"
torch.utils.cpp_extension.CUDA_HOME = "/usr/local/cuda"
from deepspeed.ops.op_builder.builder import assert_no_cuda_mismatch

assert_no_cuda_mismatch("fused_adam")
"""
    return bench.py(script)
