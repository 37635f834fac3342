"""checkpoint_incomplete, checkpoint_mismatch and weights_file_corrupt on real checkpoints, damaged.

The checkpoints are written by DeepSpeed itself, with two ranks on the CPU.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import (
    Checkpoint,
    CheckpointFile,
    Finding,
    LaunchCommand,
    LaunchFiles,
    RunNeeds,
)
from dsdoctor.host import LocalHost, free_port
from dsdoctor.probes.storage import checkpoint as probe
from dsdoctor.testing import judge
from dsdoctor_checks.storage import (
    checkpoint_incomplete,
    checkpoint_mismatch,
    weights_file_corrupt,
)
from tests.checks.machines import ABSENT, NO_ENV, gpus, words
from tests.support.checkpoints import make

pytestmark = [
    pytest.mark.train,
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None, reason="deepspeed writes the checkpoints"
    ),
]


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    base = tmp_path_factory.mktemp("checkpoints")
    return make(base, (0, 2, 3), free_port("127.0.0.1"))


@pytest.fixture
def copies(originals: dict[int, Path], tmp_path: Path) -> dict[int, Path]:
    made = {}
    for stage, folder in originals.items():
        made[stage] = tmp_path / f"z{stage}"
        shutil.copytree(folder, made[stage])
    return made


def read(folder: Path, *, deep: bool = False, config: dict[str, Any] | None = None) -> Checkpoint:
    run = RunNeeds(checkpoint=str(folder), deep=deep, config=config)
    fact = probe.function(LocalHost(), run, ABSENT)
    assert isinstance(fact, Checkpoint)
    return fact


def incomplete(folder: Path) -> list[Finding]:
    function = checkpoint_incomplete.checkpoint_is_whole
    return judge(function, checkpoint=read(folder), run_needs=RunNeeds()).findings


def corrupt(folder: Path, *, deep: bool = False) -> list[Finding]:
    return judge(weights_file_corrupt.files_are_whole, checkpoint=read(folder, deep=deep)).findings


def mismatch(fact: Checkpoint, run: RunNeeds, **more: Any) -> list[Finding]:
    function = checkpoint_mismatch.checkpoint_fits_the_run
    command = more.get("command", ABSENT)
    return judge(
        function,
        checkpoint=fact,
        run_needs=run,
        launch_command=command,
        gpus=more.get("gpus", ABSENT),
        environment=NO_ENV,
    ).findings


def shard(folder: Path, words_: str) -> Path:
    return next(path for path in sorted((folder / "global_step2").iterdir()) if words_ in path.name)


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_a_whole_checkpoint_is_healthy(copies: dict[int, Path], stage: int) -> None:
    fact = read(copies[stage], deep=True)
    assert (fact.tag, fact.dp_world_size, fact.zero_stage) == ("global_step2", 2, stage)
    assert (fact.mp_world_size, fact.steps) == (1, 2)
    assert fact.deepspeed is not None
    assert words(incomplete(copies[stage])) == ["ok"]
    assert words(corrupt(copies[stage], deep=True)) == ["ok"]
    run = RunNeeds(gpus=("0", "1"), config={"zero_optimization": {"stage": stage}})
    assert words(mismatch(fact, run)) == ["ok"]


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    """A pickle that would run code when loaded is only looked at."""
    folder = tmp_path / "evil"
    folder.mkdir()
    marker = tmp_path / "executed"
    command = f"touch {marker}".encode()
    pickled = b"\x80\x02cos\nsystem\nX" + struct.pack("<I", len(command)) + command + b"\x85R."
    with zipfile.ZipFile(folder / "mp_rank_00_model_states.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    assert words(corrupt(folder)) == ["ok"]
    assert not marker.exists()


@pytest.mark.parametrize(
    ("stage", "removed", "expected"),
    [
        pytest.param(
            2,
            "rank_1_mp_rank_00_optim",
            ["zero_pp_rank_1_mp_rank_00_optim_states.pt"],
            id="ZeRO-2 without the optimizer states of rank 1",
        ),
        pytest.param(
            2,
            "mp_rank_00_model",
            ["mp_rank_00_model_states.pt"],
            id="ZeRO-2 without the model states",
        ),
        pytest.param(
            3,
            "rank_0_mp_rank_00_model",
            ["zero_pp_rank_0_mp_rank_00_model_states.pt"],
            id="ZeRO-3 without the model states of rank 0",
        ),
        pytest.param(
            3,
            "rank_1_mp_rank_00_optim",
            ["zero_pp_rank_1_mp_rank_00_optim_states.pt"],
            id="ZeRO-3 without the optimizer states of rank 1",
        ),
    ],
)
def test_a_missing_shard_is_named(
    copies: dict[int, Path], stage: int, removed: str, expected: list[str]
) -> None:
    shard(copies[stage], removed).unlink()
    (found,) = incomplete(copies[stage])
    assert found.status.value == "fail"
    assert found.evidence["missing"] == expected


def test_latest_names_what_is_not_there(copies: dict[int, Path]) -> None:
    (copies[2] / "latest").write_text("global_step9")
    (found,) = incomplete(copies[2])
    assert found.status.value == "fail"
    assert "`global_step9`, which does not exist" in found.message
    assert "global_step2" in found.hint


def test_without_latest_the_newest_tag_is_taken(copies: dict[int, Path]) -> None:
    (copies[2] / "latest").unlink()
    shutil.copytree(copies[2] / "global_step2", copies[2] / "global_step10")
    assert read(copies[2]).tag == "global_step10"
    assert words(incomplete(copies[2])) == ["ok"]


def test_the_folder_of_a_tag_can_be_named(copies: dict[int, Path]) -> None:
    assert words(incomplete(copies[3] / "global_step2")) == ["ok"]


@pytest.mark.parametrize("name", ["empty folder", "not there"])
def test_no_checkpoint_at_all(tmp_path: Path, name: str) -> None:
    if name == "empty folder":
        (tmp_path / name).mkdir()
    assert words(incomplete(tmp_path / name)) == ["fail"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def zeros(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


def pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")


def flip(path: Path) -> None:
    """One byte of a tensor changed: only the checksum tells."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = next(e for e in archive.infolist() if e.filename.endswith("/data/0"))
    begin = entry.header_offset + 30
    name, extra = struct.unpack("<HH", content[begin - 4 : begin])
    content[begin + name + extra] ^= 0xFF
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (cut, "truncated"),
        (zeros, "damaged"),
        (pointer, "git-lfs pointer"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_text("<html>404</html>"), "no checkpoint file"),
    ],
    ids=["cut", "zeros", "pointer", "empty", "html"],
)
@pytest.mark.parametrize("stage", [2, 3])
def test_damage_is_seen(copies: dict[int, Path], stage: int, damage: Any, problem: str) -> None:
    victim = shard(copies[stage], "rank_1_mp_rank_00_optim")
    damage(victim)
    (found,) = corrupt(copies[stage])
    assert found.status.value == "fail"
    assert found.evidence["files"] == {victim.name: problem}


