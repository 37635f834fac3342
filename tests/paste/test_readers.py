"""What each format states, with the line of it, and nothing besides.

Over 400 lines because the rows of all formats stand in one table.
"""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo
from dsdoctor.model.facts.python import Packages, TorchLive
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.model.partial import NotStated
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.pip_show import PYPI_CUDA
from dsdoctor.paste.words import may_state
from dsdoctor_checks.torch._tables import VARIANTS
from tests.paste import texts
from tests.paste.reading import stated, value

CASES: list[tuple[str, str, Any]] = [
    ("collect_env", "torch_build/cuda", "13.0"),
    ("collect_env", "torch_build/version", "2.11.0+cu130"),
    ("collect_env", "torch_live/cuda_ok", False),
    ("collect_env", "torch_live/devices", []),
    ("collect_env", "nvml/driver_version", "535.104.05"),
    ("collect_env", "gpus/count", 2),
    ("collect_env", "gpus/gpus/1/name", "NVIDIA A100-SXM4-80GB"),
    ("collect_env", "gpus/gpus/1/cc_major", 8),
    ("collect_env", "compilers/cxx/version", "11.4.0"),
    ("collect_env", "cuda_toolkits/found/0/version", "12.8"),
    ("collect_env", "os_info/libc", "glibc 2.35"),
    ("collect_env", "resources/cpus_logical", 96),
    ("collect_env", "packages/packages/numpy/version", "2.2.1"),
    ("collect_env old", "torch_build/version", "1.4.0"),
    ("collect_env old", "torch_live/cuda_ok", True),
    ("collect_env old", "patient/version", "3.6"),
    ("collect_env old", "gpus/gpus/0/cc_major", 7),
    ("collect_env old", "compilers/cxx/version", "4.8.5"),
    ("collect_env vllm", "torch_build/cuda", "12.6"),
    ("collect_env vllm", "nvml/driver_version", "560.35.03"),
    ("collect_env vllm", "environment/variables/CUDA_VISIBLE_DEVICES", "0,1"),
    ("collect_env system first", "compilers/cxx/version", "13.3.0"),
    ("collect_env system first", "os_info/libc", "glibc 2.39"),
    ("collect_env system first", "torch_build/cuda", "12.6"),
    ("sglang.check_env", "torch_build/cuda", "12.4"),
    ("sglang.check_env", "torch_live/cuda_ok", True),
    ("sglang.check_env", "gpus/gpus/3/name", "NVIDIA L40S"),
    ("sglang.check_env", "gpus/gpus/3/cc_minor", 9),
    ("sglang.check_env", "nvml/driver_version", "560.35.03"),
    ("sglang.check_env", "cuda_toolkits/found/0/version", "11.8"),
    ("sglang.check_env", "packages/packages/transformers/version", "4.48.3"),
    ("sglang.check_env", "resources/limit_nofile", 1024),
    ("sglang.check_env ROCm", "torch_build/hip", "6.3.42131"),
    ("sglang.check_env ROCm", "torch_live/cuda_ok", True),
    ("ds_report", "deep_speed_install/version", "0.9.2"),
    ("ds_report", "deep_speed_install/built_for_torch", "1.13"),
    ("ds_report", "cuda_toolkits/found/0/version", "12.1"),
    ("ds_report", "compilers/ninja", None),
    ("ds_report", "resources/shm_total_bytes", 64 << 20),
    ("ds_report", "torch_build/cuda", "11.7"),
    ("nvidia-smi", "nvml/cuda_version", 12060),
    ("nvidia-smi", "gpus/gpus/0/name", "NVIDIA H100 80GB HBM3"),
    ("nvidia-smi", "gpus/gpus/0/memory_total_bytes", 81559 << 20),
    ("nvidia-smi", "gpus/gpus/1/health/ecc_volatile_uncorrected", 7),
    ("nvidia-smi", "gpus/gpus/1/compute_mode", 3),
    ("nvidia-smi", "gpus/gpus/1/mig_mode", True),
    ("nvidia-smi", "gpus/gpus/0/mig_mode", False),
    ("nvidia-smi", "gpus/gpus/1/pci_bdf", "0000:3b:00.0"),
    ("nvidia-smi", "gpus/count", 2),
    ("nvidia-smi old", "nvml/driver_version", "384.111"),
    ("nvidia-smi old", "gpus/gpus/0/persistence_mode", False),
    ("nvidia-smi old", "gpus/count", 1),
    ("nvidia-smi -q", "gpus/count", 2),
    ("nvidia-smi -q", "gpus/gpus/0/mig_mode_pending", True),
    ("nvidia-smi -q", "gpus/gpus/0/compute_mode", 2),
    ("nvidia-smi -q", "gpus/gpus/0/health/remapped_rows_pending", True),
    ("nvidia-smi -q", "gpus/gpus/1/health/remapped_rows_pending", False),
    ("nvidia-smi -L", "gpus/gpus/0/links/1/state", 0),
    ("nvidia-smi -L", "gpus/gpus/1/links/1/speed_mbps", 25000),
    ("nvidia-smi topo", "gpu_topology/pairs/0/nvlinks", 12),
    ("nvidia-smi topo", "gpu_topology/pairs/1/ancestor", "SYSTEM"),
    ("nvidia-smi topo", "gpu_topology/pairs/2/ancestor", "NODE"),
    ("transformers env", "torch_live/cuda_ok", True),
    ("transformers env", "torch_build/cuda", "12.1"),
    ("transformers env", "packages/packages/accelerate/version", "0.26.1"),
    ("accelerate env", "torch_live/cuda_ok", False),
    ("accelerate env", "os_info/wsl", True),
    ("accelerate env", "resources/memory_total_bytes", int(31.25 * (1 << 30))),
    ("accelerate env", "patient/version", "3.8.10"),
    ("llamafactory-cli env", "gpus/count", 8),
    ("llamafactory-cli env", "gpus/gpus/0/name", "NVIDIA A800-SXM4-80GB"),
    ("llamafactory-cli env", "deep_speed_install/version", "0.15.4"),
    ("llamafactory-cli env", "torch_live/cuda_ok", True),
    ("nvcc --version", "cuda_toolkits/found/0/version", "12.6"),
    ("lspci", "nvidia_kernel/pci/0/driver", "nouveau"),
    ("kernel module", "nvidia_kernel/module_version", "525.147.05"),
    ("kernel module", "nvidia_kernel/module_open", True),
    ("kernel log", "nvidia_kernel/module_version", "470.256.02"),
    ("kernel log", "nvidia_kernel/module_open", False),
    ("ds_report without title", "torch_build/cuda", "12.4"),
    ("ds_report without title", "cuda_toolkits/found/0/version", "11.5"),
    ("nvidia-smi MIG", "gpus/gpus/0/mig_devices", []),
    ("nvidia-smi MIG", "gpus/gpus/1/mig_mode", False),
    ("lspci", "nvidia_kernel/pci/0/device_id", "0x20b5"),
    ("pip list", "deep_speed_install/version", "0.15.4"),
    ("pip list", "torch_build/nccl", "2.20.5"),
    ("pip freeze", "packages/packages/ninja/version", "1.10.0"),
    ("pip show", "torch_build/version", "2.2.1"),
    ("pip show", "torch_build/cuda", "12.1"),
    ("pip show", "patient/version", "3.10"),
    ("pip show", "deep_speed_install/version", "0.14.0"),
    ("conda list", "torch_build/version", "2.4.1"),
    ("conda list", "torch_build/cuda", "11.8"),
    ("conda list", "patient/version", "3.12.7"),
    ("conda list", "packages/packages/numpy/version", "1.26.4"),
    ("conda list --export", "torch_build/cuda", "11.8"),
    ("conda list --export", "packages/packages/deepspeed/version", "0.14.4"),
    ("conda list --explicit", "torch_build/cuda", "11.8"),
    ("conda list --explicit", "patient/version", "3.12.7"),
    ("gcc --version", "compilers/cc/version", "11.4.0"),
    ("gcc --version", "compilers/cxx/version", "11.4.0"),
]


