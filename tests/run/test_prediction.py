"""Peak memory beside what `recommend` predicts: only where the command says enough."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.script import TrainingJob
from dsdoctor.model.run_record import Figures, Prediction, RunRecord
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.units import GIB
from dsdoctor.run.ending import success_line
from dsdoctor.run.prediction import predict

DEMAND: dict[str, Any] = {
    "source": "command", "what": "m, ZeRO-2 on 2 GPUs", "ranks_here": 2, "gpu_bytes": 18 * GIB,
    "plain_bytes": 25 * GIB, "host_bytes": 4 * GIB,
}  # fmt: skip
JOB: dict[str, Any] = {"model": "m", "method": "full", "micro_batch": 2, "sequence": 1024}


def machine(
    demand: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **config: Any
) -> Snapshot:
    made = Snapshot()
    made.put(RunNeeds(config=config))
    made.put(MemoryDemand(**{**DEMAND, **(demand or {})}))
    made.put(TrainingJob(**{**JOB, **(job or {})}))
    return made


def test_the_prediction_is_that_of_recommend() -> None:
    found = predict(machine())
    assert found == Prediction(
        gpu_bytes=18 * GIB, assumed="activation checkpointing", host_bytes=4 * GIB, ranks=2
    )


@pytest.mark.parametrize(("recomputed", "peak"), [(True, 18), (False, 25)], ids=["on", "off"])
def test_the_command_says_whether_activations_are_kept(recomputed: bool, peak: int) -> None:
    found = predict(machine(job={"checkpointing": recomputed}))
    assert found is not None
    assert (found.gpu_bytes, found.assumed) == (peak * GIB, "")


def test_the_config_may_state_the_batch() -> None:
    assert predict(machine(job={"micro_batch": None})) is None
    assert predict(machine(job={"micro_batch": None}, train_micro_batch_size_per_gpu=2)) is not None


@pytest.mark.parametrize(
    ("demand", "job"),
    [
        pytest.param({"source": "model"}, {}, id="of --model"),
        pytest.param({"on_gpu": False}, {}, id="no GPU"),
        pytest.param({"assumed": ("a size",)}, {}, id="only the size is known"),
        pytest.param({}, {"method": "lora"}, id="adapters"),
        pytest.param({}, {"method": ""}, id="it is not known what is trained"),
        pytest.param({}, {"sequence": None}, id="no length"),
    ],
)
def test_what_the_command_does_not_say_is_not_guessed(
    demand: dict[str, Any], job: dict[str, Any]
) -> None:
    assert predict(machine(demand, job)) is None
    assert predict(Snapshot()) is None


@pytest.mark.parametrize(
    ("predicted", "text"),
    [
        pytest.param(None, "peak GPU memory 19.0 to 20.0 GiB (highest: GPU 1)", id="no prediction"),
        pytest.param(
            Prediction(gpu_bytes=18 * GIB),
            "to 20.0 GiB (highest: GPU 1), 18.0 GiB predicted",
            id="a prediction",
        ),
        pytest.param(
            Prediction(gpu_bytes=18 * GIB, assumed="activation checkpointing"),
            "18.0 GiB predicted with activation checkpointing",
            id="a prediction under an assumption",
        ),
    ],
)
def test_it_stands_in_the_line_of_success(predicted: Prediction | None, text: str) -> None:
    peaks = {"0": 19 * GIB, "1": 20 * GIB}
    line = success_line(RunRecord(figures=Figures(peak_gpu_bytes=peaks, predicted=predicted)))
    assert text in line
    assert ("predicted" in line) == (predicted is not None)
