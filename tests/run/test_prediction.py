"""Peak memory beside what `recommend` predicts: only where the command says enough."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.job import request as job_request
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.gpu import Gpu, Gpus
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.run_record import Figures, Prediction, RunRecord
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.units import GIB
from dsdoctor.recommend.demand import demand_of
from dsdoctor.run.ending import success_line
from dsdoctor.run.prediction import predict

CONFIG: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": "auto",
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
}
COMMAND = (
    "deepspeed", "--num_gpus", "2", "train.py", "--model_name_or_path", "0.5B", "--max_length",
    "1024", "--per_device_train_batch_size", "2", "--deepspeed", "ds.json",
)  # fmt: skip


def machine(command: tuple[str, ...], config: dict[str, Any] | None) -> Snapshot:
    made = Snapshot()
    made.put(RunNeeds(command=command, config=config))
    made.put(Gpus(gpus=tuple(Gpu(index=index, uuid=f"GPU-{index}") for index in range(2))))
    made.put(LaunchCommand(launcher="deepspeed", argv=command, options={"num_gpus": "2"}))
    return made


def test_the_prediction_is_that_of_recommend() -> None:
    found = predict(machine(COMMAND, CONFIG))
    asked = RunNeeds(
        command=COMMAND, model=job_request.shape("0.5B"), sequence=1024, finetune="full",
        config={**CONFIG, "train_micro_batch_size_per_gpu": 2},
    )  # fmt: skip
    none = Missing(why=Why.ABSENT, detail="")
    assert found is not None
    assert found.gpu_bytes == demand_of(asked, 2, 1, none).gpu_bytes > GIB
    assert found.host_bytes == demand_of(asked, 2, 1, none).host_bytes
    assert (found.assumed, found.ranks) == ("activation checkpointing", 2)
    full = predict(machine((*COMMAND, "--gradient_checkpointing"), CONFIG))
    assert full is not None
    assert full.assumed == ""


@pytest.mark.parametrize(
    ("command", "config"),
    [
        (COMMAND, None),
        ((*COMMAND, "--use_lora"), CONFIG),
        (COMMAND[:4] + COMMAND[6:], CONFIG),
        (COMMAND[:6] + COMMAND[8:], CONFIG),
        (COMMAND[:8] + COMMAND[10:], CONFIG),
        (tuple("nobody/nothing" if word == "0.5B" else word for word in COMMAND), CONFIG),
    ],
    ids=["no config", "adapters", "no model", "no length", "no batch", "unknown model"],
)
def test_what_the_command_does_not_say_is_not_guessed(
    command: tuple[str, ...], config: dict[str, Any] | None
) -> None:
    assert predict(machine(command, config)) is None


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
