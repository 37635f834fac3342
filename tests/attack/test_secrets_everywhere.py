"""Sixty kinds of secret in environment, commands, files and logs: none is in any output or file."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.fleet import frames
from dsdoctor.model.masking import mask
from tests.support.command import Outcome, clean_environment, dsdoctor
from tests.support.planted import FORMS, NAMES, PLACES, PLANTED

#: Names that are told of a machine, by the list of allowed variables and by prefix.
PREFIXES = ("NCCL_", "CUDA_", "TORCH_", "SLURM_", "HF_HUB_", "DS_", "UCX_", "NVIDIA_", "PYTORCH_")


class Planted:
    """A folder in which everything contains secrets, and an environment likewise."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.folder = tmp_path / "job"
        self.folder.mkdir()
        self.temporary = tmp_path / "temporary"
        self.temporary.mkdir()
        self.env = clean_environment(tmp_path, TMPDIR=str(self.temporary))
        for number, planted in enumerate(PLANTED):
            line = planted.line.replace("\n", " ")
            self.env[f"{PREFIXES[number % len(PREFIXES)]}X{number}"] = line
            name, equals, value = line.rpartition(" ")[2].partition("=")
            if equals and name.isidentifier():
                self.env[name] = value
        self.env["PATH"] += ":/opt/" + FORMS[0].secret
        config = {
            "train_batch_size": 8,
            "wandb": {"api_key": "hunter2x", "team": FORMS[0].line},
            "auth_token": "hunter2x",
            "nested": [{"password": "hunter2x"}, *(planted.line for planted in PLANTED)],
        }
        (self.folder / "ds_config.json").write_text(json.dumps(config, indent=1))
        (self.folder / "broken.json").write_text(
            "{\n  train_batch_size: 8\n  wandb_api_key: hunter2x,\n  x: [}\n"
        )
        (self.folder / ".deepspeed_env").write_text(
            "".join(planted.line.replace("\n", " ") + "\n" for planted in NAMES)
        )
        (self.folder / "hostfile").write_text("localhost slots=2\n")
        lines = [planted.line.replace("\n", " ") for planted in PLANTED]
        (self.folder / "hosts.hostfile").write_text("".join(f"{line}\n" for line in lines))
        (self.folder / "launch.sh").write_text(
            "#!/bin/sh\n"
            + "".join(f"deepspeed --num_gpus 2 t.py {line}\n" for line in lines)
            + "deepspeed --num_gpus 0 t.py --password hunter2x --deepspeed broken.json\n"
        )
        (self.folder / "accelerate.yaml").write_text(
            "distributed_type: DEEPSPEED\nhub_token: hunter2x\ndeepspeed_config:\n"
            f"  train_batch_size: {json.dumps(lines[0])}\n  zero_optimization: {{stage: 9}}\n"
        )
        trace = "".join(
            f"[rank{number % 4}]: RuntimeError: CUDA error: {planted.line}\n"
            f"ValueError: {planted.line}\n"
            for number, planted in enumerate(PLANTED)
        )
        (self.folder / "train.log").write_text(
            f'{trace}Traceback (most recent call last):\n  File "/x/t.py", line 1, in f\n'
            f"torch.OutOfMemoryError: CUDA out of memory. {PLANTED[0].line} {NAMES[0].line}\n"
        )
        (self.folder / "issue.md").write_text(
            "It dies:\n```\n" + trace + "```\nds_report:\n```\n"
            + "deepspeed install path ........... ['/x/" + FORMS[0].secret + "']\n"
            + "torch version .................... 2.4.0 " + FORMS[1].secret + "\n"
            + "deepspeed info ................... 0.14.0, " + FORMS[2].secret + ", master\n```\n"
        )  # fmt: skip

    def run(self, *argv: str) -> Outcome:
        return dsdoctor(*argv, env=self.env, cwd=self.folder)

    def written(self) -> Iterator[Path]:
        """Files that a command has left anywhere that it may write."""
        known = {
            "ds_config.json", "broken.json", ".deepspeed_env", "hostfile", "train.log",
            "hosts.hostfile", "launch.sh", "accelerate.yaml", "issue.md",
        }  # fmt: skip
        for base in (self.folder, self.temporary, self.tmp_path / "home"):
            for place, _, names in os.walk(base):
                yield from (
                    Path(place, name) for name in names if name not in known or base != self.folder
                )


def leaks(text: str) -> list[str]:
    flat = text.replace("\\/", "/")
    return sorted({planted.kind for planted in PLANTED if planted.secret in flat})


