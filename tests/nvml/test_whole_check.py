"""The whole check over whole machines: each product in a host that fits it.

A healthy machine is silent: no warning, no failure, nothing unknown, in any family. A faulty one
yields the expected findings and no other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import Status
from dsdoctor.collect import collect
from dsdoctor.judge import judge
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import Report, Verdict
from dsdoctor.model.vital import VITAL
from dsdoctor.probes import builtin
from dsdoctor.process import Result
from tests.checks.gpu.test_scenarios import FAULTS
from tests.nvml import fakenvml, hosts, scenarios
from tests.nvml.fakenvml import Scenario

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)
REGISTRY = packs.load(builtin_only=True)
CHOICE = PatientChoice(executable=hosts.PYTHON, chosen_by="VIRTUAL_ENV", why="it holds torch")
SOFTWARE = {"v100_x4": hosts.VOLTA, "driver_470": hosts.CUDA_11, "driver_999": hosts.FUTURE}
#: WSL shows the GPU through another device than Linux does, and nothing of PCI.
WSL: dict[str, Any] = {
    "answers": {"release": "5.15.167.4-microsoft-standard-WSL2"},
    "gone": ("/proc/driver/nvidia", "/proc/modules", "/sys/bus/pci", "/dev/nvidia"),
    "added": {"/dev/dxg": "", "/usr/lib/wsl/lib/nvidia-smi": ""},
}
#: A board with NVSwitches, on which the manager runs.
SWITCHED: dict[str, Any] = {
    "added": {f"/dev/nvidia-nvswitch{n}": "" for n in range(6)} | {"/usr/bin/nv-fabricmanager": ""},
    "answers": {
        "processes": [
            {"pid": 2, "name": "kthreadd", "argv": [], "cwd": "/"},
            {"pid": 900, "name": "nv-fabricmanager", "argv": ["nv-fabricmanager"], "cwd": "/"},
        ]
    },
    "tools": {"/usr/bin/nv-fabricmanager": "Fabric Manager version is : 580.95.05\n"},
}
AROUND: dict[str, dict[str, Any]] = {
    "wsl": WSL,
    "a100_x8": SWITCHED,
    "h100_x8": SWITCHED,
    "h200_x8": SWITCHED,
}


def check(
    scenario: Scenario,
    folder: Path,
    software: hosts.Software | None = None,
    run: RunNeeds | None = None,
    **around: Any,
) -> Report:
    """All probes, then all checks."""
    host = hosts.WholeHost(scenario, folder, software or hosts.Software(), **around)
    given = [run or RunNeeds(cwd="/home/user"), CHOICE]
    snapshot = collect(host, given, builtin())
    return judge(snapshot, list(REGISTRY), REGISTRY)


def loud(report: Report) -> dict[str, str]:
    """Conditions that a reader would see, with the worst word of each."""
    found: dict[str, str] = {}
    for finding in report.findings:  # worst first
        if finding.status not in (Status.OK, Status.SKIP):
            found.setdefault(finding.condition, finding.status.value)
    return found


ILL = {
    "h100_x8_dead_link": {"nvlink-inactive": "fail"},
    "h200_x8_lost": {"gpu-lost": "fail"},
    "h200_x8_lost_late": {"gpu-lost": "fail"},
    # each GPU of it is well, but a run over both is not
    "mixed_a100_3090": {"mixed-gpus": "warn"},
}
HEALTHY = sorted(set(scenarios.ALL) - set(ILL))


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_is_silent(tmp_path: Path, name: str) -> None:
    report = check(
        scenarios.ALL[name](), tmp_path, SOFTWARE.get(name), **copy.deepcopy(AROUND.get(name, {}))
    )
    assert loud(report) == {}
    assert report.verdict is Verdict.HEALTHY
    assert report.unread == {}
    # silence means that it was looked at
    assert report.counts["ok"] >= 60


@pytest.mark.parametrize("name", sorted(ILL))
def test_an_ill_machine(tmp_path: Path, name: str) -> None:
    assert loud(check(scenarios.ALL[name](), tmp_path)) == ILL[name]


@pytest.mark.parametrize("index", ["0", "1"])
def test_a_run_on_one_gpu_of_a_mixed_box(tmp_path: Path, index: str) -> None:
    run = RunNeeds(cwd="/home/user", gpus=(index,))
    assert loud(check(scenarios.mixed_a100_3090(), tmp_path, run=run)) == {}


def _software(build: Callable[[], Scenario]) -> hosts.Software | None:
    return SOFTWARE.get(build.__name__)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_yields_its_finding_and_no_other(tmp_path: Path, fault: str) -> None:
    build, change, expected = FAULTS[fault]
    scenario = build()
    change(scenario)
    assert loud(check(scenario, tmp_path, _software(build))) == expected


def test_what_an_old_driver_does_not_tell_is_a_skip(tmp_path: Path) -> None:
    report = check(scenarios.driver_470(), tmp_path, hosts.CUDA_11)
    said = {f.condition: f.status for f in report.findings}
    for condition in ("gsp-version-mismatch", "gpu-reset-required", "channel-repair-pending"):
        assert said[condition] is Status.SKIP, condition


DMESG = "/usr/bin/dmesg -r"
AGE = 864000.0 - 600


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "NVRM: Xid (PCI:0000:1b:00): 13, pid=7, Graphics Exception",
            {},
            id="an Xid that a program causes",
        ),
        pytest.param(
            "NVRM: Xid (PCI:0000:1b:00): 95, pid=7, Uncontained",
            {"gpu-hardware-fault": "warn"},
            id="an uncontained ECC error",
        ),
        pytest.param(
            "NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off",
            {"gpu-hardware-fault": "fail"},
            id="a GPU off the bus",
        ),
        pytest.param(
            "nvidia 0000:1b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=TL",
            {"pcie-errors": "fail"},
            id="a fatal PCIe error",
        ),
    ],
)
def test_the_kernel_s_log(tmp_path: Path, line: str, expected: dict[str, str]) -> None:
    tools = {DMESG: f"<3>[{AGE:.6f}] {line}\n"}
    assert loud(check(scenarios.h200_x8(), tmp_path, tools=tools)) == expected


def test_a_container_without_the_runtime(tmp_path: Path) -> None:
    """The host's driver shows in /proc, but neither its devices nor its libraries do."""
    live = hosts.records(
        ("torch_import", {"ok": True, "seconds": 2.0, "version": "2.11.0+cu130", "file": "x"}),
        ("torch_build", {"arch_list": ["sm_90"], "arch_source": "_cuda_getArchFlags"}),
        ("cuda", {"ok": False, "error": "Found no NVIDIA driver on your system", "code": None}),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cpu"),
    )
    report = check(
        scenarios.h200_x8(),
        tmp_path,
        library=False,
        live=live,
        added={"/.dockerenv": ""},
        gone=("/dev/nvidia", "/usr/lib/x86_64-linux-gnu/libcuda", "/usr/bin/nvidia-smi"),
        tools={"/usr/bin/ldconfig -p": ""},
        run=RunNeeds(cwd="/home/user", expect_gpus=8),
    )
    assert report.verdict is Verdict.FAULTY
    assert loud(report) == CONTAINER


