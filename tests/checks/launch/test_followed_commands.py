"""Which command starts the job, and in which folder, behind scripts, terminals and profilers."""

from __future__ import annotations

import shlex

import pytest

from dsdoctor.host.door import Stat
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.testing import FakeHost, judge, read
from dsdoctor_checks.launch import launch_file_missing, launch_placeholder_left

LAUNCH = "torchrun --nproc_per_node 2 t.py\n"
FILES = {
    "/job/here.py": "import torch\n",
    "/job/sub/t.py": "import torch\n",
    "/job/sub/ds.json": '{"train_micro_batch_size_per_gpu": 1}',
    "/home/a/p/t.py": "import torch\n",
    "/usr/bin/torchrun": "#!/usr/bin/python3\n",
    "/usr/bin/srun": "x",
}


def resolved(words: tuple[str, ...], script: str = "", **given: object) -> RunNeeds:
    host = FakeHost(
        env={"PATH": "/usr/bin", "HOME": "/home/a"},
        files={**FILES, "/job/run.sh": script} if script else FILES,
        stats=given.pop("stats", {}),  # type: ignore[arg-type]
    )
    return resolve(RunNeeds(command=words, cwd="/job", **given), host)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "folder"),
    [
        pytest.param(f"cd sub\n{LAUNCH}", "/job/sub", id="cd"),
        pytest.param(f"cd sub || exit 1\n{LAUNCH}", "/job/sub", id="or exit"),
        pytest.param(f"cd sub && {LAUNCH}", "/job/sub", id="and then"),
        pytest.param(f"pushd sub >/dev/null\n{LAUNCH}popd\n", "/job/sub", id="pushd"),
        pytest.param(f"pushd apex; make; popd; cd ./sub/\n{LAUNCH}", "/job/sub", id="popd"),
        pytest.param(f'cd "$HOME/p"\n{LAUNCH}', "/home/a/p", id="the home folder"),
        pytest.param(f"cd ~/p\n{LAUNCH}", "/home/a/p", id="the home folder as a tilde"),
        pytest.param(f"D=sub\ncd $D\n{LAUNCH}", "/job/sub", id="a variable of the script"),
        pytest.param(f"cd $SLURM_SUBMIT_DIR/sub\n{LAUNCH}", "/job/sub", id="where it is submitted"),
        pytest.param(f'cd "$(dirname "$0")"/sub\n{LAUNCH}', "/job/sub", id="next to the script"),
        pytest.param(f"(cd apex && make)\ncd sub\n{LAUNCH}", "/job/sub", id="a subshell before"),
        pytest.param(f"go() {{\n  cd sub\n  {LAUNCH}}}\ngo\n", "/job/sub", id="in a function"),
        pytest.param(f"bash -c 'cd sub; {LAUNCH.strip()}'\n", "/job/sub", id="in a string"),
        pytest.param("cd $ROOT\ntorchrun here.py\n", "/job", id="unknown, but the script is here"),
        pytest.param("cd /gone\ntorchrun /job/here.py\n", "/job", id="no folder, a whole path"),
        pytest.param(
            "if x; then\n  cd sub\nfi\ntorchrun here.py\n", "/job", id="perhaps, the script is here"
        ),
    ],
)
def test_the_folder_of_a_command(script: str, folder: str) -> None:
    run = resolved(("bash", "run.sh"), script)
    assert (run.cwd, run.not_followed) == (folder, "")
    assert run.command[0] == "torchrun"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(f"cd $ROOT\n{LAUNCH}", id="a variable of nobody"),
        pytest.param(f"cd $(mktemp -d)\n{LAUNCH}", id="computed"),
        pytest.param(f"if x; then\n  cd sub\nfi\n{LAUNCH}", id="in a branch"),
        pytest.param(f"[ -d sub ] && cd sub\n{LAUNCH}", id="under a condition"),
        pytest.param(f"git clone https://h/p && cd p\n{LAUNCH}", id="a folder that it makes"),
        pytest.param(f"cd -\n{LAUNCH}", id="the folder before"),
    ],
)
def test_a_folder_that_only_the_shell_knows(script: str) -> None:
    run = resolved(("bash", "run.sh"), script)
    assert run.not_followed.startswith("the folder in which line")
    assert (run.command, run.cwd) == (("bash", "run.sh"), "/job")


def test_what_the_user_names_stays_where_the_user_is() -> None:
    run = resolved(
        ("bash", "run.sh"), f"cd sub\n{LAUNCH}",
        config_path="c.json", hostfile="hosts", paths=("data",), writable=("/out",),
    )  # fmt: skip
    assert (run.config_path, run.hostfile) == ("/job/c.json", "/job/hosts")
    assert (run.paths, run.writable) == (("/job/data",), ("/out",))


def test_what_the_command_names_is_where_it_starts() -> None:
    run = resolved(("bash", "run.sh"), "cd sub\ndeepspeed t.py --deepspeed ds.json\n")
    assert run.followed == "line 2 of `run.sh`, which starts it in `/job/sub`"
    assert (run.config_path, run.config) == ("ds.json", {"train_micro_batch_size_per_gpu": 1})


