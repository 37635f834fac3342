"""Rows of the field guides that `check` takes over from the reader, each on a whole machine.

The configs and command lines are ours, of the same content as those that the guides print.

Over 400 lines because each row of the guides is one test.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import (
    Compiler,
    Compilers,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Fact,
    Gpus,
    MasterPort,
    Missing,
    NvidiaKernel,
    NvidiaSmi,
    Nvml,
    OsInfo,
    Patient,
    Place,
    Resources,
    Storage,
    TorchBuild,
    TorchLive,
    Why,
)
from dsdoctor.model.facts.gpu import GpuProcess
from dsdoctor.model.snapshot import differences, of
from dsdoctor.profiles import load
from tests.checks import machines as m
from tests.golden.test_golden import workstation
from tests.guides.hosts import findings, host, loud, told
from tests.support.command import clean_environment, dsdoctor

GIB = 1 << 30
FUSED = '{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "bf16": {"enabled": true}}'


_GCC = {"kind": "gcc", "version": "9.4.0"}
GCC9 = Compilers(
    cxx=Compiler(command="c++", path="/usr/bin/c++", **_GCC),
    cc=Compiler(command="cc", path="/usr/bin/cc", **_GCC),
    ninja="/opt/train/bin/ninja",
)


def guide_a(*toolkits: Any, driver: str = "550.54.15", **env: str) -> list[Fact]:
    """The machine of guide A: torch 2.5.1 for CUDA 12.4, and some toolkits."""
    return host(
        workstation("4090", driver=driver, version="2.5.1", cuda="12.4"),
        m.toolkits(*toolkits),
        m.env(PATH="/opt/train/bin:/usr/bin", **env),
        GCC9,
        config=FUSED,
    )


OLD, RIGHT = m.toolkit("11.5"), m.toolkit("12.4")


def test_guide_a1_three_versions_are_compared() -> None:
    assert loud(guide_a(OLD)) == {"cuda-toolkit-mismatch": "warn"}
    assert set(loud(guide_a(OLD, RIGHT))) == {"cuda-toolkit-mismatch", "several-toolkits"}
    found = told(guide_a(OLD, RIGHT), "cuda-toolkit-mismatch")
    assert "11.5" in found.message
    assert "12.4" in found.message
    assert "/usr/local/cuda-12.4" in found.hint, "a toolkit that is on disk already is named"
    assert loud(guide_a()) == {"cuda-toolkit-missing": "fail"}


def test_guide_a1_the_driver_is_compared_too() -> None:
    broken = workstation("4090", driver="470.57.02", code=35, version="2.5.1", cuda="12.4")
    found = loud(host(broken, m.toolkits(RIGHT), config=FUSED))
    assert found == {"driver-too-old": "fail"}


def test_guide_a2_a_toolkit_of_the_right_version_ends_the_complaint() -> None:
    assert loud(guide_a(RIGHT)) == {}
    in_conda = m.toolkit("12.4", root="/opt/train", source="conda", nvcc="/opt/train/bin/nvcc")
    assert loud(guide_a(in_conda, OLD, CUDA_HOME="/opt/train")) == {}


def test_guide_a3_each_exported_variable_is_judged() -> None:
    exported = {"CUDA_VISIBLE_DEVICES": "0", "DS_BUILD_OPS": "0", "PYTHONPATH": "/src"}
    assert loud(guide_a(RIGHT, **exported)) == {}
    hiding = loud(guide_a(OLD, DS_SKIP_CUDA_CHECK="1", **exported))
    assert "skip-cuda-check-set" in hiding
    absent = loud(guide_a(RIGHT, CUDA_VISIBLE_DEVICES="7"))
    assert absent.get("visible-devices-invalid") == "fail"


A4 = """{
  "bf16": {"enabled": "auto"},
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "offload_param": {"device": "cpu", "pin_memory": true},
    "reduce_bucket_size": "auto"
  }
}"""


def test_guide_a4_ignored_settings_and_auto() -> None:
    plain = host(None, m.env(OMP_NUM_THREADS="8"), config=A4, command="deepspeed train.py")
    found = loud(plain)
    assert {"ds-config-ignored-setting", "ds-config-auto-values"} <= found.keys()
    ignored = told(plain, "ds-config-ignored-setting")
    assert "offload_param" in ignored.message
    assert "line 9" in ignored.message
    mended = json.dumps(
        {
            "bf16": {"enabled": True},
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
        }
    )
    good = host(None, m.env(OMP_NUM_THREADS="8"), config=mended, command="deepspeed train.py")
    assert not {"ds-config-ignored-setting", "ds-config-auto-values"} & loud(good).keys()


def guide_b(cards: tuple[str, ...] = ("V100",) * 4, **resources: Any) -> list[Fact]:
    """Four V100 of 32 GB with a torch that still serves them."""
    machine: dict[str, Any] = {
        "cpus_logical": 40,
        "cpus_usable": 40,
        "memory_total_bytes": 256 * GIB,
        "memory_available_bytes": 240 * GIB,
        "shm_total_bytes": 128 * GIB,
        "shm_free_bytes": 128 * GIB,
        "limit_nofile": 1048576,
    }
    live = m.live(
        devices=tuple(m.device(card, index) for index, card in enumerate(cards)),
        arch_list=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"),
    )
    return host(
        workstation(cards[0], driver="550.54.15", version="2.5.1", cuda="12.4"),
        m.gpus(*cards),
        live,
        Resources(**(machine | resources)),
        Storage(places=(Place(purpose="disk of the profile", path=".", free_bytes=80 * GIB),)),
    )


def test_guide_b1_requirements_as_a_profile() -> None:
    floors = load("gpt2-xl-4gpu")
    assert (floors.gpus, floors.gpu_memory_gib, floors.cpu_cores) == (2, 16, 16)
    assert (floors.ram_gib, floors.disk_gib) == (64, 50)
    assert (floors.python, floors.torch, floors.deepspeed) == ("3.8", "1.12", "0.7")
    assert loud(host(guide_b(), floors=floors)) == {}
    small = guide_b(("T4",), cpus_usable=8, memory_total_bytes=31 * GIB)
    short = [
        finding.message.split(":")[0]
        for finding in findings(host(small, floors=floors))
        if finding.condition == "requirements-unmet"
    ]
    assert short == ["GPUs", "CPUs", "host memory"]


@pytest.mark.parametrize(
    ("version", "index"), [("2.9.1", "cu128"), ("2.7.1", "cu126"), ("2.12.0", "cu126")]
)
def test_guide_b2_the_wheel_that_serves_driver_and_gpu(version: str, index: str) -> None:
    """A torch for CUDA 13 has no code for compute capability 7.0; which index has, changed twice."""
    arch = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    facts = host(
        guide_b(),
        m.live(devices=tuple(m.device("V100", index) for index in range(4)), arch_list=arch),
        m.torch(version, "13.0"),
        m.nvml("580.95.05"),
        m.kernel("580.95.05"),
        m.libcuda(),
        m.toolkits(m.toolkit("13.0")),
    )
    found = [f for f in findings(facts) if f.condition == "gpu-arch-unsupported"]
    assert [f.status.value for f in found] == ["fail"] * 4
    assert "7.0" in found[0].message
    assert f"/whl/{index}`" in found[0].hint
    assert "gpu-arch-unsupported" not in loud(guide_b())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deepspeed --num_gpus=4 train.py", {}),
        ("deepspeed --include localhost:2,3 train.py", {}),
        (
            "CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus=2 train.py",
            {"launcher-visible-devices-conflict": "warn"},
        ),
    ],
)
def test_guide_b3_the_launcher_against_the_variable(line: str, expected: dict[str, str]) -> None:
    assert loud(host(guide_b(), command=line)) == expected


B4 = """{
  // one sequence at a time
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 32,
  "gradient_clipping": 1.0,
  "zero_optimization": {
    "stage": 2,              // optimizer states and gradients
    "overlap_comm": true,
    "contiguous_gradients": true
  },
  "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}
}"""


def test_guide_b4_a_config_with_comments_and_line_numbers() -> None:
    assert loud(host(guide_b(), config=B4, command="deepspeed train.py")) == {}
    typo = B4.replace('"gradient_clipping"', '"gradient_cliping"')
    found = told(host(guide_b(), config=typo), "ds-config-invalid-key")
    assert "line 5" in found.message
    assert "gradient_clipping" in found.message + found.hint
    broken = told(host(guide_b(), config=B4[:-3]), "ds-config-unreadable")
    assert "line" in broken.message


def test_guide_b7_variables_of_nccl() -> None:
    switches = m.env(NCCL_DEBUG="INFO", NCCL_TIMEOUT="1800", NCCL_P2P_DISABLE="1")
    found = loud(host(guide_b(), switches))
    assert "nccl-unknown-variable" in found
    assert "nccl-debug-switch-left" in found
    assert "`NCCL_TIMEOUT`" in told(host(guide_b(), switches), "nccl-unknown-variable").message
    assert loud(host(guide_b(), m.env(NCCL_DEBUG="WARN"))) == {}


def written(file: Path, content: dict[str, Any]) -> None:
    """An archive as torch writes it, as far as its directory and its pickle go."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{file.stem}/data.pkl", pickle.dumps(content, protocol=2))
        archive.writestr(f"{file.stem}/data/0", b"\0" * 64)


