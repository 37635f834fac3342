"""What tools print where something is missing: torch's warning, a folder without nvcc, nouveau."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Finding, Status
from dsdoctor.paste import nvidia_smi, words
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.lines import Line
from dsdoctor.paste.statements import Statements
from tests.paste.reading import stated, value
from tests.paste.test_judged import run

REGISTRY = packs.load(builtin_only=True)
HEAD = """\
PyTorch version: 2.5.1+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A
"""
UNREAD = """\
Is CUDA available: False
CUDA runtime version: Could not collect
GPU models and configuration: No CUDA
Nvidia driver version: No CUDA
"""
BLIND = """\
Is CUDA available: False
CUDA runtime version: 12.4.131
GPU models and configuration:
GPU 0: NVIDIA H200
Nvidia driver version: 580.126.09
"""
NOT_READY = (
    "/env/torch/cuda/__init__.py:174: UserWarning: CUDA initialization: Unexpected error from"
    " cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at x:108.)\n"
)
SMI_FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that"
    " the latest NVIDIA driver is installed and running.\n"
)
DS_REPORT = """\
DeepSpeed general environment info:
torch version .................... 2.1.1+cu121
deepspeed info ................... 0.12.5, unknown, unknown
torch cuda version ............... 12.1
torch hip version ................ None
nvcc version .....................  [FAIL] nvcc missing
"""
QUERY = """\
==============NVSMI LOG==============

Driver Version                            : 535.104.12
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Clocks Event Reasons
        Idle                              : {idle}
        SW Power Cap                      : Active
        HW Slowdown                       : {slow}
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : {slow}
"""
QUERY_610 = """\
==============NVSMI LOG==============

Timestamp                                 : Sun Jun  7 08:16:57 2026
NVIDIA-SMI Version                        : 610.43.02
KMD Version                               : 610.43.02
CUDA UMD Version                          : 13.3

Attached GPUs                             : 1
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA B200
    GPU Reset Status
        Reset Required                    : Requested functionality has been deprecated
    GPU Recovery Action                   : {action}
    ECC Errors
        Aggregate
            SRAM Threshold Exceeded       : No
        Channel Repair Pending            : {repair}
        TPC Repair Pending                : No
"""
COLUMNS = """\
index, name, gpu_recovery_action, compute_cap, driver_version
0, NVIDIA H100 80GB HBM3, {action}, 9.0, 580.95.05
"""
LSPCI = """\
5a:00.0 3D controller: NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] (rev a1)
\tSubsystem: NVIDIA Corporation Device 1212
\tKernel driver in use: {driver}
\tKernel modules: nvidiafb, nouveau
"""
LSHW = """\
  *-display
       description: VGA compatible controller
       product: GA102 [GeForce RTX 3090]
       vendor: NVIDIA Corporation
       physical id: 0
       bus info: pci@0000:0a:00.0
       configuration: driver={driver} latency=0
  *-graphics
       product: EFI VGA
"""
LINKS = """\
GPU 0: NVIDIA RTX A6000 (UUID: GPU-0a)
\t Link 0: 14.062 GB/s
\t Link 1: 14.062 GB/s
\t Link 2: 14.062 GB/s
\t Link 3: {last}
GPU 1: NVIDIA RTX A6000 (UUID: GPU-0b)
\t Link 0: 14.062 GB/s
\t Link 1: 14.062 GB/s
\t Link 2: 14.062 GB/s
\t Link 3: {last}
"""
PAIR = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV{n}\t0-47\t\tN/A
GPU1\tNV{n}\t X \t0-47\t\tN/A
"""


def bad(text: str) -> dict[str, Finding]:
    """What is found in a text, by condition."""
    found = judge(stated(text), list(REGISTRY), REGISTRY).findings
    return {one.condition: one for one in found if one.status in (Status.FAIL, Status.WARN)}


def test_torch_says_why_cuda_did_not_start() -> None:
    assert value(stated(NOT_READY + HEAD + BLIND), "torch_live/cuda_error_code") == 802
    assert list(bad(NOT_READY + HEAD + BLIND)) == ["fabric-manager-not-running"]
    assert list(bad(HEAD + BLIND)) == ["torch-cuda-init-failed"]


def test_a_warning_alone_is_no_environment() -> None:
    assert environment_of(NOT_READY) is None


def test_a_folder_without_nvcc_is_no_toolkit() -> None:
    found = bad(DS_REPORT)
    assert list(found) == ["cuda-toolkit-missing"]
    assert "the folder that torch takes as `CUDA_HOME` has no usable nvcc" in (
        found["cuda-toolkit-missing"].message
    )


