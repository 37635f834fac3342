"""Every command of every page that can run here is run: offline, on a machine of simulated GPUs.

`LEFT_OUT` lists those that cannot, by what they need. The pages name an environment, a config, logs and
reports of the reader's: `folder` has them all. Its environment is a venv without torch, which is
examined in a second; launchers are stand-ins that start their script once.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dsdoctor.cli.main import group
from dsdoctor.model.run_record import RunRecord
from dsdoctor.preflight import PreflightError
from tests.html import samples
from tests.nvml import fakenvml, scenarios
from tests.paste import texts
from tests.unit.test_readme import BLOCK, DOCS, PAGES, ROOT, blocks, commands, name_of, parse

pytestmark = pytest.mark.system

CONFIG = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}
#: Of Llama 3 8B, as far as sizes are read from it.
MODEL = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
#: The environment of the reader; `/opt/train` and `/path/to/venv` on the pages.
ENVIRONMENT = "opt/train"
#: A launcher that starts its script once: the first word that ends with `.py`.
LAUNCHER = """#!/bin/sh
for word; do case $word in *.py) exec PYTHON "$word";; esac; done
exit 2
"""
#: What a command of a page needs that is not here, and who runs its like.
LEFT_OUT = {
    "a training run (tests/smoke, tests/recommend)": (
        "recommend --model gpt2 --gpus 0,1 --prove",
        "recommend --model gpt2 --gpus 0,1 --prove -o run",
        "smoke",
        "smoke --gpus 0,1 --config ds_config.json",
        "smoke --gpus 0,1 --config ds_config.json --bisect",
        "smoke --model llama-3-8b --full-size -o proven",
        "smoke --plan run/launch.json",
        "smoke --plan run/launch.json --full-size",
        "smoke --python /opt/train --cpu 2",
        "smoke --python dsdoctor-env",
    ),
    "torch in the environment (tests/recommend/test_measured.py)": (
        "recommend --model llama-3-8b --stage 2 --micro-batch 4 --measure",
    ),
    "nodes that are reached by ssh (tests/fleet)": (
        "fleet check --hostfile hostfile",
        "fleet check --nodes 'gpu[001-512]' --save reports",
        "fleet check --nodes 'gpu[001-512]' --save reports/",
        "fleet check --nodes 'gpu[001-512]' --topology topology.conf",
        "fleet smoke --hostfile hostfile",
    ),
    "an allocation of Slurm (tests/slurm, tests/run)": (
        "fleet check --slurm",
        "run --requeue -- torchrun --nproc-per-node 8 train.py --resume",
    ),
    "a cluster of Kubernetes or Ray (tests/fleet)": (
        "fleet check --kubernetes",
        "fleet check --kubernetes --namespace train --selector app=train",
        "fleet check --kubernetes --pod-image IMAGE",
        "fleet check --ray http://head:8265",
    ),
    "root's folders (tests/hook)": (
        "hook install slurm",
        "hook uninstall slurm",
    ),
    "the file of the page (tests/packs/test_readme.py)": (
        "check --quick --select acme-scratch-full --checks-dir .",
    ),
}


def examples() -> Iterator[str]:
    """The commands that `--help` shows."""
    for _, text in blocks(DOCS / "cli.md"):
        for found in re.finditer(r"^  Examples:\n((?: {4}.+\n)+)", text, re.MULTILINE):
            yield from found[1].splitlines()


SHOWN = {
    shlex.join(args): where
    for where, text in [
        *(("docs/cli.md", line) for line in examples()),
        *(
            (name_of(page), text)
            for page in PAGES
            for language, text in blocks(page)
            if language in ("sh", "bash", "")
        ),
    ]
    for args in commands(text)
    if args  # `srun … dsdoctor` alone is prose
}
RUNNABLE = sorted(set(SHOWN) - {words for left_out in LEFT_OUT.values() for words in left_out})


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
    (folder / "train.py").write_text("print('trained')\n")
    shutil.copy(ROOT / "docs" / "kubernetes" / "job.yaml", folder)
    (folder / "run").mkdir()
    (folder / "run" / "launch.sh").write_text("exec deepspeed --num_gpus 2 train.py\n")
    venv.create(folder / ENVIRONMENT, symlinks=True)
    for name in (".venv", "dsdoctor-env"):
        (folder / name).symlink_to(folder / ENVIRONMENT)
    (folder / "bin").mkdir()
    for name in ("python3", "python3.11"):
        (folder / "bin" / name).symlink_to(folder / ENVIRONMENT / "bin" / "python")
    for name in ("deepspeed", "torchrun"):
        launcher = folder / "bin" / name
        launcher.write_text(LAUNCHER.replace("PYTHON", sys.executable))
        launcher.chmod(0o755)
    for name in ("home", "ops/fused_adam", "state"):
        (folder / name).mkdir(parents=True)
    lock = folder / "ops" / "fused_adam" / "lock"
    lock.write_text("")
    os.utime(lock, (0, 0))
    (folder / "env.txt").write_text(texts.COLLECT_ENV)
    (folder / "my-model").mkdir()
    (folder / "my-model" / "config.json").write_text(json.dumps(MODEL))
    snapshot = samples.snapshot().to_json()
    for name in ("gpu-node", "gpu-17", "good", "today", "golden"):
        (folder / f"{name}.json").write_bytes(snapshot)
    for name in ("reports", "reports-monday", "reports-friday"):
        (folder / name).mkdir()
        (folder / name / "gpu-17.json").write_bytes(snapshot)
    for name in ("RUN1", "RUN2", "20261122-0610", "20261122-0755"):
        run = folder / "runs" / name
        run.mkdir(parents=True)
        record = RunRecord(id=name, started="2026-11-22T06:10:00+00:00", seconds=9, status=0)
        (run / "run.json").write_bytes(msgspec.json.encode(record))
        (run / "steps.jsonl").write_text('{"t": 1, "step": 1, "loss": 3.5}\n')
    return folder


@pytest.fixture(name="reader")
def _reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's shell: in the folder, on a machine with eight GPUs, nothing of ours around."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    for name, value in {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "XDG_STATE_HOME": str(folder / "state"),
        "TORCH_EXTENSIONS_DIR": str(folder / "ops"),
        "DSDOCTOR_RUNS": str(folder / "runs"),
        "DSDOCTOR_PYTHON": str(folder / ENVIRONMENT),
        **fakenvml.environment(scenarios.h100_x8(), folder),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def state(folder: Path) -> dict[Path, int]:
    """Every file, and when it was written."""
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


def of_the_reader(words: str, folder: Path) -> list[str]:
    """The words, with absolute paths in the reader's folder."""
    args = [
        str(folder / ENVIRONMENT) + word.removeprefix(found[0])
        if (found := re.match("/opt/train|/path/to/venv", word))
        else word
        for word in shlex.split(words)
    ]
    if args[:2] == ["hook", "install"] and "--dry-run" not in args and "kubernetes" not in args:
        args += ["--into", "installed"]  # else below /usr/local
    if args[:2] == ["hook", "status"] and "--run-folder" not in args:
        (folder / "gate").mkdir(exist_ok=True)
        args += ["--run-folder", str(folder / "gate")]  # else /run/dsdoctor, made by a gate
    return args


