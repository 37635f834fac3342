"""`--deep`: jit_build_fails, gpu_kernel_fails, p2p_copy_corrupt, all_reduce_wrong and their probes.

Ranks over gloo and the compiler are real; GPUs are a torch made of scripts. What needs a GPU itself
is in tests/gpu.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import process
from dsdoctor.api import (
    DeepTrial,
    ExtensionTrial,
    Finding,
    ImportOutcome,
    RunNeeds,
    TorchLive,
    TriedCollective,
)
from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.deep import deep_trial, extension_trial, parse_collective
from dsdoctor.process import Result
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import gpu_kernel_fails, gpu_memory_unallocatable
from dsdoctor_checks.nccl import all_reduce_wrong
from dsdoctor_checks.ops import jit_build_fails
from dsdoctor_checks.topology import p2p_copy_corrupt
from tests.checks.machines import ABSENT, NO_ENV, OFFLOAD, device, words
from tests.support.command import clean_environment

HAS_TORCH = importlib.util.find_spec("torch") is not None
CHOICE = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")
DEEP = RunNeeds(deep=True)
CPU = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=False)

#: As much of torch as the children use, on as many GPUs as FAKE_GPUS says, with the faults of FAKE.
FAKE_TORCH = """
import os, time
FAULT = os.environ.get("FAKE", "")
VISIBLE = [x for x in os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",") if x]
int64 = int32 = uint8 = float32 = None

class Tensor:
    def __init__(self, data, device="cpu"):
        self.data, self.device = data, device
    def __mul__(self, k): return Tensor([x * k for x in self.data], self.device)
    def __add__(self, k): return Tensor([x + k for x in self.data], self.device)
    def __matmul__(self, other): return Tensor([self.data[0]] * len(self.data), self.device)
    def sum(self): return Tensor([sum(self.data)])
    def item(self): return self.data[0] if len(self.data) else 0
    def __getitem__(self, i): return Tensor([self.data[i]])
    def tolist(self): return self.data
    def cpu(self): return Tensor(list(self.data))
    def to(self, device):
        if self.device != "cpu" and FAULT == "copy-garbage" and device == "cuda:0":
            return Tensor([0] * len(self.data), device)
        if self.device != "cpu" and FAULT == "copy-hangs": time.sleep(1000)
        return Tensor(list(self.data), device)

class Block(Tensor):
    def __init__(self, size): self.size = size
    def fill_(self, value): self.value = 0 if FAULT == "memory-forgets" else value
    def __getitem__(self, i): return Tensor([self.value])

def arange(n, dtype=None, device="cpu"): return Tensor(list(range(n)), device)
def ones(a, b, device="cpu"):
    if FAULT == "kernel-raises": raise RuntimeError("CUDA error: no kernel image is available")
    if FAULT == "kernel-hangs" and VISIBLE[0] == "1": time.sleep(1000)
    if FAULT == "kernel-dies": os.abort()
    return Tensor([255.0 if FAULT == "kernel-wrong" else 256.0] * (a * b), device)
def empty(size, dtype=None, device=None):
    if FAULT == "oom": raise RuntimeError("CUDA out of memory. Tried to allocate 9 GiB")
    return Block(size)
def equal(a, b): return a.data == b.data

class cuda:
    def device_count(): return len(VISIBLE)
    def synchronize(device): pass
    def set_device(device): pass
    def mem_get_info(device): return 10 << 30, 16 << 30
    def can_device_access_peer(a, b): return FAULT != "no-peer"
"""
FAKE_DIST = """
import os, time
from torch import FAULT
def init_process_group(backend, init_method, rank, world_size, timeout):
    global RANK, SIZE
    RANK, SIZE = rank, world_size
    if FAULT == "nccl-raises" and rank == 1: raise RuntimeError("NCCL error: unhandled system error")
    if FAULT == "nccl-hangs" and rank == 1: time.sleep(1000)
    if FAULT == "nccl-dies" and rank == 0: os.abort()
