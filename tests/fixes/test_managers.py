"""Every way to a toolkit with package managers that are fakes: argv, failures, undo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsdoctor.fixes import journal as journals
from dsdoctor.fixes.apply import Applier, StepError
from dsdoctor.fixes.undo import undo
from dsdoctor.model.fix_plan import Plan, Run
from tests.fixes.fakes import Machine
from tests.fixes.terminal import on_terminal
from tests.support.command import dsdoctor
from tests.support.patient import tree

pytestmark = pytest.mark.system
FIX = ("fix", "--install-cuda-toolkit", "--yes")


def cuda_checks(machine: Machine, activate: bool) -> dict[str, str]:
    """What a check says of the toolkit, with or without the activation snippet."""
    script = machine.patient / "opt" / "dsdoctor" / "activate.sh"
    line = f". '{script}'; " if activate else ""
    argv = [sys.executable, "-m", "dsdoctor", "check", "--quick", "--format", "json"]
    command = line + 'exec "$0" "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", command, *argv, "--select", "cuda"],
        env=machine.env, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    worst = ["ok", "skip", "warn", "unknown", "crash", "fail"]
    found: dict[str, str] = {}
    for row in json.loads(done.stdout)["findings"]:
        name, status = row["condition"], row["status"]
        found[name] = max(found.get(name, "ok"), status, key=worst.index)
    return found


def leftovers(machine: Machine) -> list[int]:
    """Programs of this machine's own folder that a dsdoctor left behind."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if entry.name.isdigit() and f"{machine.fake}/conda" in line:
            found.append(int(entry.name))
    return found


def hanging(machine: Machine) -> subprocess.Popen[str]:
    """A fix that has begun to install and goes on for a minute."""
    child = subprocess.Popen(
        [sys.executable, "-m", "dsdoctor", *FIX],
        env={**machine.env, "FAKE_MODE": "hang"}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    half = machine.patient / "opt/dsdoctor/cuda-12.3/half"
    while not half.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert half.exists()
    return child


def test_a_compiler_that_nvcc_rejects_is_known_before_anything_is_installed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    newer = machine.fake / "g++-new"
    newer.write_text('#!/bin/sh\necho "g++ (GCC) 99.1.0"\necho "Free Software Foundation, Inc."\n')
    newer.chmod(0o755)
    machine.env["CXX"] = str(newer)
    done = dsdoctor(FIX[0], FIX[1], "--dry-run", env=machine.env)
    assert f"nvcc 12.3 accepts gcc up to 12, but `{newer}` is gcc 99.1.0" in done.out
    assert machine.calls("create") == []


@pytest.mark.parametrize("kind", ["conda", "mamba", "micromamba", "pixi"])
def test_a_prefix_of_its_own(tmp_path: Path, kind: str) -> None:
    machine = Machine(tmp_path, kind)
    before = tree(machine.patient)
    assert "fail" in cuda_checks(machine, activate=False).values()
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 0, done.err
    assert "applied and proven" in done.err
    prefix = f"{machine.patient}/opt/dsdoctor/cuda-12.3"
    verbs = machine.calls("create", "init", "add")
    if kind == "pixi":
        assert verbs == [
            ["pixi", "init", prefix, "--channel", "conda-forge"],
            ["pixi", "add", "--manifest-path", f"{prefix}/pixi.toml", "cuda-toolkit=12.3",
             "cuda-version=12.3"],
        ]  # fmt: skip
    else:
        (call,) = verbs
        assert call[:5] == [kind, "create", "--yes", "--prefix", prefix]
        assert "--override-channels" in call
        assert "cuda-toolkit=12.3" in call
    after = cuda_checks(machine, activate=True)
    assert after["cuda-toolkit-missing"] == after["cuda-toolkit-mismatch"] == "ok"
    again = dsdoctor(*FIX, env=machine.env)
    assert again.status == 0
    assert "nothing to do" in again.err
    assert len(machine.calls("create", "init", "add")) == len(verbs)
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    assert tree(machine.patient) == before


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("solver", "the solver found no compatible set of packages"),
        ("permission", "this user may not write there"),
        ("disk", "the disk is full"),
        ("missing", "does not have this package in this version"),
        ("network", "the channel or index does not answer"),
    ],
)
@pytest.mark.parametrize("kind", ["conda", "micromamba", "pixi"])
def test_a_failure_leaves_the_environment_as_it_was(
    tmp_path: Path, kind: str, mode: str, words: str
) -> None:
    machine = Machine(tmp_path, kind)
    before = tree(machine.patient)
    done = dsdoctor(*FIX, env={**machine.env, "FAKE_MODE": mode})
    assert done.status == 1
    assert words in done.err
    assert "everything was restored" in done.err
    assert "Traceback" not in done.err
    assert tree(machine.patient) == before
    assert "nothing to undo" in dsdoctor("fix", "--undo", "--yes", env=machine.env).err