@pytest.mark.parametrize(("name", "path", "expected"), CASES)
def test_a_format_states(name: str, path: str, expected: Any) -> None:
    assert value(stated(texts.ALL[name]), path) == expected


@pytest.mark.parametrize(
    ("name", "fact", "path", "words"),
    [
        ("collect_env", "nvml", "driver_version", "Nvidia driver version: 535.104.05"),
        ("ds_report", "compilers", "ninja", "ninja .................. [FAIL]"),
        ("nvidia-smi -q", "gpus", "gpus.0.mig_mode_pending", "Pending   "),
        ("llamafactory-cli env", "gpus", "count", "- GPU number: 8"),
    ],
)
def test_each_fact_has_its_line(name: str, fact: str, path: str, words: str) -> None:
    text = texts.ALL[name]
    source = stated(text).sources[fact][path]
    assert words in source.text
    assert source.text == text.splitlines()[source.line - 1].rstrip() or "\x1b" in text


@pytest.mark.parametrize("name", sorted(texts.ALL))
def test_a_format_is_read_by_its_reader_alone(name: str) -> None:
    assert may_state(texts.ALL[name])
    module = "/proc/driver/nvidia/version"
    names = {"pip freeze": "pip list", "kernel module": module, "kernel log": module}
    words = names.get(name, name)
    for ending in (
        " system first",
        " ROCm",
        " old",
        " vllm",
        " without title",
        " MIG",
        " --export",
        " --explicit",
    ):
        words = words.removesuffix(ending)
    assert stated(texts.ALL[name]).origin == f"a paste of {words}"


