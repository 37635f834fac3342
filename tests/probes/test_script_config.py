"""The DeepSpeed config whose file a training script names itself."""

from __future__ import annotations

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.testing import FakeHost

CONFIG = '{"zero_optimization": {"stage": 2}}'
CALL = "import deepspeed\ndeepspeed.initialize(model=m, config='ds.json')\n"


def of(script: str, *words: str) -> RunNeeds:
    files = {"/w/t.py": script, "/w/ds.json": CONFIG, "/w/other.json": CONFIG}
    return resolve(RunNeeds(cwd="/w", command=("deepspeed", "t.py", *words)), FakeHost(files=files))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(CALL, id="deepspeed.initialize"),
        pytest.param("\na = TrainingArguments('o', deepspeed='ds.json')\n", id="the Trainer"),
        pytest.param("def main():\n    s = Strategy(SFTConfig(deepspeed='ds.json'))\nmain()\n",
                     id="trl, in a function"),
        pytest.param("F = 'ds.json'\nA(DeepSpeedPlugin(hf_ds_config=F))\n", id="a variable"),
        pytest.param("with x:\n    DeepSpeedStrategy(config='ds.json')\n", id="Lightning"),
    ],
)  # fmt: skip
def test_the_config_of_a_script_is_read(script: str) -> None:
    run = of(script)
    assert (run.config_path, run.config_named_by) == ("ds.json", "line 2 of `t.py`")
    assert run.config == {"zero_optimization": {"stage": 2}}


def test_the_command_line_comes_first() -> None:
    assert of(CALL, "--deepspeed", "other.json").config_path == "other.json"


def test_a_config_that_does_not_exist_is_reported() -> None:
    assert of(CALL.replace("ds.json", "gone.json")).config_path == "gone.json"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(CALL + "deepspeed.initialize(config='b.json')", id="several"),
        pytest.param(
            "import json\njson.dump({}, open('ds.json', 'w'))\n" + CALL, id="it is written"
        ),
        pytest.param("import os\nos.chdir('x')\n" + CALL, id="another folder"),
        pytest.param("if x:\n    deepspeed.initialize(config='ds.json')\n", id="perhaps"),
        pytest.param("F = 'ds.json'\nF = a.b\ndeepspeed.initialize(config=F)\n", id="unknown"),
        pytest.param("load(config='ds.json')\n", id="another config"),
        pytest.param("print 'ds.json'\n", id="another Python"),
    ],
)
def test_what_is_not_sure_is_not_read(script: str) -> None:
    assert of(script).config_path is None