def test_guide_b10_every_shard_of_a_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt" / "global_step500"
    folder.mkdir(parents=True)
    (tmp_path / "ckpt" / "latest").write_text("global_step500")
    written(folder / "mp_rank_00_model_states.pt", {"dp_world_size": 4, "mp_world_size": 1})
    for rank in range(4):
        content = {"optimizer_state_dict": {"zero_stage": 2, "partition_count": [4]}}
        written(folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", content)
    env = clean_environment(tmp_path)
    argv = ("check", "--quick", "--select", "storage", "--format", "json", "--checkpoint", "ckpt")

    def run(*more: str) -> dict[str, str]:
        return dsdoctor(*argv, *more, env=env, cwd=tmp_path).statuses()

    assert run("--expect-gpus", "4") == {}
    assert run("--expect-gpus", "2") == {"checkpoint-mismatch": "fail"}
    last = folder / "zero_pp_rank_3_mp_rank_00_optim_states.pt"
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    assert run() == {"weights-file-corrupt": "fail"}
    last.unlink()
    assert run() == {"checkpoint-incomplete": "fail"}
    (tmp_path / "ckpt" / "latest").write_text("global_step501")
    assert run() == {"checkpoint-incomplete": "fail"}


def test_guide_c2_a_launcher_is_needed() -> None:
    plain = host(guide_b(), config=B4, command="python train.py", expect_gpus=4)
    assert loud(plain).get("launched-without-deepspeed") == "fail"
    for line in ("deepspeed train.py", "accelerate launch --num_processes 4 train.py"):
        assert "launched-without-deepspeed" not in loud(host(guide_b(), config=B4, command=line))


def test_guide_c3_a_second_job_on_the_machine() -> None:
    """GPUs 0 to 3 belong to another job; ours takes 4 to 7, on a port of its own."""
    other = (GpuProcess(pid=4242, kind="compute", used_bytes=70 * GIB),)
    cards = Gpus(
        gpus=tuple(
            m.gpu("A100", index, memory_used_bytes=70 * GIB, processes=other)
            if index < 4
            else m.gpu("A100", index, memory_used_bytes=0, processes=())
            for index in range(8)
        ),
        count=8,
    )
    devices = tuple(m.device("A100", index) for index in range(8))
    base = [cards, m.live(devices=devices, arch_list=("sm_80", "sm_90"))]
    line = "accelerate launch --num_processes 4 --gpu_ids 4,5,6,7 train.py"
    ours: dict[str, Any] = {"command": line, "gpus": ("4", "5", "6", "7")}
    free = MasterPort(port=29500, taken=False)
    assert loud(host(workstation("A100"), *base, free, **ours)) == {}
    taken = MasterPort(port=29500, taken=True, holder="python (pid 4242)")
    assert loud(host(workstation("A100"), *base, taken, **ours)) == {"port-in-use": "fail"}
    busy = loud(host(workstation("A100"), *base, free, gpus=("0", "1")))
    assert busy.keys() == {"gpu-busy"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, None),
        ({"CUDA_LAUNCH_BLOCKING": "0"}, None),
        ({"CUDA_LAUNCH_BLOCKING": "1"}, "cuda-launch-blocking-set"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True"}, "alloc-conf-unknown"),
    ],
)
def test_guide_c4_the_environment_by_the_torch_in_use(
    variables: dict[str, str], expected: str | None
) -> None:
    found = loud(host(guide_b(), m.env(**variables)))
    assert set(found) == ({expected} if expected else set())