def _without_cuda(code: int | None, message: str) -> str:
    """What torch's start prints where CUDA does not start."""
    return hosts.records(
        ("torch_import", {"ok": True, "seconds": 2.0, "version": "2.11.0+cu130", "file": "x"}),
        ("torch_build", {"arch_list": ["sm_80", "sm_86", "sm_90"], "arch_source": "x"}),
        ("cuda", {"ok": False, "error": message, "code": code}),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cpu"),
    )


def test_a_container_that_lost_its_gpus(tmp_path: Path) -> None:
    """NVML's unknown error is one line, and not one for each check of a GPU."""
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlInit": 999}
    live = _without_cuda(None, "No CUDA GPUs are available")
    report = check(scenario, tmp_path, live=live, added={"/.dockerenv": ""})
    assert loud(report) == {"container-lost-gpu": "fail"}


def test_libraries_that_are_newer_than_the_module(tmp_path: Path) -> None:
    """CUDA takes such a libcuda for one of `cuda-compat`, and there is none."""
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlInit": 18}
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 2025\n"
    live = _without_cuda(804, "Error 804: forward compatibility was attempted")
    report = check(scenario, tmp_path, live=live, added={"/proc/driver/nvidia/version": version})
    assert loud(report) == {"driver-library-mismatch": "fail"}


