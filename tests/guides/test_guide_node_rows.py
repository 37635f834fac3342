"""Rows of the field guides that rest on the node: its GPUs, topology, NCCL, launch and peers.

Each is tried on a whole machine: the products of the guide in a host that fits them.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.collect import collect
from dsdoctor.judge import judge as judge_snapshot
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import Report
from dsdoctor.probes import builtin
from dsdoctor.probes.config import parse_config
from dsdoctor.report import text
from dsdoctor.testing import FakeHost
from tests.nvml import fakenvml, hosts, scenarios
from tests.nvml.test_whole_check import CHOICE, REGISTRY, loud

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)
GUIDES = Path(__file__).parent.parent / "checks" / "config" / "guides"
MIB = 1 << 20


def judge(host: FakeHost, **needs: Any) -> Report:
    """The whole check of a host."""
    config = needs.get("config_path")
    if config is not None:
        content = (GUIDES / config).read_text()
        host.files[f"/home/user/{config}"] = content
        needs["config"] = parse_config(content, config).parsed
    snapshot = collect(host, [RunNeeds(cwd="/home/user", **needs), CHOICE], builtin())
    return judge_snapshot(snapshot, list(REGISTRY), REGISTRY)


def message(report: Report, condition: str) -> str:
    return next(f.message for f in report.findings if f.condition == condition)


def v100(folder: Path, **around: Any) -> hosts.WholeHost:
    return hosts.WholeHost(scenarios.v100_x4(), folder, hosts.VOLTA, **around)


#: What `children/ds_config.py` prints of a config that DeepSpeed takes.
TAKEN = {f"{hosts.PYTHON} ": hosts.records(("version", "0.19.8"))}


def test_guide_b2_v100_with_the_wheel_that_still_serves_it(tmp_path: Path) -> None:
    assert loud(judge(v100(tmp_path))) == {}


def test_guide_b2_v100_with_a_wheel_that_no_longer_does(tmp_path: Path) -> None:
    today = hosts.WholeHost(scenarios.v100_x4(), tmp_path, hosts.Software())
    report = judge(today)
    assert loud(report)["gpu-arch-unsupported"] == "fail"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deepspeed --num_gpus=4 train.py", {}),
        ("CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus=2 train.py", {}),
        (
            "CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus=2 train.py",
            {"launcher-visible-devices-conflict": "warn"},
        ),
        ("deepspeed --num_gpus=8 train.py", {"invalid-device-ordinal": "fail"}),
    ],
)
def test_guide_b3_the_launch_line(tmp_path: Path, line: str, expected: dict[str, str]) -> None:
    assert loud(judge(v100(tmp_path), command=tuple(line.split()))) == expected


def test_guide_b4_the_config_of_the_guide_on_its_machine(tmp_path: Path) -> None:
    host = v100(tmp_path, tools=dict(TAKEN))
    report = judge(host, config_path="ds_config_zero2_gpt2xl.json", gpus=("0", "1", "2", "3"))
    assert loud(report) == {}
    asked = next(f for f in report.findings if f.condition == "ds-config-refused")
    assert asked.status.value == "ok"


def test_guide_b7_variables_that_nccl_does_not_read_and_switches_left_on(tmp_path: Path) -> None:
    variables = {
        "NCCL_DEBUG": "INFO",
        "NCCL_TIMEOUT": "1800",
        "NCCL_IB_DISABLE": "1",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "ens3",
    }
    report = judge(v100(tmp_path, variables=variables))
    assert loud(report) == {
        "nccl-unknown-variable": "warn",
        "nccl-debug-switch-left": "warn",
        "nccl-ib-or-socket-interface": "fail",
    }
    assert "`NCCL_TIMEOUT`" in message(report, "nccl-unknown-variable")
    assert "this node has eth0" in message(report, "nccl-ib-or-socket-interface")


def test_guide_b7_the_matrix_of_the_node(tmp_path: Path) -> None:
    shown = text.render(judge(v100(tmp_path)), verbosity=1, width=100)
    assert "GPU0  X     NV2   NV2   NV2   0-47,96-143    0" in shown
    assert "NV# = that many NVLinks" in shown


def test_guide_c3_a_second_job_on_other_gpus(tmp_path: Path) -> None:
    scenario = scenarios.a100_x8()
    for gpu in scenario["gpus"][:4]:
        gpu["memory_used"] = 70_000 * MIB
        gpu["compute_processes"] = [{"pid": 4711, "used_bytes": 69_000 * MIB}]
    listens = (
        "  sl  local_address rem_address   st\n"
        "   0: 00000000:733C 00000000:0000 0A 0:0 00:0 0 0 0 4711 1\n"
    )
    line = "CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --num_processes 4 train.py"
    around: dict[str, Any] = {
        "variables": {"CUDA_VISIBLE_DEVICES": "4,5,6,7"},
        "added": {"/opt/train/bin/accelerate": "#!" + hosts.PYTHON},
    }
    host = hosts.WholeHost(scenario, tmp_path, hosts.Software(), **around)
    assert loud(judge(host, command=tuple(line.split()))) == {}
    host.files["/proc/net/tcp"] = listens
    report = judge(host, command=tuple(line.split()))
    assert loud(report) == {"port-in-use": "fail"}
    busy = judge(hosts.WholeHost(scenario, tmp_path, hosts.Software()), gpus=("3", "4"))
    assert loud(busy) == {"gpu-busy": "warn"}


def test_guide_e2_bf16_asked_of_a_v100(tmp_path: Path) -> None:
    host = v100(tmp_path, tools=dict(TAKEN))
    host.files["/home/user/ds.json"] = '{"train_batch_size": 4, "bf16": {"enabled": true}}'
    snapshot = collect(
        host,
        [
            RunNeeds(
                cwd="/home/user",
                config_path="ds.json",
                config={"train_batch_size": 4, "bf16": {"enabled": True}},
            ),
            CHOICE,
        ],
        builtin(),
    )
    found = loud(judge_snapshot(snapshot, list(REGISTRY), REGISTRY))
    assert set(found) == {"bf16-unsupported"}


def two_nodes(folder: Path, answer: str) -> hosts.WholeHost:
    tools: dict[str, Any] = {"/usr/bin/getent ahosts": "10.0.0.18 STREAM n2\n"}
    added = {"/usr/bin/pdsh": "", "/home/user/hosts": "gpu-17 slots=8\nn2 slots=8\n"}
    added["/usr/bin/ssh"] = ""
    tools["/usr/bin/ssh"] = answer
    return hosts.WholeHost(scenarios.h100_x8(), folder, hosts.Software(), tools=tools, added=added)


@pytest.mark.parametrize(
    ("offset", "python", "variables", "expected"),
    [
        (0, "yes", {}, {}),
        (600, "yes", {}, {"clock-skew": "warn"}),
        (0, "no", {}, {"hostfile-or-ssh-problem": "warn"}),
    ],
)
def test_guide_e3_names_log_ins_and_clocks_between_the_nodes(
    tmp_path: Path, offset: int, python: str, variables: dict[str, str], expected: dict[str, str]
) -> None:
    host = two_nodes(tmp_path, f"dsdoctor-node {time.time() + offset:.3f} {python}\n")
    report = judge(host, hostfile="hosts", command=("deepspeed", "train.py"))
    assert loud(report) == expected


def test_guide_e3_a_node_that_lets_nobody_in(tmp_path: Path) -> None:
    report = judge(two_nodes(tmp_path, "Permission denied (publickey)."), hostfile="hosts")
    assert loud(report) == {"hostfile-or-ssh-problem": "fail"}


def test_guide_e6_a_venv_that_is_not_active(tmp_path: Path) -> None:
    live = hosts.records(
        ("torch_import", {"ok": True, "seconds": 2.0, "version": "2.11.0+cpu", "file": "x"}),
        ("torch_build", {"arch_list": [], "arch_source": None}),
        ("cuda", {"ok": False, "error": "Torch not compiled with CUDA enabled", "code": None}),
        ("deepspeed_import", {"ok": True, "seconds": 1.0}),
        ("accelerator", "cpu"),
    )
    software = hosts.Software(torch="2.11.0+cpu", cuda="")
    host = hosts.WholeHost(scenarios.a100_x8(), tmp_path, software, live=live)
    found = loud(judge(host))
    assert found["cpu-only-torch"] == "fail"