def test_what_stands_around_a_paste_does_not_matter() -> None:
    plain = stated(texts.COLLECT_ENV)
    quoted = "\n".join(f"> > {line}" for line in texts.COLLECT_ENV.splitlines())
    tags = f"<details><summary>env</summary>\n<pre>\n{texts.COLLECT_ENV}</pre>\n</details>"
    coloured = texts.COLLECT_ENV.replace("Is CUDA", "\x1b[1mIs CUDA\x1b[0m")
    windows = texts.COLLECT_ENV.replace("\n", "\r\n")
    for text in (quoted, tags, coloured, windows, f"```\n{texts.COLLECT_ENV}```\nthanks"):
        assert stated(text).facts == plain.facts


def test_a_text_without_a_paste_states_nothing() -> None:
    assert environment_of("") is None
    assert environment_of("My PyTorch version: 2.1 crashes with nvidia-smi and CUDA 12") is None
    assert environment_of("torch==2.1.0\ndeepspeed==0.12\n") is None


def test_what_two_parts_state_differently_is_not_known() -> None:
    text = texts.COLLECT_ENV + texts.SMI
    found = stated(text)
    assert "nvml" not in found.facts  # what a text says of one driver does not hold for another
    assert found.facts["gpus"] == {"count": 2}


def test_versions_of_one_thing_in_two_lengths_agree() -> None:
    found = stated(texts.PIP_LIST + texts.LLAMAFACTORY)
    assert found.facts["torch_build"]["version"] == "2.4.0+cu121"


def test_a_list_that_is_cut_off_is_not_the_whole_list() -> None:
    cut = texts.SMI[: texts.SMI.index("|   1  NVIDIA")]
    gpus = stated(cut).get(Gpus)
    assert not isinstance(gpus, Missing)
    assert [gpu.index for gpu in gpus.gpus] == [0]
    with pytest.raises(NotStated):
        len(gpus.gpus)
    with pytest.raises(NotStated):
        _ = gpus.count
    whole = stated(texts.SMI).get(Gpus)
    assert not isinstance(whole, Missing)
    assert len(whole.gpus) == 2


def test_a_name_that_the_driver_cut_is_not_a_name() -> None:
    assert "name" not in stated(texts.SMI_OLD).facts["gpus"]["gpus"][0]


