"""What a script launches: held against what `bash` itself starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.shell_lines import launches, not_followed
from dsdoctor.probes.shell_programs import without_carrier
from dsdoctor.probes.shell_words import masked, plain
from dsdoctor.probes.yaml_commands import commands_of
from dsdoctor.testing import FakeHost
from dsdoctor.yaml_text import documents

#: Names of launchers that are no command.
NO_JOB = [
    "command -v deepspeed",
    "if ! command -v torchrun &> /dev/null; then exit 1; fi",
    "hash torchrun",
    "type -P accelerate",
    "pkill -9 -f torchrun",
    "killall deepspeed",
    "ps aux | grep -c deepspeed",
    "conda activate deepspeed",
    "mamba create -n torchrun python=3.11",
    "cd ../deepspeed",
    "mkdir -p logs/deepspeed",
    "git clone https://example.org/org/deepspeed",
    "module load deepspeed",
    "python setup.py deepspeed",
    "source envs/deepspeed/bin/activate deepspeed",
    "docker run --rm --name deepspeed image bash",
    "docker exec -it deepspeed bash",
    "docker build -t deepspeed .",
    "deepspeed --version",
    "accelerate config default",
    "accelerate env",
    "srun hostname",
    "srun -N 2 nvidia-smi -L",
    "cat <<EOF\ntorchrun t.py\nEOF",
    "V=$(deepspeed --version)",
    "V=$(yolk -V deepspeed | cut -d ' ' -f 2)",
    "python <<EOF\nprint('torchrun t.py')\nEOF",
    "python <<EOF\nc = ['deepspeed']\nc.pop()\nc = []\nrun(c)\nEOF",
    "python - <<EOF\nimport os; os.system(\nEOF",
]


@pytest.mark.parametrize("text", NO_JOB)
def test_the_name_of_a_launcher_may_be_a_mere_word(text: str) -> None:
    assert launches(f"{text}\ntorchrun t.py")[0].words == ("torchrun", "t.py")
    assert len(launches(f"{text}\ntorchrun t.py")) == 1


#: Script, the line of its job, and the job's words; `bash` starts the same words.
PLAIN = [
    ("nohup torchrun t.py > log 2>&1 &", 1, "nohup torchrun t.py"),
    ("torchrun t.py --a 1 &>> log", 1, "torchrun t.py --a 1"),
    ("torchrun t.py --a '>' --b \"x>y\" --c 2", 1, "torchrun t.py --a > --b x>y --c 2"),
    ("G=4\nN=2\ntorchrun --n $((G * N / 2)) t.py", 3, "torchrun --n 4 t.py"),
    ("N=$((${G:-8}-1))\ntorchrun --n ${N} t.py", 2, "torchrun --n 7 t.py"),
    ("torchrun --n ${G:-8} t.py", 1, "torchrun --n 8 t.py"),
    ("G=2\ntorchrun --n ${G:-8} t.py", 2, "torchrun --n 2 t.py"),
    ('G=\ntorchrun --n ${G:-8} --m "${G-1}" t.py', 2, "torchrun --n 8 --m  t.py"),
    ("G=${G:-${H:-3}}\ntorchrun --n $G t.py", 2, "torchrun --n 3 t.py"),
    ("torchrun --n ${1:-8} ${12-t.py}", 1, "torchrun --n 8 t.py"),
    ("f() {\n torchrun --n ${1:-8} ${2:-t.py}\n}\nf 2", 2, "torchrun --n 2 t.py"),
    ("torchrun ${MORE:-} t.py", 1, "torchrun t.py"),
    ("MORE=\ntorchrun $MORE t.py", 2, "torchrun t.py"),
    ('torchrun t.py "${MORE:-}"', 1, "torchrun t.py "),
    ("torchrun t.py --a b#c --e '# f' # g", 1, "torchrun t.py --a b#c --e # f"),
    ("G=(0 1 2)\ntorchrun --n ${#G[@]} t.py", 2, "torchrun --n 3 t.py"),
    ("printf -v C 'torchrun --n %d %s' 2 t.py\n$C", 2, "torchrun --n 2 t.py"),
    ('set -- --n 2 t.py\ntorchrun "$@"', 2, "torchrun --n 2 t.py"),
    ('set -- a b\nshift\ntorchrun --n 2 "$1"', 3, "torchrun --n 2 b"),
    ('A="--n 2"\nC="torchrun $A"\nC+=" t.py"\neval "$C > log"', 4, "torchrun --n 2 t.py"),
]  # fmt: skip
#: The same for what needs other programs.
JOBS = [
    ("python -u -m torch.distributed.run t.py", 1, "python -u -m torch.distributed.run t.py"),
    ("python -X dev /opt/bin/torchrun t.py", 1, "python -X dev /opt/bin/torchrun t.py"),
    ('"$(which torchrun)" t.py', 1, "torchrun t.py"),
    ("`command -v deepspeed` t.py", 1, "deepspeed t.py"),
    ("exec -a job torchrun t.py", 1, "torchrun t.py"),
    ("command torchrun t.py", 1, "command torchrun t.py"),
    ("conda run -n a torchrun t.py", 1, "conda run -n a torchrun t.py"),
    ("docker run --name deepspeed i torchrun t.py", 1,
     "docker run --name deepspeed i torchrun t.py"),
    ("log_and_run torchrun t.py", 1, "log_and_run torchrun t.py"),
    ("srun -N 2 bash -lc 'torchrun t.py'", 1, "srun -N 2 torchrun t.py"),
    # redirections
    ('torchrun t.py 2>&1 | tee "$OUT/a b.log"', 1, "torchrun t.py"),
    ("torchrun 2> err --nnodes 1 t.py >| log < in", 1, "torchrun --nnodes 1 t.py"),
    ("deepspeed --master_port <port> t.py", 1, "deepspeed --master_port <port> t.py"),
    ("torchrun --n $((8/0)) t.py", 1, "torchrun --n $(…) t.py"),
    # a scheduler sets these
    ("torchrun --nnodes ${SLURM_NNODES:-2} t.py", 1, "torchrun --nnodes ${SLURM_NNODES} t.py"),
    ("torchrun --master_addr ${MASTER_ADDR:-a} t.py", 1,
     "torchrun --master_addr ${MASTER_ADDR} t.py"),
    ("if x; then G=2; fi\ntorchrun --n ${G:-8} t.py", 2, "torchrun --n ${G} t.py"),
    # commands in other commands
    ("ssh node1 'cd w && torchrun t.py'", 1, "torchrun t.py"),
    ('sbatch -N 2 --wrap="torchrun t.py"', 1, "torchrun t.py"),
    ("tmux new -d 'torchrun t.py'", 1, "torchrun t.py"),
    ("out=$(torchrun t.py | tail -1)", 1, "torchrun t.py"),
    ("python -c \"import os; os.system('torchrun t.py')\"", 1, "torchrun t.py"),
    # heredocs
    ("python - <<'EOF'\nimport os\nos.system('torchrun t.py')\nEOF", 3, "torchrun t.py"),
    ("N=2\npython3 <<EOF\nsubprocess.run(['torchrun', '--n', '$N', 't.py'])\nEOF", 3,
     "torchrun --n 2 t.py"),
    ("python <<EOF\nc = ['deepspeed', f'{x}.py']\nsubprocess.Popen(c)\nEOF", 3,
     "deepspeed ${PYTHON_VALUE}.py"),
    ("bash <<EOF\ncd w\ntorchrun t.py\nEOF", 3, "torchrun t.py"),
    ("ssh node1 <<'END'\ntorchrun t.py\nEND", 2, "torchrun t.py"),
    ("N=2\ncat > job.sh <<EOF\nX=1\ntorchrun --n $N --x \\$X t.py\nEOF\nsbatch job.sh", 4,
     "torchrun --n 2 --x 1 t.py"),
    ("torchrun t.py --a 1 > >(tee log) 2>&1", 1, "torchrun t.py --a 1"),
    ("torchrun t.py --a ${F##*/} --b ${#F}", 1, "torchrun t.py --a ${F##*/} --b ${#F}"),
    ("cat <<EOF | bash\ntorchrun t.py\nEOF", 2, "torchrun t.py"),
    ("cat <<EOF | ssh node1 'bash -s'\ntorchrun t.py\nEOF", 2, "torchrun t.py"),
    ("torchrun --n ${#H[@]} t.py", 1, "torchrun --n ${#H[@]} t.py"),
    ('cat << EOF > "$FILE"\n#!/bin/bash\ntorchrun t.py\nEOF', 3, "torchrun t.py"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"), [*PLAIN, *JOBS], ids=[row[0][:60] for row in [*PLAIN, *JOBS]]
)
def test_the_job_of_a_script_is_found_with_its_words(text: str, line: int, words: str) -> None:
    (command,) = launches(text)
    assert (command.line, " ".join(command.words), command.depends_on) == (line, words, "")


#: Scripts with functions, and the jobs that they start, by line.
FUNCTIONS = [
    ('train() {\n  local n=$1; shift\n  torchrun --n "$n" t.py "$@"\n}\ntrain 8 --lr 1\ntrain 4',
     ["3 torchrun --n 8 t.py --lr 1", "3 torchrun --n 4 t.py"]),
    ('run() {\n  echo "$@"\n  "$@" | tee log\n}\nrun torchrun --n 2 t.py',
     ["3 torchrun --n 2 t.py"]),
    ("function f { deepspeed $1; }\nf t.py", ["1 deepspeed t.py"]),
    ("f ()\n{\n  deepspeed $1\n}\nA=1 f t.py", ["3 deepspeed t.py"]),
    ("g() {\n deepspeed $1\n}\nf() {\n  g $2\n}\nf a b.py", ["2 deepspeed b.py"]),
    ("f() {\n  f\n  torchrun t.py\n}\nf", ["3 torchrun t.py"] * 3),
    ("f() {\n torchrun $1\n}", ["2 torchrun $1"]),
    ('main() {\n  torchrun "$1"\n}\nmain "$@"', ["2 torchrun $1"]),
    ("N=4\nf() {\n torchrun --n $N t.py\n}\nN=2\nf", ["3 torchrun --n 2 t.py"]),
    ("f() {\n  torchrun $1\n", ["2 torchrun $1"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "jobs"), FUNCTIONS, ids=[row[0][:40] for row in FUNCTIONS])
def test_functions_are_read_where_they_are_called(text: str, jobs: list[str]) -> None:
    assert [f"{job.line} {' '.join(job.words)}" for job in launches(text)] == jobs


#: Script, the variable that chooses the program, and the words of the job that it may be.
CHOSEN = [
    ("R='torchrun --nnodes 1'\nif x; then R=python; fi\n$R t.py", "$R", "torchrun --nnodes 1 t.py"),
    ("if x; then R=python; else R=deepspeed; fi\n${R} t.py", "${R}", "deepspeed t.py"),
    ('[ "$D" ] && R="accelerate launch"\nA=1 $R t.py', "$R", "A=1 accelerate launch t.py"),
    (
        "if x; then M=; else M='-m torch.distributed.run'; fi\npython $M t.py",
        "$M",
        "python -m torch.distributed.run t.py",
    ),
    (
        "if x; then M=torch.distributed.run; fi\nC=\"python -m $M t.py \"\nif y; then C+='-a'; fi\n$C",
        "$C",
        "python -m torch.distributed.run t.py",
    ),
    ("$LAUNCH --nproc_per_node 8 t.py  # torchrun", "$LAUNCH", "$LAUNCH --nproc_per_node 8 t.py"),
]


@pytest.mark.parametrize(("text", "name", "words"), CHOSEN, ids=[row[0][:40] for row in CHOSEN])
def test_a_job_whose_program_depends_on_a_branch_is_named_and_not_judged(
    text: str, name: str, words: str
) -> None:
    (command,) = launches(text)
    assert (command.depends_on, " ".join(command.words)) == (name, words)
    host = FakeHost(files={"/w/run.sh": text})
    found = resolve(RunNeeds(cwd="/w", command=("bash", "run.sh")), host)
    assert f"`{name}` in line" in found.not_followed


@pytest.mark.parametrize("text", ["$RUN t.py", "R=python\nif x; then R=pypy; fi\n$R t.py"])
def test_an_unknown_program_that_nothing_takes_for_a_launcher_is_none(text: str) -> None:
    assert launches(f"{text}  # torchrun") == []


@pytest.mark.parametrize(
    ("text", "script"),
    [
        pytest.param("pkill deepspeed\nsrun hostname\ntorchrun $1", "a.py", id="after others"),
        pytest.param('f() {\n  echo "$1"; "$@"\n}\nf torchrun $1', "a.py", id="a function"),
        pytest.param('function g { echo $1; }\ntorchrun "$@"', "a.py", id="a function in one line"),
        pytest.param("f() {\n torchrun $1\n}\nf $1", "a.py", id="the argument of a function"),
        pytest.param("f() {\n torchrun $1\n}\nf b.py", "b.py", id="its own argument"),
        pytest.param("torchrun ${1:-b.py}", "a.py", id="an argument with a default"),
        pytest.param("torchrun ${2:-b.py}", "b.py", id="the default of an argument"),
    ],
)
def test_a_script_is_followed_past_what_only_contains_a_launchers_name(
    text: str, script: str | None
) -> None:
    host = FakeHost(files={"/w/run.sh": text})
    found = resolve(RunNeeds(cwd="/w", command=("bash", "run.sh", "a.py")), host)
    assert bool(found.not_followed) == (script is None)
    assert script is None or found.command[-1] == script


@pytest.mark.any_user
@pytest.mark.parametrize(("text", "words"), [pytest.param(t, w, id=t[:60]) for t, _, w in PLAIN])
def test_bash_starts_the_same_words(tmp_path: Path, text: str, words: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    said = """exec 7>&1
        command_not_found_handle() { printf "%s\\n" "$*" >&7; }
        nohup() { command_not_found_handle nohup "$@"; }
    """
    done = subprocess.run(
        [bash, "-c", f"{said}{text}\nwait"], cwd=tmp_path, env={"PATH": "/nowhere"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout.rstrip("\n") == words, done.stderr


def unknown(_: str) -> str | None:
    return None


def test_what_is_no_sum_of_known_numbers_is_not_computed() -> None:
    for text in ("$((a**9))", "$((1<<3))", "$((x))", "$((9999999999*9999999999))", "$((08+1))"):
        assert "(" not in masked(text, unknown).line
        assert masked(text, unknown).bodies
    assert masked("$((-7/2)) $((-7%4))", unknown).line == "-3 -3"


def test_a_redirection_needs_its_target() -> None:
    assert plain("torchrun --n=<#GPUs> t.py > log").split() == ["torchrun", "--n=<#GPUs>", "t.py"]
    assert plain("diff <(a) x") == "diff <(a) x"
    assert plain("a \\> b # > c") == "a \\> b  "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("fabric run --devices 2 t.py", "is a launcher whose", id="options"),
        pytest.param("A=1 sky launch -c a t.yaml", "of a cloud", id="a cloud"),
        pytest.param("ray job submit -- python -m a", "cluster of Ray", id="no launcher"),
        pytest.param("ray job submit -- torchrun t.py", "", id="a launcher"),
        pytest.param("echo sky launch", "", id="words"),
        pytest.param("ray stop", "", id="another command"),
        pytest.param("lightning --help", "", id="a question"),
    ],
)
def test_what_starts_a_job_in_another_way_is_said(text: str, reason: str) -> None:
    found = [said for _, said in not_followed(f"true\n{text}")]
    assert (found == []) if not reason else (len(found) == 1 and reason in found[0])
    run = resolve(RunNeeds(cwd="/w", command=tuple(text.split())), FakeHost())
    assert reason in run.not_followed
    assert bool(run.not_followed) == bool(reason)


def test_what_is_applied_to_a_cluster_may_be_no_job() -> None:
    assert not_followed("kubectl apply -f roles.yaml\nkubectl create namespace a") == []
    words = ("kubectl", "apply", "-f", "job.yaml")
    run = resolve(RunNeeds(cwd="/w", command=words), FakeHost())
    assert "in a cluster" in run.not_followed


#: Programs that start a launcher in an environment.
ENVIRONMENTS = [
    "uv run --project sub torchrun --nproc_per_node 2 t.py",
    "uv --quiet run torchrun --nproc_per_node 2 t.py",
    "uvx --from torch torchrun --nproc_per_node 2 t.py",
    "pixi run -e gpu torchrun --nproc_per_node 2 t.py",
    "hatch run gpu:torchrun --nproc_per_node 2 t.py",
    "rye run torchrun --nproc_per_node 2 t.py",
    "micromamba run -n a torchrun --nproc_per_node 2 t.py",
    "command torchrun --nproc_per_node 2 t.py",
    "nsys profile -o out -t cuda torchrun --nproc_per_node 2 t.py",
    "stdbuf -oL torchrun --nproc_per_node 2 t.py",
    "xvfb-run -a torchrun --nproc_per_node 2 t.py",
]


@pytest.mark.parametrize("text", ENVIRONMENTS)
def test_a_launcher_in_an_environment_is_the_launcher(text: str) -> None:
    found = parse_command(text.split())
    assert (found.launcher, found.num_gpus, found.script) == ("torchrun", 2, "t.py")


def test_a_wrapper_of_a_container_starts_the_launcher() -> None:
    words = [
        "srun",
        "singularity_wrapper",
        "exec",
        "accelerate",
        "launch",
        "--num_processes",
        "2",
        "t.py",
    ]
    found = parse_command(without_carrier(words))
    assert (found.launcher, found.inner, found.num_gpus) == ("srun", "accelerate", 2)


def test_the_command_line_of_accelerate_may_be_a_module() -> None:
    words = ["python", "-m", "accelerate.commands.accelerate_cli", "launch", "t.py"]
    assert parse_command(words).launcher == "accelerate"
    assert parse_command([*words[:3], "env"]).launcher == "other"


MANIFEST = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              command: [torchrun]
              args: ["--nnodes", "2", "t.py"]
            - name: side
              command:
                - bash
                - -c
                - |
                  cd /w
                  deepspeed t.py
---
services:
  train:
    command: torchrun --n 2 t.py
    environment: [A=1]
jobs:
  test:
    steps:
      - run: |
          true
          accelerate launch t.py
      - run: pytest
commands:
  - true
  - torchrun u.py
task:
  command:
  - cd code
  - torchrun v.py
"""


