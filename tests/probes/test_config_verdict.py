"""The patient's own DeepSpeed is asked about configs; these are its real answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import ConfigVerdict, DeepSpeedInstall, Missing, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.interpreter import CHILDREN
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.config_verdict import config_verdict, parse_verdict
from dsdoctor.process import Result
from dsdoctor_checks.config._classes import SCHEDULER_PARAMETERS

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
        pytest.param(
            '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}',
            {},
            [],
            id="a sound config",
        ),
        pytest.param(
            '{"train_batch_size": "auto", "fp16": {"enabled": "auto"}}',
            {},
            [],
            id='values of "auto"',
        ),
        # how many ranks there will be is not said: the triangle is not tried
        pytest.param(
            '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}',
            {},
            [],
            id="a world size that is not known",
        ),
        pytest.param(
            '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}',
            {"expect_gpus": 2},
            ["train_batch_size"],
            id="a batch that a known number of ranks does not divide",
        ),
        pytest.param(
            '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2}',
            {"gpus": ("0", "1")},
            [],
            id="a batch that two GPUs divide",
        ),
        pytest.param(
            '{"fp16": {"enabled": true}, "bf16": {"enabled": true}}',
            {},
            ["fp16"],
            id="both precisions",
        ),
        pytest.param('{"a": 1, "a": 2}', {}, [""], id="a key twice"),
        # the message names the batch sizes too, but they are not at fault
        pytest.param(
            '{"elasticity": {"enabled": true}, "train_micro_batch_size_per_gpu": 1}',
            {},
            ["elasticity"],
            id="elasticity, not the batch sizes that the message names",
        ),
    ],
)
def test_real_answers(tmp_path: Path, text: str, needs: dict[str, Any], keys: list[str]) -> None:
    fact = ask(tmp_path, text, **needs)
    assert [one.key.partition(".")[0] for one in fact.refusals] == keys


PARAMETERS = """{
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
  "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9}},
}"""


@pytest.mark.system
def test_the_classes_are_asked_for_their_parameters(tmp_path: Path) -> None:
    found = ask(tmp_path, PARAMETERS).parameters
    assert found["optimizer"].cls == "FusedAdam"
    assert {"lr", "weight_decay", "torch_adam", "adam_w_mode"} <= set(found["optimizer"].names)
    assert "params" not in found["optimizer"].names
    assert set(found["scheduler"].names) == SCHEDULER_PARAMETERS["WarmupCosineLR"]


CUDA_BUILD = """
import importlib, sys, types
torch = types.ModuleType("torch")
torch.version = types.SimpleNamespace(cuda=sys.argv[2])
sys.modules["torch"] = torch
sys.path.insert(0, sys.argv[1])
import ds_config
config = {"aio": {"use_gds": True}, "train_batch_size": 1}
ds_config.prepare(config, 0)
print("use_gds" in config["aio"])
"""


def test_gpudirect_storage_is_not_judged_where_the_gpu_may_be_elsewhere() -> None:
    for cuda, kept in (("13.0", "False"), (None, "True")):
        script = CUDA_BUILD.replace("sys.argv[2]", repr(cuda))
        argv = [sys.executable, "-c", script, str(CHILDREN)]
        result = LocalHost().run(argv, timeout=500)
        assert result.stdout.decode().strip() == kept, result


@pytest.mark.parametrize(
    ("run", "installed", "why"),
    [
        pytest.param(RunNeeds(), INSTALLED, Why.NOT_ASKED, id="no config"),
        pytest.param(
            RunNeeds(config_path="x", quick=True), INSTALLED, Why.NOT_ASKED, id="a quick check"
        ),
        pytest.param(RunNeeds(config_path="x"), DeepSpeedInstall(), Why.ABSENT, id="no DeepSpeed"),
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
