"""Two parts of one text that do not agree: it is said, and nothing is made up from both."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.python import TorchBuild, TorchLive
from dsdoctor.model.snapshot import Snapshot, from_json
from dsdoctor.paste.environment import environment_of
from tests.paste import texts

REGISTRY = packs.load()
SMI_550 = (
    "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |\n"
    "|   0  NVIDIA H100 80GB HBM3   On | 00000000:18:00.0 Off |                    0 |\n"
)
PROCESSES = "|  Processes:                                             |\n"


def stated(text: str) -> Snapshot:
    found = environment_of(text)
    assert found is not None
    return found


def notes(snapshot: Snapshot) -> str:
    return "\n".join(judge(snapshot, list(REGISTRY), REGISTRY).notes)


def test_two_drivers_are_said_and_neither_is_judged() -> None:
    snapshot = stated(texts.COLLECT_ENV + SMI_550)
    assert isinstance(snapshot.get(Nvml), Missing)
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    assert report.driver is None
    skipped = next(f for f in report.findings if f.condition == "driver-too-old")
    assert skipped.message == "the paste states `driver_version` differently in lines 22 and 34"
    assert "driver is 535.104.05 in line 22 and 550.54.15 in line 34: not known" in notes(snapshot)
    assert "does not report the driver" not in notes(snapshot)


def test_nothing_of_a_gpu_is_mixed_from_two() -> None:
    """The memory of one machine's GPU 0 does not become that of the other's."""
    other = (
        "|   0  Tesla T4   Off | 00000000:18:00.0 Off |   0 |\n"
        "| N/A 5C P8 9W / 70W | 0MiB / 15360MiB | 0%  Default |\n"
    )
    snapshot = stated(SMI_550 + "```\n" + other)
    gpus = snapshot.get(Gpus)
    assert isinstance(gpus, Missing), snapshot.facts["gpus"]
    assert "GPU 0 is `NVIDIA H100 80GB HBM3` in line 2 and `Tesla T4` in line 4" in notes(snapshot)


def test_the_other_gpus_stay_known_but_not_how_many_there_are() -> None:
    rows = SMI_550 + "|   1  NVIDIA H100 80GB HBM3   On | 00000000:19:00.0 Off |   0 |\n"
    snapshot = stated(rows + "\nGPU 0: Tesla T4 (UUID: GPU-67a571b1-79ee-1016)\n")
    assert [gpu["index"] for gpu in snapshot.facts["gpus"]["gpus"]] == [1]
    assert "gpus" not in snapshot.sources["gpus"]


def test_torch_itself_is_believed_before_a_list_of_packages() -> None:
    text = texts.COLLECT_ENV_OLD + "[pip3] torch==1.2.0\n[conda] Could not collect\n"
    snapshot = stated(text)
    assert snapshot.facts["torch_build"]["version"] == "1.4.0"
    assert notes(snapshot).count("torch is 1.4.0") == 1
    assert "torch is 1.4.0 in line 1, which is used, and 1.2.0 in line 20" in notes(snapshot)


def test_two_versions_of_torch_leave_nothing_known_of_it() -> None:
    snapshot = stated(texts.COLLECT_ENV_OLD + "```\n" + texts.COLLECT_ENV)
    assert isinstance(snapshot.get(TorchBuild), Missing)
    assert isinstance(snapshot.get(TorchLive), Missing)


def test_an_nvidia_smi_that_fails_and_works() -> None:
    """As in WSL, beside the output of Windows."""
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert "error of `nvidia-smi` is" in notes(stated(text + SMI_550))


def test_many_contradictions_are_counted() -> None:
    one = "".join(f"[pip3] package{n}==1.{n}\n" for n in range(9))
    other = one.replace("==1", "==2")
    said = notes(stated(texts.COLLECT_ENV_OLD + one + other))
    assert said.count("contradicts itself") == 5, said
    assert "5 more values" in said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(texts.COLLECT_ENV, id="collect_env"),
        pytest.param(texts.DS_REPORT, id="ds_report"),
        pytest.param(texts.SMI, id="nvidia-smi"),
        pytest.param(texts.SMI_Q, id="nvidia-smi -q"),
    ],
)
def test_a_text_that_agrees_with_itself_says_nothing(text: str) -> None:
    assert "contradict" not in notes(stated(text + "\n" + text))


def test_they_survive_a_snapshot_file() -> None:
    snapshot = stated(texts.COLLECT_ENV + SMI_550)
    again = from_json(snapshot.to_json(), "x")
    assert again.contradictions == snapshot.contradictions != ()
    assert notes(again) == notes(snapshot)


def test_a_torch_without_cuda_is_said_where_no_check_can_judge_it() -> None:
    text = "- `transformers` version: 4.40.1\n- Platform: Linux-6.1.58+-x86_64-with-glibc2.35\n"
    said = notes(stated(text + "- PyTorch version (GPU?): 2.4.0 (False)\n"))
    assert "torch finds no CUDA device (line 3); whether the machine has one is not known" in said
    assert "torch finds" not in notes(stated(text + "- PyTorch version (GPU?): 2.4.0 (True)\n"))


ROCM = (
    "PyTorch version: 2.4.0+rocm6.3.4.git7cecbf6d\nIs debug build: False\n"
    "CUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.3.42134-a9a80e791\n\n"
    "OS: Ubuntu 20.04.5 LTS (x86_64)\nGCC version: (Ubuntu 9.4.0-1ubuntu1~20.04.1) 9.4.0\n"
    "Libc version: glibc-2.31\n\nPython version: 3.8.10 (default, Mar 13 2023, 10:26:41)\n"
    "Python platform: Linux-4.19.91-x86_64-with-glibc2.29\nIs CUDA available: True\n"
)


def test_the_release_of_rocm_and_that_of_hip_in_it_do_not_contradict() -> None:
    snapshot = stated(ROCM)
    assert snapshot.contradictions == ()
    assert snapshot.facts["torch_build"]["hip"] == "6.3.42134-a9a80e791"


def test_the_glibc_that_an_interpreter_needs_is_not_that_of_the_system() -> None:
    assert stated(ROCM).facts["os_info"]["libc"] == "glibc 2.31"


NVCC = "Cuda compilation tools, release 10.1, V10.1.105\n"


@pytest.mark.parametrize(
    ("line", "known"),
    [
        pytest.param("CUDA_HOME=/opt/cuda-11.8\n", False, id="another release"),
        pytest.param("CUDA_HOME=/opt/cuda-10.1\n", True, id="the same release"),
        pytest.param("CUDA_HOME=/usr/local/cuda\n", True, id="no release in the path"),
        pytest.param("", True, id="not set"),
    ],
)
def test_the_nvcc_on_path_is_not_torchs_where_cuda_home_is_another(line: str, known: bool) -> None:
    snapshot = stated(
        f"$ nvcc --version\n{NVCC}$ env | grep CUDA\n{line}CUDA_MODULE_LOADING=LAZY\n"
    )
    assert ("cuda_toolkits" in snapshot.facts) == known
