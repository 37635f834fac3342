"""The checkpoint that a script loads, and files that are missing from the folder of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsdoctor.api import Checkpoint, CheckpointFile, LaunchFiles, Missing, RunNeeds
from dsdoctor.host import LocalHost
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.probes.storage import checkpoint
from dsdoctor.testing import FakeHost, assert_fail, judge, read
from dsdoctor_checks.storage import checkpoint_incomplete
from tests.checks.machines import ABSENT
from tests.support.command import clean_environment

LOAD = "import deepspeed\nif args.load_dir:\n    engine.load_checkpoint(args.load_dir)\n"


def files_of(command: str, files: dict[str, str]) -> LaunchFiles:
    host = FakeHost(env={"PATH": "/usr/bin"}, files={"/usr/bin/torchrun": "x", **files})
    parsed = parse_command(command.split())
    run = RunNeeds(command=parsed.argv, cwd="/job")
    fact = launch_files.function(host, run, parsed, ABSENT)
    assert isinstance(fact, LaunchFiles)
    return fact


@pytest.mark.parametrize(
    ("script", "words", "expected"),
    [
        pytest.param(LOAD, "--load_dir ck", "ck", id="an option"),
        pytest.param(LOAD, "--load_dir=/d/ck", "/d/ck", id="one word"),
        pytest.param(LOAD, "", None, id="not passed"),
        pytest.param(LOAD, "--save_dir ck", None, id="another option"),
        pytest.param(LOAD.replace("deepspeed", "torch"), "--load_dir ck", None, id="no DeepSpeed"),
        pytest.param(
            LOAD.replace("load_dir)", "load_dir, tag=args.tag)"), "--load_dir ck", None, id="a tag"
        ),
        pytest.param(
            LOAD.replace("load_dir)", "load_dir, load_optimizer_states=False)"),
            "--load_dir ck", None, id="without the optimizer",
        ),
        pytest.param(
            LOAD + "engine.load_checkpoint(args.other)\n", "--load_dir ck", None, id="two places"
        ),
        pytest.param(
            "import deepspeed\nload_checkpoint(model, args.load_dir)\n", "--load_dir ck", None,
            id="a function of its own",
        ),
        pytest.param("import deepspeed\ne.load_checkpoint('last')\n", "", "last", id="in the script"),
        pytest.param(
            "import deepspeed\nif x:\n    e.load_checkpoint('last')\n", "", None, id="perhaps"
        ),
    ],
)  # fmt: skip
def test_the_checkpoint_that_a_script_loads(script: str, words: str, expected: str | None) -> None:
    assert files_of(f"torchrun t.py {words}", {"/job/t.py": script}).loaded == expected


def index(*names: str) -> str:
    return json.dumps({"weight_map": {f"w{n}": name for n, name in enumerate(names)}})


TWO = index("a-1.safetensors", "a-2.safetensors")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"config.json": "{}", "model.safetensors": ""}, (), id="one file"),
        pytest.param({"config.json": "{}"}, (), id="a config alone"),
        pytest.param({"model.safetensors": ""}, ("config.json",), id="weights alone"),
        pytest.param({"model.safetensors": "", "adapter_config.json": "{}"}, (), id="an adapter"),
        pytest.param({"notes.txt": ""}, (), id="nothing of a model"),
        pytest.param(
            {"config.json": "{}", "model.safetensors.index.json": TWO, "a-1.safetensors": ""},
            ("a-2.safetensors",), id="a part",
        ),
        pytest.param(
            {"config.json": "{}", "model.safetensors.index.json": TWO, "a-1.safetensors": "",
             "a-2.safetensors": ""},
            (), id="all parts",
        ),
        pytest.param(
            {"config.json": "{}", "model.safetensors.index.json": TWO, "model.safetensors": ""}, (),
            id="merged",
        ),
        pytest.param(
            {"config.json": "{}", "pytorch_model.bin.index.json": index("b.bin")}, ("b.bin",),
            id="of torch",
        ),
        pytest.param({"config.json": "{}", "model.safetensors.index.json": "["}, (), id="no JSON"),
    ],
)  # fmt: skip
def test_files_that_a_folder_of_a_model_lacks(
    files: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = files_of(
        "torchrun t.py --model_name_or_path m",
        {"/job/t.py": "", **{f"/job/m/{name}": text for name, text in files.items()}},
    )
    assert found.model_lacks == expected


def test_what_is_missing_is_named() -> None:
    check = checkpoint_incomplete.checkpoint_is_whole
    files = LaunchFiles(model="m", model_lacks=("a-2.safetensors",))
    said = "the folder `m` of the model does not contain `a-2.safetensors`, which its index lists"
    assert assert_fail(judge(check, launch_files=files, checkpoint=ABSENT)).message == said
    files = LaunchFiles(model="m", model_lacks=("config.json",))
    found = assert_fail(judge(check, launch_files=files, checkpoint=ABSENT))
    assert found.message == "the folder `m` of the model does not contain `config.json`"
    assert judge(check, launch_files=LaunchFiles(), checkpoint=ABSENT).status == "skip"
    weights = CheckpointFile(name="a-1.safetensors", role="weights", size=9)
    whole = Checkpoint(path="m", tag="", tag_exists=True, files=(weights,))
    assert judge(check, launch_files=LaunchFiles(), checkpoint=whole).status == "ok"


def test_a_folder_that_a_script_loads_may_still_be_empty(tmp_path: Path) -> None:
    """DeepSpeed warns and starts anew where there is no `latest`: many scripts save to that folder."""
    run = RunNeeds(cwd=str(tmp_path))
    files = LaunchFiles(loaded="ck")
    host = LocalHost(clean_environment(tmp_path))
    assert isinstance(read(checkpoint, host, run_needs=run, launch_files=files), Missing)
    (tmp_path / "ck").mkdir()
    assert isinstance(read(checkpoint, host, run_needs=run, launch_files=files), Missing)
    (tmp_path / "ck/latest").write_text("global_step4")
    found = read(checkpoint, host, run_needs=run, launch_files=files)
    assert isinstance(found, Checkpoint)
    assert (found.latest, found.tag_exists) == ("global_step4", False)