def test_secrets_of_a_paste_do_not_enter_the_snapshot() -> None:
    assert b"hf_abc" not in stated(texts.COLLECT_ENV_VLLM).to_json()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            9,
            id="no driver",
        ),
        pytest.param(
            "Failed to initialize NVML: Driver/library version mismatch", 18, id="two versions"
        ),
        pytest.param("Failed to initialize NVML: Unknown Error", 999, id="an unknown error"),
        pytest.param("Failed to initialize NVML: Insufficient Permissions", 4, id="no permission"),
    ],
)
def test_what_nvidia_smi_prints_in_place_of_its_table(line: str, code: int) -> None:
    found = stated(f"$ nvidia-smi\n{line}\n")
    assert found.facts["nvml"]["error"]["code"] == code


def test_ds_report_without_a_toolkit() -> None:
    found = stated(
        texts.DS_REPORT.replace(
            "12.1",
            "[FAIL] cannot find CUDA_HOME via torch.utils.cpp_extension.CUDA_HOME=None",
        )
    ).get(CudaToolkits)
    assert not isinstance(found, Missing)
    assert found.toolkit is None


def test_ds_report_decides_over_the_nvcc_on_path() -> None:
    found = stated(texts.NVCC + texts.DS_REPORT).get(CudaToolkits)
    assert not isinstance(found, Missing)
    assert found.toolkit is not None
    assert found.toolkit.version == "12.1"


def test_what_no_line_states_is_missing_and_says_so() -> None:
    found = stated(texts.COLLECT_ENV).get(NvidiaKernel)
    assert isinstance(found, Missing)
    assert found.detail == "the paste does not report it"


OLD = """PyTorch version: 1.7.0+cu110
Is debug build: True
CUDA used to build PyTorch: 11.0
Libc version: glibc-2.2.5

Python version: {python} (64-bit runtime)
Is CUDA available: False`
"""


@pytest.mark.parametrize(
    ("python", "libc"),
    [("3.6.4", None), ("2.7", None), ("3.8.1", "glibc 2.2.5"), ("3.11", "glibc 2.2.5")],
)
def test_an_old_python_does_not_know_the_glibc(python: str, libc: str | None) -> None:
    snapshot = environment_of(OLD.format(python=python))
    assert snapshot is not None
    found = snapshot.get(OsInfo)
    assert (found.libc if isinstance(found, OsInfo) else None) == libc
    live = snapshot.get(TorchLive)
    assert isinstance(live, TorchLive)
    assert live.cuda_ok is False


def test_a_list_of_packages_may_be_quoted_alone() -> None:
    text = (
        "Versions of relevant libraries:\n[pip3] numpy==1.26.4\n[pip3] torch==2.2.1\n\nOS: Windows"
    )
    snapshot = environment_of(text)
    assert snapshot is not None
    packages = snapshot.get(Packages)
    assert isinstance(packages, Packages)
    assert packages.version("torch") == "2.2.1"
    assert not isinstance(snapshot.get(OsInfo), OsInfo)
    assert environment_of("Versions of relevant libraries: see below\n") is None
    cut = environment_of(
        "[pip3] torch==2.7.0+cu128\n[pip3] triton==3.3.0\n[conda] Could not collect"
    )
    assert cut is not None
    assert isinstance(packages := cut.get(Packages), Packages)
    assert packages.version("triton") == "3.3.0"
    assert environment_of("fixed with [pip3] torch==2.7.0\n") is None


@pytest.mark.parametrize(
    ("build", "cuda"),
    [
        ("py3.7_cuda10.0.130_cudnn7.6.3_0", "10.0"),
        ("cuda126_generic_py312_h7e8668a_200", "12.6"),
        ("py3.12_cpu_0", None),
        ("cpu_mkl_py310_h2a6f7c1_100", None),
    ],
)
def test_a_build_of_conda_names_the_cuda_version(build: str, cuda: str | None) -> None:
    text = f"# Name  Version  Build  Channel\npytorch  2.4.1  {build}  pytorch\n"
    assert stated(text).facts["torch_build"]["cuda"] == cuda


