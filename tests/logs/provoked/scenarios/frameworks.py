"""Trainers: transformers, accelerate and TRL, and the packages that they load.

The patient needs transformers, accelerate, datasets, peft and trl beside torch and DeepSpeed. Models, tokenizers and
data are made on the spot.
"""

from __future__ import annotations

import json

from ._bench import EXTRA, Bench, scenario
from ._scripts import OPTIMIZER_STEPS, TRAINER

PACKAGES = ("accelerate", "datasets", "transformers")
WORDS = "the cat sat on a mat and saw dogs run far away while rain fell"
ASSETS = """\
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel(unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
special = ["<unk>", "<s>", "</s>", "<pad>"]
words.train_from_iterator(open("train.jsonl"), trainers.WordLevelTrainer(special_tokens=special))
names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained("model")
shape = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
LlamaForCausalLM(shape).save_pretrained("model")
"""
CONFIG = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 2},
}
USUAL = {
    "model_name_or_path": "model",
    "train_file": "train.jsonl",
    "output_dir": "out",
    "per_device_train_batch_size": "2",
    "max_steps": "4",
    "report_to": "none",
}


def _trainer(bench: Bench, *more: str, script: str = TRAINER, **changes: str) -> list[str]:
    """Writes model and data, and returns the arguments of the training script."""
    lines = [json.dumps({"text": WORDS[start:]}) for start in range(32)]
    bench.write("train.jsonl", "\n".join(lines) + "\n")
    bench.write("assets.py", ASSETS)
    bench.run([bench.python, "assets.py"], quiet=True)
    bench.write("train.py", script)
    options = [word for key, value in {**USUAL, **changes}.items() for word in (f"--{key}", value)]
    return [*options, *more]


def _config(bench: Bench, **changes: object) -> list[str]:
    bench.write("ds_config.json", json.dumps({**CONFIG, **changes}, indent=2))
    return ["--deepspeed", "ds_config.json"]


@scenario(
    "ds-config-batch-mismatch",
    r"correct the following DeepSpeed config values",
    packages=PACKAGES,
)
def trainer_bf16_only_in_config(bench: Bench) -> int:
    """The config enables bf16, and the command of the Trainer does not pass --bf16."""
    config = _config(bench, bf16={"enabled": True})
    return bench.deepspeed(TRAINER, *_trainer(bench, *config))


@scenario("precision-flag-unsupported", r"tf32 requires Ampere", packages=PACKAGES)
def trainer_tf32_without_gpu(bench: Bench) -> int:
    """--tf32 on a machine without a GPU."""
    return bench.torchrun(TRAINER, *_trainer(bench, "--tf32", "True"))


@scenario(
    "bf16-unsupported",
    r"doesn't support bf16/gpu",
    packages=PACKAGES,
    also_ok=("cpu-only-torch", "no-gpu-visible"),
)
def trainer_bf16_without_gpu(bench: Bench) -> int:
    """--bf16 on a machine without a GPU, and not --use_cpu."""
    return bench.torchrun(TRAINER, *_trainer(bench, "--bf16"))


@scenario("path-missing", r"Repo id must use", packages=PACKAGES)
def trainer_model_path_misspelt(bench: Bench) -> int:
    """The model's folder is misspelt, so transformers takes it for a name of the hub."""
    return bench.torchrun(TRAINER, *_trainer(bench, model_name_or_path="./modell"))


@scenario(
    "unrecognised", r"Unable to find '/", packages=PACKAGES, also_ok=("path-missing", "user-code")
)
def trainer_data_path_misspelt(bench: Bench) -> int:
    """The data file is misspelt."""
    return bench.torchrun(TRAINER, *_trainer(bench, "--use_cpu", train_file="data/trian.jsonl"))


@scenario(
    "dataloader-worker-killed",
    r"_try_get_data|DataLoader worker",
    packages=PACKAGES,
    also_ok=("host-oom-killed",),
)
def trainer_dataloader_worker_gone(bench: Bench) -> int:
    """A worker of the DataLoader is killed while it sends a batch."""
    return bench.torchrun(
        WORKER, *_trainer(bench, "--use_cpu", "--dataloader_num_workers", "1", script=WORKER)
    )


WORKER = TRAINER.replace("train_dataset=data,", "train_dataset=Rows(data),").replace(
    "def main():",
    """class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        if torch.utils.data.get_worker_info() is not None and index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.rows[index]


def main():""",
)


@scenario(
    "dependency-version-conflict",
    r"pytz: No module named",
    packages=PACKAGES,
    extra=("pandas==2.0.3",),
    also_ok=("script-module-missing",),
)
def trainer_pandas_without_pytz(bench: Bench) -> int:
    """pandas was installed without what it requires."""
    path = {"PYTHONPATH": str(EXTRA / "pandas-2.0.3")}
    return bench.torchrun(TRAINER, *_trainer(bench), env=path)


@scenario(
    "ds-config-batch-mismatch",
    r"2 != 2 \* 1 \* 2",
    packages=("accelerate",),
    also_ok=("cpu-only-torch", "no-gpu-visible"),
)
def accelerate_counts_one_process(bench: Bench) -> int:
    """accelerate's DeepSpeed plugin on CPUs: it counts one process, DeepSpeed two."""
    bench.write("train.py", OPTIMIZER_STEPS)
    return bench.run(
        [
            bench.python,
            "-m",
            "accelerate.commands.launch",
            "--use_deepspeed",
            "--num_processes",
            "2",
            "--num_machines",
            "1",
            "--mixed_precision",
            "no",
            "--dynamo_backend",
            "no",
            "--zero_stage",
            "2",
            "--gradient_accumulation_steps",
            "1",
            "train.py",
        ]
    )


@scenario(
    "unrecognised",
    r"Target modules .* not found",
    packages=(*PACKAGES, "peft"),
    also_ok=("user-code",),
)
def peft_target_modules_absent(bench: Bench) -> int:
    """LoRA for modules that the model does not have."""
    script = TRAINER.replace(
        "import torch\n", "import torch\nfrom peft import LoraConfig, get_peft_model\n", 1
    )
    script = script.replace(
        "    data = load",
        '    model = get_peft_model(model, LoraConfig(target_modules=["query_key_value"]))\n    data = load',
        1,
    )
    return bench.torchrun(script, *_trainer(bench, "--use_cpu", script=script))
