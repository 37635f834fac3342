"""`dsdoctor lint`: files of accelerate, commands in other files, and files that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_lint import lint


def test_a_launch_line_is_judged_with_the_file_that_it_refers_to(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/a.yaml").write_text("distributed_type: MULTI_GPU\nnum_machines: 1\n")
    (tmp_path / "scripts").mkdir()
    run = tmp_path / "scripts/run.sh"
    line = "accelerate launch --config_file configs/a.yaml train.py\n"
    run.write_text(line)
    assert "`num_processes` is missing" in lint(tmp_path, "scripts", "configs").stdout
    run.write_text(line.replace("--config", "--num_processes 2 --config"))
    assert lint(tmp_path, "scripts", "configs").returncode == 0


def test_two_files_that_a_launch_line_may_refer_to_are_not_guessed_between(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for folder in ("", "scripts/"):
        (tmp_path / f"{folder}a.yaml").write_text("distributed_type: MULTI_GPU\nnum_machines: 1\n")
    (tmp_path / "scripts/run.sh").write_text("accelerate launch --config_file a.yaml train.py\n")
    assert lint(tmp_path, "scripts").returncode == 0


PARSER = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--local_rank", type=int)
parser.parse_args()
"""


def test_arguments_of_a_script_of_the_project_are_judged(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "train.py").write_text(PARSER)
    run = tmp_path / "scripts/run.sh"
    run.write_text(
        "deepspeed train.py --lr 1\n\ndeepspeed --num_gpus $N train.py --lr $LR --rl 1\n"
    )
    result = lint(tmp_path, "scripts")
    assert result.returncode == 1
    assert "scripts/run.sh:3: FAIL script-option-refused (DSD1215)\n    `train.py` has no" in (
        result.stdout
    )
    assert result.stdout.count("FAIL") == 1
    (tmp_path / "scripts/train.py").write_text(PARSER)  # which one is not known
    assert lint(tmp_path, "scripts").returncode == 0


def test_what_newer_releases_of_accelerate_drop_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("distributed_type: MULTI_GPU\nipex_config: {}\n")
    result = lint(tmp_path, "a.yaml")
    assert result.returncode == 0
    assert "a.yaml:2: WARN launch-option-refused" in result.stdout
    assert "accelerate 1.13 and newer stop at the key `ipex_config`" in result.stdout


def test_commands_of_manifests_and_names_of_options_are_judged(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "kind: Job\nspec:\n  command:\n  - torchrun\n  - --nproc_per_nodes=2\n  - t.py\n"
    )
    (tmp_path / "run.sh").write_text(
        "sky launch job.yaml\napptainer exec a.sif torchrun --nnodez $N t.py\n"
    )
    result = lint(tmp_path, ".", "--format", "json")
    manifest, script = json.loads(result.stdout)["files"]
    assert (manifest["kind"], manifest["findings"][0]["evidence"]["line"]) == ("manifest", 4)
    assert "`--nnodez`; the closest is `--nnodes`" in script["findings"][0]["message"]
    assert script["not_judged"] == [2]
    assert script["not_followed"][0]["line"] == 1
    text = lint(tmp_path, "run.sh").stdout
    assert "not followed: run.sh:1: `sky launch` starts the job on machines of a cloud" in text


def test_a_named_file_without_a_launch_command_says_so(tmp_path: Path) -> None:
    pod = "kind: Pod\nspec: {containers: [{name: a, image: b}]}\n"
    (tmp_path / "pod.yaml").write_text(pod)
    (tmp_path / "other.yaml").write_text("a: 1\n")
    done = lint(tmp_path, "pod.yaml")
    assert done.returncode == 0
    assert done.stdout.startswith("no launch command in: pod.yaml\n0 files checked")
    assert "pod.yaml" not in lint(tmp_path, ".").stdout
    refused = lint(tmp_path, "other.yaml")
    assert refused.returncode == 2
    assert "manifest or Dockerfile" in refused.stderr


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        pytest.param("a.yaml", b"", "is empty", id="nothing"),
        pytest.param("a.yaml", b"x: [1\n", "is not YAML: line 2: expected ','", id="broken"),
        pytest.param("a.yaml", "deepspeed: 1\n".encode("utf-16"), "expected UTF-8", id="UTF-16"),
        pytest.param("a.sh", "torchrun t.py\n".encode("utf-16"), "expected UTF-8", id="a script"),
        pytest.param("a.json", b"\0" * 9, "expected UTF-8", id="no text"),
        pytest.param("a.yaml", b"#" * (1 << 20 | 1), "is larger than 1 MiB", id="large"),
        pytest.param("a.yaml", b"distributed_type: FSDP\na: &a [*a]\n", "states more", id="a bomb"),
    ],
)
def test_why_a_named_file_cannot_be_judged_is_one_line(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    result = lint(tmp_path, name)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr
    assert lint(tmp_path, ".").returncode == 0


def test_an_empty_path_is_misuse(tmp_path: Path) -> None:
    result = lint(tmp_path, "")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "a path is empty" in result.stderr


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "a mark of byte order"])
def test_accelerates_file_is_judged_with_any_line_ends(tmp_path: Path, mark: bytes) -> None:
    text = b"distributed_type: FSDP\r\nnum_machines: 1\r\nmixed_precision: bf17\r\n"
    (tmp_path / "a.yaml").write_bytes(mark + text)
    assert "a.yaml:3: FAIL launch-option-refused" in lint(tmp_path, ".").stdout