def test_a_list_states_the_cuda_that_torch_pins() -> None:
    rows = "nvidia-cuda-runtime-cu12 12.1.105\ntorch 2.2.1\n"
    head = "Package Version\n------- -------\n"
    assert stated(head + rows).facts["torch_build"]["cuda"] == "12.1"
    for other in ("torch 2.2.1+cu118\n", "torch 2.2.0a0+git1234\n"):
        built = stated(head + rows.replace("torch 2.2.1\n", other)).facts["torch_build"]
        assert built.get("cuda") in (None, "11.8")


def test_the_builds_of_pypi_are_the_first_of_the_table_of_builds() -> None:
    for release, builds in VARIANTS.items():
        assert PYPI_CUDA[".".join(map(str, release))] == builds[0]


def test_a_list_without_its_head_is_known_by_its_order() -> None:
    names = "absl aiohttp attrs certifi deepspeed einops filelock hjson numpy torch".split()  # noqa: SIM905
    rows = "".join(f"{name}   1.{number}.0\n" for number, name in enumerate(names))
    assert stated(rows).facts["deep_speed_install"]["version"] == "1.4.0"
    mixed = "".join(reversed(rows.splitlines(keepends=True)))
    assert environment_of(mixed) is None
    assert environment_of(rows.partition("\n")[2]) is None  # nine rows may be anything


def test_a_build_in_one_word_is_a_row_between_rows_alone() -> None:
    rows = "".join(f"package{number}  1.0  py312h{number}_0\n" for number in range(9))
    last = "pytorch  2.4.1  py3.12_cuda11.8_cudnn9.1.0_0  pytorch\n"
    found = stated(rows + "pytorch-mutex  1.0  cuda  pytorch\n" + last)
    assert found.facts["packages"]["packages"]["pytorch-mutex"]["version"] == "1.0"
    assert found.facts["torch_build"]["cuda"] == "11.8"
    prose = stated(rows + last + "deepspeed 0.14 works\nfor me\n")
    assert "deep_speed_install" not in prose.facts


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)\n", {"cc": "8.5.0", "cxx": "8.5.0"}),
        ("> gcc (GCC) 11.2.0\n> c++ (GCC) 9.4.0\n", {"cc": "11.2.0", "cxx": "9.4.0"}),
        ("`g++ (conda-forge gcc 11.2.0-16) 11.2.0`\n", {"cc": "11.2.0", "cxx": "11.2.0"}),
        ("gcc (GCC) 8.5.0\nthen\ngcc (GCC) 11.2.0\n", None),  # two machines, or before and after
        ("gcc-9 (Ubuntu 9.4.0-1ubuntu1) 9.4.0\n", None),  # not the one that a build takes
        ("/usr/bin/gcc (GCC) 11.2.0\n", None),
        ("our gcc (GCC) 11.2.0 is new\n", None),
    ],
)
def test_the_compilers_on_path(text: str, versions: dict[str, str] | None) -> None:
    snapshot = environment_of(text)
    found = snapshot.facts.get("compilers", {}) if snapshot else {}
    known = {name: one["version"] for name, one in found.items() if "version" in one}
    assert known == (versions or {})


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("$ g++ --version\nbash: g++: command not found\n", "g++", id="bash"),
        pytest.param("root@0:/# c++ -v\n-bash: c++: command not found\n", "c++", id="a login"),
        pytest.param("% g++ --version\nzsh: command not found: g++\n", "g++", id="zsh"),
        pytest.param("# g++ --version\nsh: 1: g++: not found\n", "g++", id="dash"),
        pytest.param("$ make\nbash: g++: command not found\n", None, id="another command"),
        pytest.param(
            "$ g++ --version\nbash: gcc: command not found\n", None, id="another compiler"
        ),
        pytest.param("$ g++-13 --version\nbash: g++-13: command not found\n", None, id="a version"),
    ],
)
def test_a_compiler_that_the_shell_does_not_find(text: str, command: str | None) -> None:
    snapshot = environment_of(text)
    found = snapshot.facts.get("compilers", {}) if snapshot else {}
    expected = {"command": command, "path": None, "version": None, "error": None}
    assert found.get("cxx") == (expected if command else None)
    assert command is None or may_state(text)