def test_interrupted(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    before = tree(machine.patient)
    child = hanging(machine)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=200)
    assert child.returncode == 130
    assert "interrupted" in err
    assert tree(machine.patient) == before


@pytest.mark.parametrize("when", ["step", "proof"])
def test_a_typed_ctrl_c_puts_everything_back(tmp_path: Path, when: str) -> None:
    machine = Machine(tmp_path, "conda")
    before = tree(machine.patient)
    if when == "step":
        machine.env["FAKE_MODE"], sign = "hang", b"| solving"
    else:
        machine.env["FAKE_NVCC_HANGS"], sign = "1", b"| without torch's headers"
    argv = ["fix", "--install-cuda-toolkit", "--yes"]
    shown, status = on_terminal(argv, machine.env, "\x03", question=sign)
    assert status == 130, shown
    assert "interrupted" in shown
    assert "everything was restored" in shown
    assert tree(machine.patient) == before
    assert "nothing to undo" in dsdoctor("fix", "--undo", "--yes", env=machine.env).err
    assert not leftovers(machine)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_half_way_leaves_nobody_at_work_and_undo_works(
    tmp_path: Path, number: signal.Signals
) -> None:
    machine = Machine(tmp_path, "conda")
    before = tree(machine.patient)
    child = hanging(machine)
    child.send_signal(number)
    child.communicate(timeout=200)
    assert child.returncode == 128 + number
    assert not leftovers(machine)
    assert tree(machine.patient) != before
    done = dsdoctor("fix", "--undo", "--yes", "--format", "json", env=machine.env)
    assert (done.status, done.report["outcomes"]) == (0, {"install-cuda-toolkit": "undone"})
    assert tree(machine.patient) == before
    again = dsdoctor("fix", "--undo", "--yes", "--format", "json", env=machine.env)
    assert (again.status, again.report["outcomes"]) == (0, {})


def test_killed_half_way_then_undo(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    before = tree(machine.patient)
    child = hanging(machine)
    child.kill()
    child.communicate(timeout=200)
    assert tree(machine.patient) != before
    again = dsdoctor(*FIX, env=machine.env)
    assert again.status == 2
    assert "`dsdoctor fix --undo` first" in again.err
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    assert tree(machine.patient) == before
    for pid in leftovers(machine):  # nothing could be done for them by who was killed
        os.kill(pid, signal.SIGKILL)


def test_two_fixes_at_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    first = hanging(machine)
    try:
        second = dsdoctor("fix", "--install-cuda-toolkit", "--yes", env=machine.env)
        assert second.status == 2
        assert "another `dsdoctor fix` is running" in second.err
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=200)


def test_exit_codes_prove_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    wrong = {**machine.env, "FAKE_CUDA": "11.8"}
    done = dsdoctor(*FIX, env=wrong)
    assert done.status == 1
    assert "applied, but not proven" in done.err
    assert "`cuda-toolkit-mismatch` still" in done.err


def test_a_compiler_that_fails_is_no_proof(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    done = dsdoctor(*FIX, env={**machine.env, "FAKE_NVCC_FAILS": "/bin/nvcc"})
    assert done.status == 1
    assert "the compiler is a fake" in done.err
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0


def test_environment_modules_and_other_environments_are_only_selected(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    place = machine.toolkit(tmp_path / "software" / "cuda-12.3")
    command = machine.fake / "modulecmd"
    command.write_text(
        '#!/bin/sh\nif [ "$1" = bash ]; then echo "cuda/12.3(default)" >&2\n'
        f"else echo \"os.environ['CUDA_HOME'] = '{place}'\"; fi\n"
    )
    command.chmod(0o755)
    done = dsdoctor("fix", "--install-cuda-toolkit", "--yes", "--format", "json", env=machine.env)
    assert done.status == 0, done.err
    assert "cuda/12.3" in done.report["plans"][0]["reasons"][0]
    assert done.report["outcomes"] == {"install-cuda-toolkit": "applied"}
    assert machine.calls("create") == []
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    command.unlink()
    other = machine.toolkit(tmp_path / "conda" / "envs" / "x")
    (tmp_path / "home" / ".conda").mkdir()
    (tmp_path / "home" / ".conda" / "environments.txt").write_text(f"{other}\n")
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 0, done.err
    assert f"CUDA_HOME={other}" in done.out
    assert machine.calls("create") == []


@pytest.mark.parametrize(
    ("manager", "beside"), [("apt-get", ("apt-cache", "dpkg-query")), ("dnf", ("rpm",))]
)
def test_a_system_package_and_its_undo(
    tmp_path: Path, manager: str, beside: tuple[str, ...]
) -> None:
    machine = Machine(tmp_path, manager, *beside)
    argv = ("fix", "install-ninja", "--yes")
    told = dsdoctor(*argv, env=machine.env)
    assert told.status == 1
    assert "--reach system" in told.err
    done = dsdoctor(*argv, "--reach", "system", env=machine.env)
    assert done.status == 0, done.err
    (call,) = machine.calls("install")
    assert call[0] == manager
    assert call[-1] == "ninja-build"
    assert (machine.bin / "ninja").exists()
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    assert machine.calls("remove")[0][-1] == "ninja-build"
    assert not (machine.bin / "ninja").exists()


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("permission", "this user may not write there"),
        ("lock", "another package manager is running"),
        ("disk", "the disk is full"),
    ],
)
def test_apt_fails(tmp_path: Path, mode: str, words: str) -> None:
    machine = Machine(tmp_path, "apt-get", "apt-cache", "dpkg-query")
    argv = (*FIX, "--reach", "system")
    done = dsdoctor(*argv, env={**machine.env, "FAKE_MODE": mode})
    assert done.status == 1
    assert words in done.err
    assert machine.calls("install")[0][-1] == "cuda-toolkit-12-3"


