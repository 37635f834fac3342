"""`--deep` on a real GPU."""

from __future__ import annotations

import sys

import pytest

from dsdoctor.api import DeepTrial, ImportOutcome, RunNeeds, TorchLive
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.deep import deep_trial
from tests.checks.machines import ABSENT, NO_ENV, device

pytestmark = pytest.mark.gpu


def test_kernel_memory_and_ranks_of_this_machine() -> None:
    torch = pytest.importorskip("torch")
    count = torch.cuda.device_count()
    assert count, "the marker gpu is for machines with one"
    live = TorchLive(
        imported=ImportOutcome(ok=True),
        cuda_ok=True,
        devices=tuple(device("H100", index) for index in range(count)),
    )
    choice = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")
    fact = deep_trial.function(LocalHost(), choice, RunNeeds(deep=True), ABSENT, live, NO_ENV)
    assert isinstance(fact, DeepTrial)
    assert [(gpu.kernel_ok, gpu.alloc_ok) for gpu in fact.gpus] == [(True, True)] * count
    assert all((gpu.alloc_bytes or 0) > 0.8 * (gpu.free_bytes or 1) for gpu in fact.gpus)
    assert all(pair.ok for pair in fact.pairs)
    assert fact.collective is not None
    assert fact.collective.ok
    assert fact.collective.backend == ("nccl" if count > 1 else "gloo")