def test_a_linux_driver_in_wsl(tmp_path: Path) -> None:
    scenario = scenarios.wsl()
    scenario["fail"] = {"nvmlInit": 9}
    broken = Result(argv=("nvidia-smi",), returncode=9, stdout=b"NVIDIA-SMI has failed\n")
    around = copy.deepcopy(WSL)
    around["tools"] = {"/usr/bin/nvidia-smi": broken, "/usr/bin/nvidia-smi --query-gpu": broken}
    live = _without_cuda(None, "Found no NVIDIA driver on your system")
    report = check(scenario, tmp_path, live=live, **around)
    assert loud(report) == {"wsl-driver-unavailable": "fail"}


def test_a_libcuda_that_does_not_answer_in_wsl(tmp_path: Path) -> None:
    """CUDA's error follows from it."""
    around = copy.deepcopy(WSL)
    around["tools"] = {
        "/usr/bin/nvidia-smi": "| Driver Version: 546.80   CUDA Version: ERR! |\n",
        "/usr/bin/ldconfig -p": "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/wsl/lib/libcuda.so.1\n",
    }
    around["added"]["/usr/lib/wsl/lib/libcuda.so.1"] = ""
    around["gone"] += ("/usr/lib/x86_64-linux-gnu/libcuda",)
    live = _without_cuda(500, "Error 500: named symbol not found")
    report = check(scenarios.wsl(), tmp_path, live=live, **around)
    assert loud(report) == {"libcuda-unusable": "fail"}


def test_a_fabric_manager_of_another_version(tmp_path: Path) -> None:
    """That it does not run follows."""
    around = copy.deepcopy(SWITCHED)
    around["answers"]["processes"] = around["answers"]["processes"][:1]
    around["tools"] = {"/usr/bin/nv-fabricmanager": "Fabric Manager version is : 570.133.20\n"}
    scenario = scenarios.h100_x8()
    for gpu in scenario["gpus"]:
        gpu["fabric"] = {"state": 2, "status": 0, "clique": 0}
    live = _without_cuda(802, "Error 802: system not yet initialized")
    report = check(scenario, tmp_path, live=live, **around)
    assert loud(report) == {"fabric-manager-version-mismatch": "fail"}


CONTAINER = {"docker-gpu-runtime-missing": "fail"}


def test_a_container_of_a_cuda_image_without_the_runtime(tmp_path: Path) -> None:
    """Such images set NVIDIA_VISIBLE_DEVICES; that torch finds no GPU shows that it needs one."""
    report = check(
        scenarios.h200_x8(),
        tmp_path,
        library=False,
        live=_without_cuda(None, "Found no NVIDIA driver on your system"),
        added={"/.dockerenv": ""},
        gone=("/dev/nvidia", "/usr/lib/x86_64-linux-gnu/libcuda", "/usr/bin/nvidia-smi"),
        tools={"/usr/bin/ldconfig -p": ""},
        variables={"NVIDIA_VISIBLE_DEVICES": "all"},
    )
    assert loud(report) == CONTAINER


