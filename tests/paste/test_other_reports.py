"""Reports and warnings of other projects, and versions that somebody asked for."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.launch import LaunchParse
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)


def problems(text: str) -> dict[str, str]:
    """The messages of what is found, by condition."""
    found = judge(stated(text), list(REGISTRY), REGISTRY).findings
    return {one.condition: one.message for one in found if one.status.value in ("warn", "fail")}


OPENMMLAB = """\
sys.platform: linux
Python: 3.8.18 (default, Sep 11 2023, 13:40:15) [GCC 11.2.0]
CUDA available: True
GPU 0,1: NVIDIA GeForce RTX 3090
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 10.2, V10.2.89
GCC: gcc (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0
PyTorch: 1.12.1
PyTorch compiling details: PyTorch built with:
  - GCC 9.3
  - C++ Version: 201402
  - CUDA Runtime 11.3
  - CuDNN 8.3.2

TorchVision: 0.13.1
OpenCV: 4.8.0
MMCV: 1.6.1
MMCV CUDA Compiler: 11.3
"""


def test_the_report_of_openmmlab() -> None:
    found = stated(OPENMMLAB)
    assert found.origin == "a paste of collect_env of OpenMMLab"
    assert value(found, "torch_build/cuda") == "11.3"
    assert value(found, "cuda_toolkits/found/0/version") == "10.2"
    assert value(found, "compilers/cxx/version") == "9.4.0"
    assert value(found, "gpus/gpus/1/name") == "NVIDIA GeForce RTX 3090"
    assert "cuda-toolkit-mismatch" in problems(OPENMMLAB)
    newer = OPENMMLAB.replace(
        "Cuda compilation tools, release 10.2, V10.2.89",
        "Build cuda_11.3.r11.3/compiler.29920130_0",
    )
    assert value(stated(newer), "cuda_toolkits/found/0/version") == "11.3"
    assert problems(newer) == {}


OPENCOMPASS = """\
{'CUDA available': True,
 'CUDA_HOME': '/usr/local/cuda',
 'GCC': 'gcc (GCC) 9.3.0',
 'GPU 0,1': 'NVIDIA A100-SXM4-80GB',
 'MMEngine': '0.10.4',
 'NVCC': 'Cuda compilation tools, release 12.1, V12.1.105',
 'PyTorch': '2.0.1',
 'PyTorch compiling details': 'PyTorch built with:\\n'
                              '  - GCC 9.3\\n'
                              '  - CUDA Runtime 11.8\\n'
                              '  - CuDNN 8.7\\n',
 'Python': '3.10.12 (main, Jul  5 2023, 18:54:27) [GCC 11.2.0]',
 'TorchVision': '0.15.2',
 'numpy_random_seed': 2147483648,
 'opencompass': '0.2.6+none',
 'sys.platform': 'linux'}
"""


def test_the_report_of_opencompass() -> None:
    found = stated(OPENCOMPASS)
    assert found.origin == "a paste of collect_env of OpenCompass"
    assert value(found, "torch_build/version") == "2.0.1"
    assert value(found, "torch_build/cuda") == "11.8"
    assert value(found, "compilers/cxx/version") == "9.3.0"
    assert value(found, "gpus/gpus/1/name") == "NVIDIA A100-SXM4-80GB"
    assert value(found, "patient/version") == "3.10.12"
    assert "cuda-toolkit-mismatch" in problems(OPENCOMPASS)


def test_the_cuda_version_of_a_build_is_only_in_its_own_lines() -> None:
    assert (
        "cuda"
        not in stated(OPENMMLAB.replace("  - CUDA Runtime", "CUDA Runtime")).facts["torch_build"]
    )


XFORMERS = """\
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.3.0+cu121 with CUDA 1201 (you have 2.2.1+cpu)
    Python  3.10.14 (you have 3.10.13)
  Please reinstall xformers
"""


def test_the_torch_that_xformers_was_built_for_is_not_installed() -> None:
    found = stated(XFORMERS)
    assert value(found, "torch_build/version") == "2.2.1+cpu"
    assert value(found, "patient/version") == "3.10.13"
    assert environment_of(XFORMERS.replace("(you have 2.2.1+cpu)", "").replace("(you", "(")) is None


ACCELERATE = """\
- `Accelerate` version: 1.2.1
- Platform: Linux-5.15.0-101-generic-x86_64-with-glibc2.35
- Python version: 3.10.14
- `Accelerate` default config:
\t- compute_environment: LOCAL_MACHINE
\t- distributed_type: MULTI_GPU
\t- num_processes: 1
\t- num_machines: 2
\t- main_process_ip: 10.0.0.5
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ACCELERATE, id="accelerate env"),
        pytest.param(
            "```yaml\ndistributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: 1\n```\n",
            id="YAML",
        ),
    ],
)
def test_fewer_processes_than_machines(text: str) -> None:
    snapshot = stated(text)
    parse = snapshot.get(LaunchParse)
    assert isinstance(parse, LaunchParse)
    assert parse.too_few_ranks == (1, 2)
    assert "`num_processes` is 1" in problems(text)["launch-option-refused"]
    line = snapshot.sources["launch_parse"]["too_few_ranks"].text
    assert line.strip(" -\t").startswith("num_processes")
    assert problems(text.replace("num_processes: 1", "num_processes: 2")) == {}
    assert problems(text.replace("num_machines: 2", "num_machines: 1")) == {}