def test_guide_d2_windows() -> None:
    windows = OsInfo(system="Windows", release="10", machine="AMD64", hostname="laptop")
    assert loud(host(workstation(), windows, gpus=("0", "1"))) == {"unsupported-on-windows": "fail"}
    assert loud(host(workstation(), windows)) == {}, "no run is stated"
    alone = host(workstation(), windows, gpus=("0",))
    assert loud(alone) == {}, "one GPU works there"
    nvme = '{"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}'
    assert "unsupported-on-windows" in loud(host(workstation(), windows, gpus=("0",), config=nvme))
    assert loud(host(workstation(), gpus=("0", "1"))) == {}


def test_guide_e1_what_changes_on_the_way_from_a_mac() -> None:
    mac = host(
        [
            OsInfo(system="Darwin", release="23.4", machine="arm64", hostname="mac"),
            m.torch("2.9.1", None),
            Patient(executable="/p", chosen_by="VIRTUAL_ENV", version="3.11.7", kind="venv"),
            NvidiaKernel(),
        ]
    )
    remote = host(guide_b())
    changed = {name.split(".")[0] for name, _, _ in differences(of(mac), of(remote))}
    assert {"os_info", "torch_build", "gpus", "nvml"} <= changed
    assert loud(remote) == {}
    assert "fail" not in loud(mac).values(), "a Mac is no broken GPU server"