ARGV = [word for planted in (*NAMES, *PLACES) for word in planted.line.split()]
COMMANDS = (
    ("check", "--quick", "-v", "--config", "ds_config.json", "--hostfile", "hostfile"),
    ("check", "--quick", "--format", "json", "--config", "ds_config.json"),
    ("check", "--quick", "--format", "json", "--config", "broken.json"),
    ("check", "--quick", "-v", "--config", "broken.json"),
    ("check", "--quick", "--format", "html", "-o", "report.html", "--config", "ds_config.json"),
    ("check", "--quick", "--format", "json", "--", "env", "HF_TOKEN=hunter2x", "deepspeed", "t.py", *ARGV),
    ("check", "--quick", "--format", "junit", "--", "deepspeed", "t.py", "--password", "hunter2x"),
    ("snapshot", "--quick", "-o", "s.json", "--config", "ds_config.json"),
    ("snapshot", "--quick", "-o", "r.json", "--redact", "--config", "ds_config.json"),
    ("diagnose", "train.log"),
    ("diagnose", "train.log", "--format", "json"),
    ("diagnose", "-v", "train.log"),
    ("fix", "--dry-run", "--config", "broken.json"),
    ("fix", "--dry-run", "--config", "ds_config.json", "--format", "json"),
    ("recommend", "--model", "7B", "--cpu", "-o", "plan"),
    ("fleet", "bundle", "-o", "collector.py"),
    ("hook", "nagios"),
    ("hook", "npd"),
    ("hook", "slurm-prolog"),
    ("smoke", "--cpu", "1", "--config", "broken.json"),
    ("lint", "."),
    ("lint", ".", "--format", "json"),
    ("lint", ".", "--format", "sarif", "-o", "lint.sarif"),
    ("lint", ".", "--format", "github"),
    ("triage", "issue.md"),
    ("triage", "issue.md", "--format", "json", "-o", "triage.json"),
    ("triage", "train.log"),
    ("check", "--from-report", "issue.md", "--format", "json"),
    ("check", "--from-report", "issue.md", "-v"),
    ("diagnose", "train.log", "--format", "html", "-o", "diagnosis.html"),
    ("diagnose", "issue.md", "--format", "json"),
    ("hook", "kubernetes"),
    ("hook", "npd", "--textfile", "npd.prom", "--json", "npd.json"),
    ("hook", "slurm-task-prolog"),
    ("explain", PLACES[0].line + " " + NAMES[0].line),
    ("run", "list"),
)  # fmt: skip