def all_reduce(t):
    factor = SIZE * (SIZE + 1) // 2
    t.data = [x // (RANK + 1) * factor for x in t.data]
    if FAULT == "nccl-wrong" and RANK == 0: t.data[1] += 1
"""


def scripted(tmp_path: Path, fault: str = "") -> LocalHost:
    package = tmp_path / "stub" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(FAKE_TORCH)
    (package / "distributed.py").write_text(FAKE_DIST)
    env = clean_environment(tmp_path, PYTHONPATH=str(tmp_path / "stub"), FAKE=fault)
    # a tenth of the limits where one is waited for
    return LocalHost(env, scale=0.1 if "hangs" in fault else 1.0)


def on(host: LocalHost, *cards: str) -> DeepTrial:
    live = TorchLive(
        imported=ImportOutcome(ok=True),
        cuda_ok=True,
        devices=tuple(device(card, index) for index, card in enumerate(cards)),
    )
    fact = deep_trial.function(host, CHOICE, DEEP, ABSENT, live, NO_ENV)
    assert isinstance(fact, DeepTrial)
    assert list(process.marked_pids()) == [], "no child is left"
    return fact


CHECKS = {
    "kernel": gpu_kernel_fails.kernels_run,
    "memory": gpu_memory_unallocatable.memory_can_be_taken,
    "copy": p2p_copy_corrupt.copies_arrive,
    "reduce": all_reduce_wrong.sums_are_right,
}


def judged(fact: DeepTrial) -> dict[str, list[Finding]]:
    return {name: judge(check, deep_trial=fact).findings for name, check in CHECKS.items()}


def verdicts(fact: DeepTrial) -> dict[str, list[str]]:
    return {name: words(found) for name, found in judged(fact).items()}


GOOD = {"kernel": ["ok"], "memory": ["ok"], "copy": ["ok"], "reduce": ["ok"]}


def test_two_good_gpus(tmp_path: Path) -> None:
    fact = on(scripted(tmp_path), "H100", "H100")
    assert verdicts(fact) == GOOD
    assert [gpu.name for gpu in fact.gpus] == ["0", "1"]
    assert fact.gpus[0].alloc_bytes == int((10 << 30) * 0.9)
    assert [(pair.a, pair.b, pair.peer) for pair in fact.pairs] == [
        ("0", "1", True),
        ("1", "0", True),
    ]
    assert fact.collective == TriedCollective(backend="nccl", ranks=2, ok=True)


def test_gpus_without_peer_access_are_healthy(tmp_path: Path) -> None:
    assert verdicts(on(scripted(tmp_path, "no-peer"), "4090", "4090")) == GOOD


@pytest.mark.parametrize(
    ("fault", "check", "expected", "told"),
    [
        pytest.param(
            "kernel-wrong",
            "kernel",
            ["fail", "fail"],
            "a product gave",
            id="a matrix product is wrong",
        ),
        pytest.param(
            "kernel-raises",
            "kernel",
            ["fail", "fail"],
            "no kernel image is available",
            id="a kernel does not start",
        ),
        pytest.param(
            "kernel-dies",
            "kernel",
            ["fail", "fail"],
            "died of signal 6",
            id="the process of a kernel dies",
        ),
        pytest.param(
            "memory-forgets",
            "memory",
            ["fail", "fail"],
            "returned [0, 0, 0], expected 165",
            id="memory forgets what was written to it",
        ),
        pytest.param(
            "oom",
            "memory",
            ["warn", "warn"],
            "9.0 of the 10.0 GiB",
            id="less memory can be taken than is free",
        ),
        pytest.param(
            "copy-garbage",
            "copy",
            ["fail"],
            "1 of 2 copies between GPUs fail (1 to 0",
            id="a copy in one direction arrives damaged",
        ),
        pytest.param(
            "nccl-wrong",
            "reduce",
            ["fail"],
            "on rank 0: sums are wrong",
            id="an all-reduce sums up wrongly",
        ),
        pytest.param(
            "nccl-raises",
            "reduce",
            ["fail"],
            "on rank 1: NCCL error: unhandled system error",
            id="a rank fails in NCCL",
        ),
        pytest.param(
            "nccl-dies",
            "reduce",
            ["fail"],
            "on rank 0: its process ended with status -6",
            id="a rank dies in NCCL",
        ),
    ],
)
def test_faults(tmp_path: Path, fault: str, check: str, expected: list[str], told: str) -> None:
    found = judged(on(scripted(tmp_path, fault), "H100", "H100"))
    assert words(found[check]) == expected
    assert told in found[check][0].message
    rest = {name: words(rows) for name, rows in found.items() if name != check}
    if not fault.startswith("kernel"):  # a dead kernel takes the rest of its GPU with it
        assert rest == {name: ["ok"] for name in GOOD if name != check}


@pytest.mark.parametrize(
    ("fault", "check", "told"),
    [
        pytest.param(
            "kernel-hangs", "kernel", "GPU 1 fails: it did not end within", id="a kernel hangs"
        ),
        pytest.param("copy-hangs", "copy", "did not end within", id="a copy hangs"),
        pytest.param(
            "nccl-hangs", "reduce", "on rank 1: it did not end within", id="a rank hangs in NCCL"
        ),
    ],
)
def test_hangs_cost_one_deadline_and_are_named(
    tmp_path: Path, fault: str, check: str, told: str
) -> None:
    found = judged(on(scripted(tmp_path, fault), "H100", "H100"))
    assert words(found[check]) == ["fail"]
    assert told in found[check][0].message


def test_nothing_is_tried_without_deep() -> None:
    with pytest.raises(HostError):
        deep_trial.function(LocalHost(), CHOICE, RunNeeds(), ABSENT, CPU, NO_ENV)
    with pytest.raises(HostError):
        extension_trial.function(LocalHost(), CHOICE, RunNeeds(), CPU)


def test_only_the_chosen_gpus_are_tried(tmp_path: Path) -> None:
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device("H100"),) * 4)
    run = RunNeeds(deep=True, gpus=("3",))
    fact = deep_trial.function(scripted(tmp_path), CHOICE, run, ABSENT, live, NO_ENV)
    assert [gpu.name for gpu in fact.gpus] == ["3"]
    assert fact.pairs == ()


def test_a_parent_that_died_is_no_success() -> None:
    ended = Result(argv=("p",), returncode=1, stderr=b"MemoryError")
    fact = parse_collective("gloo", 2, [{"rank": 0, "ok": True}], ended)
    assert fact.ok is False


@pytest.mark.train
@pytest.mark.skipif(not HAS_TORCH, reason="torch does the all-reduce")
def test_gloo_really_adds_up() -> None:
    fact = deep_trial.function(LocalHost(), CHOICE, DEEP, ABSENT, CPU, NO_ENV)
    assert fact.collective == TriedCollective(backend="gloo", ranks=2, ok=True)
    assert verdicts(fact) == {
        "kernel": ["skip"],
        "memory": ["skip"],
        "copy": ["skip"],
        "reduce": ["ok"],
    }


@pytest.mark.train
@pytest.mark.skipif(not HAS_TORCH, reason="torch does the all-reduce")
def test_gloo_on_an_interface_that_is_not_there() -> None:
    import os

    host = LocalHost({**os.environ, "GLOO_SOCKET_IFNAME": "nosuch0"})
    fact = deep_trial.function(host, CHOICE, DEEP, ABSENT, CPU, NO_ENV)
    (found,) = judge(CHECKS["reduce"], deep_trial=fact).findings
    assert found.status.value == "fail"
    assert "nosuch0" in found.message


def build(host: LocalHost) -> ExtensionTrial:
    fact = extension_trial.function(host, CHOICE, DEEP, CPU)
    assert isinstance(fact, ExtensionTrial)
    return fact


def verdict(fact: ExtensionTrial, run: RunNeeds = DEEP) -> list[str]:
    check = jit_build_fails.an_extension_builds
    return judge(check, extension_trial=fact, run_needs=run).statuses


REAL_COMPILER = pytest.mark.skipif(
    not HAS_TORCH or shutil.which("g++") is None or shutil.which("ninja") is None,
    reason="a real build needs torch, g++ and ninja",
)


@pytest.mark.train
@REAL_COMPILER
def test_a_real_extension_is_built_and_called() -> None:
    fact = build(LocalHost())
    assert (fact.ok, fact.error) == (True, None)
    assert verdict(fact) == ["ok"]


@pytest.mark.train
@REAL_COMPILER
def test_a_compiler_that_knows_no_headers(tmp_path: Path) -> None:
    """g++ itself, kept from finding its standard headers."""
    import os

    broken = tmp_path / "g++"
    broken.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} -nostdinc++ "$@"\n')
    broken.chmod(0o755)
    fact = build(LocalHost({**os.environ, "CXX": str(broken)}))
    assert fact.ok is False
    assert "No such file or directory" in (fact.error or "")
    assert verdict(fact) == ["warn"]
    assert verdict(fact, OFFLOAD) == ["fail"]


def test_a_build_that_hangs_is_said_so(tmp_path: Path) -> None:
    package = tmp_path / "stub" / "torch"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "utils" / "__init__.py").write_text("")
    (package / "utils" / "cpp_extension.py").write_text(
        "import time\ndef load(**options): time.sleep(1000)\n"
    )
    env: dict[str, Any] = clean_environment(tmp_path, PYTHONPATH=str(tmp_path / "stub"))
    fact = build(LocalHost(env, scale=0.02))
    assert (fact.ok, fact.stopped_at) == (False, "build")
    assert "did not end within" in (fact.error or "")
    assert list(process.marked_pids()) == []