def test_commands_in_yaml_have_their_lines() -> None:
    found = [
        f"{one.before + job.line} {' '.join(job.words)}"
        for one in commands_of(documents(MANIFEST))
        for job in launches(one.text)
    ]
    assert sorted(found) == sorted(
        ["10 torchrun --nnodes 2 t.py", "18 deepspeed t.py", "22 torchrun --n 2 t.py",
         "29 accelerate launch t.py", "33 torchrun u.py", "37 torchrun v.py"]
    )  # fmt: skip


def test_aliases_in_yaml_are_read_once() -> None:
    bomb = "a0: &a0 [torchrun]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    found = [*commands_of(documents(f"{bomb}run: torchrun t.py\n"))]
    assert found == [(30, "torchrun t.py", 1, True)]


def test_a_program_that_may_be_empty_starts_nothing() -> None:
    text = 'if a; then run="" ; else run="torchrun t.py"; fi\n$run\n$gone\n'
    assert [job.words for job in launches(text)] == [("torchrun", "t.py")]


def test_a_script_is_followed_with_what_it_exports() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=$N HF_TOKEN=secret\ntorchrun t.py\n"
    text += "export NNODES=4\n"
    host = FakeHost(files={"/w/run.sh": text})
    found = resolve(RunNeeds(cwd="/w", command=("bash", "run.sh")), host)
    assert found.command == ("env", "CUDA_VISIBLE_DEVICES=0,1", "torchrun", "t.py")
    assert found.visible_devices == "0,1"
    inside = resolve(RunNeeds(cwd="/w", command=("srun", "-n", "2", "bash", "run.sh")), host)
    assert inside.command[3:5] == ("env", "CUDA_VISIBLE_DEVICES=0,1")