def test_every_fact_is_read_on_a_healthy_machine(tmp_path: Path) -> None:
    """What a sound GPU node has is not skipped for want of a file in the recording."""
    host = hosts.WholeHost(scenarios.h100_x8(), tmp_path, hosts.Software())
    snapshot = collect(host, [RunNeeds(cwd="/home/user"), CHOICE], builtin())
    lacking = {
        kind.key(): value.detail
        for kind in VITAL
        if isinstance(value := snapshot.get(kind), Missing)
    }
    assert lacking == {}


@pytest.mark.parametrize(
    ("code", "cuda", "condition"),
    [(18, 803, "driver-library-mismatch"), (999, 999, "nvml-unusable")],
)
def test_an_nvml_that_does_not_start_is_one_finding(
    tmp_path: Path, code: int, cuda: int, condition: str
) -> None:
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlInit": code}
    live = hosts.records(
        ("torch_import", {"ok": True, "seconds": 2.0, "version": "2.11.0+cu130", "file": "x"}),
        ("torch_build", {"arch_list": ["sm_80", "sm_86"], "arch_source": "x"}),
        ("cuda", {"ok": False, "error": f"Error {cuda}", "code": cuda}),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cpu"),
    )
    report = check(scenario, tmp_path, live=live)
    assert {f.condition for f in report.findings if f.status is Status.UNKNOWN} == set()
    assert loud(report)[condition] == "fail"
    skipped = [f.message for f in report.findings if f.condition == "ecc-uncorrectable"]
    assert skipped == [f"not judged because of `{condition}`"]
    assert report.verdict is Verdict.FAULTY


#: The register of a root port that redirects transfers between devices, and of one that does not.
REDIRECTS = bytes(256) + (0x0D).to_bytes(4, "little") + b"\0\0\x1d\0" + bytes(8)
PASSES = bytes(256) + (0x0D).to_bytes(4, "little") + b"\0\0\x10\0" + bytes(8)


@pytest.mark.parametrize(
    ("config", "iommu", "expected"),
    [
        pytest.param(REDIRECTS, "DMA", {"acs-redirects-p2p": "warn"}, id="they redirect"),
        pytest.param(REDIRECTS, "identity", {}, id="the IOMMU does not translate"),
        pytest.param(PASSES, "DMA", {}, id="they pass transfers on"),
    ],
)
def test_root_ports_between_two_gpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: bytes,
    iommu: str,
    expected: dict[str, str],
) -> None:
    """Two GPUs under one host bridge, each below a root port of its own."""
    plain = hosts._pci_files

    def below_one_bridge(scenario: Scenario) -> tuple[dict[str, Any], dict[str, str]]:
        files, links = plain(scenario)
        made: dict[str, Any] = dict(files)
        for number, gpu in enumerate(scenario["gpus"]):
            bdf = gpu["pci_bus_id"].lower().removeprefix("0000")
            folder, port = f"/sys/bus/pci/devices/{bdf}", f"0000:16:0{number}.0"
            real = f"/sys/devices/pci0000:16/{port}/{bdf}"
            for path in [path for path in made if path.startswith(f"{folder}/")]:
                made[real + path.removeprefix(folder)] = made.pop(path)
            made[f"{real}/iommu_group/type"] = f"{iommu}\n"
            made[f"/sys/bus/pci/devices/{port}/config"] = config
            links |= {folder: real, f"{real}/driver": links.pop(f"{folder}/driver")}
        return made, links

    monkeypatch.setattr(hosts, "_pci_files", below_one_bridge)
    report = check(scenarios.h100_pcie_x2(), tmp_path)
    said = {name: word for name, word in loud(report).items() if name == "acs-redirects-p2p"}
    assert said == expected
    judged = next(f for f in report.findings if f.condition == "acs-redirects-p2p")
    assert judged.status is not Status.SKIP, judged.message


def test_an_absent_folder_of_pythonpath(tmp_path: Path) -> None:
    variables = {"PYTHONPATH": "/home/user:/gone/src"}
    report = check(scenarios.h100_x8(), tmp_path, variables=variables, **copy.deepcopy(SWITCHED))
    assert loud(report) == {"pythonpath-entry-missing": "warn"}
