"""The patient's own DeepSpeed is asked about configs; these are its real answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import ConfigVerdict, DeepSpeedInstall, Missing, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.config_verdict import config_verdict, parse_verdict
from dsdoctor.process import Result

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="there is no deepspeed to ask"
)
CHOICE = PatientChoice(executable=sys.executable, chosen_by="test", why="it runs the tests")
INSTALLED = DeepSpeedInstall(version="0.19.8")


def ask(folder: Path, text: str, **needs: Any) -> ConfigVerdict:
    (folder / "ds.json").write_text(text, encoding="utf-8")
    run = RunNeeds(config_path="ds.json", cwd=str(folder), **needs)
    fact = config_verdict.function(LocalHost(), CHOICE, INSTALLED, run)
    assert isinstance(fact, ConfigVerdict)
    return fact


BAD = """{
  // remarks are hjson's
  "train_batch_size": "auto",
  "nebula": {"enabled": false},
  "zero_optimization": {"stage": 4, "offload_optimizer": {"device": "gpu"}, "foo": 1},
  "fp16": {"enabled": true, "loss_scale": -1},
  "communication_data_type": "int8",
}"""


@pytest.mark.system
def test_all_that_it_refuses_is_told(tmp_path: Path) -> None:
    fact = ask(tmp_path, BAD)
    assert {one.key for one in fact.refusals} == {
        "nebula",
        "zero_optimization.stage",
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.foo",
        "fp16.loss_scale",
        "communication_data_type",
    }
    assert fact.version


@pytest.mark.system
@pytest.mark.parametrize(
    ("text", "needs", "keys"),
    [
        ('{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}', {}, []),
        ('{"train_batch_size": "auto", "fp16": {"enabled": "auto"}}', {}, []),
        # how many ranks there will be is not said: the triangle is not tried
        ('{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}', {}, []),
        (
            '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}',
            {"expect_gpus": 2},
            ["train_batch_size"],
        ),
        ('{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2}', {"gpus": ("0", "1")}, []),
        ('{"fp16": {"enabled": true}, "bf16": {"enabled": true}}', {}, ["fp16"]),
        ('{"a": 1, "a": 2}', {}, [""]),
    ],
)
def test_real_answers(tmp_path: Path, text: str, needs: dict[str, Any], keys: list[str]) -> None:
    fact = ask(tmp_path, text, **needs)
    assert [one.key.partition(".")[0] for one in fact.refusals] == keys


@pytest.mark.parametrize(
    ("run", "installed", "why"),
    [
        (RunNeeds(), INSTALLED, Why.NOT_ASKED),
        (RunNeeds(config_path="x", quick=True), INSTALLED, Why.NOT_ASKED),
        (RunNeeds(config_path="x"), DeepSpeedInstall(), Why.ABSENT),
    ],
)
def test_when_it_is_not_asked(run: RunNeeds, installed: DeepSpeedInstall, why: Why) -> None:
    with pytest.raises(HostError) as caught:
        config_verdict.function(LocalHost(), CHOICE, installed, run)
    assert caught.value.missing.why is why


@pytest.mark.parametrize(
    ("records", "result", "why"),
    [
        ([{"step": "import deepspeed"}], {"returncode": None, "timed_out": True}, Why.TIMEOUT),
        ([{"step": "import deepspeed"}], {"returncode": -11}, Why.BROKEN),
        ([{"error": "import", "text": "x"}, {"done": True}], {"returncode": 0}, Why.ABSENT),
    ],
)
def test_a_child_that_does_not_answer(
    records: list[dict[str, Any]], result: dict[str, Any], why: Why
) -> None:
    fact = parse_verdict(records, Result(argv=("python",), **result), 1)
    assert isinstance(fact, Missing)
    assert fact.why is why
