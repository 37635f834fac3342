"""A paste against the whole snapshot of the same machine: how much of what is found is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import (
    Compiler,
    Compilers,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Fact,
    Gpus,
    ImportOutcome,
    LibCuda,
    NvidiaKernel,
    NvmlError,
    Package,
    Packages,
    Patient,
    Resources,
    TorchLive,
)
from dsdoctor.judge import judge
from dsdoctor.model.facts.gpu import GpuHealth
from dsdoctor.model.facts.python import DeepSpeedLive
from dsdoctor.model.finding import Status
from dsdoctor.model.snapshot import Snapshot, of
from dsdoctor.paste.environment import environment_of
from tests.checks import machines
from tests.golden.test_golden import workstation
from tests.paste import rendered

REGISTRY = packs.load(builtin_only=True)
#: Of what a snapshot finds and such text can state, the share that a paste must name.
FLOOR = 0.8
MIB = 1 << 20
LIB_RM_VERSION_MISMATCH = 18


def replaced(facts: list[Fact], *new: Fact) -> list[Fact]:
    kinds = {type(fact) for fact in new}
    return [*(fact for fact in facts if type(fact) not in kinds), *new]


def with_gpu(card: str = "A100", **fields: Any) -> list[Fact]:
    """A machine of two GPUs of which the second has other values."""
    facts = workstation(card)
    first, second = machines.gpus(card, card).gpus
    return replaced(facts, Gpus(gpus=(first, msgspec.structs.replace(second, **fields)), count=2))


def gcc(version: str) -> Compilers:
    one = Compiler(command="cc", path="/usr/bin/cc", kind="gcc", version=version)
    return Compilers(cxx=one, cc=one, ninja="/usr/bin/ninja")


def packages(**versions: str) -> Packages:
    found = {name: Package(name=name, version=version) for name, version in versions.items()}
    return Packages(packages=found)


def variables(**values: str) -> list[Fact]:
    return replaced(workstation(), Environment(variables=values))


def broken_nvml(code: int, name: str) -> list[Fact]:
    error = NvmlError(code=code, name=name, message=name, call="nvmlInit")
    nvml = msgspec.structs.replace(machines.nvml(), error=error, driver_version=None)
    live = machines.live(803 if code == LIB_RM_VERSION_MISMATCH else 100, works=False)
    facts = replaced(workstation(), nvml, live)
    if code == LIB_RM_VERSION_MISMATCH:
        facts = replaced(facts, LibCuda(path="/x/libcuda.so.1", version="570.1"))
    return [fact for fact in facts if not isinstance(fact, Gpus)]


LOST = NvmlError(code=15, name="GPU_IS_LOST", message="GPU is lost", call="nvmlDeviceGetName")
NO_GPU = ImportOutcome(ok=True)
SHM = msgspec.structs.replace(
    next(fact for fact in workstation() if isinstance(fact, Resources)),
    shm_total_bytes=64 * MIB,
    shm_free_bytes=64 * MIB,
)
#: Condition that the machine has to the machine.
MACHINES: dict[str, list[Fact]] = {
    "driver-too-old": workstation(
        "H100", driver="535.104.05", code=35, version="2.11.0", cuda="13.0"
    ),
    "gpu-arch-unsupported": replaced(
        workstation("5090", version="2.5.1", cuda="12.4"),
        machines.live(devices=(machines.device("5090"),), arch_list=("sm_80", "sm_90")),
    ),
    "cpu-only-torch": replaced(
        workstation(version="2.9.1+cpu", cuda=None), TorchLive(imported=NO_GPU), CudaToolkits()
    ),
    "torch-cuda-init-failed": workstation(code=2),
    "cuda-toolkit-mismatch": replaced(workstation(), machines.toolkits(machines.toolkit("11.8"))),
    "cuda-toolkit-missing": replaced(workstation(), CudaToolkits()),
    "nvcc-arch-unsupported": replaced(
        workstation("5090", cuda="12.8"), machines.toolkits(machines.toolkit("12.4"))
    ),
    "jit-build-gcc-too-old": replaced(workstation(), gcc("8.5.0")),
    "jit-build-gcc-too-new": replaced(workstation(), gcc("15.1.0")),
    "jit-build-ninja-missing": replaced(
        workstation(), msgspec.structs.replace(gcc("12.2.0"), ninja=None)
    ),
    "shm-too-small": replaced(workstation(), SHM),
    "ecc-uncorrectable": with_gpu(
        ecc_mode=True, ecc_mode_pending=True, health=GpuHealth(ecc_volatile_uncorrected=3)
    ),
    "row-remap-pending": with_gpu(health=GpuHealth(remapped_rows_pending=True)),
    "row-remap-failed": with_gpu(health=GpuHealth(remapped_rows_failure=True)),
    "page-retirement-pending": with_gpu("V100", health=GpuHealth(retired_pages_pending=True)),
    "mig-mode-pending": with_gpu(mig_mode=False, mig_mode_pending=True),
    "ecc-mode-pending": with_gpu(ecc_mode=True, ecc_mode_pending=False),
    "gpu-busy-exclusive-mode": with_gpu(compute_mode=2),
    "gpu-lost": with_gpu(error=LOST, name=None),
    "gsp-version-mismatch": with_gpu(gsp_enabled=True, gsp_version="570.1.2"),
    "driver-library-mismatch": broken_nvml(18, "LIB_RM_VERSION_MISMATCH"),
    "nvml-unusable": broken_nvml(999, "UNKNOWN"),
    "no-gpu-visible": [
        *(
            fact
            for fact in replaced(workstation(), NvidiaKernel(), CudaToolkits())
            if type(fact).key() not in ("nvml", "gpus", "nvidia_smi", "lib_cuda", "torch_live")
        ),
        machines.live(100, works=False),
    ],
    "deepspeed-torch-incompatible": replaced(
        workstation(version="2.4.0", cuda="12.1"),
        DeepSpeedInstall(version="0.12.6"),
        packages(numpy="1.26.4"),
        DeepSpeedLive(imported=ImportOutcome(ok=False, error_type="ImportError", message="x")),
    ),
    "python-too-old": replaced(
        workstation(),
        Patient(executable="/p", chosen_by="x", version="3.7.9", kind="venv"),
        packages(deepspeed="0.19.8"),
    ),
    "numpy-abi-2": replaced(workstation(version="2.1.2", cuda="12.1"), packages(numpy="2.1.0")),
    "mixed-gpus": replaced(workstation(), machines.gpus("V100", "A100")),
    "prebuilt-op-mismatch": replaced(
        workstation(),
        DeepSpeedInstall(
            version="0.19.8",
            installed_ops={"fused_adam": True},
            built_for_torch="2.1",
            built_for_cuda="12.1",
        ),
    ),
    "visible-devices-invalid": variables(CUDA_VISIBLE_DEVICES="0,7"),
    "skip-cuda-check-set": replaced(
        variables(DS_SKIP_CUDA_CHECK="1"), machines.toolkits(machines.toolkit("11.8"))
    ),
    "cuda-launch-blocking-set": variables(CUDA_LAUNCH_BLOCKING="1"),
    "nccl-debug-switch-left": replaced(
        variables(NCCL_P2P_DISABLE="1"), machines.gpus("A100", "A100")
    ),
    "nccl-unknown-variable": variables(NCCL_TIMEOUT="1800"),
    "torch-nccl-variable-renamed": variables(NCCL_ASYNC_ERROR_HANDLING="1"),
    "alloc-conf-unknown": variables(PYTORCH_CUDA_ALLOC_CONF="expandable_segment:True"),
}


def troubles(snapshot: Snapshot | None) -> set[str]:
    assert snapshot is not None
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    return {f.condition for f in report.findings if f.status in (Status.FAIL, Status.WARN)}


def test_a_paste_of_a_sound_machine_finds_nothing() -> None:
    assert troubles(environment_of(rendered.everything(of(workstation())))) == set()


def test_most_of_what_the_snapshot_finds_is_named() -> None:
    named: dict[str, bool] = {}
    for condition, facts in MACHINES.items():
        snapshot = of(facts)
        if condition in troubles(snapshot):
            named[condition] = condition in troubles(environment_of(rendered.everything(snapshot)))
    assert named.keys() == MACHINES.keys()
    share = sum(named.values()) / len(named)
    assert share >= FLOOR, sorted(name for name, hit in named.items() if not hit)


@pytest.mark.parametrize("condition", sorted(MACHINES))
def test_a_paste_finds_nothing_that_the_snapshot_does_not(condition: str) -> None:
    snapshot = of(MACHINES[condition])
    extra = troubles(environment_of(rendered.everything(snapshot))) - troubles(snapshot)
    assert extra == set()
