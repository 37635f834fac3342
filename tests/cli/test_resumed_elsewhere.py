"""The checkpoint that a command resumes from: of a snapshot, and with `--quick`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsdoctor import compose, packs
from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.launch import LaunchCommand, LaunchFiles
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.storage import Checkpoint, CheckpointFile
from dsdoctor.model.snapshot import Snapshot, of
from dsdoctor.probes import storage
from dsdoctor.process import Result
from dsdoctor.testing import judge
from dsdoctor_checks.storage import checkpoint_mismatch

COMMAND = "torchrun --nproc_per_node 4 train.py --resume_from_checkpoint"


def saved(path: str, ranks: int) -> Checkpoint:
    shards = (CheckpointFile(name=f"bf16_zero_pp_rank_{i}_optim_states.pt") for i in range(ranks))
    return Checkpoint(
        path=path, tag="t", tag_exists=True, files=tuple(shards), dp_world_size=ranks, zero_stage=3
    )


def with_job(machine: Snapshot, path: str, cwd: Path, **more: Any) -> Snapshot:
    run = RunNeeds(command=(*COMMAND.split(), path), cwd=str(cwd), **more)
    return compose.with_job(machine, run, LocalHost(), packs.load(builtin_only=True))


@pytest.mark.parametrize(
    ("of_snapshot", "of_command"),
    [
        pytest.param("out/checkpoint-5", "out/checkpoint-5", id="the same words"),
        pytest.param("out/checkpoint-5/", "./out/checkpoint-5", id="the same folder"),
        pytest.param("/srv/out/checkpoint-5", "out/checkpoint-5", id="written in full there"),
        pytest.param("checkpoint-5", "/srv/checkpoint-5", id="written in full here"),
        pytest.param("checkpoint-5", "checkpoint-5", id="a bare name"),
    ],
)
def test_of_the_snapshot(tmp_path: Path, of_snapshot: str, of_command: str) -> None:
    made = with_job(of([saved(of_snapshot, 8), RunNeeds(cwd="/srv")]), of_command, tmp_path)
    found = made.get(Checkpoint)
    assert isinstance(found, Checkpoint)
    assert (found.path, found.resumed) == (of_snapshot, True)
    judged = judge(
        checkpoint_mismatch.checkpoint_fits_the_run,
        checkpoint=found,
        run_needs=made.run,
        launch_command=made.get(LaunchCommand),
    )
    assert judged.status == "fail"
    assert "saved by 8 ranks (ZeRO stage 3), but this run has 4" in judged.worst.message


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(of([RunNeeds(cwd="/srv")]), id="no checkpoint"),
        pytest.param(of([saved("out/checkpoint-9", 8), RunNeeds(cwd="/srv")]), id="another one"),
    ],
)
def test_the_reason_says_what_is_missing(tmp_path: Path, machine: Snapshot) -> None:
    """Even if such a folder exists here: the files of the script are on that machine."""
    (tmp_path / "out" / "checkpoint-5").mkdir(parents=True)
    found = with_job(machine, "out/checkpoint-5", tmp_path).get(Checkpoint)
    assert isinstance(found, Missing)
    assert found.detail == (
        "the command resumes from `out/checkpoint-5`, which the snapshot does not contain: pass a"
        " directory of this machine with `--checkpoint`"
    )


@pytest.mark.parametrize("word", ["true", "last", "$DIR", "hf://x/y"])
def test_no_folder(tmp_path: Path, word: str) -> None:
    found = with_job(of([saved(word, 8), RunNeeds()]), word, tmp_path).get(Checkpoint)
    assert isinstance(found, Missing)
    assert found.detail == "no checkpoint was passed (`--checkpoint DIR`)"


def test_a_checkpoint_that_is_passed_is_read_here(tmp_path: Path) -> None:
    machine = of([saved("out/c", 8), RunNeeds(cwd="/srv")])
    made = with_job(machine, "out/c", tmp_path, checkpoint=str(tmp_path / "mine"))
    found = made.get(Checkpoint)
    assert isinstance(found, Checkpoint)
    assert (found.path, found.error) == (str(tmp_path / "mine"), "No such file or directory")


def test_quick_reads_what_the_command_names(tmp_path: Path) -> None:
    folder = str(tmp_path / "checkpoint-5")
    run = RunNeeds(cwd=str(tmp_path), quick=True)
    fact = storage.checkpoint.function(LocalHost(), run, LaunchFiles(resumed=folder))
    assert (fact.path, fact.resumed, fact.error) == (folder, True, "No such file or directory")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(LaunchFiles(loaded="/"), id="what the script loads"),
        pytest.param(LaunchFiles(model_folder="/"), id="the model"),
    ],
)
def test_quick_reads_nothing_else(files: LaunchFiles) -> None:
    run = RunNeeds(cwd="/", quick=True)
    with pytest.raises(HostError, match="no checkpoint was passed"):
        storage.checkpoint.function(LocalHost(), run, files)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        pytest.param(RunNeeds(cwd="/", quick=True), Why.NOT_ASKED, id="quick"),
        pytest.param(RunNeeds(cwd="/"), Why.TIMEOUT, id="not quick"),
        pytest.param(RunNeeds(cwd="/", quick=True, checkpoint="/c"), Why.TIMEOUT, id="passed"),
    ],
)
def test_a_slow_disk_makes_a_quick_check_no_worse(
    monkeypatch: pytest.MonkeyPatch, run: RunNeeds, why: Why
) -> None:
    host, limits = LocalHost(), []

    def late(argv: object, *, timeout: float) -> Result:
        limits.append(timeout)
        return Result(argv=(), returncode=None, stdout=b"", stderr=b"", seconds=1, timed_out=True)

    monkeypatch.setattr(host, "run", late)
    with pytest.raises(HostError) as caught:
        storage.checkpoint.function(host, run, LaunchFiles(resumed="/c"))
    assert caught.value.missing.why is why
    assert limits == [storage.QUICK_SECONDS if why is Why.NOT_ASKED else storage.CHECKPOINT_SECONDS]
