"""Commands that start a container, an installed torch, and what limits a GPU, in the text of an issue."""

from __future__ import annotations

import pytest

from dsdoctor.paste import words
from dsdoctor.paste.environment import environment_of

from .test_launch_lines import statuses

#: A machine with eight GPUs, as `nvidia-smi -L` lists them.
GPUS = "".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n:08x}-1)\n" for n in range(8))
DRIVER = "| NVIDIA-SMI {v}                 Driver Version: {v}                    |\n"
DRIVER += "|-------------------------------+----------------------+----------------------+\n"


def text_of(command: str, rest: str = "") -> str:
    return f"```\n$ {command}\n```\n{rest}\n```\n$ nvidia-smi -L\n{GPUS}```\n"


def named(text: str) -> dict[str, str]:
    return {name: status for name, status in statuses(text).items() if status in ("warn", "fail")}


@pytest.mark.parametrize(
    ("command", "rest", "expected"),
    [
        pytest.param(
            "apptainer exec train.sif python train.py",
            "It says that torch.cuda.is_available() is False",
            ["docker-gpu-runtime-missing"],
            id="Apptainer without --nv",
        ),
        pytest.param(
            "apptainer exec --nv train.sif python train.py",
            "It says that torch.cuda.is_available() is False",
            [],
            id="Apptainer with --nv",
        ),
        pytest.param(
            "apptainer exec image.sif python convert.py", "", [], id="a script without torch"
        ),
        pytest.param(
            "docker run --rm --ipc=host img torchrun --nproc_per_node=8 train.py",
            "",
            ["docker-gpu-runtime-missing"],
            id="Docker without --gpus",
        ),
        pytest.param(
            "docker run --gpus all img torchrun --nproc_per_node=8 train.py",
            "",
            ["shm-too-small"],
            id="64 MiB of shared memory",
        ),
        pytest.param(
            "docker run --gpus all --shm-size 16g img torchrun --nproc_per_node=8 train.py",
            "",
            [],
            id="enough",
        ),
    ],
)
def test_how_a_command_starts_its_container(command: str, rest: str, expected: list[str]) -> None:
    assert sorted(named(text_of(command, rest))) == expected


def test_a_bare_line_and_a_sentence_that_start_a_container() -> None:
    command = "docker run --ipc=host img torchrun --nproc_per_node=8 train.py"
    below = f"\n\n```\n$ nvidia-smi -L\n{GPUS}```\n"
    assert "docker-gpu-runtime-missing" in named(f"{command}{below}")
    assert "docker-gpu-runtime-missing" in named(f"`{command}` hangs on our node{below}")
    assert "docker-gpu-runtime-missing" not in named(f"You can try `{command}`{below}")
    assert "docker-gpu-runtime-missing" not in named(f"`{command}` starts the example{below}")


IMPORT = ">>> import torch\n>>> torch.cuda.is_available()\nFalse\n"
INSTALL = "$ pip install torch=={} torchvision==0.4.1\n"


def test_the_torch_that_pip_installed() -> None:
    text = INSTALL.format("=1.3.0") + "$ python3\n" + IMPORT + DRIVER.format(v="410.48")
    assert named(text)["driver-too-old"] == "fail"
    assert words.may_state(text)
    newer = INSTALL.format("1.3.0") + "$ python3\n" + IMPORT + DRIVER.format(v="418.67")
    assert "driver-too-old" not in named(newer)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(INSTALL.format("1.3.0") + "ERROR: No matching distribution\n", id="it failed"),
        pytest.param(INSTALL.format("1.3.0") + INSTALL.format("1.2.0") + IMPORT, id="two of them"),
        pytest.param("`pip install torch==1.3.0` then\n" + IMPORT, id="advice"),
    ],
)
def test_an_installation_that_says_nothing(text: str) -> None:
    snapshot = environment_of(text)
    assert snapshot is None or "torch_build" not in snapshot.facts


def test_an_index_leaves_the_cuda_version_open() -> None:
    index = " -f https://download.pytorch.org/whl/torch_stable.html\n"
    snapshot = environment_of(INSTALL.format("1.3.0").rstrip() + index + IMPORT)
    assert snapshot is not None
    assert snapshot.facts["torch_build"]["version"] == "1.3.0"
    assert "cuda" not in snapshot.facts["torch_build"]


CAPPED = (
    "index, name, power.limit [W], power.default_limit [W]\n"
    "0, Tesla V100-SXM2-32GB, 300.00{unit}, 300.00{unit}\n"
    "1, Tesla V100-SXM2-32GB, {limit}{unit}, 300.00{unit}\n"
)


@pytest.mark.parametrize("unit", [" W", ""], ids=["with units", "nounits"])
def test_columns_of_power_limits(unit: str) -> None:
    assert list(named(CAPPED.format(limit="150.00", unit=unit))) == ["power-capped"]
    assert named(CAPPED.format(limit="300.00", unit=unit)) == {}
    assert words.may_state(CAPPED.format(limit="300.00", unit=unit))


def test_the_column_of_what_limits_the_clocks() -> None:
    row = "index, name, clocks_event_reasons.active\n0, NVIDIA A40, 0x{:016x}\n"
    assert named(row.format(0x48)) == {"gpu-throttled": "fail"}
    assert named(row.format(0x4)) == {}  # the software's power cap


LSHW = """\
  *-display{claimed}
       description: VGA compatible controller
       product: Vega 10 [Radeon Instinct MI25 MxGPU]
       vendor: Advanced Micro Devices, Inc. [AMD/ATI]
       physical id: 1
       bus info: pci@82fa:00:00.0
       configuration: {driver}latency=0
"""
HIP = (
    "UserWarning: HIP initialization: Unexpected error from hipGetDeviceCount(). Error 101:"
    " hipErrorInvalidDevice (Triggered internally at c10/hip/HIPFunctions.cpp:110.)\n"
)


def test_an_amd_gpu_that_no_driver_claims() -> None:
    asked = f"$ python -c 'import torch; print(torch.cuda.is_available())'\n{HIP}False\n"
    unclaimed = LSHW.format(claimed=" UNCLAIMED", driver="")
    snapshot = environment_of(asked + unclaimed)
    assert snapshot is not None
    assert snapshot.facts["os_info"]["amd_gpus"] == 0
    assert "no-gpu-visible" in named(asked + unclaimed)
    served = environment_of(LSHW.format(claimed="", driver="driver=amdgpu "))
    assert served is None or "os_info" not in served.facts
