"""The command that a reporter ran, and the variables that it got, in the text of an issue."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.launch_lines import launches_of
from dsdoctor.paste.lines import lines_of

REGISTRY = packs.load(builtin_only=True)
LAUNCH = "deepspeed --num_gpus 2 train.py --deepspeed ds.json"
ERROR = "Traceback (most recent call last):\nRuntimeError: CUDA error: invalid device ordinal\n"


def words(text: str) -> str | None:
    """The words of the command that a text is judged by."""
    snapshot = environment_of(text)
    command = None if snapshot is None else snapshot.get(LaunchCommand)
    return " ".join(command.argv) if isinstance(command, LaunchCommand) else None


def variables(text: str) -> dict[str, Any]:
    """The variables of the job."""
    snapshot = environment_of(text)
    assert snapshot is not None
    return dict(snapshot.facts.get("environment", {}).get("variables", {}))


def statuses(text: str) -> dict[str, str]:
    """The status of each condition."""
    snapshot = environment_of(text)
    assert snapshot is not None
    found = judge(snapshot, list(REGISTRY), REGISTRY).findings
    return {one.condition: one.status.value for one in found}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"```\n{LAUNCH}\n```\n", id="in a fence"),
        pytest.param(f"```bash\n$ {LAUNCH}\n{ERROR}```\n", id="at a prompt"),
        pytest.param(f"root@node1:/workspace# {LAUNCH}\n{ERROR}", id="root's prompt"),
        pytest.param(f"(env) me@gpu1:~/x$ {LAUNCH}\n{ERROR}", id="an environment's prompt"),
        pytest.param(f"[me@gpu1 x]$ {LAUNCH}\n", id="a prompt in brackets"),
        pytest.param(f"➜  x git:(main) ✗ {LAUNCH}\n", id="a themed prompt"),
        pytest.param(f"!{LAUNCH}\n", id="a notebook"),
        pytest.param(f"+ {LAUNCH}\n{ERROR}", id="a trace of set -x"),
        pytest.param(f"I ran this:\n\n{LAUNCH}\n\nand it failed.\n", id="a bare line"),
        pytest.param(f"It fails with\n{LAUNCH}\n{ERROR}", id="a bare line above its output"),
        pytest.param(
            "```\ndeepspeed --num_gpus 2 train.py \\\n    --deepspeed ds.json\n```\n",
            id="continued",
        ),
        pytest.param(
            "```\ndeepspeed --num_gpus 2 train.py\n    --deepspeed ds.json\n```\n",
            id="a backslash was lost",
        ),
        pytest.param(
            f"```\n$ bash run.sh\n{ERROR}```\nrun.sh:\n```bash\n#!/bin/bash\nN=2\n"
            "deepspeed --num_gpus $N train.py --deepspeed ds.json\n```\n",
            id="a script that is pasted",
        ),
        pytest.param(
            f"```\n$ cat run.sh\n#!/bin/bash\nN=2\ndeepspeed --num_gpus $N train.py --deepspeed ds.json\n"
            f"$ bash run.sh\n{ERROR}```\n",
            id="a script that is shown",
        ),
        pytest.param(f"$ bash -c 'cd x; {LAUNCH}'\n", id="in a shell of its own"),
        pytest.param(
            f"$ docker run --gpus all -v /data:/data deepspeed/deepspeed:latest {LAUNCH}\n",
            id="in a container",
        ),
        pytest.param(f"It fails with\n`{LAUNCH}`\n", id="code in a line of its own"),
        pytest.param(f"I started it with `{LAUNCH}`.\n", id="code in a sentence"),
        pytest.param(f"I ran: {LAUNCH}\n", id="after a colon"),
        pytest.param(f"运行命令如下：\n```\n{LAUNCH}\n```\n", id="Chinese"),
        pytest.param(f"> ```\n> {LAUNCH}\n> ```\n", id="the whole text is quoted"),
        pytest.param(f"Please help.\n\n**Command**\n```\n{LAUNCH}\n```\n", id="below a heading"),
        pytest.param(f"You can reproduce it with:\n```\n{LAUNCH}\n```\n", id="how to reproduce it"),
    ],
)
def test_the_command_that_was_run(text: str) -> None:
    assert words(text) == LAUNCH


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"You should try this instead:\n```\n{LAUNCH}\n```\n", id="advice"),
        pytest.param(f"Please use\n\n{LAUNCH}\n", id="advice above a bare line"),
        pytest.param(f"You can try `{LAUNCH}`\n", id="advice in a sentence"),
        pytest.param(f"The docs say: {LAUNCH}\n", id="after a colon, of the docs"),
        pytest.param(f"It works with one GPU:\n`{LAUNCH}`\n", id="code that works"),
        pytest.param(f"可以先试试：\n```\n{LAUNCH}\n```\n", id="a proposal in Chinese"),
        pytest.param(f"建议改成这样：\n```\n{LAUNCH}\n```\n", id="advice in Chinese"),
        pytest.param(f"This works:\n```\n{LAUNCH}\n```\n", id="what works"),
        pytest.param("deepspeed train.py hangs on my machine.\n", id="a sentence"),
        pytest.param("deepspeed train.py hangs on both of my machines\n", id="no full stop"),
        pytest.param(f"My job fails.\n\n> try\n> {LAUNCH}\n", id="quoted mail"),
        pytest.param(f"I see.\n\n> ```\n> {LAUNCH}\n> ```\n", id="a quoted fence"),
        pytest.param(f"```diff\n+ {LAUNCH}\n```\n", id="a patch"),
        pytest.param(f"```\n# {LAUNCH}\n```\n", id="commented out"),
        pytest.param("```\ndeepspeed --num_gpus 2 train.py \\\n", id="cut"),
        pytest.param("```\n$ torchrun $ARGS train.py\n```\n", id="options of a variable"),
        pytest.param("```\n$ deepspeed <options> train.py\n```\n", id="a placeholder of options"),
        pytest.param("```\n$ pip install deepspeed torchrun\n$ which deepspeed\n```\n", id="pip"),
        pytest.param("$ docker run -it deepspeed/deepspeed bash\n", id="an image"),
        pytest.param(f"$ bash -c '{LAUNCH}; torchrun b.py'\n", id="two in one shell"),
        pytest.param("```\n$ python -m torch.utils.collect_env\n```\n", id="a tool"),
        pytest.param(
            f"author:\tann\n--\nIt fails.\n--\nauthor:\tbob\n--\n```\n{LAUNCH}\n```\n",
            id="a comment of somebody else",
        ),
        pytest.param(
            f"ann opened this issue on Jan 3, 2024\nIt fails.\nbob commented on Jan 4, 2024\n{LAUNCH}\n",
            id="a comment on a page",
        ),
    ],
)
def test_what_the_reporter_did_not_run(text: str) -> None:
    assert words(text) is None


def test_of_several_commands_the_one_that_fails_counts() -> None:
    other = "deepspeed --num_gpus 1 train.py"
    assert words(f"```\n$ {other}\nstep 1: loss 2.1\n$ {LAUNCH}\n{ERROR}```\n") == LAUNCH
    assert words(f"This works:\n```\n{other}\n```\nThis fails:\n```\n{LAUNCH}\n```\n") == LAUNCH
    assert words(f"```\n$ {other}\n$ {LAUNCH}\n```\n") is None
    assert words(f"```\n$ {other}\n{ERROR}$ {LAUNCH}\n{ERROR}```\n") is None


def test_a_script_shown_below_a_command_that_failed() -> None:
    text = f"```\n$ {LAUNCH}\n{ERROR}$ cat other.sh\n#!/bin/bash\ndeepspeed a.py\n$ ls\n```\n"
    assert words(text) == LAUNCH


def test_why_none_of_several_commands_counts() -> None:
    text = f"Driver Version: 550.54.15\n```\n$ deepspeed a.py\n$ {LAUNCH}\n```\ndriver 550.54.15\n"
    snapshot = environment_of(text)
    assert snapshot is not None
    missing = snapshot.missing[LaunchCommand.key()]
    assert missing.detail == "lines 3, 4 launch jobs, and none of them alone fails"
    shown = f"driver 550.54.15\n```\n$ {LAUNCH}\n$ cat other.sh\ndeepspeed a.py\n$ ls\n```\n"
    snapshot = environment_of(shown)
    assert snapshot is not None
    assert snapshot.missing[LaunchCommand.key()].detail.startswith("lines 3, 5 launch jobs")


def test_the_same_command_on_each_node_is_one() -> None:
    node = "torchrun --nnodes 2 --node_rank {} --nproc_per_node 8 train.py"
    text = f"```\n{node.format(0)}\n```\nand on the other\n```\n{node.format(1)}\n```\n"
    assert words(text) == node.format(0)
    assert len(launches_of(lines_of(text))) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"```\nexport NCCL_IB_DISABLE=1\nexport OMP_NUM_THREADS=8\n{LAUNCH}\n```\n",
            {"NCCL_IB_DISABLE": "1", "OMP_NUM_THREADS": "8"},
            id="exports of a script",
        ),
        pytest.param(
            f"$ export RANK=0\n$ {LAUNCH}\n$ export WORLD_SIZE=9\n",
            {"RANK": "0"},
            id="typed before it",
        ),
        pytest.param(
            f"CUDA_VISIBLE_DEVICES=0,1 HF_HOME=/data/hf {LAUNCH}\n",
            {"CUDA_VISIBLE_DEVICES": "0,1", "HF_HOME": "/data/hf"},
            id="in front of it",
        ),
        pytest.param(f"A=1\nNCCL_DEBUG=INFO\n{LAUNCH}\n", {}, id="not exported"),
        pytest.param(
            f"```\nNCCL_DEBUG=INFO\nexport NCCL_DEBUG\n{LAUNCH}\n```\n",
            {"NCCL_DEBUG": "INFO"},
            id="exported later",
        ),
        pytest.param(
            f"```\nexport NCCL_DEBUG=INFO\nunset NCCL_DEBUG\n{LAUNCH}\n```\n", {}, id="unset again"
        ),
        pytest.param(
            f"```\nexport NCCL_DEBUG=INFO\nunset NCCL_DEBUG\nNCCL_DEBUG=WARN\n{LAUNCH}\n```\n",
            {},
            id="set again, for the shell only",
        ),
        pytest.param(
            f"```\nsetenv NCCL_DEBUG WARN\n{LAUNCH}\n```\n", {"NCCL_DEBUG": "WARN"}, id="csh"
        ),
        pytest.param(
            f"```\n%env NCCL_DEBUG=WARN\n!{LAUNCH}\n```\n", {}, id="a notebook's own, not typed"
        ),
        pytest.param(
            f"```\nexport MASTER_ADDR=<ip>\nexport NCCL_SOCKET_IFNAME=xxx\n"
            f"export MASTER_PORT=$PORT\nexport HF_HOME=/path/to/hf\n{LAUNCH}\n```\n",
            {},
            id="placeholders",
        ),
        pytest.param(
            f"```\n{LAUNCH}\n[INFO] started\nexport NCCL_DEBUG=INFO\n```\n", {}, id="below it"
        ),
        pytest.param(f"export NCCL_DEBUG=INFO does not help.\n\n{LAUNCH}\n", {}, id="a sentence"),
        pytest.param(
            f"```\nexport MY_NAME=x\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz\n{LAUNCH}\n```\n",
            {},
            id="not of a job, or secret",
        ),
    ],
)
def test_the_variables_of_the_job(text: str, expected: dict[str, str]) -> None:
    assert words(text) is not None
    assert variables(text) == expected


def test_each_variable_has_its_line() -> None:
    snapshot = environment_of(f"```\nexport NCCL_DEBUG=INFO\n\n{LAUNCH}\n```\n")
    assert snapshot is not None
    assert snapshot.sources["environment"]["variables.NCCL_DEBUG"].line == 2
    assert snapshot.sources["launch_command"]["num_gpus"].line == 4


def test_the_job_wins_over_another_shell() -> None:
    text = f"$ env\nCUDA_VISIBLE_DEVICES=0\n\n$ export CUDA_VISIBLE_DEVICES=2,3\n$ {LAUNCH}\n"
    assert variables(text)["CUDA_VISIBLE_DEVICES"] == "2,3"
    snapshot = environment_of(text)
    assert snapshot is not None
    assert not snapshot.contradictions


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567 deepspeed train.py", "0123456789"),
        ("deepspeed train.py --hub_token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "hf_abcdef"),
        ("deepspeed train.py --data https://ann:hunter22@example.org/x.json", "hunter22"),
        ("export HTTPS_PROXY=http://ann:hunter22@proxy:3128\ndeepspeed train.py", "hunter22"),
    ],
    ids=["a variable", "an option", "an address", "a proxy"],
)
def test_secrets_are_masked(line: str, secret: str) -> None:
    snapshot = environment_of(f"```\n{line}\n```\n")
    assert snapshot is not None
    assert snapshot.get(LaunchCommand).argv  # type: ignore[union-attr]  # it is there
    assert secret not in snapshot.to_json().decode()


def test_a_placeholder_is_no_mistake_of_the_reporters() -> None:
    text = (
        "```\n$ torchrun --nnodes 2 --master_addr <ip> --master_port xxx /path/to/train.py\n```\n"
    )
    command = environment_of(text)
    assert command is not None
    found = statuses(text)
    assert found["launch-placeholder-left"] in ("ok", "skip")
    assert found["include-exclude-conflict"] in ("ok", "skip")
    assert found["rendezvous-timeout"] == "skip"


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "```\n$ torchrun --nnodes=2 --nproc_per_node=8 train.py\n```\n",
            "rendezvous-timeout",
            id="nodes that meet nowhere",
        ),
        pytest.param(
            "```\n$ CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus 2 train.py\n```\n",
            "launcher-visible-devices-conflict",
            id="the launcher deletes the variable",
        ),
        pytest.param(
            "```\n$ deepspeed --include localhost:0 --num_gpus 2 train.py\n```\n",
            "include-exclude-conflict",
            id="options that exclude each other",
        ),
        pytest.param(
            "```\n#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n"
            "srun torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint n0:29500 train.py\n```\n",
            "slurm-request-mismatch",
            id="more ranks than the job asks for",
        ),
        pytest.param(
            "```\nexport NCCL_SOCKET_IFNAM=eth0\ndeepspeed train.py\n```\n",
            "nccl-unknown-variable",
            id="a variable that nothing reads",
        ),
    ],
)
def test_the_command_is_judged(text: str, condition: str) -> None:
    assert statuses(text)[condition] in ("warn", "fail")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "```\n$ python train.py --deepspeed ds.json\n```\n",
            "launched-without-deepspeed",
            id="the variables of a rank may be set",
        ),
        pytest.param(
            "```\n$ CUDA_VISIBLE_DEVICES=0 deepspeed --hostfile h --num_gpus 2 train.py\n```\n",
            "launcher-visible-devices-conflict",
            id="the hostfile is not there",
        ),
        pytest.param(
            "```\n$ pip list\nPackage Version\n---------- -------\naccelerate 0.28.0\n```\n"
            "```\nGPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)\n"
            "GPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2)\n```\n"
            "```\n$ deepspeed --num_gpus 2 train.py\n```\n",
            "accelerate-refuses-gpus",
            id="the variables of NCCL may be set",
        ),
    ],
)
def test_nothing_follows_from_what_is_left_out(text: str, condition: str) -> None:
    assert statuses(text)[condition] == "skip"


RUNNER = (
    "[2024-01-02 10:00:00,000] [INFO] [runner.py:568:main] cmd = /opt/env/bin/python3.10 -u -m "
    "deepspeed.launcher.launch --world_info={} --master_addr=127.0.0.1 --master_port=29501 "
    "--enable_each_rank_log=None train.py --deepspeed ds.json\n"
)


def test_the_command_that_the_launcher_prints() -> None:
    text = RUNNER.format("eyJsb2NhbGhvc3QiOiBbMCwgMV19")
    expected = "deepspeed --include=localhost:0,1 --master_port=29501 train.py --deepspeed ds.json"
    assert words(text) == expected
    assert words(f"$ {LAUNCH}\n{text}{ERROR}") == LAUNCH  # what was typed says more
    assert words(RUNNER.format("e30=")) is None  # no node
    assert words(RUNNER.format("eyJhIjogWzBdLCAiYiI6IFswXX0=")) is None  # two nodes
    assert words(RUNNER.format("broken")) is None


def test_the_command_line_of_a_trainer() -> None:
    launch = "CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train llama3.yaml"
    assert words(f"```\n{launch}\n```\n") == launch


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "Package   Version\n--------- -------\ndeepspeed 0.19.8\ntorch 2.9.1", id="pip list"
        ),
        pytest.param("deepspeed   0.14.0+cu121   pypi_0   pypi", id="conda list"),
        pytest.param("torch 2.4.0\nvllm 0.6.1\naxolotl 0.9.2.post1", id="versions in rows"),
        pytest.param(
            "torch version .................... 2.9.1\n"
            "deepspeed install path ........... ['/env/deepspeed']\n"
            "deepspeed info ................... 0.19.8, unknown, unknown\n"
            "deepspeed wheel compiled w. ...... torch 0.0, cuda 0.0",
            id="ds_report",
        ),
    ],
)
def test_the_row_of_a_list_is_no_command(text: str) -> None:
    assert launches_of(lines_of(f"```\n{text}\n```\n")) == []
