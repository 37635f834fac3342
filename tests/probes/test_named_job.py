"""The command that really starts a job, and the config it names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import launch_command, parse_command
from dsdoctor.probes.shell_lines import launches
from dsdoctor.probes.yaml_files import accelerate_fault, accelerate_values
from dsdoctor.testing import FakeHost

CONFIG = '{"zero_optimization": {"stage": 2}}'
ACCELERATE = """
distributed_type: DEEPSPEED
num_processes: 8
num_machines: 2
main_process_port: 29501
deepspeed_config:
  deepspeed_config_file: ds.json
"""
SCRIPT = """#!/bin/bash
#SBATCH --nodes=2
set -e
NGPU=4
# deepspeed old.py --deepspeed old.json
source ~/env/bin/activate
pip install deepspeed
deepspeed --num_gpus "$NGPU" train.py \\
    --deepspeed ds.json "$@"
"""
FILES = {
    "/w/ds.json": CONFIG,
    "/w/acc.yaml": ACCELERATE,
    "/w/run.sh": SCRIPT,
    "/w/two.sh": "if [ $1 ]; then\n  torchrun a.py\nelse\n  torchrun b.py\nfi\n",
    "/w/none.sh": "echo hello\n",
    "/w/sft.yaml": "stage: sft\ndeepspeed: ds.json\n",
    "/w/preset.yaml": "deepspeed: zero2\n",
    "/w/broken.yaml": "a: [1\n",
    "/w/inline.yaml": "base_model: x\ndeepspeed:\n  zero_optimization:\n    stage: 2\n",
    "/w/port.yaml": ACCELERATE.replace("29501", "70000"),
}


def of(*words: str, config_path: str | None = None) -> RunNeeds:
    run = RunNeeds(cwd="/w", command=words, config_path=config_path)
    return resolve(run, FakeHost(files=FILES))


NAMED = [
    (("deepspeed", "t.py", "--deepspeed", "ds.json"), "ds.json", "the command line"),
    (("deepspeed", "t.py", "--deepspeed_config=ds.json"), "ds.json", "the command line"),
    (("torchrun", "t.py", "--ds_config", "absent.json"), "absent.json", "the command line"),
    (("accelerate", "launch", "--config_file", "acc.yaml", "t.py"), "ds.json", "`acc.yaml`"),
    (("accelerate", "launch", "--deepspeed_config_file", "ds.json", "t.py"), "ds.json",
     "the command line"),
    (("llamafactory-cli", "train", "sft.yaml"), "ds.json", "`sft.yaml`"),
    (("accelerate", "launch", "-m", "axolotl.cli.train", "sft.yaml"), "ds.json", "`sft.yaml`"),
    (("axolotl", "train", "inline.yaml"), "inline.yaml", "`inline.yaml`"),
    (("bash", "run.sh"), "ds.json", "the command line"),
    (("srun", "-N", "2", "bash", "-c", "deepspeed t.py --deepspeed ds.json"), "ds.json",
     "the command line"),
    (("sbatch", "--wrap", "deepspeed t.py --deepspeed ds.json"), "ds.json", "the command line"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "path", "by"), NAMED, ids=[" ".join(row[0])[:60] for row in NAMED]
)
def test_the_config_that_a_command_names_is_the_one_judged(
    words: tuple[str, ...], path: str, by: str
) -> None:
    found = of(*words)
    assert (found.config_path, found.config_named_by) == (path, by)
    assert (found.config is None) == (path == "absent.json")
    if found.config is not None:
        assert found.config == {"zero_optimization": {"stage": 2}}


UNNAMED = [
    ("deepspeed", "t.py"),
    ("deepspeed", "t.py", "--deepspeed"),
    ("swift", "sft", "--deepspeed", "zero2"),
    ("llamafactory-cli", "train", "preset.yaml"),
    ("llamafactory-cli", "train", "broken.yaml"),
    ("python", "t.py", "--config", "ds.json"),
]


@pytest.mark.parametrize("words", UNNAMED, ids=[" ".join(row) for row in UNNAMED])
def test_what_is_not_a_file_is_not_taken_for_one(words: tuple[str, ...]) -> None:
    assert of(*words).config_path is None


def test_the_option_rules_over_the_command() -> None:
    found = of("deepspeed", "t.py", "--deepspeed", "ds.json", config_path="mine.json")
    assert (found.config_path, found.config_named_by) == ("mine.json", "")


@pytest.mark.parametrize(
    "starter", ["nohup bash", "sbatch -a 0-3", "sbatch -N 2 -c8 -W --requeue --gres gpu:8"]
)
def test_a_script_is_followed_to_its_launch_line(starter: str) -> None:
    found = of(*starter.split(), "run.sh", "--lr", "1e-5")
    assert found.followed == "line 8 of `run.sh`"
    command = parse_command(found.command)
    assert (command.launcher, command.num_gpus, command.script) == ("deepspeed", 4, "train.py")
    assert command.script_args[-2:] == ("--lr", "1e-5")


@pytest.mark.parametrize(
    ("spelled", "folder"),
    [
        pytest.param('"$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"', "/w/run", id="pwd of bash"),
        pytest.param(
            '$(cd -- "$(dirname -- "${BASH_SOURCE[0]:-$0}")" &> /dev/null && pwd -P)',
            "/w/run",
            id="pwd with all precautions",
        ),
        pytest.param('"$(dirname "$0")"', "run", id="dirname"),
        pytest.param("`dirname $0`", None, id="dirname without quotes"),
        pytest.param('$(dirname "$(readlink -f "$0")")', "run", id="dirname of the link's target"),
        pytest.param("$(find_root)", None, id="a function of the script"),
    ],
)
def test_a_config_beside_the_script_is_found_by_the_scripts_own_place(
    spelled: str, folder: str | None
) -> None:
    text = f'here={spelled}\nexec deepspeed t.py --deepspeed_config "$here/ds.json"\n'
    host = FakeHost(files={"/w/run/launch.sh": text, "/w/run/ds.json": CONFIG})
    found = resolve(RunNeeds(cwd="/w", command=("bash", "run/launch.sh")), host)
    assert found.config_path == (None if folder is None else f"{folder}/ds.json")
    assert (found.config is None) == (folder is None)


def test_a_script_in_a_folder_that_only_a_shell_knows_is_followed() -> None:
    host = FakeHost(files={"/w/run.sh": "D=`pwd`\ndeepspeed --num_gpus 2 ${D}/src/t.py --lr 1\n"})
    found = resolve(RunNeeds(cwd="/w", command=("bash", "run.sh")), host)
    assert (found.followed, found.not_followed) == ("line 2 of `run.sh`", "")
    assert parse_command(found.command).num_gpus == 2


UNCLEAR = [
    (("bash", "two.sh"), "contains 2 commands that launch a job"),
    (("bash", "none.sh"), "contains no launch command"),
    (("bash", "absent.sh"), "does not exist"),
    (("bash",), "interactive shell"),
    (
        ("bash", "-c", "torchrun $ARGS t.py"),
        "`$ARGS` in line 1 of the command of `-c` is not known",
    ),
    (("deepspeed 'open",), "cannot be split"),
]


@pytest.mark.parametrize(("words", "reason"), UNCLEAR, ids=[row[1] for row in UNCLEAR])
def test_what_cannot_be_followed_is_said(words: tuple[str, ...], reason: str) -> None:
    assert reason in of(*words).not_followed


def test_accelerates_file_says_how_many_ranks_there_are() -> None:
    host = FakeHost(files=FILES)
    run = RunNeeds(cwd="/w", command=("accelerate", "launch", "--config_file", "acc.yaml", "t.py"))
    command = launch_command.function(host, run)
    assert (command.num_nodes, command.num_gpus, command.master_port) == (2, 4, 29501)
    run = RunNeeds(
        cwd="/w",
        command=("accelerate", "launch", "--config_file", "acc.yaml", "--num_processes", "2",
                 "--num_machines", "1", "t.py"),
    )  # fmt: skip
    command = launch_command.function(host, run)
    assert (command.num_nodes, command.num_gpus) == (1, 2)


def test_accelerates_file_is_read_once() -> None:
    class Counting(FakeHost):
        reads: tuple[str, ...] = ()

        def read(self, path: str) -> bytes:
            self.reads += (path,)
            return super().read(path)

    host = Counting(files=FILES)
    words = ("accelerate", "launch", "--config_file", "acc.yaml", "t.py")
    run = resolve(RunNeeds(cwd="/w", command=words), host)
    assert launch_command.function(host, run).num_nodes == 2
    accelerate_values(launch_command.function(host, run), host, "/w")
    assert host.reads.count("/w/acc.yaml") == 1


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param(b"a: [1\n", "line 2: expected", id="broken"),
        pytest.param("a: 1".encode("utf-16"), "not in UTF-8", id="UTF-16"),
        pytest.param(b"- a\n", "not a mapping", id="a list"),
        pytest.param(b"a: &a [*a]\n", "", id="a bomb, which may be read elsewhere"),
        pytest.param(ACCELERATE.encode(), "", id="sound"),
    ],
)
def test_a_file_that_accelerate_cannot_read_stops_it(content: bytes, fault: str) -> None:
    host = FakeHost(files={"/w/a.yaml": content})
    command = parse_command(("accelerate", "launch", "--config_file", "a.yaml", "t.py"))
    found = accelerate_fault(command, host, "/w")
    assert fault in found
    assert bool(found) == bool(fault)


def test_a_port_that_none_can_be_is_a_problem_of_accelerates_file() -> None:
    words = ("accelerate", "launch", "--config_file", "port.yaml", "t.py")
    host = FakeHost(files=FILES)
    command = launch_command.function(host, RunNeeds(cwd="/w", command=words))
    assert command.problems == ("main_process_port 70000",)
    run = RunNeeds(cwd="/w", command=(*words[:-1], "--main_process_port", "29500", "t.py"))
    command = launch_command.function(host, run)
    assert command.problems == ()


SRUN = [
    ("srun --quit-on-interrupt torchrun --nproc-per-node 2 t.py", "torchrun"),
    ("srun --oom-kill-step torchrun --nproc-per-node 2 t.py", "torchrun"),
    ("srun --async --parsable torchrun --nproc-per-node 2 t.py", "torchrun"),
    ("srun --mpi pmix -N 2 torchrun t.py", "torchrun"),
    ("srun -x node1 -S 2 --exclusive deepspeed t.py", "deepspeed"),
    ("srun --kill-on-bad-exit=1 --gres gpu:4 accelerate launch t.py", "accelerate"),
]


@pytest.mark.parametrize(("line", "inner"), SRUN, ids=[row[0] for row in SRUN])
def test_options_of_srun_take_the_words_that_are_theirs(line: str, inner: str) -> None:
    found = parse_command(line.split())
    assert (found.launcher, found.inner) == ("srun", inner)


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("srun ./solver --steps 16", None),
        ("srun $ARGS python -u t.py", "$ARGS"),
        ("srun -n 2 python -u t.py", "t.py"),
        ("mpirun -np 2 python t.py", "t.py"),
    ],
)
def test_the_script_behind_srun_is_the_one_that_python_runs(line: str, script: str | None) -> None:
    assert parse_command(line.split()).script == script


LAUNCH_LINES = [
    ("for i in 1 2; do torchrun --nproc-per-node 2 t.py; done", ["torchrun"]),
    ("cat <<EOF\ndeepspeed x.py\nEOF\ntorchrun y.py", ["torchrun"]),
    ("echo deepspeed is great", []),
    ("which deepspeed && pip install -U deepspeed", []),
    ("python -m torch.distributed.run t.py", ["python"]),
    ("A=1 CUDA_VISIBLE_DEVICES=0 deepspeed t.py | tee log", ["A=1"]),
    ("deepspeed t.py --name 'it''s'", ["deepspeed"]),
    ("deepspeed t.py --name 'never closed", []),
    ("echo don't\ntorchrun t.py", ["torchrun"]),
    ("srun bash -c 'torchrun \\\n --n 2\n'\ndeepspeed t.py", ["srun", "deepspeed"]),
    ("python - <<'EOF'\nprint('it is')\ndon't\nEOF\ntorchrun t.py", ["torchrun"]),
]


@pytest.mark.parametrize(("text", "first"), LAUNCH_LINES, ids=[row[0][:40] for row in LAUNCH_LINES])
def test_launch_lines_of_a_script(text: str, first: list[str]) -> None:
    assert [command.words[0] for command in launches(text)] == first


#: Script, and the words of its one launch line.
SET_BY_THE_SCRIPT = [
    ('A="--nnodes 2 --x y"\ntorchrun $A t.py', "torchrun --nnodes 2 --x y t.py"),
    ('A="a b"\ntorchrun t.py --name "$A"', "torchrun t.py --name|a b"),
    ("A='a b'\nB=$A\ntorchrun t.py \"$B\"", "torchrun t.py|a b"),
    ("P=$(free_port)\ndeepspeed --master_port $P t.py", "deepspeed --master_port $P t.py"),
    ("P=`free_port`\ndeepspeed --master_port=$P t.py", "deepspeed --master_port=$P t.py"),
    ("H=$(scontrol show hostnames $X | head -n1)\ntorchrun --rdzv_endpoint=${H}:1 t.py",
     "torchrun --rdzv_endpoint=${H}:1 t.py"),
    ("torchrun --a $((8/$N)) --b 1 t.py", "torchrun --a $(…) --b 1 t.py"),
    ("A=(\n  --nnodes=2 # two\n  '--x y'\n)\nexec torchrun \"${A[@]}\" t.py",
     "torchrun --nnodes=2|--x y|t.py"),
    ("A=(--a 1)\nA+=(--b 2)\ntorchrun ${A[@]} t.py", "torchrun --a 1 --b 2 t.py"),
    ('N=2\nA=(--n "$N")\ntorchrun ${A[@]} t.py', "torchrun --n 2 t.py"),
    ("A=(--a 1)\nif x; then A+=(--b 2); fi\ntorchrun ${A[@]} t.py", "torchrun ${A[@]} t.py"),
    ("torchrun ${A[@]} t.py", "torchrun ${A[@]} t.py"),
    ("A='--a 1'\nA+=' --b 2'\ntorchrun $A t.py", "torchrun --a 1 --b 2 t.py"),
    ("A+=' --b 2'\ntorchrun $A t.py", "torchrun $A t.py"),
    ("if x; then\n  N=1\nelse\n  N=2\nfi\ntorchrun --n $N t.py", "torchrun --n $N t.py"),
    ("if x; then\n  N=1\nelse\n  N=1\nfi\ntorchrun --n $N t.py", "torchrun --n 1 t.py"),
    ("if x; then N=1; else N=2; fi\nN=3\ntorchrun --n $N t.py", "torchrun --n 3 t.py"),
    ("N=1\nfor N in 1 2; do N=4; done\ntorchrun --n $N t.py", "torchrun --n $N t.py"),
    ("if x; then N=1; fi\ntorchrun --n $N t.py", "torchrun --n $N t.py"),
    ("case $X in a) N=1;; *) N=1;; esac\ntorchrun --n $N t.py", "torchrun --n 1 t.py"),
    ('N=1\n[ -n "$X" ] && N=2\ntorchrun --n $N t.py', "torchrun --n $N t.py"),
    ('[ -n "$X" ] && N=2\ntorchrun --n $N t.py', "torchrun --n $N t.py"),
    ("N=1\ntest $X || export N=2\ntorchrun --n $N t.py", "torchrun --n $N t.py"),
    ("A='--a 1'\n[ $X ] && A=\"$A --b 2\"\ntorchrun $A t.py", "torchrun $A t.py"),
    ('A=1 && B="$A 2"\ntorchrun --n $B t.py', "torchrun --n 1 2 t.py"),
    ("B=0\nA=$(x) && B=1\ntorchrun --n $B t.py", "torchrun --n $B t.py"),
    ("C='torchrun --n 2 t.py &> log'\necho $C\neval $C", "torchrun --n 2 t.py"),
    ('A="\n  --a 1\n  --b 2\n"\ntorchrun $A t.py', "torchrun --a 1 --b 2 t.py"),
    ("N=2\nread -r -d '' A <<EOF\nt.train \\\n --n $N \\\n --b 1\nEOF\n# a\ndeepspeed --module $A",
     "deepspeed --module t.train --n 2 --b 1"),
    ("IFS= read -rd '' A <<'END' || true\n--a 1\nEND\ntorchrun $A t.py", "torchrun --a 1 t.py"),
    ("read -r -d '' A <<EOF\n--a $(x)\nEOF\ntorchrun $A t.py", "torchrun --a $(…) t.py"),
    ('L="torchrun --n $(x) --m 2"\n$L t.py', "torchrun --n $(…) --m 2 t.py"),
    ('A="$(x) --m 2"\ntorchrun $A t.py', "torchrun $A t.py"),
    ("read A <<EOF\n--a 1\n--b 2\nEOF\ntorchrun $A t.py", "torchrun $A t.py"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"), SET_BY_THE_SCRIPT, ids=[row[0][:40] for row in SET_BY_THE_SCRIPT]
)
def test_what_a_script_sets_is_filled_in_and_what_it_computes_is_not(text: str, words: str) -> None:
    (command,) = launches(text)
    assert " ".join(command.words) == words.replace("|", " ")
    for part in words.split("|")[1:]:
        assert part in command.words


def test_a_variable_that_only_the_shell_knows_is_no_bad_option() -> None:
    command = parse_command(["deepspeed", "--master_port", "$PORT", "--master_addr", "$H", "t.py"])
    assert (command.problems, command.master_port, command.master_addr) == ((), None, None)
    assert parse_command(["deepspeed", "--master_port", "x", "t.py"]).problems


@pytest.mark.train
def test_check_judges_the_config_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 7}}')
    (tmp_path / "train.py").write_text("import deepspeed\n")
    command = [sys.executable, "-m", "dsdoctor", "check", "--quick", "--format", "json"]
    done = subprocess.run(
        [*command, "--", "deepspeed", "train.py", "--deepspeed", "bad.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["config"] == "bad.json"
    failed = {row["condition"] for row in report["findings"] if row["status"] == "fail"}
    assert "ds-config-wrong-type" in failed


def test_what_only_the_shell_knows_of_a_launchers_options_is_not_judged() -> None:
    """`$5` is no host, and `hostfile_$JOB_ID` no file that is missing."""
    line = "deepspeed --include localhost:$5 --hostfile hostfile_$JOB_ID t.py"
    found = parse_command(line.split())
    assert (found.include, found.exclude, found.hostfile) == ("", "", None)
    assert found.options["include"] == "localhost:$5"
    known = parse_command(["deepspeed", "--include", "a:0", "--hostfile", "h", "t.py"])
    assert (known.include, known.hostfile) == ("a:0", "h")


ARGUMENTS = "from transformers import HfArgumentParser, TrainingArguments\n"
LF = "per_device_train_batch_size: 4\nbf16: true\nmodel_name_or_path: m\noutput_dir: out\nlora: [a]\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("llamafactory-cli train lf.yaml", ("hf", True, "out"), id="LLaMA-Factory"),
        pytest.param("trl sft --config lf.yaml", ("hf", False, "out"), id="TRL has its defaults"),
        pytest.param("swift sft --output_dir o", ("hf", False, "o"), id="ms-swift"),
        pytest.param(
            "deepspeed plain.py --output_dir $OUT/1", ("hf", True, ""), id="the shell knows where"
        ),
        pytest.param("deepspeed own.py --output_dir o", ("hf", False, "o"), id="own defaults"),
        pytest.param("deepspeed other.py --output_dir o", ("", False, ""), id="no Trainer"),
    ],
)
def test_what_a_trainer_reads(line: str, expected: tuple[str, bool, str]) -> None:
    files = {
        "/w/lf.yaml": LF,
        "/w/plain.py": ARGUMENTS + "p = HfArgumentParser([Mine, TrainingArguments])",
        "/w/own.py": ARGUMENTS
        + "p = HfArgumentParser(TrainingArguments)\np.set_defaults(bf16=True)",
        "/w/other.py": "import torch",
    }
    run = resolve(RunNeeds(cwd="/w", command=tuple(line.split())), FakeHost(files=files))
    assert (run.framework, run.training_arguments, run.output_dir) == expected
    if "lf.yaml" in line:
        assert run.trainer_values["per_device_train_batch_size"] == "4"
        assert run.trainer_values["bf16"] == "true"