def test_a_flipped_byte_needs_deep(copies: dict[int, Path]) -> None:
    victim = shard(copies[2], "mp_rank_00_model")
    flip(victim)
    assert words(corrupt(copies[2])) == ["ok"]
    (found,) = corrupt(copies[2], deep=True)
    assert found.evidence["files"] == {victim.name: "damaged"}


@pytest.mark.parametrize(
    ("run", "status"),
    [
        pytest.param(
            RunNeeds(gpus=("0", "1", "2", "3")), "fail", id="a checkpoint of two ranks on four GPUs"
        ),
        pytest.param(RunNeeds(expect_gpus=1), "fail", id="a checkpoint of two ranks on one GPU"),
        pytest.param(
            RunNeeds(config={"zero_optimization": {"stage": 3}}),
            "fail",
            id="a ZeRO-2 checkpoint for a run with ZeRO-3",
        ),
        pytest.param(
            RunNeeds(config={"zero_optimization": {"stage": 1}}),
            "ok",
            id="a ZeRO-2 checkpoint for a run with ZeRO-1",
        ),
        pytest.param(
            RunNeeds(config={"checkpoint": {"load_universal": True}}),
            "fail",
            id="a plain checkpoint where a universal one is asked for",
        ),
        pytest.param(RunNeeds(), "ok", id="nothing says how the run differs"),
    ],
)
def test_mismatch(copies: dict[int, Path], run: RunNeeds, status: str) -> None:
    assert words(mismatch(read(copies[2]), run)) == [status]