@pytest.mark.parametrize(
    ("name", "status"),
    [pytest.param("t.py", "ok", id="there"), pytest.param("u.py", "fail", id="not there")],
)
def test_the_script_is_looked_for_where_the_command_starts(name: str, status: str) -> None:
    host = FakeHost(
        env={"PATH": "/usr/bin"}, files={**FILES, "/job/run.sh": f"cd sub\ntorchrun {name}\n"}
    )
    run = resolve(RunNeeds(command=("bash", "run.sh"), cwd="/job"), host)
    command = parse_command(run.command)
    fact = read(launch_files, host, run_needs=run, launch_command=command)
    judged = judge(launch_file_missing.program_and_script_are_there, launch_files=fact)
    assert judged.status == status


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("./run.sh", "torchrun t.py", id="itself"),
        pytest.param("A=1 nohup ./run.sh", "A=1 nohup torchrun t.py", id="after other words"),
        pytest.param("srun -n 2 ./run.sh", "srun -n 2 torchrun t.py", id="by srun"),
    ],
)
@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/usr/bin/env bash", "#! /bin/sh -e"])
def test_a_script_that_is_started_itself(line: str, words: str, first: str) -> None:
    run = resolved(tuple(line.split()), f"{first}\ncd sub\ntorchrun t.py\n")
    assert (run.command, run.cwd) == (tuple(words.split()), "/job/sub")


def test_a_python_script_that_is_started_itself() -> None:
    host = FakeHost(files={"/job/t.py": "#!/usr/bin/env python3\nimport torch\n"})
    run = resolve(RunNeeds(command=("./t.py", "--lr", "1"), cwd="/job"), host)
    assert run.command == ("python3", "./t.py", "--lr", "1")


def test_a_script_that_may_not_be_executed_is_left_alone() -> None:
    stats = {"/job/run.sh": Stat(kind="file", size=30, mode=0o644)}
    run = resolved(("./run.sh",), "#!/bin/bash\ntorchrun t.py\n", stats=stats)
    assert run.command == ("./run.sh",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("torchrun here.py 2>&1 | tee log", "torchrun here.py", id="a pipe"),
        pytest.param("nohup torchrun here.py > log 2>&1 &", "nohup torchrun here.py", id="a file"),
        pytest.param("cd sub && torchrun t.py", "torchrun t.py", id="two commands"),
        pytest.param("python t.py 'a > b'", "python t.py 'a > b'", id="only text"),
        pytest.param("tmux new -d -s a 'torchrun here.py'", "torchrun here.py", id="tmux"),
        pytest.param("tmux new -d torchrun here.py", "torchrun here.py", id="tmux, words"),
        pytest.param("screen -dmS a torchrun here.py", "torchrun here.py", id="screen"),
        pytest.param("script -q -c 'torchrun here.py' log", "torchrun here.py", id="script"),
        pytest.param("tmux attach -t a", "tmux attach -t a", id="tmux that starts nothing"),
    ],
)
def test_a_line_in_quotes_and_terminals(line: str, words: str) -> None:
    expected = tuple(shlex.split(words))
    assert resolved((line,)).command == expected
    if not set(line) & set("|&>"):
        assert resolved(tuple(shlex.split(line))).command == expected


@pytest.mark.parametrize(
    "line",
    [
        "python -m pdb t.py --lr 1",
        "python -u -m cProfile -o p.prof t.py --lr 1",
        "python -m debugpy --listen 5678 t.py --lr 1",
        "coverage run --source pkg t.py --lr 1",
        "py-spy record -o p.svg -- python t.py --lr 1",
        "compute-sanitizer --tool memcheck python t.py --lr 1",
        "flock /tmp/lock python t.py --lr 1",
        "strace -f -o log python t.py --lr 1",
    ],
)
def test_debuggers_and_profilers(line: str) -> None:
    command = parse_command(tuple(line.split()))
    assert (command.launcher, command.script) == ("python", "t.py")
    assert command.script_args == ("--lr", "1")


def test_modules_that_run_no_script_of_the_user() -> None:
    assert parse_command(("python", "-m", "pkg.train", "x.py")).script == "pkg.train"
    assert parse_command(("coverage", "report")).script is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("just train", "`just` runs what its file says", id="a recipe"),
        pytest.param("make train", "`make` finds no file `Makefile` in `/job`", id="no Makefile"),
        pytest.param(
            "A=1 tune run lora", "`tune` is no launcher that is known here", id="no launcher"
        ),
        pytest.param("nvidia-smi -L", "", id="no job"),
        pytest.param("llamafactory-cli train a.yaml", "", id="a trainer"),
    ],
)
def test_what_a_command_starts_is_not_known(line: str, reason: str) -> None:
    assert resolved(tuple(line.split())).not_followed == reason


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            "export A=1\npip install -r r.txt\npython -u here.py --lr 1\n",
            "python -u here.py --lr 1",
            id="one Python script",
        ),
        pytest.param(
            "cd sub && CUDA_VISIBLE_DEVICES=1 python -m pkg.train a=1\n",
            "CUDA_VISIBLE_DEVICES=1 python -m pkg.train a=1",
            id="a module",
        ),
        pytest.param(
            "python prepare.py\ntorchrun here.py\n", "torchrun here.py", id="a launcher beside it"
        ),
    ],
)
def test_scripts_without_a_launcher(script: str, expected: str) -> None:
    run = resolved(("bash", "run.sh"), script)
    assert (run.command, run.not_followed) == (tuple(expected.split()), "")