def test_the_toolkit_by_apt_needs_the_system(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "apt-get", "apt-cache", "dpkg-query")
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "apt offers `cuda-toolkit-12-3`, which needs `--reach system`" in done.err
    # apt says that all is well, but no toolkit is where it should be
    done = dsdoctor(*FIX, "--reach", "system", env=machine.env)
    assert done.status == 1
    assert "not proven" in done.err


@pytest.mark.parametrize("since", [{}, {"mine": "1"}], ids=["at once", "later"])
def test_in_place_conda_puts_its_list_back(tmp_path: Path, since: dict[str, str]) -> None:
    """What was installed since stays: it is not the fix's."""
    machine = Machine(tmp_path, "conda")
    installed = tmp_path / "installed.json"
    installed.write_text('{"base": "1"}')
    conda = str(machine.fake / "conda")
    step = Run(
        argv=(conda, "install", "--yes", "--prefix", str(tmp_path / "c"), "cuda-toolkit=12.3"),
        why="w",
        inventory="conda",
    )
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    Applier(Plan(name="p", title="t", steps=(step,)), book, machine.env, lambda _: None).carry_out()
    there = json.loads(installed.read_text())
    assert "cuda-toolkit" in there
    installed.write_text(json.dumps(there | since))
    undo(book, machine.env, lambda _: None)
    assert json.loads(installed.read_text()) == {"base": "1"} | since
    assert machine.calls("remove")[0][1:] == [
        "remove", "--yes", "--force", "--prefix", str(tmp_path / "c"), "cuda-toolkit",
    ]  # fmt: skip


def test_a_package_that_was_changed_since_stays_and_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "conda")
    installed = tmp_path / "installed.json"
    installed.write_text('{"base": "1", "cuda-toolkit": "11"}')
    conda = str(machine.fake / "conda")
    argv = (conda, "install", "--yes", "--prefix", str(tmp_path / "c"), "cuda-toolkit=12.3")
    plan = Plan(name="p", title="t", steps=(Run(argv=argv, why="w", inventory="conda"),))
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    Applier(plan, book, machine.env, lambda _: None).carry_out()
    installed.write_text('{"base": "1", "cuda-toolkit": "13"}')
    said: list[str] = []
    undo(book, machine.env, said.append)
    assert said == ["`cuda-toolkit` was changed since, and stays as it is"]
    assert json.loads(installed.read_text()) == {"base": "1", "cuda-toolkit": "13"}


def test_a_manager_that_cannot_list_is_not_let_loose(tmp_path: Path) -> None:
    step = Run(argv=("/nowhere/python", "-m", "pip", "install", "x"), why="w", inventory="pip")
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    plan = Plan(name="p", title="t", steps=(step,))
    with pytest.raises(StepError, match="undo could not restore it"):
        Applier(plan, book, {}, lambda _: None).carry_out()


def test_too_little_room_stops_before_the_download(tmp_path: Path) -> None:
    step = Run(argv=("touch", str(tmp_path / "ran")), why="w", needs_bytes=1 << 60)
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    with pytest.raises(StepError, match="but this needs"):
        Applier(Plan(name="p", title="t", steps=(step,)), book, {}, lambda _: None).carry_out()
    assert not (tmp_path / "ran").exists()


def test_a_step_past_its_deadline_is_stopped(tmp_path: Path) -> None:
    step = Run(argv=("sleep", "30"), why="w", timeout=0.5)
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    with pytest.raises(StepError, match=r"did not finish within 0\.5 s"):
        Applier(
            Plan(name="p", title="t", steps=(step,)), book, dict(os.environ), lambda _: None
        ).carry_out()