def test_where_nvidia_smi_failed_nobody_has_counted_the_gpus() -> None:
    assert list(bad("$ nvidia-smi\n" + SMI_FAILED + HEAD + UNREAD)) == ["driver-missing"]
    assert "no-gpu-visible" in bad(HEAD + UNREAD)


@pytest.mark.parametrize(
    ("idle", "slow", "expected"),
    [
        ("Not Active", "Active", ["gpu-throttled"]),
        ("Active", "Active", []),  # an idle GPU
        ("Not Active", "Not Active", []),  # the software's power cap is normal under load
    ],
)
def test_a_hardware_slowdown_is_read(idle: str, slow: str, expected: list[str]) -> None:
    found = bad(QUERY.format(idle=idle, slow=slow))
    assert list(found) == expected
    assert all("None" not in one.message for one in found.values())


def test_a_section_that_is_cut_off_decides_nothing() -> None:
    text = QUERY.format(idle="Not Active", slow="Active").partition("        HW Slowdown")[0]
    assert "health" not in stated(text).facts["gpus"]["gpus"][0]


@pytest.mark.parametrize("text", [LSPCI, LSHW], ids=["lspci -k", "lshw"])
def test_nouveau_is_not_the_driver_that_cuda_needs(text: str) -> None:
    found = bad(text.format(driver="nouveau"))
    assert list(found) == ["driver-missing"]
    assert "uses the `nouveau` driver" in found["driver-missing"].message
    assert "()" not in found["driver-missing"].message
    assert bad(text.format(driver="nvidia")) == {}
    assert bad(text.format(driver="nouveau") + text.format(driver="nvidia")) == {}
    assert words.may_state(text)


def test_two_cards_are_connected_by_whole_bridges() -> None:
    three = LINKS.format(last="<inactive>")
    assert list(bad(three + "\n" + PAIR.format(n=3))) == ["nvlink-inactive"]
    assert bad(LINKS.format(last="14.062 GB/s") + "\n" + PAIR.format(n=4)) == {}
    assert bad(three) == {}  # the list may go on


def test_rows_of_a_matrix_that_is_cut_off() -> None:
    head = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
    text = head + "GPU0\t X \tNV12\tSYS\t0-31\nGPU1\tNV12\t X \tSYS\t0-31\n"
    pairs = stated(text).facts["gpu_topology"]["pairs"]
    assert [(pair["a"], pair["b"], pair["nvlinks"]) for pair in pairs] == [
        (0, 1, 12), (0, 2, 0), (1, 2, 0)
    ]  # fmt: skip
    assert environment_of(head) is None
    assert environment_of(text.replace("GPU1\tNV12", "GPU1\tNV4")) is None  # rows disagree


def test_a_rocm_build_that_finds_no_gpu() -> None:
    head = "PyTorch version: 2.8.0+rocm6.4\nIs debug build: False\n"
    head += "CUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.4.43483\n"
    found = bad(head + "Is CUDA available: False\n")
    assert found["no-gpu-visible"].message == "torch is built for ROCm, but finds no AMD GPU"
    assert bad(head + "Is CUDA available: True\n") == {}


def test_a_report_that_does_not_name_rocm_is_judged_for_cuda() -> None:
    text = "PyTorch version: 1.3.1\nIs debug build: No\nCUDA used to build PyTorch: Could not collect\n"
    listed = BLIND.replace("False", "No").replace("NVIDIA H200", "GeForce RTX 2080 Ti")
    assert list(bad(text + listed)) == ["cpu-only-torch"]  # NVIDIA's driver rules ROCm out
    without = listed.replace("Nvidia driver version: 580.126.09\n", "")
    assert list(bad(text + without)) == ["torch-cuda-init-failed"]
    built = text.replace("Could not collect", "12.4")
    assert list(bad(built + listed)) == ["torch-cuda-init-failed"]


def test_a_cpu_build_counts_where_the_text_tells_of_a_driver() -> None:
    assert "cpu-only-torch" in bad(
        "torch 2.9.0+cpu here\ndriver version 580.95.05\nGPU 0: NVIDIA A10 (UUID: GPU-1a)\n"
    )
    assert environment_of("torch 2.9.0+cpu here\n") is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("torch                             2.4.0\n", id="a version of torch"),
        pytest.param(
            "deepspeed                          0.9.1+cc67f22f\n", id="a version of DeepSpeed"
        ),
        pytest.param(
            "CUDA used to build PyTorch: 12.4\nCUDA runtime version: 12.4.99\n",
            id="a line of collect_env",
        ),
    ],
)
def test_what_states_an_environment_is_looked_at_in_logs_too(text: str) -> None:
    assert words.may_state(text)
    assert not words.may_state("torch.distributed started, deepspeed 1 of 8 ranks\n")


