"""What to do about a message where the hint of its condition would not help."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))


@pytest.mark.parametrize(
    ("line", "condition", "words"),
    [
        pytest.param(
            "TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'",
            "transformers-deepspeed-incompatible",
            "'accelerate<1'",
            id="the Trainer of an old transformers with accelerate 1",
        ),
        pytest.param(
            "[rank0]: TypeError: torch.is_autocast_enabled() takes no arguments (1 given)",
            "transformers-deepspeed-incompatible",
            "'transformers<5'",
            id="a model of transformers 5.0 with torch 2.3",
        ),
        pytest.param(
            "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
            "transformers-deepspeed-incompatible",
            "'accelerate>=1.3.0'",
            id="the Trainer of transformers 4.52 with an old accelerate",
        ),
        pytest.param(
            "ValueError: 8-bit quantization is not compatible with ZeRO-3",
            "ds-config-unsupported-combination",
            "load the model without quantization",
            id="a quantized model is no setting of the config",
        ),
        pytest.param(
            "ImportError: cannot import name 'packaging' from 'pkg_resources' (/v/pkg_resources/__init__.py)",
            "dependency-version-conflict",
            "`python -m pip install 'setuptools<82,!=70.*'`",
            id="pip knows no package `pkg_resources`",
        ),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: "
            "'/srv/apps/text-generation/installer_files/env/bin/nvcc'",
            "cuda-toolkit-missing",
            "CUDA_HOME",
            id="nvcc is looked for in a folder with a long path",
        ),
        pytest.param(
            "AssertionError: num_elems 41943040> buffer 33554432",
            "ds-config-unsupported-combination",
            "`buffer_size`",
            id="a buffer that is too small",
        ),
        pytest.param(
            "ValueError: Please correct the following DeepSpeed config values that mismatch "
            "TrainingArguments values:",
            "ds-config-batch-mismatch",
            '"auto"',
            id="two places for one value",
        ),
        pytest.param(
            "ConnectionError: Tried to launch distributed communication on port `29511`, but another "
            "process is utilizing it.",
            "port-in-use",
            "`--main_process_port`",
            id="accelerate's own option for the port",
        ),
        pytest.param(
            "ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.",
            "bf16-unsupported",
            "`mixed_precision`",
            id="accelerate's own option for the precision",
        ),
        pytest.param(
            "ValueError: Can't find a valid checkpoint at /srv/out/checkpoint-40",
            "checkpoint-incomplete",
            "with the weights",
            id="a checkpoint that DeepSpeed did not write has no `global_step*`",
        ),
        pytest.param(
            "ValueError: The model's config file has neither `hidden_size` nor `hidden_sizes` entry, "
            "therefore it's not possible to automatically fill out the following `auto` entries in the "
            "DeepSpeed config file: ['zero_optimization.reduce_bucket_size']. You can fix that by "
            "replacing `auto` values for these keys with an integer value of your choice.",
            "ds-config-auto-values",
            "`reduce_bucket_size` to h*h",
            id="the Trainer itself has not filled it in",
        ),
        pytest.param(
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please "
            "update your driver to a newer version",
            "driver-too-old",
            "an image with an older CUDA",
            id="another torch does not make the image start",
        ),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 2 has a total"
            " capacity of 39.39 GiB of which 30.12 MiB is free. Including non-PyTorch memory, this process"
            " has 4.10 GiB memory in use. Process 902117 has 35.20 GiB memory in use.",
            "gpu-oom",
            "end them or choose another GPU",
            id="others hold the memory of the GPU",
        ),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 2 has a total"
            " capacity of 39.39 GiB of which 30.12 MiB is free. Including non-PyTorch memory, this process"
            " has 38.10 GiB memory in use. Process 902117 has 510.00 MiB memory in use.",
            "gpu-oom",
            "lower the micro-batch",
            id="only the context of another rank is on the GPU",
        ),
        pytest.param(
            "RuntimeError: CUDA error: CUDA driver is a stub library",
            "cuda-init-driver-state",
            "`stubs`",
            id="reloading a module does not replace a stub",
        ),
        pytest.param(
            "OSError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory",
            "no-gpu-visible",
            "`--gpus all`",
            id="libraries that a container lacks",
        ),
        pytest.param(
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.",
            "gpu-oom",
            "`gpu_memory_utilization`",
            id="an inference engine has no micro-batch",
        ),
        pytest.param(
            "RuntimeError: Failed: CUDA Error while trying to pin memory. error: 2, ptr: 0, size: 8",
            "gpu-oom",
            "`pin_memory`",
            id="memory of the host",
        ),
        pytest.param(
            "[gpu7:812:0:812] Caught signal 4 (Illegal instruction: illegal operand)",
            "native-crash",
            "this kind of processor",
            id="an op of an image that was built on another processor",
        ),
        pytest.param(
            "RuntimeError: CUDA error: out of memory",
            "gpu-oom",
            "other processes",
            id="memory that another program holds",
        ),
        pytest.param(
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: "
            "cannot open shared object file: no such file or directory: unknown.",
            "docker-gpu-runtime-missing",
            "`docker-ce`",
            id="a Docker that does not see the libraries of the host",
        ),
        pytest.param(
            "w-0:88:99 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "nccl-ib-or-socket-interface",
            "`ip -br addr`",
            id="a name that no interface has",
        ),
        pytest.param(
            "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/"
            "pair.cc:144] no error",
            "nccl-ib-or-socket-interface",
            "`GLOO_SOCKET_IFNAME`",
            id="gloo reads another variable",
        ),
        pytest.param(
            "pdsh@head: n2: rcmd: socket: Permission denied",
            "hostfile-or-ssh-problem",
            "`export PDSH_RCMD_TYPE=ssh`",
            id="ssh is not used at all",
        ),
        pytest.param(
            "KeyError: 'PDSH_SSH_ARGS_APPEND'",
            "hostfile-or-ssh-problem",
            "`export PDSH_SSH_ARGS_APPEND",
            id="a variable of the launcher",
        ),
        pytest.param(
            "RuntimeError: Attempting to deserialize object on CUDA device 3 but "
            "torch.cuda.device_count() is 1. Please use torch.load with map_location",
            "invalid-device-ordinal",
            "`map_location",
            id="a file from another machine",
        ),
        pytest.param(
            "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/"
            "models/x: offline mode is enabled.",
            "hub-unreachable",
            "unset `HF_HUB_OFFLINE`",
            id="the hub was not asked",
        ),
        pytest.param(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, "
            "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
            "cuda-kernel-failed",
            "smaller block sizes",
            id="Triton is neither missing nor too old",
        ),
        pytest.param(
            "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
            "nccl-version-mismatch",
            "reinstall torch with its dependencies",
            id="there is no other NCCL",
        ),
        pytest.param(
            "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
            "cuda-runtime-lib-mismatch",
            "reinstall torch with its dependencies",
            id="torch is no extension",
        ),
        pytest.param(
            "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            "kernel-module-unsuitable",
            "the open kernel modules",
            id="a module of the wrong kind",
        ),
        pytest.param(
            "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
            "cuda-init-driver-state",
            "`Above 4G Decoding`",
            id="a setting of the firmware",
        ),
        pytest.param(
            "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[key])",
            "experiment-tracker-unavailable",
            "`WANDB_API_KEY`",
            id="not an error of the script",
        ),
        pytest.param(
            "ImportError: cannot import name 'AdamW' from 'transformers' (/x/site-packages/transformers/__init__.py)",
            "dependency-version-conflict",
            "'transformers<4.50'`; in your own code, use `torch.optim.AdamW`",
            id="a name that a release removed",
        ),
        pytest.param(
            "ImportError: cannot import name 'EncoderDecoderCache' from 'transformers' (/x/site-packages/transformers/__init__.py)",
            "dependency-version-conflict",
            "'transformers>=4.43'",
            id="a name that came with a release",
        ),
        pytest.param(
            "ImportError: cannot import name 'AdamW' from 'transformers' (unknown location)",
            "dependency-version-conflict",
            "rename a folder of yours",
            id="a folder with the name of a package",
        ),
        pytest.param(
            "ImportError: cannot import name 'thing' from 'fsspec.core' (/x/site-packages/fsspec/core.py)",
            "dependency-version-conflict",
            "`python -m pip show fsspec`",
            id="a name of which no release is known",
        ),
        pytest.param(
            'lib 1.0 requires numpy<2,>=1.17; python_version < "3.12", but you have numpy 2.1 which is incompatible.\nKeyError: 1',
            "dependency-version-conflict",
            "'numpy<2,>=1.17'",
            id="what pip names",
        ),
    ],
)
def test_the_hint_is_about_the_message(line: str, condition: str, words: str) -> None:
    found = diagnose([Source("log", data=f"{line}\n".encode())], KNOWN)
    assert found.causes[0].condition == condition
    assert words in found.causes[0].hint


def test_accelerate_does_not_use_mpi4py() -> None:
    line = "OSError: mpirun or mpiexec were not found. Ensure that Intel MPI, Open MPI, or MVAPICH are installed.\n"
    found = diagnose([Source("log", data=line.encode())], KNOWN)
    assert found.causes[0].condition == "mpi-missing"
    assert "mpi4py" not in found.causes[0].hint