@pytest.mark.parametrize(
    ("cards", "precision", "expected"),
    [
        (("A100", "A100"), "bf16", {}),
        (("V100", "V100"), "fp16", {}),
        (("V100", "V100"), "bf16", {"bf16-unsupported"}),
        (("T4", "T4"), "bf16", {"bf16-unsupported"}),
        (("P100", "P100"), "fp16", {"fp16-unsupported"}),
        (("A100", "V100"), "bf16", {"bf16-unsupported", "mixed-gpus"}),
    ],
)
def test_guide_e2_precision_by_the_hardware(
    cards: tuple[str, ...], precision: str, expected: set[str]
) -> None:
    config = json.dumps({"train_micro_batch_size_per_gpu": 1, precision: {"enabled": True}})
    found = loud(host(guide_b(cards), config=config))
    assert {name for name in found if name in EVERY_PRECISION} == set(expected)


EVERY_PRECISION = {"bf16-unsupported", "fp16-unsupported", "mixed-gpus"}


@pytest.mark.parametrize(
    "line",
    [
        "torchrun --nproc_per_node 4 train.py",
        "deepspeed --num_gpus 4 train.py",
        "accelerate launch --num_processes 4 train.py",
    ],
)
def test_guide_e3_launchers_by_flag(line: str) -> None:
    assert loud(host(guide_b(), command=line)) == {}
    more = line.replace(" 4", " 8")
    assert loud(host(guide_b(), command=more)).get("invalid-device-ordinal") == "fail"


def test_guide_e3_two_nodes_meet_on_a_port() -> None:
    line = (
        "torchrun --nnodes=2 --nproc_per_node 4 --node_rank 0 --master_addr 10.0.0.1 "
        "--master_port 29500 train.py"
    )
    taken = MasterPort(port=29500, taken=True, holder="python (pid 7)")
    assert "port-in-use" in loud(host(guide_b(), taken, command=line))
    assert "port-in-use" not in loud(host(guide_b(), MasterPort(port=29500), command=line))


def test_guide_e5_the_checklist_of_a_migration(tmp_path: Path) -> None:
    def places(data: Place, out: Place) -> list[Fact]:
        run: dict[str, Any] = {"paths": ("/data",), "writable": ("/out",), "gpus": ("0", "1")}
        return host(guide_b(), Storage(places=(data, out)), **run)

    data = Place(purpose="--path", path="/data", kind="dir", free_bytes=GIB)
    out = Place(purpose="--writable", path="/out", kind="dir", free_bytes=900 * GIB, tried=True)
    assert loud(places(data, out)) == {}
    gone = Place(purpose="--path", path="/data", parent="/")
    locked = Place(purpose="--writable", path="/out", kind="dir", trial_error="Permission denied")
    assert loud(places(gone, locked)) == {"path-missing": "fail", "path-not-writable": "fail"}
    argv = ("check", "--quick", "--path", "data", "--writable", "out", "--format", "json")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("x")
    done = dsdoctor(*argv, env=clean_environment(tmp_path), cwd=tmp_path)
    assert (done.of("path-missing"), done.of("path-not-writable")) == ("ok", "ok")


def test_guide_e6_no_cuda_no_torch_no_environment() -> None:
    cpu = host(workstation(), m.torch("2.9.1+cpu", None), m.live(works=False), m.toolkits(RIGHT))
    assert loud(cpu).get("cpu-only-torch") in ("warn", "fail")
    gone = Missing(why=Why.ABSENT, detail="torch is not installed")
    bare = [
        fact
        for fact in workstation()
        if not isinstance(fact, TorchBuild | TorchLive | DeepSpeedInstall)
    ]
    absent = loud([*bare, TorchBuild(), DeepSpeedInstall()], {TorchLive: gone})
    assert absent.get("torch-missing") == "fail"
    assert absent.get("deepspeed-missing") == "fail"
    unseen = host(
        workstation(),
        NvidiaKernel(),
        Gpus(),
        m.live(works=False),
        expect_gpus=1,
        without=(Nvml, NvidiaSmi, CudaToolkits),
    )
    assert loud(unseen).get("no-gpu-visible") == "fail"
    hidden = host(workstation(), m.env(CUDA_VISIBLE_DEVICES=""), m.live(works=False))
    assert "no-gpu-visible" in loud(hidden)
    assert isinstance(m.NO_ENV, Environment)
