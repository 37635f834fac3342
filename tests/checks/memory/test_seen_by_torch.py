"""The memory of devices that NVML does not describe: AMD's GPUs, NPUs, a Jetson's, MIG devices."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    CudaDevice,
    DeepSpeedInstall,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpu,
    Gpus,
    ImportOutcome,
    MemoryDemand,
    RunNeeds,
    TorchBuild,
    TorchLive,
)
from dsdoctor.compose import with_job
from dsdoctor.host import HostError
from dsdoctor.job.request import shape
from dsdoctor.model.facts.gpu import MigDevice
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.demand import memory_demand
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.memory import plan_exceeds_gpu_memory
from tests.checks.machines import ABSENT, NO_ENV, gpu

GIB = 1 << 30
IMPORTED = ImportOutcome(ok=True)
ROCM = TorchBuild(version="2.5.1+rocm6.2", hip="6.2")
CONFIG = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 1}}
FIRST, SECOND = (
    "MIG-11111111-aaaa-bbbb-cccc-000000000001",
    "MIG-22222222-aaaa-bbbb-cccc-000000000002",
)


def seen(*sizes: int) -> TorchLive:
    devices = [
        CudaDevice(index=i, name="a GPU", major=9, minor=4, memory_bytes=gib * GIB)
        for i, gib in enumerate(sizes)
    ]
    return TorchLive(imported=IMPORTED, devices=tuple(devices))


def chose(accelerator: str) -> DeepSpeedLive:
    return DeepSpeedLive(imported=IMPORTED, accelerator=accelerator)


def wanted(model: str = "7B", **more: Any) -> RunNeeds:
    return RunNeeds(model=shape(model), config=CONFIG, finetune="full", **more)


def demand(
    run: RunNeeds, live: Any, chosen: Any = ABSENT, torch: Any = ABSENT, env: Any = NO_ENV,
    command: Any = ABSENT, found: Any = ABSENT,
) -> MemoryDemand:  # fmt: skip
    known = DeepSpeedInstall(version="0.16.2")
    fact = memory_demand.function(
        run, found, env, command, known, *[ABSENT] * 3, live, chosen, torch, FakeHost()
    )
    assert isinstance(fact, MemoryDemand)
    return fact


def judged(run: RunNeeds, live: Any, found: Any = ABSENT, **more: Any) -> Finding:
    (finding,) = judge(
        plan_exceeds_gpu_memory.gpu_memory_is_enough,
        memory_demand=demand(run, live, found=found, **more),
        gpus=found,
        run_needs=run,
        environment=more.get("env", NO_ENV),
        torch_live=live,
    ).findings
    assert isinstance(finding, Finding)
    return finding


def test_a_machine_with_amd_gpus_is_no_machine_without() -> None:
    fact = demand(wanted(), seen(192, 192), chose("cuda"), ROCM)
    assert (fact.on_gpu, fact.ranks_here) == (True, 2)
    assert "on 2 GPUs" in fact.what


@pytest.mark.parametrize(
    ("live", "chosen", "env", "command"),
    [
        pytest.param(seen(192), chose("cpu"), NO_ENV, ABSENT, id="DeepSpeed chose the CPU"),
        pytest.param(
            seen(192), ABSENT, Environment(variables={"DS_ACCELERATOR": "cpu"}), ABSENT,
            id="the variable sets it",
        ),
        pytest.param(
            seen(192), chose("cuda"), NO_ENV,
            parse_command(("env", "CUDA_VISIBLE_DEVICES=", "python", "t.py")),
            id="the command hides them",
        ),
        pytest.param(seen(), chose("cpu"), NO_ENV, ABSENT, id="torch sees none"),
        pytest.param(seen(), ABSENT, NO_ENV, ABSENT, id="nothing is known of an accelerator"),
    ],
)  # fmt: skip
def test_a_run_on_the_cpu(live: Any, chosen: Any, env: Any, command: Any) -> None:
    fact = demand(wanted(), live, chosen, ABSENT, env, command)
    assert not fact.on_gpu
    assert "on the CPU" in fact.what


@pytest.mark.parametrize(
    ("chosen", "torch", "env"),
    [
        pytest.param(chose("npu"), ABSENT, NO_ENV, id="DeepSpeed chose an NPU"),
        pytest.param(ABSENT, ABSENT, Environment(variables={"DS_ACCELERATOR": "hpu"}), id="an HPU"),
        pytest.param(ABSENT, ROCM, NO_ENV, id="torch for ROCm, which was not imported"),
    ],
)
def test_what_is_not_known_is_not_planned_on_the_cpu(chosen: Any, torch: Any, env: Any) -> None:
    with pytest.raises(HostError, match="memory of the accelerator"):
        demand(wanted(), ABSENT, chosen, torch, env)


@pytest.mark.parametrize(
    ("model", "sizes", "status"),
    [
        pytest.param("7B", (192,), "ok", id="131 of 192 GiB"),
        pytest.param("30B", (192,), "fail", id="559 of 192 GiB"),
        pytest.param("7B", (24,), "fail", id="131 of 24 GiB"),
        pytest.param("7B", (192, 24), "fail", id="the smaller one decides"),
    ],
)
def test_amd_gpus_are_judged(model: str, sizes: tuple[int, ...], status: str) -> None:
    assert judged(wanted(model), seen(*sizes)).status.value == status


def test_devices_that_differ_are_not_numbered() -> None:
    found = judged(wanted(gpus=("0",)), seen(192, 24))
    assert found.status.value == "skip"


def test_a_jetson_whose_nvml_reports_no_memory() -> None:
    thor = Gpus(gpus=(Gpu(index=0, name="NVIDIA Thor", cc_major=11, cc_minor=0),), count=1)
    assert judged(wanted("30B"), seen(122), thor).status.value == "fail"
    assert judged(wanted("1.3B"), seen(122), thor).status.value == "ok"
    assert judged(wanted("1.3B"), ABSENT, thor).status.value == "skip"


def split(*, index: int = 0) -> Gpu:
    held = tuple(
        MigDevice(index=i, uuid=uuid, memory_total_bytes=gib * GIB)
        for i, (uuid, gib) in enumerate(((FIRST, 40), (SECOND, 10)))
    )
    return gpu("A100", index, mig_mode=True, mig_devices=held)


@pytest.mark.parametrize(
    ("variables", "selected", "size", "status"),
    [
        pytest.param({}, (), 40, "ok", id="no selection: the largest"),
        pytest.param({"CUDA_VISIBLE_DEVICES": FIRST}, (), 40, "ok", id="a large one"),
        pytest.param({"CUDA_VISIBLE_DEVICES": SECOND}, (), 10, "fail", id="a small one"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0"}, (), 40, "ok", id="the number of its GPU"),
        pytest.param({}, (SECOND,), 10, "fail", id="a small one by `--gpus`"),
    ],
)
def test_a_process_sees_one_mig_device(
    variables: dict[str, str], selected: tuple[str, ...], size: int, status: str
) -> None:
    env, found = Environment(variables=variables), Gpus(gpus=(split(),), count=1)
    finding = judged(wanted("1.3B", gpus=selected), ABSENT, found, env=env)
    assert (finding.status.value, finding.evidence["gpu_gib"]) == (status, size)
    three = judged(wanted("3B", gpus=selected), ABSENT, found, env=env)
    assert three.status.value == "fail", "56 GiB fit on the card and on no MIG device"


def test_a_gpu_beside_one_that_is_split() -> None:
    found = Gpus(gpus=(gpu("A100", 0), split(index=1)), count=2)
    assert judged(wanted("1.3B"), ABSENT, found).evidence["gpu_gib"] == 80


def test_another_job_on_a_saved_machine_is_planned_for_its_devices() -> None:
    saved = Snapshot()
    for fact in (seen(192), chose("cuda"), ROCM, NO_ENV, Gpus()):
        saved.put(fact)
    made = with_job(saved, wanted(), FakeHost(), packs.load(builtin_only=True))
    planned = made.get(MemoryDemand)
    assert isinstance(planned, MemoryDemand)
    assert planned.on_gpu