def test_freeze_names_a_wheel_by_its_address() -> None:
    wheel = "torch @ https://host/whl/cu121/torch-2.1.0%2Bcu121-cp310-cp310-linux_x86_64.whl\n"
    assert stated(texts.PIP_FREEZE + wheel).facts["torch_build"]["version"] == "2.1.0+cu121"


def test_nvidia_smi_names_a_lost_gpu_by_its_address() -> None:
    found = stated("GPU 0: NVIDIA H100 PCIe (UUID: GPU-1111aaaa)\n" + texts.SMI_LOST)
    gpus = found.facts["gpus"]["gpus"]
    assert gpus[0]["name"] == "NVIDIA H100 PCIe"
    assert gpus[1]["pci_bdf"] == "0000:02:00.0"
    assert gpus[1]["error"]["code"] == 15


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$ nvidia-smi\nNo devices were found\n", id="nvidia-smi"),
        pytest.param(
            texts.COLLECT_ENV[: texts.COLLECT_ENV.index("GPU models")]
            + "GPU models and configuration: No CUDA\nNvidia driver version: No CUDA\n",
            id="collect_env",
        ),
    ],
)
def test_no_gpu_where_the_tools_found_none(text: str) -> None:
    gpus = stated(text).get(Gpus)
    assert not isinstance(gpus, Missing)
    assert gpus.gpus == ()
    assert gpus.count == 0


@pytest.mark.parametrize(
    ("line", "index", "bus"),
    [
        ("GPU0000:4F:00.0: Unknown Error", None, "0000:4f:00.0"),
        ("GPU3: 0000:5F:00.0: Unknown Error", 3, "0000:5f:00.0"),
        ("GPU2: Unknown Error", 2, None),
    ],
)
def test_newer_drivers_name_a_lost_gpu_by_its_index(
    line: str, index: int | None, bus: str | None
) -> None:
    (gpu,) = stated(f"Unable to determine the device handle for {line}\n").facts["gpus"]["gpus"]
    assert (gpu.get("index"), gpu.get("pci_bdf")) == (index, bus)
    assert gpu["error"]["code"] == 999


def test_a_lost_gpu_without_a_name_of_its_own_states_nothing() -> None:
    assert environment_of("Unable to determine the device handle for GPU : Unknown Error\n") is None


def test_rocm_reports_no_gpu_of_nvidia() -> None:
    assert "gpus" not in stated(texts.SGLANG_ROCM).facts


def test_the_variable_of_one_command_is_not_that_of_the_machine() -> None:
    lines = "CUDA_VISIBLE_DEVICES=7 torchrun train.py\nTORCH_CUDA_ARCH_LIST=8.0 9.0+PTX\n"
    found = stated(texts.COLLECT_ENV_VLLM + lines).facts["environment"]["variables"]
    assert found["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found["TORCH_CUDA_ARCH_LIST"] == "8.0 9.0+PTX"


def _without_smi(text: str) -> str:
    head, _, rest = text.partition("GPU models and configuration:")
    behind = rest[rest.index("cuDNN version") :]
    nothing = "Could not collect"
    return (
        f"{head}GPU models and configuration: {nothing}\nNvidia driver version: {nothing}\n{behind}"
    )


def test_neither_torch_nor_nvidia_smi_found_a_gpu() -> None:
    gpus = stated(_without_smi(texts.COLLECT_ENV)).get(Gpus)
    assert not isinstance(gpus, Missing)
    assert gpus.count == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CUDA available: False", "CUDA available: True"),  # torch sees one
        ("PyTorch: 13.0", "PyTorch: None"),  # it was not built to see one
    ],
)
def test_a_missing_nvidia_smi_alone_says_nothing_of_gpus(before: str, after: str) -> None:
    text = _without_smi(texts.COLLECT_ENV).replace(before, after).replace("+cu130", "")
    assert "gpus" not in stated(text).facts


def test_lspci_prints_an_id_in_place_of_a_name_that_it_does_not_know() -> None:
    found = stated(texts.LSPCI_BARE)
    assert found.facts["nvidia_kernel"]["pci"][0]["device_id"] == "0x1db6"
