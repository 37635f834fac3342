"""What the command says of the training: the model, and which of its parameters are trained."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsdoctor.api import Missing, TrainingJob
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.training_job import training_job
from dsdoctor.recommend.models import written
from dsdoctor.recommend.presets import PRESETS
from dsdoctor.testing import FakeHost, read

HEAD = """import torch
from dataclasses import dataclass, field
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
@dataclass
class Mine:
    model_name_or_path: str = field(default="x")
    lora_enable: bool = False
    freeze_llm: bool = field(default=False, metadata={"help": "freeze it"})
def main():
    parser = HfArgumentParser((Mine, TrainingArguments))
    own, args = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained(own.model_name_or_path)
"""
TRAIN = (
    "    trainer = Trainer(model=model, args=args)\n    trainer.train()\n    trainer.save_model()\n"
)
END = "if __name__ == '__main__':\n    main()\n"
PLAIN = HEAD + TRAIN + END
CONFIG = {**written(PRESETS["llama-3-8b"]), "architectures": ["LlamaForCausalLM"]}
HUB = "/home/u/.cache/huggingface/hub/models--org--secret"


def job(script: str, *words: str, files: dict[str, Any] | None = None, **env: str) -> TrainingJob:
    command = ("deepspeed", "--num_gpus", "8", "t.py", "--deepspeed", "ds.json", *words)
    return of(command, {"/w/t.py": script, **(files or {})}, **env)


def of(command: tuple[str, ...], files: dict[str, Any], **env: str) -> TrainingJob:
    host = FakeHost(files={"/w/ds.json": "{}", **files}, env={"HOME": "/home/u", **env})
    run = resolve(RunNeeds(cwd="/w", command=command), host)
    parsed = parse_command(run.command)
    found = read(training_job, host, run_needs=run, launch_command=parsed)
    assert isinstance(found, TrainingJob), found
    return found


def test_everything_that_a_command_states() -> None:
    words = (
        "--model_name_or_path", "m", "--per_device_train_batch_size", "4", "--max_seq_length",
        "2048", "--gradient_checkpointing", "True",
    )  # fmt: skip
    found = job(PLAIN, *words, files={"/w/m/config.json": json.dumps(CONFIG)})
    assert found.shape is not None
    assert found.shape["parameters"] == PRESETS["llama-3-8b"].parameters
    assert (found.model, found.path, found.named_by) == ("m", "m", "`--model_name_or_path`")
    assert (found.method, found.micro_batch, found.sequence) == ("full", 4, 2048)
    assert (found.checkpointing, found.saves_states) == (True, True)


def test_where_a_model_is_looked_for() -> None:
    cached = {
        f"{HUB}/refs/main": "a" * 40 + "\n",
        f"{HUB}/snapshots/{'a' * 40}/config.json": json.dumps(CONFIG),
    }
    found = job(PLAIN, "--model_name_or_path", "org/secret", files=cached)
    assert (found.path, found.shape is not None) == (f"{HUB}/snapshots/{'a' * 40}", True)
    known = job(PLAIN, "--model_name_or_path", "meta-llama/Llama-3.1-8B-Instruct")
    assert (known.shape or {})["parameters"] == PRESETS["llama-3.1-8b"].parameters
    sized = job(PLAIN, "--model_name_or_path", "lmsys/vicuna-13b-v1.5").shape or {}
    assert sized["stated_parameters"] == 11_700_000_000
    assert job(PLAIN, "--model_name_or_path", "org/secret").shape is None


@pytest.mark.parametrize(
    "config",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"model_type": "llama"}', id="no numbers"),
        pytest.param('{"model_type": "llama", "hidden_size": "x"}', id="no number"),
        pytest.param(json.dumps({**CONFIG, "num_hidden_layers": 10**9}), id="too many layers"),
        pytest.param(json.dumps({**CONFIG, "hidden_size": 0}), id="no width"),
        pytest.param(json.dumps({**CONFIG, "quantization_config": {"bits": 4}}), id="4 bits"),
    ],
)
def test_a_config_that_tells_nothing(config: str) -> None:
    found = job(PLAIN, "--model_name_or_path", "./m", files={"/w/m/config.json": config})
    assert (found.model, found.shape) == ("./m", None)


LORA = "    if own.lora_enable:\n        model = get_peft_model(model, LoraConfig())\n"


@pytest.mark.parametrize(
    ("middle", "words", "method"),
    [
        pytest.param("", (), "full", id="the Trainer trains everything"),
        pytest.param("    # not with LoRA\n", (), "full", id="a comment"),
        pytest.param(LORA, (), "full", id="adapters are off unless they are asked for"),
        pytest.param(LORA, ("--lora_enable", "False"), "full", id="they are turned off"),
        pytest.param(LORA, ("--lora_enable", "True"), "lora", id="they are turned on"),
        pytest.param("    model = get_peft_model(model, config)\n", (), "", id="always adapters"),
        pytest.param("    if own.freeze_llm:\n        model.requires_grad_(False)\n", (), "full",
                     id="freezing is off"),
        pytest.param("    if own.freeze_llm:\n        model.requires_grad_(False)\n",
                     ("--freeze_llm", "True"), "", id="freezing is on"),
        pytest.param("    model.embed.requires_grad_(False)\n", (), "", id="a part is frozen"),
        pytest.param("    model.config.num_hidden_layers = 2\n", (), "", id="another size"),
        pytest.param("    o = torch.optim.SGD(model.parameters())\n", (), "", id="less state"),
        pytest.param("", ("--optim", "adafactor"), "", id="another optimizer"),
        pytest.param("", ("--optim", "adamw_torch"), "full", id="Adam"),
        pytest.param("", ("--load_in_4bit", "True"), "", id="4 bits"),
        pytest.param("", ("--lora_r", "8"), "", id="a rank alone"),
        pytest.param("    import unknown_helpers\n", (), "", id="a package that may freeze"),
        pytest.param("    if args.do_train:\n        pass\n", (), "full", id="it trains anyway"),
    ],
)  # fmt: skip
def test_what_a_script_trains(middle: str, words: tuple[str, ...], method: str) -> None:
    assert job(HEAD + middle + TRAIN + END, *words).method == method


def test_a_script_that_only_trains_when_told() -> None:
    script = HEAD + "    trainer = Trainer(model=model, args=args)\n    if args.do_train:\n"
    script += "        trainer.train()\n" + END
    assert job(script).method == ""
    assert job(script, "--do_train").method == "full"
    assert job(HEAD + "    model.train()\n" + END).method == ""


def test_modules_of_the_project_are_read_too() -> None:
    script = PLAIN.replace("import torch\n", "import torch\nfrom lib.model import prepare\n")
    script = script.replace("    trainer =", "    model = prepare(model)\n    trainer =")
    plain = {"/w/lib/model.py": "def prepare(m):\n    return m\n"}
    assert job(script, files=plain).method == "full"
    frozen = {"/w/lib/model.py": "def prepare(m):\n    m.requires_grad_(False)\n    return m\n"}
    assert job(script, files=frozen).method == ""
    unused = {"/w/lib/model.py": plain["/w/lib/model.py"] + "def f(m):\n    m.freeze()\n"}
    assert job(script, files=unused).method == "full"
    assert job(script).method == ""  # installed somewhere else
    assert job(script, files={"/w/lib/model.py": "def ("}).method == ""
    broken = {"/w/lib/model.py": "def ("}
    assert job(script, "--finetuning_type", "full", files=broken).method == ""
    assert job(script, "--use_lora", files=broken).method == "lora"


def test_trl_with_its_own_options() -> None:
    script = (
        "from transformers import AutoModelForCausalLM\n"
        "from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser,"
        " get_peft_config, get_quantization_config, get_kbit_device_map\n"
        "parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))\n"
        "s, a, m = parser.parse_args_and_config()\n"
        "q = get_quantization_config(m)\n"
        "k = dict(device_map=get_kbit_device_map() if q else None, quantization_config=q)\n"
        "model = AutoModelForCausalLM.from_pretrained(m.model_name_or_path, **k)\n"
        "trainer = SFTTrainer(model=model, args=a, peft_config=get_peft_config(m))\n"
        "trainer.train()\n"
    )
    assert job(script).method == "full"
    assert job(script, "--use_peft").method == "lora"
    assert job(script, "--load_in_8bit").method == ""


def test_a_model_that_the_script_names() -> None:
    script = PLAIN.replace("own.model_name_or_path", "'meta-llama/Llama-2-7b-hf'")
    found = job(script)
    assert (found.model, found.named_by) == ("meta-llama/Llama-2-7b-hf", "line 12 of `t.py`")
    assert job(script, "--model_name_or_path", "llama-3-8b").model == "llama-3-8b"
    two = script.replace(
        "    trainer =", "    AutoModelForCausalLM.from_pretrained('b')\n    trainer ="
    )
    assert job(two).model == ""


@pytest.mark.parametrize(
    ("yaml", "method"),
    [
        pytest.param("finetuning_type: full", "full", id="full"),
        pytest.param("finetuning_type: lora\nlora_rank: 8", "lora", id="lora"),
        pytest.param("finetuning_type: freeze", "", id="freeze"),
        pytest.param("", "lora", id="its default"),
        pytest.param("finetuning_type: full\nuse_galore: true", "", id="galore"),
        pytest.param("finetuning_type: full\nquantization_bit: 4", "", id="4 bits"),
        pytest.param("finetuning_type: full\nfreeze_vision_tower: false", "full", id="not frozen"),
        pytest.param("finetuning_type: full\nstage: ppo", "", id="several models"),
    ],
)
def test_llama_factory(yaml: str, method: str) -> None:
    text = f"model_name_or_path: Qwen/Qwen2.5-7B\ncutoff_len: 4096\n{yaml}\n"
    found = of(("llamafactory-cli", "train", "a.yaml"), {"/w/a.yaml": text})
    assert (found.model, found.named_by) == ("Qwen/Qwen2.5-7B", "`model_name_or_path:`")
    assert (found.method, found.sequence) == (method, 4096)
    exported = of(("llamafactory-cli", "export", "a.yaml"), {"/w/a.yaml": text})
    assert exported.method == ""


def test_a_trainer_of_images_freezes_its_encoder() -> None:
    config = {"model_type": "qwen2_5_vl", "text_config": {}, "vision_config": {}}
    words = ("swift", "sft", "--train_type", "full", "--deepspeed", "zero3", "--model")
    found = of((*words, "m"), {"/w/m/config.json": json.dumps(config)})
    assert (found.preset, found.method) == ("zero3", "full")
    with_towers = {
        "model_type": "llava", "text_config": CONFIG,
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024,
                          "num_hidden_layers": 24, "num_attention_heads": 16,
                          "intermediate_size": 4096, "image_size": 336, "patch_size": 14},
    }  # fmt: skip
    found = of((*words, "m"), {"/w/m/config.json": json.dumps(with_towers)})
    assert found.shape is not None
    assert found.shape["towers"]
    assert found.method == ""


def test_a_container_has_files_of_its_own() -> None:
    command = ("docker", "run", "image", "deepspeed", "t.py", "--model_name_or_path", "m")
    host = FakeHost(files={"/w/t.py": PLAIN})
    run = resolve(RunNeeds(cwd="/w", command=command), host)
    parsed = parse_command(run.command)
    assert isinstance(read(training_job, host, run_needs=run, launch_command=parsed), Missing)


def test_a_model_without_bounds_is_no_work() -> None:
    """Layers and experts are gone through one by one, and a folder may belong to anybody."""
    t5 = {"model_type": "t5", "d_model": 512, "num_heads": 8, "d_ff": 2048, "vocab_size": 32128}
    for number in (10**9, 10**6):
        config = json.dumps({**t5, "num_layers": number})
        found = job(PLAIN, "--model_name_or_path", "m", files={"/w/m/config.json": config})
        assert found.shape is None
    most = json.dumps({**t5, "num_layers": 24})
    assert job(PLAIN, "--model_name_or_path", "m", files={"/w/m/config.json": most}).shape


def test_a_project_without_end_is_not_read_to_its_end() -> None:
    files = {f"/w/m{n}.py": f"import m{n + 1}\n" for n in range(1000)}
    assert job(f"import m0\n{PLAIN}", files=files).method == ""
    chain = "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(10_000))
    assert job(f"{chain}{PLAIN}f0()\n").method == "full"
