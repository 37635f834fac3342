"""Configs, hostfiles and YAML of accelerate in the text of an issue."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.launch import DeepSpeedEnvFile, Hostfile, LaunchParse
from dsdoctor.model.finding import Finding
from dsdoctor.paste.environment import environment_of

REGISTRY = packs.load(builtin_only=True)
CONFIG = """\
{
  "train_micro_batch_size_per_gpu": 2,
  "bf16": {"enabled": true},
  "fp16": {"enabled": true},
  "zero_optimization": {"stage": 2}
}
"""


def config_of(text: str) -> DsConfig | None:
    """The config that a text is judged by."""
    snapshot = environment_of(text)
    found = None if snapshot is None else snapshot.get(DsConfig)
    return found if isinstance(found, DsConfig) else None


def problems(text: str) -> dict[str, Finding]:
    """What is found, by condition."""
    snapshot = environment_of(text)
    assert snapshot is not None
    found = judge(snapshot, list(REGISTRY), REGISTRY).findings
    return {one.condition: one for one in found if one.status.value in ("warn", "fail")}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"```json\n{CONFIG}```\n", id="in a fence"),
        pytest.param(f"My config:\n\n{CONFIG}\n", id="outside a fence"),
        pytest.param(
            "```python\nds_config = {\n 'train_micro_batch_size_per_gpu': 2,\n"
            " 'bf16': {'enabled': True},\n 'fp16': {'enabled': True},\n"
            " 'zero_optimization': {'stage': 2},\n}\n```\n",
            id="Python",
        ),
        pytest.param(f"```\n$ cat ds.json\n{CONFIG}$ ls\n```\n", id="cat"),
        pytest.param(
            "[2024-01-02 10:00:00,000] [INFO] [config.py:1007:print_user_config]   json = "
            + CONFIG.replace("\n  ", "\n    "),
            id="DeepSpeed's log",
        ),
        pytest.param(CONFIG.replace("\n", " ") + "\n", id="in one line"),
        pytest.param(
            CONFIG.replace('"bf16": {"enabled": true},', '"bf16": {"enabled": true}, // half'),
            id="with a comment",
        ),
    ],
)
def test_a_config(text: str) -> None:
    config = config_of(text)
    assert config is not None
    assert config.get("zero_optimization.stage") == 2
    assert "ds-config-unsupported-combination" in problems(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Try this config:\n```json\n{CONFIG}```\n", id="advice"),
        pytest.param(f"This config works:\n```json\n{CONFIG}```\n", id="what works"),
        pytest.param(
            f"It fails.\n\n> ```json\n> {CONFIG.replace(chr(10), chr(10) + '> ')}\n", id="quoted"
        ),
        pytest.param("```json\n" + CONFIG.rstrip().rstrip("}"), id="cut"),
        pytest.param(
            "```json\n" + CONFIG.replace('  "bf16"', '  ...\n  "bf16"') + "```\n", id="left out"
        ),
        pytest.param(
            "```json\n" + CONFIG.replace("true},", "true},  // ... and more", 1) + "```\n",
            id="left out in a comment",
        ),
        pytest.param('```json\n{"architectures": ["GPT2"], "n_layer": 2}\n```\n', id="a model's"),
        pytest.param("{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n" * 30, id="a log"),
        pytest.param(
            "```python\nds_config = {'zero_optimization': {'stage': args.s}}\n```\n", id="computed"
        ),
    ],
)
def test_what_is_no_config_of_the_reporter(text: str) -> None:
    assert config_of(text) is None


def test_lines_are_those_of_the_text() -> None:
    text = f"Hello.\n\n```json\n{CONFIG}```\n"
    config = config_of(text)
    assert config is not None
    assert config.lines["fp16.enabled"] == 7
    snapshot = environment_of(text)
    assert snapshot is not None
    assert snapshot.sources["ds_config"]["parsed"].line == 4


def test_of_several_configs_the_one_that_the_command_names() -> None:
    other = CONFIG.replace('"stage": 2', '"stage": 3')
    both = f"zero2.json:\n```json\n{CONFIG}```\nzero3.json:\n```json\n{other}```\n"
    assert config_of(both) is None
    config = config_of(f"{both}```\n$ deepspeed train.py --deepspeed conf/zero3.json\n```\n")
    assert config is not None
    assert (config.path, config.get("zero_optimization.stage")) == ("zero3.json", 3)


def test_the_config_is_judged_for_the_ranks_of_the_command() -> None:
    config = '{"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}}'
    text = f"```\n$ torchrun --nproc_per_node 4 train.py --deepspeed ds.json\n```\nds.json\n```\n{config}\n```\n"
    assert "4 ranks" in problems(text)["ds-config-batch-mismatch"].message
    unknown = text.replace("4 train.py", "$GPUS train.py")
    assert "ds-config-batch-mismatch" not in problems(unknown)


def test_options_of_the_trainer_contradict_the_config() -> None:
    config = '{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}}'
    launch = "torchrun --nproc_per_node 2 train.py {} --per_device_train_batch_size 8"
    text = f"ds.json\n```\n{config}\n```\n```\n$ {launch}\n```\n"
    found = problems(text.replace("{}", "--deepspeed ds.json"))["ds-config-batch-mismatch"]
    assert "--per_device_train_batch_size 8" in found.message
    # a script of one's own may take such options too
    own = text.replace("{}", "--deepspeed --deepspeed_config ds.json")
    assert "ds-config-batch-mismatch" not in problems(own)


HOSTS = "10.0.0.5 slots=8\n10.0.0.6 slots=8\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"```\n$ cat hostfile\n{HOSTS}$ ls\n```\n", id="cat"),
        pytest.param(f"hostfile:\n```\n{HOSTS}```\n", id="in a fence"),
        pytest.param(f"My hostfile:\n\n{HOSTS}\nIt hangs.\n", id="outside a fence"),
    ],
)
def test_a_hostfile(text: str) -> None:
    snapshot = environment_of(text)
    assert snapshot is not None
    found = snapshot.get(Hostfile)
    assert isinstance(found, Hostfile)
    assert [(entry.host, entry.slots) for entry in found.entries] == [
        ("10.0.0.5", 8),
        ("10.0.0.6", 8),
    ]
    assert not problems(text)


def test_a_line_of_a_hostfile_that_the_launcher_rejects() -> None:
    text = f"```\n$ cat /job/hostfile\n{HOSTS}10.0.0.5 slots=4\n```\n"
    found = problems(text)["hostfile-or-ssh-problem"]
    assert "line 5 of `/job/hostfile`" in found.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "```\n$ cat hostfile\n<ip1> slots=8\n<ip1> slots=8\n```\n", id="names left out"
        ),
        pytest.param(f"You should write:\n```\n{HOSTS}```\n", id="advice"),
        pytest.param(f"You should write\n{HOSTS}\n", id="advice outside a fence"),
        pytest.param("each line is `host slots=8`, as in\nnode slots=8\n", id="a sentence"),
    ],
)
def test_no_hostfile_of_the_reporter(text: str) -> None:
    snapshot = environment_of(text)
    assert snapshot is None or not isinstance(snapshot.get(Hostfile), Hostfile)


def test_the_environment_file() -> None:
    text = f"```\n$ cat ~/.deepspeed_env\nNCCL_DEBUG=INFO\nHF_HOME=/hf\n```\n{HOSTS}"
    snapshot = environment_of(text)
    assert snapshot is not None
    found = snapshot.get(DeepSpeedEnvFile)
    assert isinstance(found, DeepSpeedEnvFile)
    assert found.names == ("NCCL_DEBUG", "HF_HOME")


def test_a_variable_may_be_in_an_environment_file_that_the_text_leaves_out() -> None:
    text = f"```\nexport HF_HOME=/hf\ndeepspeed --hostfile hosts a.py\n```\n```\n{HOSTS}```\n"
    assert "environment-not-forwarded" not in problems(text)
    told = text + "```\n$ cat .deepspeed_env\nNCCL_DEBUG=INFO\n```\n"
    assert "HF_HOME" in problems(told)["environment-not-forwarded"].message


YAML = """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stagee: 2
num_processes: 2
"""


def test_the_configuration_of_accelerate() -> None:
    text = f"My config:\n```yaml\n{YAML}```\n"
    snapshot = environment_of(text)
    assert snapshot is not None
    assert isinstance(snapshot.get(LaunchParse), LaunchParse)
    found = problems(text)["launch-option-refused"]
    assert "zero_stagee" in found.message
    assert found.evidence["stated_at"][0]["line"] == 6
    assert environment_of(f"You can use:\n```yaml\n{YAML}```\n") is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "```\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=4\nexport MASTER_ADDR=localhost\n"
            "srun python train.py\n```\n",
            id="localhost for four nodes of Slurm",
        ),
        pytest.param(
            "$ torchrun --nnodes 2 --master_addr 127.0.0.1 --nproc_per_node 8 train.py\n",
            id="localhost for two of torchrun",
        ),
    ],
)
def test_the_address_of_each_node_itself(text: str) -> None:
    assert "which on each node is that node itself" in problems(text)["rendezvous-timeout"].message
    own = "export MASTER_ADDR=localhost\ntorchrun --nnodes 2 --rdzv_endpoint $HOST:29500 train.py"
    assert "rendezvous-timeout" not in problems(f"```\n{own}\n```\n")  # torchrun sets it
    assert "rendezvous-timeout" not in problems(
        text.replace("localhost", "10.0.0.5").replace("127.0.0.1", "10.0.0.5")
    )