@pytest.mark.parametrize("argv", COMMANDS, ids=[" ".join(argv[:6]) for argv in COMMANDS])
def test_no_command_leaks(argv: tuple[str, ...], tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    done = planted.run(*argv)
    assert "Traceback" not in done.err
    assert leaks(done.out) == []
    assert leaks(done.err) == []
    for path in planted.written():
        assert leaks(path.read_text(errors="replace")) == [], path


def test_the_collector_keeps_secrets_on_the_node(tmp_path: Path) -> None:
    import subprocess

    planted = Planted(tmp_path)
    assert planted.run("fleet", "bundle", "-o", "collector.py").status == 0
    done = subprocess.run(
        [sys.executable, "collector.py"],
        env=planted.env, cwd=planted.folder, capture_output=True, timeout=500, check=True,
    )  # fmt: skip
    document = frames.document(done.stdout.split(b"\n"))
    assert document is not None
    assert leaks(json.dumps(document)) == []
    assert any(name.startswith("NCCL_X") for name in document["env"]), "ordinary ones are told"
    (planted.folder / "reports").mkdir()
    (planted.folder / "reports" / "gpu1.txt").write_bytes(done.stdout)
    told = planted.run("fleet", "check", "--from", "reports", "--format", "json")
    assert leaks(told.out + told.err) == []


def test_a_report_of_smoke_and_what_it_writes_of_the_launcher() -> None:
    import io

    from dsdoctor.model.smoke import LaunchUsed, SmokeReport, encode
    from dsdoctor.smoke.launcher import Lines
    from dsdoctor.smoke.run import masked

    lines = tuple(planted.line for planted in PLANTED)
    report = SmokeReport(
        verdict="fail",
        summary=lines[0],
        launch=LaunchUsed(
            argv=lines,
            env={"HF_TOKEN": "hunter2x", "NCCL_DEBUG": "INFO"},
            ds_config={"wandb": {"api_key": "hunter2x"}, "lines": list(lines)},
        ),
        log_tail=lines,
    )
    told = encode(masked(report))
    assert leaks(told) == []
    assert json.loads(told)["launch"]["env"]["NCCL_DEBUG"] == "INFO"
    log = io.BytesIO()
    writer = Lines(log)
    whole = (
        "\n".join(line.replace("\n", " ") for line in lines).encode() + b"\nlast NCCL_DEBUG=INFO"
    )
    for start in range(0, len(whole), 7):
        writer.take(whole[start : start + 7])
    writer.end()
    assert leaks(log.getvalue().decode()) == []
    assert log.getvalue().endswith(b"last NCCL_DEBUG=INFO")


def packed(path: Path) -> str:
    """Text of a file, of what is compressed in it as well."""
    data = path.read_bytes()
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            inner = [archive.extractfile(one) for one in archive if one.isfile()]
            data = b"".join(file.read() for file in inner if file is not None)
    elif data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return data.decode(errors="replace")


def test_what_run_keeps_and_what_it_sends(tmp_path: Path) -> None:
    """Only the job's own output, which nobody else may read, is kept as it was."""
    planted = Planted(tmp_path)
    words = [word for one in (*NAMES, *PLACES) for word in one.line.split()]
    done = planted.run(
        "run", "--preflight", "quick", "--force", "--runs-dir", "runs", "--metrics", "run.prom",
        "--", "sh", "-c", "cat train.log >&2; exit 1", *words,
    )  # fmt: skip
    assert done.status == 1
    said = done.err.replace((planted.folder / "train.log").read_text(), "")
    assert leaks(said) == []
    commands = (
        ("show", "last"), ("show", "last", "--format", "json"), ("list",),
        ("show", "last", "--format", "html", "-o", "run.html"), ("list", "--format", "json"),
        ("show", "last", "--bundle", "send.tar.gz"), ("export", "last", "--format", "json"),
        ("diff", "last", "last"), ("diff", "last", "last", "--format", "html", "-o", "diff.html"),
        ("export", "last"), ("export", "last", "--steps"), ("export", "last", "-o", "samples.csv"),
        ("export", "last", "--steps", "--format", "json", "-o", "steps.json"),
    )  # fmt: skip
    for given in commands:
        done = planted.run("run", "--runs-dir", "runs", *given)
        assert done.status == 0, (given, done.err)
        assert leaks(done.out + done.err) == [], given
    found = {path.name: path for path in planted.written()}
    assert {"run.prom", "run.html", "send.tar.gz"} <= found.keys()
    own = [path for name, path in found.items() if name.startswith("output-")]
    assert own
    for path in own:
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
    for path in set(planted.written()) - set(own):
        assert leaks(packed(path)) == [], path


def words_of(planted: tuple[Any, ...]) -> list[tuple[str, str]]:
    """The words that are a secret wherever they stand, each with what must not be found of it."""
    return [
        (word, one.secret)
        for one in planted
        for word in one.line.split()
        if one.secret in word and one.secret not in mask(word)
    ]


@pytest.mark.parametrize("form", ["text", "json", "prometheus"])
def test_the_log_of_the_gate(tmp_path: Path, form: str) -> None:
    """Names of nodes and jobs are whatever a scheduler, or a job's owner, has set."""
    run = tmp_path / "run"
    run.mkdir()
    hidden = words_of((*FORMS, *PLACES, *NAMES))
    assert len(hidden) > 50
    lines = []
    for number, (word, _) in enumerate(hidden):
        for place in ("node", "hook", "cause", "condition", "noted", "job"):
            words = {"hook": "npd", "node": "n1", "run": f"{place}-{number}", place: word}
            decision = "block" if place == "condition" else "pass"
            lines.append(
                f"time={int(time.time())} event=end decision={decision} seconds=1 "
                + " ".join(f"{name}={value}" for name, value in words.items())
            )
    (run / "gate.log").write_text("".join(f"{line}\n" for line in lines))
    planted = Planted(tmp_path)
    done = planted.run("hook", "status", "--run-folder", str(run), "--format", form)
    assert done.status == 0, done.err
    assert "npd" in done.out
    assert [word for word, secret in hidden if secret in done.out + done.err] == []


@pytest.mark.parametrize("kind", ["slurm-prolog", "slurm-task-prolog", "npd", "k8s"])
def test_what_a_hook_keeps(tmp_path: Path, kind: str) -> None:
    """The job and the node that a scheduler names are in the log, the verdict and the metrics."""
    planted = Planted(tmp_path)
    run = tmp_path / "run"
    word = FORMS[len(kind)].secret
    planted.env.update(SLURM_JOB_ID=word, SLURMD_NODENAME=f"gpu-{word}")
    argv = ["hook", kind, "--run-folder", str(run), "--json", "v.json"]
    argv += ["--textfile", "gate.prom"] if kind != "k8s" else []
    done = planted.run(*argv)
    assert word not in done.out + done.err
    told = planted.run("hook", "status", "--run-folder", str(run))
    assert kind in told.out
    assert word not in told.out + told.err
    for path in (*planted.written(), *run.rglob("*")):
        if path.is_file():
            assert leaks(path.read_text(errors="replace")) == [], path
            assert leaks(path.name) == [], path


LAUNCHER = """\
#!/bin/sh
# the temporary files of the moment, and every planted secret on both streams
mkdir "$SEEN/$$"
cp -r "$TMPDIR" "$SEEN/$$/temporary"
cp -r . "$SEEN/$$/folder"
cat train.log
cat train.log >&2
exit 1
"""


@pytest.mark.train
def test_runs_of_pairs(tmp_path: Path) -> None:
    """Launcher and log-in print all that was planted; what `fleet smoke` writes is looked at."""
    planted = Planted(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ssh", "pdsh"):
        (tools / name).write_text(LAUNCHER)
        (tools / name).chmod(0o755)
    seen = tmp_path / "seen"
    seen.mkdir()
    planted.env.update(PATH=f"{tools}:{planted.env['PATH']}", SEEN=str(seen))
    (planted.folder / "pair.hostfile").write_text("gpu1 slots=1\ngpu2 slots=1\n")
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "wandb": {"enabled": False, "team": FORMS[0].secret},
        "my_api_key": "hunter2x",
    }
    (planted.folder / "ds_config.json").write_text(json.dumps(config))
    done = planted.run(
        "fleet", "smoke", "--hostfile", "pair.hostfile", "--cpu", "1", "--format", "json",
        "--config", "ds_config.json", "--timeout", "60",
    )  # fmt: skip
    assert done.status in (1, 3), (done.out, done.err)
    assert "gpu" in done.out
    assert leaks(done.out) == []
    assert leaks(done.err) == []
    for path in planted.written():
        if path.name != "pair.hostfile":
            assert leaks(path.read_text(errors="replace")) == [], path
    ours = [
        path
        for path in seen.rglob("*")
        if path.is_file() and ("/temporary/" in str(path) or "/folder/dsdoctor-" in str(path))
    ]
    assert {"job.json", "hostfile", "launcher.log"} <= {path.name for path in ours}
    for path in ours:
        assert leaks(path.read_text(errors="replace")) == [], path


def test_the_log_and_the_journal_of_a_fix(tmp_path: Path) -> None:
    """Package managers print the index that they ask, with the password in it."""
    from dsdoctor.fixes import journal as journals
    from dsdoctor.fixes.apply import Applier
    from dsdoctor.model.fix_plan import Plan, Run

    for number, planted in enumerate((*PLACES, *NAMES, *FORMS)):
        line = planted.line.replace("\n", " ")
        said: list[str] = []
        plan = Plan(name="p", title="t", steps=(Run(argv=("echo", line), why="w"),))
        book = journals.Journal.begin("p", {}, tmp_path / str(number))
        Applier(plan, book, {"PATH": "/usr/bin:/bin"}, said.append).carry_out()
        assert planted.secret not in "".join(said), planted.kind
        for path in (tmp_path / str(number)).rglob("*"):
            if path.is_file():
                assert planted.secret not in path.read_text(errors="replace"), planted.kind


def test_what_a_fix_writes_is_in_its_journal_without_secrets(tmp_path: Path) -> None:
    """Its backup of the file is the one place that contains them."""
    env = clean_environment(tmp_path)
    file = tmp_path / "home" / ".deepspeed_env"
    file.write_text("HF_TOKEN=hunter2xhunter2x\na line\n")
    done = dsdoctor("fix", "repair-env-file", "--quick", "--yes", env=env)
    assert done.status == 0, done.err
    assert file.read_text() == "HF_TOKEN=hunter2xhunter2x\n"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    holds = [path for path in files if b"hunter2x" in path.read_bytes()]
    assert [path.parent.suffix for path in holds if path != file] == [".d"]