def test_the_conversion_that_is_advised_is_what_the_run_then_needs(
    copies: dict[int, Path],
) -> None:
    """Saved by two ranks, loaded by one: the command of the hint is run as it is printed."""
    folder = copies[2]
    universal = {"zero_optimization": {"stage": 2}, "checkpoint": {"load_universal": True}}
    (found,) = mismatch(read(folder), RunNeeds(config=universal))
    (command,) = re.findall("`(python .*)`", found.hint)
    argv = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run(
        argv,
        env={**os.environ, "DS_ACCELERATOR": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    converted = read(folder, config=universal)
    assert converted.universal
    assert words(mismatch(converted, RunNeeds(config=universal))) == ["ok"]
    assert not read(folder).universal, "another run still takes `latest`"


def test_gpus_here_differ_but_nobody_said_how_many(copies: dict[int, Path]) -> None:
    fact = read(copies[2])
    assert words(mismatch(fact, RunNeeds(), gpus=gpus("A100", "A100", "A100"))) == ["warn"]
    assert words(mismatch(fact, RunNeeds(), gpus=gpus("A100", "A100"))) == ["ok"]
    two_nodes = LaunchCommand(launcher="torchrun", num_gpus=1, num_nodes=2)
    assert words(mismatch(fact, RunNeeds(), command=two_nodes)) == ["ok"]


def test_tensor_parallel_ranks_count() -> None:
    """Two data-parallel times four model-parallel ranks are eight GPUs."""
    files = tuple(
        CheckpointFile(name=f"mp_rank_0{mp}_model_states.pt", role="model", mp_rank=mp)
        for mp in range(4)
    )
    fact = Checkpoint(
        path="c",
        tag="",
        tag_exists=True,
        files=files,
        dp_world_size=2,
        mp_world_size=4,
        zero_stage=1,
    )
    assert words(mismatch(fact, RunNeeds(expect_gpus=8))) == ["ok"]
    assert words(mismatch(fact, RunNeeds(expect_gpus=2))) == ["fail"]
    assert len(checkpoint_incomplete.missing_shards(fact)) == 8


@pytest.fixture
def safetensors(tmp_path: Path) -> Path:
    header = b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    file = tmp_path / "model-00001-of-00001.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + b"\1" * 16)
    return file


def test_safetensors(safetensors: Path) -> None:
    assert words(corrupt(safetensors.parent)) == ["ok"]
    assert words(incomplete(safetensors.parent)) == ["ok"]  # a model has no shards of ranks
    safetensors.write_bytes(safetensors.read_bytes()[:-4])
    (found,) = corrupt(safetensors.parent)
    assert found.evidence["files"] == {safetensors.name: "truncated"}


def resumed(folder: str, framework: str, config: dict[str, Any] | None) -> list[Finding]:
    run = RunNeeds(cwd="/", framework=framework, config=config)
    fact = probe.function(LocalHost(), run, LaunchFiles(resumed=folder))
    function = checkpoint_incomplete.checkpoint_is_whole
    return judge(function, checkpoint=fact, run_needs=run).findings


@pytest.mark.parametrize(
    ("framework", "config", "state", "said"),
    [
        pytest.param("hf", {}, True, "global_step", id="weights alone, with DeepSpeed"),
        pytest.param("hf", None, False, "trainer_state", id="weights alone, without DeepSpeed"),
        pytest.param("hf", None, True, "", id="a checkpoint of the Trainer without DeepSpeed"),
        pytest.param("accelerate", {}, False, "", id="the script may load it in its own way"),
    ],
)
def test_what_the_trainer_resumes_from(
    safetensors: Path, framework: str, config: dict[str, Any] | None, state: bool, said: str
) -> None:
    if state:
        (safetensors.parent / "trainer_state.json").write_text("{}", encoding="utf-8")
    (found,) = resumed(str(safetensors.parent), framework, config)
    assert found.status.value == ("fail" if said else "skip")
    assert said in found.message


def test_a_checkpoint_to_resume_from(copies: dict[int, Path]) -> None:
    (copies[2] / "trainer_state.json").write_text("{}", encoding="utf-8")
    assert words(resumed(str(copies[2]), "hf", {})) == ["ok"]
    shard(copies[2], "rank_1").unlink()
    assert words(resumed(str(copies[2]), "hf", {})) == ["fail"]


def test_a_checkpoint_to_resume_from_that_does_not_exist(tmp_path: Path) -> None:
    (found,) = resumed(str(tmp_path / "checkpoint-9"), "hf", {})
    assert (found.status.value, "--resume_from_checkpoint" in found.message) == ("fail", True)
    (found,) = resumed(str(tmp_path / "checkpoint-*"), "hf", {})
    assert found.status.value == "fail"
    assert f"`{tmp_path}` contains no `checkpoint-*` directory" in found.message
