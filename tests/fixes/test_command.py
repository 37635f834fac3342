"""The command as a user meets it: what it shows, what it asks, what it exits with."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.model.schema import plan_schema
from tests.fixes import cases
from tests.fixes.fakes import Machine
from tests.fixes.terminal import on_terminal
from tests.support.command import clean_environment, dsdoctor
from tests.support.patient import stub_torch, tree, venv

CONFIG = cases.CONFIG.replace('"train_batch_size": 32,\n', "").replace("AdamWW", "AdmW")


@pytest.fixture
def locked(tmp_path: Path) -> dict[str, str]:
    """A machine with a lock that a dead build left two hours ago."""
    lock = tmp_path / "cache" / "cpu_adam" / "lock"
    lock.parent.mkdir(parents=True)
    lock.write_bytes(b"")
    old = time.time() - 7200
    os.utime(lock, (old, old))
    return clean_environment(tmp_path, TORCH_EXTENSIONS_DIR=str(tmp_path / "cache"))


def test_without_a_terminal_it_only_shows(tmp_path: Path, locked: dict[str, str]) -> None:
    before = tree(tmp_path / "cache")
    done = dsdoctor("fix", "remove-stale-lock", env=locked)
    assert done.status == 4
    assert "remove the locks of killed builds" in done.out
    assert "`--yes` applies the plan" in done.err
    assert tree(tmp_path / "cache") == before


def test_json_keeps_its_schema(locked: dict[str, str]) -> None:
    done = dsdoctor("fix", "remove-stale-lock", "--dry-run", "--format", "json", env=locked)
    assert done.status == 0
    jsonschema.validate(done.report, json.loads(plan_schema()))
    assert {"name", "steps", "proves", "undo", "reach"} <= set(done.report)
    assert set(done.report["steps"][0]) >= {"remove", "why"}


def test_applied_proven_undone(tmp_path: Path, locked: dict[str, str]) -> None:
    before = tree(tmp_path / "cache")
    done = dsdoctor("fix", "remove-stale-lock", "--yes", env=locked)
    assert done.status == 0
    assert "applied and proven" in done.err
    assert not (tmp_path / "cache/cpu_adam/lock").exists()
    again = dsdoctor("fix", "remove-stale-lock", "--yes", env=locked)
    assert (again.status, "nothing to do" in again.err) == (0, True)
    undone = dsdoctor("fix", "--undo", "--yes", env=locked)
    assert undone.status == 0
    assert tree(tmp_path / "cache") == before
    assert "nothing to undo" in dsdoctor("fix", "--undo", "--yes", env=locked).err


def test_no_name_offers_what_the_findings_name(locked: dict[str, str]) -> None:
    done = dsdoctor(
        "fix", "--quick", "--format", "json", env={**locked, "CUDA_LAUNCH_BLOCKING": "1"}
    )
    assert "remove-stale-lock" in {plan["name"] for plan in done.report["plans"]}
    assert done.status == 4


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 4), ("\n", 4)])
def test_on_a_terminal_it_asks(
    tmp_path: Path, locked: dict[str, str], answer: str, status: int
) -> None:
    shown, code = on_terminal(["fix", "remove-stale-lock"], locked, answer)
    assert code == status
    assert shown.index("remove the locks") < shown.index("apply this plan?")
    assert (tmp_path / "cache/cpu_adam/lock").exists() is (status == 4)


def test_what_cannot_be_undone_is_said_before_it_asks(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    (folder / "burn_bridge.py").write_text(FATAL)
    env = clean_environment(tmp_path, MARKED=str(tmp_path / "mark"))
    argv = ["fix", "burn-bridge", "--quick", "--checks-dir", str(folder)]
    shown, code = on_terminal(argv, env, "n\n")
    assert code == 4
    assert shown.index("CANNOT BE UNDONE: the bridge is gone") < shown.index("apply this plan?")


FATAL = '''"""A fix that cannot be undone."""
from dsdoctor.api import Plan, Resources, Run, fix

@fix("burn-bridge")
def burn(resources: Resources) -> Plan:
    step = Run(argv=("true",), why="w", irreversible="the bridge is gone")
    return Plan(name="burn-bridge", title="burn it", steps=(step,))
'''


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("fix", "remove-stale-locks"), "did you mean `remove-stale-lock`"),
        (("fix", "--undo", "remove-stale-lock"), "takes no name"),
        (("fix", "--undo", "--list"), "`--list`"),
        (("fix", "--list", "--format", "json"), "no `--format`"),
        (("fix", "--list", "remove-stale-lock"), "takes no name"),
        (("fix", "--dry-run", "--yes"), "mutually exclusive"),
        (("fix", "--reach", "moon"), "--reach"),
        (("fix", "--config", "nowhere.json"), "`--config nowhere.json` is not a file"),
    ],
)
def test_misuse(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    done = dsdoctor(*argv, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_the_dry_run_does_when_pasted_what_the_fix_does(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    place = machine.toolkit(tmp_path / "software/cuda-12.3")
    (tmp_path / "home/.conda").mkdir()
    (tmp_path / "home/.conda/environments.txt").write_text(f"{place}\n")
    argv = ("fix", "--install-cuda-toolkit")
    dry = dsdoctor(*argv, "--dry-run", env=machine.env)
    assert dry.status == 0
    script = dry.out + '\necho "HOME=$CUDA_HOME"\n'
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=machine.env, capture_output=True, text=True, check=True,
        timeout=300,
    )  # fmt: skip
    assert f"HOME={place}" in done.stdout
    pasted = tree(machine.patient / "opt")
    subprocess.run(["rm", "-rf", str(machine.patient / "opt")], check=True)
    assert dsdoctor(*argv, "--yes", env=machine.env).status == 0
    assert tree(machine.patient / "opt") == pasted


def test_a_dry_run_of_what_is_not_possible_is_status_1(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    patient = venv(tmp_path / "env", pip=False)
    stub_torch(patient, version="2.3.1", release="0")
    version = next(patient.glob("lib/python3*/site-packages/torch/version.py"))
    version.write_text(version.read_text().replace("cuda = '13.0'", "cuda = None"))
    env["DSDOCTOR_PYTHON"] = str(patient / "bin/python")
    done = dsdoctor("fix", "--install-cuda-toolkit", "--dry-run", env=env)
    assert done.status == 1
    assert "is not a CUDA build" in done.err


def faulty(root: Path) -> dict[str, str]:
    """A machine with a lock, a hostfile, a config and variables to be repaired."""
    root.mkdir(parents=True)
    wrong = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True"}
    env = clean_environment(root, TORCH_EXTENSIONS_DIR=f"{root}/cache", **wrong)
    lock = root / "cache/cpu_adam/lock"
    lock.parent.mkdir(parents=True)
    lock.write_bytes(b"")
    os.utime(lock, (time.time() - 7200,) * 2)
    (root / "ds.json").write_text(CONFIG)
    (root / "hosts").write_text(cases.HOSTS)
    (root / "home/.deepspeed_env").write_text(cases.ENV_LINES)
    patient = venv(root / "env", pip=False)
    stub_torch(patient, version="2.3.1", cuda="12.3", release="0")
    return {**env, "DSDOCTOR_PYTHON": str(patient / "bin/python")}


def test_the_simple_fixes_do_when_pasted_what_they_do_when_applied(tmp_path: Path) -> None:
    names = ("remove-stale-lock", "repair-hostfile", "repair-ds-config", "repair-env-file",
             "unset-variables")  # fmt: skip
    root = tmp_path / "m"
    env = faulty(root)
    argv = ("fix", *names, "--quick", "--reach", "home", "--hostfile", str(root / "hosts"),
            "--config", str(root / "ds.json"))  # fmt: skip
    dry = dsdoctor(*argv, "--dry-run", env=env)
    assert dry.status == 0
    for shell in ("bash", "sh"):
        subprocess.run([shell, "-n"], input=dry.out, text=True, check=True, timeout=200)
    at_first = tree(root)
    subprocess.run(["bash"], input=dry.out, text=True, check=True, timeout=200, env=env)
    pasted = tree(root)
    assert len([name for name in at_first.keys() | pasted.keys()
                if at_first.get(name) != pasted.get(name)]) >= 6  # fmt: skip
    shutil.rmtree(root)
    done = dsdoctor(*argv, "--yes", env=faulty(root))
    assert done.status == 0, done.err
    state = root / "home/.local"
    shutil.rmtree(state)  # the journals
    assert tree(root) == pasted


def test_what_is_the_users_to_do_is_only_told(tmp_path: Path) -> None:
    env = clean_environment(tmp_path, NCCL_IB_HCA="mlx5_0")
    argv = [sys.executable, "-m", "dsdoctor", "fix", "raise-limits", "--quick", "--yes"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -l 64; exec "$0" "$@"', *argv],
        env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "memlock" in done.stdout
    assert "do this yourself" in done.stderr
    assert "nothing to undo" in dsdoctor("fix", "--undo", "--yes", env=env).err


def test_a_config_is_corrected_in_a_copy(tmp_path: Path) -> None:
    config = tmp_path / "ds.json"
    config.write_text(CONFIG)
    env = clean_environment(tmp_path)
    argv = ("fix", "repair-ds-config", "--quick", "--config", str(config), "--yes")
    told = dsdoctor(*argv, "--reach", "env", env=env)
    assert told.status == 1
    assert "--reach home" in told.err
    # whoever names it, as `check` prints it, is not asked for one option more
    done = dsdoctor(*argv, env=env)
    assert done.status == 0, done.err
    assert f"start the job with `{tmp_path / 'ds.fixed.json'}` in place of the config" in done.err
    assert config.read_text() == CONFIG
    text = (tmp_path / "ds.fixed.json").read_text()
    assert "// ZeRO-2, as the guide has it" in text
    assert "# typo" in text
    assert '"gradient_clipping": 1.0' in text
    assert "offload_param" not in text
    assert '"overlap_comm": true' in text
    checked = dsdoctor("check", "--quick", "--format", "json", "--select", "config", "--config",
                       str(tmp_path / "ds.fixed.json"), env=env)  # fmt: skip
    assert checked.of("ds-config-invalid-key") == "ok"
    assert checked.of("ds-config-unknown-optimizer") == "ok"
    assert dsdoctor("fix", "--undo", "--yes", env=env).status == 0
    assert not (tmp_path / "ds.fixed.json").exists()


def test_what_check_prints_as_a_fix_fixes_it(tmp_path: Path) -> None:
    """The command that `check` prints finds the same fault: the job is part of it."""
    config = tmp_path / "ds.json"
    config.write_text('{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4}')
    (tmp_path / "train.py").write_text("import deepspeed\n")
    env = clean_environment(tmp_path)
    job = ["--", "torchrun", "--nproc_per_node", "3", "train.py", "--deepspeed_config", "ds.json"]
    quick = ("--quick", "--select", "ds-config-batch-mismatch")
    found = dsdoctor("check", *quick, *job, env=env, cwd=tmp_path)
    assert found.status == 1
    (printed,) = re.findall(r"fix: `dsdoctor (.*?)`", " ".join(found.out.split()))
    done = dsdoctor("fix", "--quick", *shlex.split(printed)[1:], env=env, cwd=tmp_path)
    assert done.status == 4, done.err  # shown: nobody is there to answer
    assert "ds.fixed.json" in done.out
    words = shlex.split(printed)[1:]
    applied = dsdoctor("fix", "--quick", "--yes", *words, env=env, cwd=tmp_path)
    assert applied.status == 0, applied.err
    assert json.loads((tmp_path / "ds.fixed.json").read_text())["train_batch_size"] % 3 == 0


def test_a_condition_stands_for_its_fix(locked: dict[str, str]) -> None:
    for name in ("DSD406", "jit-build-stale-lock"):
        done = dsdoctor("fix", name, "--dry-run", env=locked)
        assert done.status == 0, done.err
        assert "remove-stale-lock" in done.out
    none = dsdoctor("fix", "driver-missing", env=locked)
    assert none.status == 2
    assert none.err == (
        "dsdoctor: `driver-missing` has no fix; `dsdoctor explain DSD101` says what to do\n"
    )


def test_hostfile_and_env_file_are_corrected_in_place(tmp_path: Path) -> None:
    hosts = tmp_path / "hostfile"
    hosts.write_text(cases.HOSTS)
    env = clean_environment(tmp_path)
    lines = tmp_path / "home" / ".deepspeed_env"
    lines.write_text(cases.ENV_LINES)
    lines.chmod(0o600)
    argv = ("fix", "repair-hostfile", "repair-env-file", "--quick", "--hostfile", str(hosts))
    done = dsdoctor(*argv, "--yes", "--reach", "home", env=env)
    assert done.status == 0, done.err
    assert hosts.read_text().splitlines()[1:5] == [
        "node-a slots=8", "node-b slots=8", "node-c slots=4", "# node-a slots=2",
    ]  # fmt: skip
    assert lines.read_text() == "NCCL_DEBUG=INFO\nHF_HOME=/data\n"
    assert lines.stat().st_mode & 0o777 == 0o600
    assert dsdoctor("fix", "--undo", "--yes", env=env).status == 0
    assert dsdoctor("fix", "--undo", "--yes", env=env).status == 0
    assert hosts.read_text() == cases.HOSTS
    assert lines.read_text() == cases.ENV_LINES


def test_no_start_up_file_is_touched_and_no_secret_is_shown(tmp_path: Path) -> None:
    wrong = "PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True"
    env = clean_environment(tmp_path, PYTORCH_CUDA_ALLOC_CONF=wrong.partition("=")[2])
    home = tmp_path / "home"
    (home / ".bashrc").write_text(f"export {wrong}\n")
    (home / ".deepspeed_env").write_text(f"DS_SKIP_CUDA_CHECK=1\nHF_TOKEN=hf_{'a' * 30}\n")
    (tmp_path / "m").mkdir()
    machine = Machine(tmp_path / "m")
    env["DSDOCTOR_PYTHON"] = machine.env["DSDOCTOR_PYTHON"]
    argv = ("fix", "unset-variables", "--quick", "--reach", "home")
    for form in (("--dry-run",), ("--format", "json"), ()):
        assert "hf_aaa" not in dsdoctor(*argv, *form, env=env).out
    done = dsdoctor(*argv, "--yes", env=env)
    assert done.status == 0, done.err
    assert (home / ".bashrc").read_text() == f"export {wrong}\n"
    assert (home / ".deepspeed_env").read_text() == f"HF_TOKEN=hf_{'a' * 30}\n"
    script = machine.patient / "opt/dsdoctor/activate.sh"
    shell = ["/bin/sh", "-c", f". '{script}'; echo $PYTORCH_CUDA_ALLOC_CONF"]
    told = subprocess.run(shell, env=env, capture_output=True, text=True, check=True).stdout
    assert told.strip() == "expandable_segments:True"
