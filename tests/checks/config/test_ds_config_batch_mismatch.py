"""Rows of `ds-config-batch-mismatch`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, Gpu, Gpus, Package, Packages, RunNeeds, Status
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_batch_mismatch
from tests.checks.config.rows import ABSENT, BARE, NOW, OLD, config


@pytest.mark.parametrize(
    ("text", "argv", "gpus", "status"),
    [
        pytest.param(
            '{"train_micro_batch_size_per_gpu": 4}', "", 8, "ok", id="a micro-batch alone"
        ),
        pytest.param(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}',
            "",
            8,
            "ok",
            id="32 is 4 on each of eight GPUs",
        ),
        pytest.param(
            (
                '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
                ' "gradient_accumulation_steps": 2}'
            ),
            "deepspeed --num_gpus 4 t.py",
            8,
            "ok",
            id="32 is 4 in two steps on the four GPUs of the command",
        ),
        pytest.param(
            (
                '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
                ' "gradient_accumulation_steps": 2}'
            ),
            "deepspeed --num_gpus 2 t.py",
            8,
            "fail",
            id="32 is not 4 in two steps on the two GPUs of the command",
        ),
        pytest.param(
            (
                '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
                ' "gradient_accumulation_steps": 2, "sequence_parallel_size": 2}'
            ),
            "torchrun --nproc_per_node 8 t.py",
            8,
            "ok",
            id="sequence parallelism by 2 leaves four of eight ranks for the data",
        ),
        pytest.param(
            '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}',
            "",
            None,
            "fail",
            id="7 is odd and a micro-batch of 2 does not divide it",
        ),
        pytest.param(
            '{"train_batch_size": 1}',
            "deepspeed --include localhost:0,1 t.py",
            8,
            "fail",
            id="a batch of 1 on two GPUs",
        ),
        pytest.param(
            '{"train_batch_size": 6}',
            "",
            4,
            "warn",
            id="6 samples on the four GPUs of the node, but nothing says how many are used",
        ),
        pytest.param(
            '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1}',
            "",
            None,
            "skip",
            id="16 with a micro-batch of 1, and the number of GPUs is unknown",
        ),
        pytest.param(  # made for two nodes like this one
            (
                '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,'
                ' "gradient_accumulation_steps": 1}'
            ),
            "",
            8,
            "ok",
            id="16 single samples on eight GPUs fit two nodes like this one",
        ),
        pytest.param('{"train_batch_size": "auto"}', "", 8, "skip", id="an auto batch size"),
        pytest.param(  # no micro-batch can make 10 of 4 accumulation steps
            (
                '{"train_batch_size": 10, "train_micro_batch_size_per_gpu": "auto",'
                ' "gradient_accumulation_steps": 4}'
            ),
            "",
            None,
            "fail",
            id="10 samples cannot be split into four accumulation steps",
        ),
        pytest.param(
            (
                '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": "auto",'
                ' "gradient_accumulation_steps": 4}'
            ),
            "torchrun --nproc_per_node 8 t.py",
            8,
            "fail",
            id="16 samples in four steps are too few for eight ranks",
        ),
        pytest.param(
            (
                '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto",'
                ' "gradient_accumulation_steps": 4}'
            ),
            "torchrun --nproc_per_node 8 t.py",
            8,
            "skip",
            id="32 samples in four steps leave one for each of eight ranks",
        ),
        pytest.param("{}", "", 8, "fail", id="no batch size at all"),
        pytest.param(
            '{"train_micro_batch_size_per_gpu": -1}', "", 8, "fail", id="a negative micro-batch"
        ),
        pytest.param(
            '{"train_batch_size": "8"}',
            "",
            8,
            "ok",
            id="a batch size in quotes is the business of another check",
        ),
    ],
)
def test_batch_mismatch(text: str, argv: str, gpus: int | None, status: str) -> None:
    seen = Gpus(gpus=tuple(Gpu(index=number) for number in range(gpus))) if gpus else ABSENT
    command = parse_command(argv.split()) if argv else ABSENT
    check = ds_config_batch_mismatch.batches_fit
    judged = judge(
        check,
        ds_config=config(text),
        launch_command=command,
        gpus=seen,
        deep_speed_install=NOW,
        packages=BARE,
    )
    assert judged.statuses == status.split()


def test_batch_mismatch_counts_hostfile_and_gpus_option() -> None:
    text = '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,'
    text += ' "gradient_accumulation_steps": 1}'
    check = ds_config_batch_mismatch.batches_fit
    hosts = parse_hostfile("a slots=8\nb slots=8\n", "hosts")
    assert not judge(
        check, ds_config=config(text), hostfile=hosts, deep_speed_install=NOW, packages=BARE
    ).bad
    chosen = RunNeeds(gpus=("0", "1"))
    (found,) = judge(
        check, ds_config=config(text), run_needs=chosen, deep_speed_install=NOW, packages=BARE
    ).bad
    assert found.status is Status.FAIL
    assert found.evidence["product"] == 2
    assert "(line 1) is 16, but micro-batch 1 * accumulation 1 * 2 ranks is 2" in found.message


LIGHTNING = Packages(packages={"lightning": Package(name="lightning", version="2.5.0")})
ELASTIC = '{"elasticity": {"enabled": true, "max_train_batch_size": 64, "micro_batch_sizes": [2]}}'


@pytest.mark.parametrize(
    ("text", "deepspeed", "packages", "status"),
    [
        pytest.param("{}", NOW, LIGHTNING, "skip", id="Lightning sets the micro-batch"),
        pytest.param("{}", NOW, BARE, "fail", id="nothing sets it"),
        pytest.param(ELASTIC, NOW, BARE, "skip", id="removed elasticity is reported separately"),
        pytest.param(ELASTIC, OLD, BARE, "skip", id="elasticity computes it"),
    ],
)
def test_a_config_without_batch_sizes(
    text: str, deepspeed: DeepSpeedInstall, packages: Packages, status: str
) -> None:
    check = ds_config_batch_mismatch.batches_fit
    facts: dict[str, Any] = {"deep_speed_install": deepspeed, "packages": packages}
    assert judge(check, ds_config=config(text), **facts).statuses == status.split()


TRAINER = (
    '{"train_micro_batch_size_per_gpu": 4,\n"gradient_accumulation_steps": "auto",\n'
    '"optimizer": {"type": "AdamW", "params": {"lr": 2e-5,\n"betas": [0.9, 0.95]}},\n'
    '"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},\n'
    '"fp16": {"enabled": true},\n"gradient_clipping": 1.0}'
)


@pytest.mark.parametrize(
    ("words", "framework", "keys"),
    [
        pytest.param(
            "--per_device_train_batch_size 4 --learning_rate 2e-5 --max_grad_norm=1",
            "hf",
            [],
            id="all agree",
        ),
        pytest.param("--gradient_accumulation_steps 8", "hf", [], id="auto agrees with all"),
        pytest.param(
            "--per_device_train_batch_size 8",
            "hf",
            ["train_micro_batch_size_per_gpu"],
            id="another micro-batch",
        ),
        pytest.param(
            "--learning-rate=1e-4 --max_grad_norm 0.3",
            "hf",
            ["gradient_clipping", "optimizer.params.lr"],
            id="another learning rate and another limit",
        ),
        pytest.param(
            "--per_device_train_batch_size 8", "native", [], id="a script's own option of that name"
        ),
        pytest.param("--learning_rate $LR", "hf", [], id="the shell knows the value"),
        pytest.param(
            "--bf16 --warmup_steps 10", "hf", ["fp16.enabled"], id="the other 16-bit type"
        ),
        pytest.param("--bf16 False --fp16 True", "hf", [], id="the same 16-bit type"),
        pytest.param("--fp16 no", "hf", ["fp16.enabled"], id="no 16-bit type"),
        pytest.param("--adam_beta1 0.9 --adam_beta2 0.95", "hf", [], id="the same betas"),
        pytest.param("--adam_beta2 0.999", "hf", ["optimizer.params.betas"], id="another beta"),
        pytest.param(
            "--warmup_steps 100", "hf", ["scheduler.params.warmup_num_steps"], id="more warmup"
        ),
        pytest.param("--warmup_steps 0 --warmup_ratio 0.1", "hf", [], id="a ratio of all steps"),
        pytest.param("--learning_rate --fp16", "hf", [], id="an option without a value"),
    ],
)
def test_options_of_the_trainer(words: str, framework: str, keys: list[str]) -> None:
    judged = judge(
        ds_config_batch_mismatch.batches_fit,
        ds_config=config(TRAINER),
        launch_command=parse_command(f"deepspeed t.py {words}".split()),
        run_needs=RunNeeds(framework=framework),
        deep_speed_install=NOW,
        packages=BARE,
    )
    assert [found.evidence["key"] for found in judged.bad] == keys
    assert all(found.evidence["line"] for found in judged.bad)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        pytest.param(
            '{"bf16": {"enabled": true}}', "", "does not pass `--bf16`, whose", id="bf16 is off"
        ),
        pytest.param('{"bf16": {"enabled": true}}', "--bf16", "", id="bf16 is on"),
        pytest.param('{"bf16": {"enabled": true}}', "$MORE", "", id="the shell may add it"),
        pytest.param('{"bf16": {"enabled": false}}', "", "", id="off in both"),
        pytest.param('{"fp16": {"enabled": "auto"}}', "", "", id="the trainer fills it in"),
        pytest.param(
            '{"optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0}}}',
            "",
            "does not pass `--learning_rate`, whose default is 5e-5",
            id="another learning rate than the default",
        ),
        pytest.param(
            '{"train_batch_size": 16}',
            "--per_device_train_batch_size 2",
            "come to `--per_device_train_batch_size 2 --gradient_accumulation_steps 1` on 2 ranks",
            id="the accumulation has its default",
        ),
        pytest.param(
            '{"train_micro_batch_size_per_gpu": 2}',
            "--auto_find_batch_size",
            "",
            id="the trainer looks for the batch size itself",
        ),
    ],
)
def test_defaults_of_the_trainer(text: str, words: str, said: str) -> None:
    line = f"deepspeed --num_gpus 2 t.py --deepspeed ds.json {words}"

    def found(training_arguments: bool) -> list[str]:
        judged = judge(
            ds_config_batch_mismatch.batches_fit,
            ds_config=config(text),
            launch_command=parse_command(line.split()),
            run_needs=RunNeeds(framework="hf", training_arguments=training_arguments),
            deep_speed_install=NOW,
            packages=BARE,
        )
        own = [each for each in judged.bad if "transformers rejects" in each.effect]
        return [each.message for each in own]

    assert not found(False)  # the script may set the value itself
    assert [said in message for message in found(True)] == ([True] if said else [])


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        pytest.param(
            '{"train_batch_size": 32, "gradient_accumulation_steps": "auto"}',
            "--per_device_train_batch_size 4 --gradient_accumulation_steps 2",
            "to 2 ranks",
            id="the whole batch that transformers calculates is 16",
        ),
        pytest.param(
            '{"train_batch_size": 16, "gradient_accumulation_steps": "auto"}',
            "--per_device_train_batch_size 4 --gradient_accumulation_steps 2",
            "",
            id="the same",
        ),
        pytest.param(
            '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}',
            "--gradient_accumulation_steps 2",
            "accelerate sets it to 1",
            id="accumulation that the config lacks",
        ),
        pytest.param(
            '{"train_micro_batch_size_per_gpu": "auto"}',
            "--gradient_accumulation_steps 2",
            "",
            id="accumulation that no whole batch contradicts",
        ),
        pytest.param(
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}',
            "",
            "but micro-batch 4 * accumulation 1 * 2 ranks is 8",
            id="accelerate counts absent accumulation as 1",
        ),
        pytest.param(
            '{"gradient_accumulation_steps": "auto"}',
            "",
            "neither `train_batch_size` nor",
            id="accumulation alone is no batch size",
        ),
    ],
)
def test_the_trainer_calculates_the_whole_batch(text: str, words: str, said: str) -> None:
    found = judge(
        ds_config_batch_mismatch.batches_fit,
        ds_config=config(text),
        launch_command=parse_command(f"deepspeed --num_gpus 2 t.py {words}".split()),
        gpus=Gpus(gpus=(Gpu(index=0), Gpu(index=1))),
        run_needs=RunNeeds(framework="hf"),
        deep_speed_install=NOW,
        packages=BARE,
    ).bad
    assert [said in one.message for one in found] == ([True] if said else [])


def test_the_value_that_is_named_is_the_product() -> None:
    """With all three sizes set only their product fits, and nothing is rounded."""
    text = '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}'
    (found,) = judge(
        ds_config_batch_mismatch.batches_fit,
        ds_config=config(text),
        launch_command=parse_command(["deepspeed", "--num_gpus", "2", "t.py"]),
        gpus=Gpus(gpus=tuple(Gpu(index=number) for number in range(8))),
        deep_speed_install=NOW,
        packages=BARE,
    ).bad
    assert found.hint == "use 4 ranks or `train_batch_size` 16, or remove `train_batch_size`"
    assert found.evidence["nearest"] == 16