@pytest.mark.parametrize(
    "words", [words for words in RUNNABLE if not words.startswith("run -")], ids=str
)
def test_a_command_of_a_page_runs(
    words: str, reader: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(reader)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(samples.LOG.encode())))
    status = group.main(of_the_reader(words, reader), prog_name="dsdoctor", standalone_mode=False)
    said = capsys.readouterr()
    assert status in (None, 0, 1, 3, *([4] if words.startswith("fix") else ())), said.err
    done = said.out or (words.startswith("fix") and said.err) or state(reader) != before
    assert done, f"nothing came of it ({SHOWN[words]})"


@pytest.mark.parametrize(
    "words", [words for words in RUNNABLE if words.startswith("run -")], ids=str
)
def test_a_job_of_a_page_starts(words: str, reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSDOCTOR_PYTHON", sys.executable)  # torch must be installed, not started
    own = Path(sys.executable).parent  # with ninja, which some systems do not have
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{own}")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(reader / "home"))  # without the stale lock
    monkeypatch.delenv("LD_LIBRARY_PATH")  # without the GPUs, which torch does not see
    argv = [sys.executable, "-m", "dsdoctor", *of_the_reader(words, reader)]
    done = subprocess.run(
        argv, cwd=reader, capture_output=True, text=True, check=False, timeout=500
    )
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr


def test_what_is_left_out_stands_on_a_page() -> None:
    listed = [words for left_out in LEFT_OUT.values() for words in left_out]
    assert len(set(listed)) == len(listed)
    assert set(listed) <= set(SHOWN)
    assert len(RUNNABLE) > 3 * len(listed)


@pytest.mark.parametrize("page", ["docs/python.md", "docs/hook.md"])
def test_the_python_of_a_page_runs(
    page: str, reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = [text for language, text in blocks(ROOT / page) if language == "python"]
    refused = ""
    try:
        exec(compile(code, page, "exec"), {})  # it is what the reader would run
    except PreflightError as error:
        refused = str(error)
    assert "torch-missing" in capsys.readouterr().out + refused


def test_every_block_of_shell_is_shell() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    text = "\n".join(
        f"({block}\n)" for page in pages for language, block in blocks(page) if language == "sh"
    )
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_in_the_text_of_a_page_parses() -> None:
    found = [
        (name_of(page), args)
        for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
        for words in re.findall(
            r"`(dsdoctor [^`]+)`", BLOCK.sub("", page.read_text(encoding="utf-8"))
        )
        for args in commands(words.replace("\n", " "))
    ]
    assert len(found) > 150
    for _, args in found:
        parse(args)