def test_accelerates_file_that_is_not_yaml_is_a_failure_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("distributed_type: FSDP\nfsdp_config:\n\tfsdp_version: 2\n")
    result = lint(tmp_path, ".")
    assert "a.yaml:3: FAIL launch-option-refused" in result.stdout
    assert "it cannot be read as YAML: line 3: found character" in result.stdout


@pytest.mark.parametrize(
    ("name", "text", "judged"),
    [
        pytest.param("hostfile.c", "/* slots */\n", False, id="a source"),
        pytest.param("hostfile", "node1\nnode2:4\n", False, id="of another launcher"),
        pytest.param("hostfile", "node1 slots=4\nnode2 4\n", True, id="a broken row"),
        pytest.param("my.hostfile.txt", "node1 slots=x\n", True, id="a broken number"),
    ],
)
def test_a_hostfile_in_a_folder_has_a_row_of_its_form(
    tmp_path: Path, name: str, text: str, *, judged: bool
) -> None:
    (tmp_path / name).write_text(text)
    assert lint(tmp_path, ".").returncode == judged


NEOX = """{
  "pipe_parallel_size": 1, "num_layers": 2, "hidden_size": 8, "seq_length": 64,
  "lr_decay_iters": 20, "train_iters": 20, "log_interval": 1,
  "zero_optimization": {"stage": 1, "overlap_comm": True},
  "fp16": {"fp16": True, "enabled": True},
}
"""
OF_TRAINER = """output_dir: out
bf16: true
fp16: false
gradient_accumulation_steps: 2
optimizer: adamw
wandb:
  project: taboo
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("neox.yml", NEOX, id="gpt-neox"),
        pytest.param("train.yaml", OF_TRAINER, id="settings-of-a-trainer"),
        pytest.param(
            "args.json",
            '{"output_dir": "out", "bf16": true, "fp16": false, "num_train_epochs": 1}',
            id="arguments-of-a-script",
        ),
        pytest.param(
            "preset.json",
            '{"train_batch_size": 2, "optimizer": "AdamW8bit", "epoch": 1, "LoRA_type": "", "xformers": 1}',
            id="a-preset-of-another-program",
        ),
        pytest.param(
            "nested.yaml", "training:\n  bf16: true\n  fp16: false\nlora: {r: 8}\n", id="nested"
        ),
    ],
)
def test_settings_of_another_program_are_not_judged_as_a_config(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    result = lint(tmp_path, name)
    assert "FAIL" not in result.stdout
    assert result.returncode == 2
    assert "is not a DeepSpeed config" in result.stderr
    assert lint(tmp_path, ".").returncode == 0


def test_a_named_yaml_file_of_deepspeed_settings_is_read_as_yaml(tmp_path: Path) -> None:
    config = "# of the project\ntrain_batch_size: 8\nbf16:\n  enabled: True\nzero_optimization:\n"
    (tmp_path / "ds.yaml").write_text(f"{config}  stage: 2\n")
    assert lint(tmp_path, "ds.yaml").returncode == 0
    (tmp_path / "ds.yaml").write_text(f"{config}  stage: 7\n")
    result = lint(tmp_path, "ds.yaml")
    assert result.returncode == 1
    assert "`zero_optimization.stage` is 7" in result.stdout
