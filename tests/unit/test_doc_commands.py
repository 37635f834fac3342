"""Every command of every page that can run here is run: offline, without a GPU, in seconds.

A page may show any command; one that cannot run here says why by the rules of `needs`.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest

from dsdoctor.cli.main import group
from dsdoctor.model.run_record import RunRecord
from tests.html import samples
from tests.paste import texts
from tests.unit.test_readme import PAGES, blocks, commands, name_of

CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}
#: Of Llama 3 8B, as far as sizes are read from it.
MODEL = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
#: Options that read this machine's GPUs, or those of a run.
OF_GPUS = {"--gpus", "--expect-gpus", "--deep"}
#: Options that name an environment of the reader's.
OF_ENVIRONMENTS = {"--python", "--like", "--node"}
OF_NODES = {"--hostfile", "--nodes", "--slurm", "--kubernetes", "--ray"}


def needs(args: list[str]) -> str:
    """What a command needs that is not here; "" = nothing."""
    given = set(args)
    first, second = (*args, "", "")[:2]
    rules = (
        (first == "smoke" or "--prove" in given or args[:2] == ["fleet", "smoke"], "trains"),
        (first == "run" and "--" in given, "starts a job"),
        (bool(given & OF_GPUS), "GPUs"),
        (bool(given & OF_ENVIRONMENTS), "an environment of the reader's"),
        (first == "fleet" and bool(given & OF_NODES), "nodes"),
        (first == "fix" and "--list" not in given, "changes the machine"),
        (first == "hook" and second != "status" and "--dry-run" not in given, "root"),
        (first == "recommend" and "--gpu-memory" not in given, "GPUs"),
        (first == "diagnose" and bool(given & {"-", "--here"}), "a pipe, or the machine"),
        (first == "snapshot", "starts torch"),
        (
            first == "check" and not given & {"--from", "--from-report", "--quick"},
            "starts torch",
        ),
        ("--checks-dir" in given, "a check of the reader's"),
        (not args, "a word of prose"),
    )
    return next((reason for true, reason in rules if true), "")


SHOWN = {
    shlex.join(args): name_of(page)
    for page in PAGES
    for language, text in blocks(page)
    if language in ("sh", "bash", "")
    for args in commands(text)
}
RUNNABLE = sorted(words for words in SHOWN if not needs(shlex.split(words)))


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the pages name."""
    folder = tmp_path_factory.mktemp("reader")
    log = samples.LOG
    for name in ("train.log", "logs/rank-0.log", "issue.md"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"```\n{log}```\n" if name == "issue.md" else log)
    for name in ("ds_config.json", "configs/ds_config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(CONFIG))
    (folder / "scripts").mkdir()
    (folder / "scripts" / "train.sh").write_text("deepspeed --num_gpus 4 train.py\n")
    (folder / "train.py").write_text("import deepspeed\n")
    (folder / "env.txt").write_text(texts.COLLECT_ENV)
    (folder / "my-model").mkdir()
    (folder / "my-model" / "config.json").write_text(json.dumps(MODEL))
    snapshot = samples.snapshot().to_json()
    for name in ("gpu-node", "gpu-17", "good", "today", "golden"):
        (folder / f"{name}.json").write_bytes(snapshot)
    for name in ("reports", "reports-monday", "reports-friday"):
        (folder / name).mkdir()
        (folder / name / "gpu-17.json").write_bytes(snapshot)
    for name in ("RUN1", "RUN2"):
        run = folder / "runs" / name
        run.mkdir(parents=True)
        record = RunRecord(id=name, started="2026-11-22T06:10:00+00:00", seconds=9, status=0)
        (run / "run.json").write_bytes(msgspec.json.encode(record))
        (run / "steps.jsonl").write_text('{"t": 1, "step": 1, "loss": 3.5}\n')
    return folder


@pytest.mark.parametrize("words", RUNNABLE)
def test_a_command_of_a_page_runs(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DSDOCTOR_RUNS", str(folder / "runs"))
    before = set(folder.rglob("*"))
    status = group.main(shlex.split(words), prog_name="dsdoctor", standalone_mode=False)
    assert status in (None, 0, 1, 3), SHOWN[words]
    said = capsys.readouterr()
    assert said.out or set(folder.rglob("*")) != before, f"nothing came of it ({SHOWN[words]})"


def test_most_kinds_of_commands_are_run() -> None:
    kinds = {shlex.split(words)[0] for words in RUNNABLE}
    assert kinds >= {"check", "diagnose", "diff", "explain", "fleet", "lint", "recommend", "run"}
    assert len(RUNNABLE) >= 25
    assert needs(["check"]) == "starts torch"
    assert needs(["fix", "--list"]) == ""