def test_options_of_the_command_take_precedence() -> None:
    launch = (
        "$ accelerate launch --num_processes {} --num_machines 2 --main_process_ip n0 train.py\n"
    )
    assert "launch-option-refused" in problems(ACCELERATE + "\n" + launch.format(1))
    assert problems(ACCELERATE + "\n" + launch.format(16)) == {}
    other = "$ torchrun --nproc_per_node 2 train.py\n"
    assert problems(ACCELERATE + "\n" + other) == {}  # which does not read it


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("$ python --version\nPython 3.10.12\n", "patient/version", "3.10.12"),
        ("$ python3 -V\nPython 3.9.2+\n", "patient/version", "3.9.2"),
        (">>> deepspeed.__version__\n'0.12.3'\n", "deep_speed_install/version", "0.12.3"),
        (
            '$ python -c "import transformers; print(transformers.__version__)"\n4.36.2\n',
            "packages/packages/transformers/version",
            "4.36.2",
        ),
        (
            "$ pip show flash-attn | grep Version\nVersion: 2.5.8\n",
            "packages/packages/flash-attn/version",
            "2.5.8",
        ),
    ],
    ids=["python --version", "python -V", "a prompt of Python", "python -c", "pip show"],
)
def test_versions_that_somebody_asked_for(text: str, path: str, expected: str) -> None:
    assert value(stated(text), path) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$ python --version\nbash: python: command not found\n", id="no answer"),
        pytest.param("print(deepspeed.__version__)\nprints 0.12.3 here\n", id="a sentence"),
        pytest.param("```\n$ python -V\n```\nPython 3.10.12\n", id="outside its block"),
        pytest.param("deepspeed.__version__ is checked\n0.12.3\n", id="a sentence before"),
    ],
)
def test_what_is_no_answer(text: str) -> None:
    assert environment_of(text) is None


CONDA = "name: train\nchannels:\n  - pytorch\ndependencies:\n" + "".join(
    f"  - lib{letter}=1.{number}=h5eee18b_{number}\n" for number, letter in enumerate("abcdefghi")
)
PYTORCH = "  - pytorch=2.1.0=py3.10_cuda12.1_cudnn8.9.2_0\n"
PIP = "  - pip:\n      - deepspeed==0.12.3\n      - transformers==4.36.2\nprefix: /opt/train\n"


def test_the_environment_that_conda_exports() -> None:
    found = stated(CONDA + PYTORCH + PIP)
    assert value(found, "torch_build/cuda") == "12.1"
    assert value(found, "deep_speed_install/version") == "0.12.3"
    assert value(found, "packages/packages/transformers/version") == "4.36.2"
    assert found.sources["deep_speed_install"]["version"].line == 16


def test_an_environment_file_that_somebody_wrote_is_none() -> None:
    text = (CONDA + PYTORCH + PIP).replace("=h5eee18b", "").replace("=py3.10_cuda12.1", "")
    assert environment_of(text.replace("deepspeed", "datasets")) is None


@pytest.mark.parametrize("command", ["", "accelerate launch --config_file a.yaml t.py"])
@pytest.mark.parametrize(
    ("ids", "ranks", "condition"),
    [
        ("0,1", 4, "invalid-device-ordinal"),
        ("0,1", 2, None),
        ("[0, 1]", 2, "launch-option-refused"),
        ("all", 4, None),
    ],
)
def test_gpu_ids_of_accelerate(command: str, ids: str, ranks: int, condition: str | None) -> None:
    yaml = f"distributed_type: DEEPSPEED\ngpu_ids: {ids}\nnum_processes: {ranks}\nnum_machines: 1\n"
    launched = f"```\n$ {command}\n```" if command else ""
    found = problems(f"{launched}\n```yaml\n{yaml}```\n")
    assert list(found) == ([] if condition is None else [condition])


SMI_WITHOUT_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
    "latest NVIDIA driver is installed and running.\n"
)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("WSL version: 2.1.5.0\nKernel version: 5.15.146.1-2\n", id="wsl --version"),
        pytest.param("- [X] WSL 2\n- [ ] WSL 1\n", id="a ticked box"),
        pytest.param("- OS: Ubuntu 22.04 (WSL2)\n- Python: 3.10.12\n", id="a list of the system"),
    ],
)
def test_a_driver_is_not_installed_inside_wsl(said: str) -> None:
    assert set(problems(said + SMI_WITHOUT_DRIVER)) == {"wsl-driver-unavailable"}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("- [ ] WSL 2\n- [x] native Linux\n", id="a box that is not ticked"),
        pytest.param("- OS: Ubuntu 22.04, not WSL2\n- Python: 3.10.12\n", id="a denial"),
    ],
)
def test_without_wsl_the_driver_is_missing(said: str) -> None:
    assert "wsl-driver-unavailable" not in problems(said + SMI_WITHOUT_DRIVER)


INTEL = """\
Collecting environment information...
PyTorch version: 2.1.0a0+cxx11.abi
PyTorch CXX11 ABI: Yes
IPEX version: 2.1.10+xpu
IPEX commit: 1a2b3c4d5
Build type: Release

OS: Rocky Linux 8.9 (Green Obsidian) (x86_64)
GCC version: (GCC) 11.2.0
Libc version: glibc-2.28

Python version: 3.10.13 (main, Aug 25 2023, 13:20:03) [GCC 9.4.0] (64-bit runtime)
Python platform: Linux-4.18.0-513.el8.x86_64-x86_64-with-glibc2.28
Is XPU available: True
GPU models and configuration:
[0] _DeviceProperties(name='Intel(R) Data Center GPU Max 1100', total_memory=49152MB)
"""


def test_the_report_of_intels_extension() -> None:
    found = stated(INTEL)
    assert value(found, "torch_build/version") == "2.1.0a0+cxx11.abi"
    assert value(found, "compilers/cxx/version") == "11.2.0"
    assert value(found, "os_info/libc") == "glibc 2.28"
    assert problems(INTEL) == {}