def test_which_of_several_programs_is_the_job_is_not_guessed() -> None:
    run = resolved(("bash", "run.sh"), "python a.py\npython b.py\n")
    assert run.not_followed == "`run.sh` contains 2 commands that run Python, expected one"
    run = resolved(("bash", "run.sh"), "python -m pip install x\necho done\n")
    assert run.not_followed == "`run.sh` contains no launch command, expected one"


def test_the_first_of_several_launches_is_checked_and_the_others_are_named() -> None:
    script = "torchrun a.py\npython merge.py\ntorchrun here.py &\nwait\n"
    run = resolved(("bash", "run.sh"), script)
    assert run.command == ("torchrun", "a.py")
    after = "what it launches after that was not checked (line 3)"
    assert run.followed == f"line 1 of `run.sh`; {after}"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("if x; then\n  torchrun a.py\nelse\n  torchrun here.py\nfi\n", id="branches"),
        pytest.param(
            "a() {\n  torchrun a.py\n}\nb() {\n  torchrun here.py\n}\n$1\n", id="functions"
        ),
        pytest.param("[ $1 ] && torchrun a.py\ntorchrun here.py\n", id="perhaps"),
        pytest.param("test -d x || torchrun a.py\ntorchrun here.py\n", id="or"),
        pytest.param("case $1 in\na) torchrun a.py;;\n*) torchrun here.py;;\nesac\n", id="case"),
    ],
)
def test_launches_of_which_one_may_not_run(script: str) -> None:
    reason = "`run.sh` contains 2 commands that launch a job, expected one"
    assert resolved(("bash", "run.sh"), script).not_followed == reason


UNSET = "torchrun --nproc_per_node $GPUS --master_port=${PORT} here.py --lr $LR\n"


@pytest.mark.parametrize(
    ("words", "script", "env", "expected"),
    [
        pytest.param("bash run.sh", UNSET, {}, ("GPUS", "PORT", "LR"), id="nothing sets them"),
        pytest.param(
            "bash run.sh", UNSET, {"GPUS": "2", "PORT": "1"}, ("LR",), id="the shell does"
        ),
        pytest.param("env GPUS=2 bash run.sh", UNSET, {}, ("PORT", "LR"), id="the command does"),
        pytest.param(
            "bash run.sh",
            f"if x; then\n  GPUS=2\nfi\nread -r LR\n{UNSET}",
            {},
            ("PORT",),
            id="perhaps",
        ),
        pytest.param("bash run.sh", f"source conf.sh\n{UNSET}", {}, (), id="another script may"),
        pytest.param("bash run.sh", f"module load x\n{UNSET}", {}, (), id="a module may"),
        pytest.param(
            "bash run.sh",
            "torchrun --nnodes $SLURM_NNODES --nproc_per_node ${N:-2} here.py\n",
            {},
            (),
            id="of the scheduler, or with a default",
        ),
    ],
)
def test_variables_that_nothing_sets(
    words: str, script: str, env: dict[str, str], expected: tuple[str, ...]
) -> None:
    host = FakeHost(
        env={"PATH": "/usr/bin", **env}, files={**FILES, "/job/run.sh": script}, stats={}
    )
    run = resolve(RunNeeds(command=tuple(words.split()), cwd="/job"), host)
    assert run.unset == expected


def test_an_option_whose_variable_is_not_set_fails() -> None:
    run = resolved(("bash", "run.sh"), UNSET)
    found = judge(
        launch_placeholder_left.no_placeholder_is_left,
        run_needs=run,
        launch_command=parse_command(run.command),
    )
    said = [finding.message for finding in found.findings]
    where = "in line 1 of `run.sh`, which neither the script nor this shell sets"
    assert said == [
        f"`--nproc_per_node` gets its value from `$GPUS` {where}",
        f"`--master_port` gets its value from `${{PORT}}` {where}",
    ]
    assert found.worst.hint == "set `GPUS` in the script or before the command"
    known = resolved(("bash", "run.sh"), "torchrun --nproc_per_node $SLURM_GPUS here.py\n")
    check = launch_placeholder_left.no_placeholder_is_left
    command = parse_command(known.command)
    assert judge(check, run_needs=known, launch_command=command).status == "ok"