class _Counted(list[Line]):
    """Lines that count how many of them were copied."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            self.copied += len(found)
        return found


def test_heads_of_tables_do_not_make_each_other_long() -> None:
    lines = _Counted(Line(n, "| MIG devices:") for n in range(2000))
    nvidia_smi.READER.read(lines, Statements())
    assert lines.copied <= 500 * len(lines)


def test_a_text_whose_environment_warns_is_not_called_clean(tmp_path: Path) -> None:
    file = tmp_path / "issue.md"
    file.write_text(DS_REPORT, encoding="utf-8")
    _, shown = run("triage", str(file))
    assert shown.startswith("WARN  the text contains no error; the environment below has warnings")


@pytest.mark.parametrize("text", [QUERY_610, COLUMNS], ids=["-q", "columns"])
@pytest.mark.parametrize(
    ("action", "named"),
    [("None", False), ("Reset", True), ("Reboot", True), ("Drain P2P", True), ("N/A", False)],
)
def test_the_recovery_action_of_a_gpu(text: str, action: str, named: bool) -> None:
    assert ("gpu-reset-required" in bad(text.format(action=action, repair="No"))) is named


@pytest.mark.parametrize(("repair", "named"), [("Yes", True), ("No", False)])
def test_a_repair_that_waits_for_a_reset(repair: str, named: bool) -> None:
    text = QUERY_610.format(action="None", repair=repair)
    assert ("channel-repair-pending" in bad(text)) is named


def test_the_versions_of_a_driver_that_calls_them_after_its_parts() -> None:
    snapshot = stated(QUERY_610.format(action="None", repair="No"))
    assert value(snapshot, "nvml/driver_version") == "610.43.02"
    assert value(snapshot, "nvml/cuda_version") == 13030


def test_the_capability_that_columns_state() -> None:
    gpu = value(stated(COLUMNS.format(action="None").replace("H100", "H999")), "gpus/gpus/0")
    assert (gpu["cc_major"], gpu["cc_minor"]) == (9, 0)


VIRTUAL = """\
==============NVSMI LOG==============

Driver Version                            : 550.90.07
CUDA Version                              : 12.4

Attached GPUs                             : 1
GPU 00000000:02:00.0
    Product Name                          : NVIDIA A40-48C
    GPU Virtualization Mode
        Virtualization Mode               : {mode}
        Host VGPU Mode                    : N/A
    {section}
        Product Name                      : NVIDIA Virtual Compute Server
        License Status                    : {status}
"""


@pytest.mark.parametrize(
    "section", ["vGPU Software Licensed Product", "GRID Licensed Product"], ids=["new", "old"]
)
@pytest.mark.parametrize(
    ("mode", "status", "named"),
    [
        pytest.param("VGPU", "Unlicensed", True, id="no license"),
        pytest.param("VGPU", "Unlicensed (Restricted)", True, id="slowed down"),
        pytest.param("VGPU", "Licensed (Expiry: 2027-1-2 3:4:5 GMT)", False, id="a license"),
        pytest.param("Pass-Through", "Unlicensed (Unrestricted)", False, id="a whole GPU"),
        pytest.param("VGPU", "N/A", False, id="not told"),
    ],
)
def test_the_license_of_a_virtual_gpu(section: str, mode: str, status: str, named: bool) -> None:
    text = VIRTUAL.format(section=section, mode=mode, status=status)
    assert ("vgpu-unlicensed" in bad(text)) is named


def test_the_domain_of_a_fabric() -> None:
    section = (
        "    Fabric\n"
        "        State                             : Completed\n"
        "        Status                            : Success\n"
        "        CliqueId                          : 32766\n"
        "        ClusterUUID                       : 5A1F0000-0000-4000-8000-0000000000B2\n"
    )
    text = QUERY_610.format(action="None", repair="No") + section
    gpu = value(stated(text), "gpus/gpus/0")
    assert gpu["fabric"] | {"status": 0} == gpu["fabric"]
    assert gpu["fabric"]["clique"] == 32766
    assert gpu["fabric"]["cluster"] == "5a1f00000000400080000000000000b2"
