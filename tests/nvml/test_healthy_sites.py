"""The whole check on sound machines of every product, in every surrounding that is usual.

With and without `--quick`, and with what a user brings: a config, a command, a checkpoint folder.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import RunNeeds, Status
from dsdoctor.model.report import Report, Verdict
from dsdoctor.probes.config import parse_config
from dsdoctor.report import text
from tests.nvml import fakenvml, hosts, scenarios, sites
from tests.nvml.test_whole_check import AROUND, HEALTHY, SOFTWARE, check, loud

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)
#: WSL has neither the mounts nor the adapters of these sites.
MACHINES = [name for name in HEALTHY if name != "wsl"]
SITES = {"machine": sites.MACHINE, "docker": sites.DOCKER, "pod": sites.POD, "ib": sites.FABRIC}
#: Judged on each of these sites, and seen there.
LOOKED_AT = {
    "machine": (
        "disk-full",
        "inodes-exhausted",
        "path-not-writable",
        "host-memory-low",
        "shm-too-small",
    ),
    "docker": ("disk-full", "host-memory-low", "shm-too-small", "container-lost-gpu"),
    "pod": ("kubernetes-gpus-not-visible", "container-lost-gpu"),
    "ib": ("nccl-ib-or-socket-interface", "nccl-unknown-variable"),
    "slurm": (
        "slurm-gpus-not-visible",
        "slurm-memory-limited",
        "gpudirect-rdma-missing",
        "rdma-port-down",
        "memlock-low",
    ),
}


def around(name: str, site: dict[str, Any]) -> dict[str, Any]:
    """A product's own surroundings, and those of the site."""
    both = copy.deepcopy(AROUND.get(name, {}))
    for part, value in copy.deepcopy(site).items():
        both[part] = {**both.get(part, {}), **value}
    return both


def judged(report: Report) -> set[str]:
    return {f.condition for f in report.findings if f.status is Status.OK}


@pytest.mark.parametrize("quick", [False, True], ids=["default", "quick"])
@pytest.mark.parametrize("name", MACHINES)
def test_every_product_with_its_disks_and_memory(tmp_path: Path, name: str, quick: bool) -> None:
    run = RunNeeds(cwd="/home/user", quick=quick)
    report = check(
        scenarios.ALL[name](), tmp_path, SOFTWARE.get(name), run, **around(name, sites.MACHINE)
    )
    assert loud(report) == {}
    assert report.verdict is Verdict.HEALTHY
    assert set(LOOKED_AT["machine"]) <= judged(report)


@pytest.mark.parametrize("quick", [False, True], ids=["default", "quick"])
@pytest.mark.parametrize("site", ["docker", "pod", "ib", "slurm"])
@pytest.mark.parametrize("name", ["h100_x8", "l40s_x4", "rtx_4090_x1", "v100_x4"])
def test_usual_surroundings(tmp_path: Path, name: str, site: str, quick: bool) -> None:
    scenario = scenarios.ALL[name]()
    made = SITES.get(site) or sites.slurm(len(scenario["gpus"]))
    run = RunNeeds(cwd="/home/user", quick=quick)
    report = check(scenario, tmp_path, SOFTWARE.get(name), run, **around(name, made))
    assert loud(report) == {}
    assert report.verdict is Verdict.HEALTHY
    assert set(LOOKED_AT[site]) <= judged(report)


CONFIG: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 8,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
    "zero_optimization": {"stage": 2},
}


@pytest.mark.parametrize("name", ["h100_x8", "l40s_x4", "rtx_4090_x1", "v100_x4"])
def test_with_a_sound_config_and_command(tmp_path: Path, name: str) -> None:
    scenario = scenarios.ALL[name]()
    count = len(scenario["gpus"])
    half = "fp16" if name == "v100_x4" else "bf16"
    written = json.dumps({**CONFIG, half: {"enabled": True}})
    made = around(name, sites.MACHINE)
    made["added"]["/home/user/ds.json"] = written
    argv = ("deepspeed", f"--num_gpus={count}", "train.py", "--deepspeed_config", "ds.json")
    run = RunNeeds(
        cwd="/home/user",
        config_path="ds.json",
        config=parse_config(written).parsed,
        command=argv,
        expect_gpus=count,
    )
    report = check(scenario, tmp_path, SOFTWARE.get(name), run, **made)
    assert loud(report) == {}
    assert {"ds-config-invalid-key", "ds-config-batch-mismatch", "launched-without-deepspeed"} <= (
        judged(report)
    )


@pytest.mark.parametrize("quick", [False, True], ids=["default", "quick"])
def test_a_host_without_gpus_and_a_torch_for_the_cpu_has_no_finding(
    tmp_path: Path, quick: bool
) -> None:
    """A CPU node with a CPU build of torch: one finding at the most, and never more."""
    scenario = scenarios.ALL["h100_x8"]()
    scenario["gpus"] = []
    live = hosts.records(
        ("torch_import", {"ok": True, "seconds": 2.0, "version": "2.11.0+cpu", "file": "x"}),
        ("torch_build", {"arch_list": [], "arch_source": "_cuda_getArchFlags"}),
        ("cuda", {"ok": False, "error": "Torch not compiled with CUDA enabled", "code": None}),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cpu"),
    )
    report = check(
        scenario,
        tmp_path,
        hosts.Software(torch="2.11.0+cpu", cuda="", toolkit=None),
        RunNeeds(cwd="/home/user", quick=quick),
        library=False,
        live=live,
        gone=(
            "/dev/nvidia",
            "/usr/lib/x86_64-linux-gnu/libcuda",
            "/usr/bin/nvidia-smi",
            "/proc/driver/nvidia",
            "/proc/modules",
        ),
        tools={"/usr/bin/ldconfig -p": ""},
        **copy.deepcopy(sites.MACHINE),
    )
    assert loud(report) == {}


def test_what_is_well_with_every_gpu_is_said_once(tmp_path: Path) -> None:
    report = check(scenarios.ALL["h100_x8"](), tmp_path)
    shown = text.render(report, verbosity=1, width=120).splitlines()
    assert len([line for line in shown if line.startswith("ok    gpu-busy (")]) == 1
    assert report.counts["ok"] > len([line for line in shown if line.startswith("ok ")])
