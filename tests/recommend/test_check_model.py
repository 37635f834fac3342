"""`check --model` sizes a model as `recommend` does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsdoctor.job.request import with_job
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.python import Package, Packages
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.units import GIB
from dsdoctor.probes.demand import memory_demand
from dsdoctor.testing import FakeHost, missing

T5 = {
    "model_type": "t5", "d_model": 1024, "d_ff": 4096, "d_kv": 64, "num_heads": 16,
    "num_layers": 24, "num_decoder_layers": 24, "vocab_size": 32128,
}  # fmt: skip


def demand(model: Path, packages: Packages | Missing) -> MemoryDemand:
    wanted = with_job(RunNeeds(), model=str(model))
    asked = {"train_micro_batch_size_per_gpu": 32, "bf16": {"enabled": True}}
    run = RunNeeds(model=wanted.model, sequence=512, config=asked, finetune="full", expect_gpus=1)
    absent = missing()
    found = memory_demand.function(run, *[absent] * 4, packages, *[absent] * 5, FakeHost())
    assert isinstance(found, MemoryDemand)
    return found


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(T5), "utf-8")
    return path


def of_release(version: str) -> Packages:
    return Packages(packages={"transformers": Package(name="transformers", version=version)})


def test_t5_is_counted_by_the_release_that_is_installed(model: Path) -> None:
    """transformers 5.15 has a kernel for its position bias; before, scores are stored."""
    old, new = (demand(model, of_release(version)) for version in ("5.14.1", "5.15.0"))
    assert old.plain_bytes > new.plain_bytes + GIB
    assert not any("scores" in text for text in (*old.assumed, *new.assumed))


def test_an_unknown_release_counts_as_an_older_one_and_that_is_said(model: Path) -> None:
    unknown = demand(model, missing())
    assert unknown.plain_bytes == demand(model, of_release("4.57.3")).plain_bytes
    assert any("before transformers 5.15.0" in text for text in unknown.assumed)
