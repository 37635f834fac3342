"""`dsdoctor lint`: files judged without a machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LINT = [sys.executable, "-m", "dsdoctor", "lint"]
GOOD = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}'
BAD = '{\n  "train_micro_batch_size_per_gpu": 1,\n  "zero_optimization": {"stage": 7}\n}\n'


def lint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    release = () if "--deepspeed" in words else ("--deepspeed", "0.19.8")
    return subprocess.run(
        [*LINT, *release, *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


FILES: list[tuple[str, str, str | None, int | None]] = [
    ("good.json", GOOD, None, None),
    ("commented.json", GOOD.replace("{", "{ // a comment\n", 1), None, None),
    ("stage.json", BAD, "ds-config-wrong-type", 3),
    ("broken.json", '{"zero_optimization": {"stage": 2},\n"fp16": {"enabled": tru', "ds-config-unreadable", None),
    ("hostfile", "a slots=2\nb slots=2\n", None, None),
    ("bad.hostfile", "a slots=2\nb 2\n", "hostfile-or-ssh-problem", 2),
    ("twice.hostfile", "a slots=2\na slots=2\n", "hostfile-or-ssh-problem", 2),
    (".deepspeed_env", "A=1\n", None, None),
    ("run.sh", "#!/bin/bash\nset -e\ndeepspeed --num_gpus 2 train.py\n", None, None),
    ("both.sbatch", "#!/bin/bash\n\ndeepspeed --include a:0 --exclude b:1 train.py\n",
     "include-exclude-conflict", 3),
    ("fsdp.json", '{"num_machines": 1, "distributed_type": "FSDP", "fsdp_config": {\n"fsdp_version": 3}}',
     "launch-option-refused", 2),
    ("fsdp.yaml", "distributed_type: FSDP\nnum_machines: 1\nfsdp_config:\n  fsdp_ofload_params: true\n",
     "launch-option-refused", 4),
    ("fsdp2.json", '{"distributed_type": "FSDP", "num_machines": 1, "fsdp_config": {}}', None, None),
    ("remote.sh", "kubectl exec pod-0 -- deepspeed --num_gpus 2 -i a:0 t.py\n",
     "include-exclude-conflict", 1),
    ("default.sh", "G=${G:-4}\ndeepspeed --num_gpus $G -i localhost:0 train.py > log 2>&1 &\n",
     "include-exclude-conflict", 2),
    ("folder.sh", "deepspeed --num_gpus 2 -i localhost:0 $(dirname $0)/train.py\n",
     "include-exclude-conflict", 1),
    ("words.sh", "pkill deepspeed\ncommand -v deepspeed > /dev/null\ncd deepspeed\n", None, None),
    ("left.sh", "deepspeed --num_gpus 2 \\\n  --master_port <port> train.py\n",
     "launch-placeholder-left", 1),
    ("left2.sh", "torchrun --nproc-per-node 2 --master-port '<port>' train.py\n",
     "launch-placeholder-left", 1),
    ("filled.sh", "N=two\ndeepspeed --num_gpus $N train.py\n", "launch-option-refused", 2),
    ("port.sh", "set -e\ndeepspeed --master_port 295000 train.py\n", "launch-option-refused", 2),
    ("unfilled.sh", "deepspeed --num_gpus $N train.py\n", None, None),
    ("acc.yaml", "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 2\n",
     None, None),
    ("plugin.yaml", ("distributed_type: DEEPSPEED\ndeepspeed_config:\n  gradient_clipping: 1.0\n"
     "  gradient_accumulation_steps: 1\n  zero_stage: 3\n"), None, None),
    ("args.sh", "deepspeed --include a:0 --exclude b:1 train.py --out $OUT\n",
     "include-exclude-conflict", 1),
    ("axolotl.yml", "base_model: x\ndeepspeed:\n  zero_optimization:\n    stage: 7\n",
     "ds-config-wrong-type", 2),
]  # fmt: skip


TEMPLATE = (
    '{"train_batch_size": GBSIZE,\n"train_micro_batch_size_per_gpu": MBSIZE,\n'
    '"zero_optimization": {\n"stage": ZERO_STAGE\n}}'
)
#: The settings of another program, which passes some of them to DeepSpeed.
FOREIGN = (
    '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1}, "num-layers": 12,'
    ' "hidden-size": 768, "seq-length": 2048, "norm": "rmsnorm", "train-iters": 320000}'
)
TUNED = (
    '{"train_micro_batch_size_per_gpu": 1, "autotuning": {"enabled": true},\n'
    '"zero_optimization": {"stage": [0, 1, 2]}}'
)
FILES += [
    ("foreign.json", FOREIGN, None, None),
    ("typos.json", GOOD.replace("{", '{"train_iters": 1, "lr": 1,', 1), "ds-config-invalid-key", 1),
    ("template.json", TEMPLATE, "ds-config-wrong-type", 1),
    ("tuned.json", TUNED, None, None),
    ("listed.json", TUNED.replace("true", "false"), "ds-config-wrong-type", 2),
    ("scale.json", GOOD[:-1] + ',\n"fp16": {"enabled": "auto", "min_loss_scale": 1e-10}}',
     "ds-config-wrong-type", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "condition", "line"), FILES, ids=[row[0] for row in FILES]
)
def test_a_file_is_judged_by_what_it_is(
    tmp_path: Path, name: str, text: str, condition: str | None, line: int | None
) -> None:
    (tmp_path / name).write_text(text)
    done = lint(tmp_path, "--format", "json", ".")
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    found: list[dict[str, Any]] = [row for file in document["files"] for row in file["findings"]]
    if condition is None:
        assert found == []
        assert done.returncode == 0
        return
    assert condition in {row["condition"] for row in found}
    first = next(row for row in found if row["condition"] == condition)
    assert first["evidence"]["file"] == f"./{name}"
    if line is not None:
        assert first["evidence"]["line"] == line
    assert done.returncode == (1 if first["status"] == "fail" else 0)


def test_a_launch_line_that_only_a_shell_completes_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("set -e\ndeepspeed --num_gpus $1 train.py\n")
    (tmp_path / "ok.sh").write_text("deepspeed --num_gpus 2 train.py\n")
    done = lint(tmp_path, ".")
    assert done.returncode == 0
    first, summary = done.stdout.splitlines()
    assert first.endswith("a shell or a template fills in their variables: ./run.sh:2")
    assert summary.startswith("1 file checked")
    files = json.loads(lint(tmp_path, "--format", "json", "run.sh").stdout)["files"]
    assert [(file["kind"], file["not_judged"]) for file in files] == [("script", [2])]


def test_files_of_others_are_passed_over_in_a_folder_and_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "version": "1"}')
    (tmp_path / "train.py").write_text("import deepspeed\n")
    (tmp_path / "ci.yaml").write_text("jobs: [deepspeed]\n")
    done = lint(tmp_path, ".")
    assert done.returncode == 0
    assert done.stdout.startswith("0 files checked")
    named = lint(tmp_path, "package.json")
    assert named.returncode == 2
    assert "is not a DeepSpeed config" in named.stderr
    assert named.stdout == ""


def test_a_file_that_cannot_be_judged_leaves_the_others_their_verdict(tmp_path: Path) -> None:
    """As after `dsdoctor lint *.json`, where the shell names the files."""
    (tmp_path / "a.json").write_text(BAD)
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "folder.json").mkdir()
    done = lint(tmp_path, "--format", "json", "package.json", "gone.json", "folder.json", "a.json")
    assert done.returncode == 2
    (file,) = json.loads(done.stdout)["files"]
    assert [row["condition"] for row in file["findings"]] == ["ds-config-wrong-type"]
    first, second = done.stderr.splitlines()
    assert "`package.json` is not a DeepSpeed config" in first
    assert "`gone.json` does not exist" in second


def test_a_script_without_a_launch_command_is_no_mistake(tmp_path: Path) -> None:
    """A pre-commit hook passes each script that changed."""
    (tmp_path / "build.sbatch").write_text("#!/bin/bash\n#SBATCH -n 1\nmake -j4\n")
    done = lint(tmp_path, "build.sbatch")
    assert (done.returncode, done.stderr) == (0, "")
    said, summary = done.stdout.splitlines()
    assert said == "no launch command in: build.sbatch"
    assert summary.startswith("0 files checked")


def test_the_micro_batch_alone_marks_a_config_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(
        '{"train_micro_batch_size_per_gpu": 4, "train_batch_size": 10,\n'
        '"gradient_accumulation_steps": 2}'
    )
    done = lint(tmp_path, ".")
    assert done.returncode == 1
    assert "./small.json:1: FAIL ds-config-batch-mismatch" in done.stdout


MISUSE = [
    pytest.param(("absent.json",), "does not exist", id="a file that does not exist"),
    pytest.param(("--deepspeed", "new", "x"), "is not a version", id="a word as a version"),
    pytest.param(("--deepspeed", "0.16.x", "x"), "is not a version", id="a version with a letter"),
    pytest.param(("--select", "nonsense", "."), "selects nothing", id="an unknown selection"),
]


@pytest.mark.parametrize(("words", "said"), MISUSE)
def test_misuse_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = lint(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_github_and_sarif_show_findings_at_their_place(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(BAD)
    github = lint(tmp_path, "--format", "github", "ds.json")
    assert "::error file=ds.json,line=3,title=ds-config-wrong-type" in github.stdout
    document = json.loads(lint(tmp_path, "--format", "sarif", "ds.json").stdout)
    (run,) = document["runs"]
    result = next(row for row in run["results"] if row["ruleId"] == "ds-config-wrong-type")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "ds.json"
    assert place["region"] == {"startLine": 3}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "ds-config-wrong-type"


def test_warnings_fail_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, '
        '"offload_param": {"device": "cpu"}}}'
    )
    assert lint(tmp_path, "ds.json").returncode == 0
    assert lint(tmp_path, "--fail-on", "warn", "ds.json").returncode == 1


def test_the_release_decides(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(GOOD)
    done = subprocess.run(
        [*LINT, "--deepspeed", "0.12.0", "ds.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert "against DeepSpeed 0.12.0" in done.stdout


def test_a_template_is_one_finding(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(TEMPLATE)
    document = json.loads(lint(tmp_path, "--format", "json", "ds.json").stdout)
    (found,) = document["files"][0]["findings"]
    assert found["evidence"]["count"] == 3
    assert "`GBSIZE`" in found["message"]


def test_a_config_that_is_named_may_have_any_extension(tmp_path: Path) -> None:
    (tmp_path / "zero.config").write_text(BAD)
    assert lint(tmp_path, ".").stdout.startswith("0 files")
    assert "ds-config-wrong-type" in lint(tmp_path, "zero.config").stdout


def test_what_a_file_leaves_to_its_program_is_judged_with_the_program(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "run.sh").write_text("deepspeed --include worker-0:0 train.py\n")
    assert lint(tmp_path, ".").returncode == 0
    assert "ds-config-batch-mismatch" in lint(tmp_path, "--framework", "native", ".").stdout
    assert lint(tmp_path, "--framework", "lightning", ".").returncode == 0


def test_keys_that_accelerate_does_not_read_have_their_lines(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
        "  overlap_comm: true\n  offload_param_devise: cpu\n  fsdp_of_tomorrow: 1\n"
    )
    document = json.loads(lint(tmp_path, "--format", "json", "acc.yaml").stdout)
    found = {one["evidence"]["key"]: one for one in document["files"][0]["findings"]}
    assert {key: one["evidence"]["line"] for key, one in found.items()} == {
        "overlap_comm": 4,
        "offload_param_devise": 5,
    }
    assert "`offload_param_device`" in found["offload_param_devise"]["hint"]
    assert "deepspeed_config_file" in found["overlap_comm"]["hint"]


def test_settings_of_accelerate_beside_a_deepspeed_config_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "distributed_type: DEEPSPEED\nmixed_precision: 'no'\n"
        "deepspeed_config:\n  deepspeed_config_file: ds.json\n"
    )
    result = lint(tmp_path, "acc.yaml")
    assert result.returncode == 1
    assert "`mixed_precision` is set in addition to `deepspeed_config_file`" in result.stdout
    assert result.stdout.startswith("acc.yaml:2: FAIL launch-option-refused")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gbk"])
def test_an_encoding_that_deepspeed_does_not_read_is_named(tmp_path: Path, encoding: str) -> None:
    text = GOOD.replace("{", '{"\u5907\u6ce8": 1,', 1)
    (tmp_path / "ds.json").write_bytes(text.encode(encoding))
    result = lint(tmp_path, "ds.json")
    assert result.returncode == 1
    assert "UTF-8" in result.stdout


def test_the_framework_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(GOOD.replace("{", "{ // a comment\n", 1))
    assert lint(tmp_path, "--framework", "native", "ds.json").returncode == 0
    refused = lint(tmp_path, "--framework", "hf", "ds.json")
    assert refused.returncode == 1
    assert "ds-config-unreadable" in refused.stdout
    assert lint(tmp_path, "--framework", "keras", "ds.json").returncode == 2


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        pytest.param('{"train_batch_size": 8}', 0, "1 file checked", id="one key of DeepSpeed"),
        pytest.param(
            '{"train_batch_size": 8,', 1, "ds-config-unreadable", id="one key and a syntax error"
        ),
        pytest.param('{"name": "app"}', 2, "is not a DeepSpeed config", id="a file of npm"),
        pytest.param("{", 2, "is not a DeepSpeed config", id="nothing to recognize"),
    ],
)
def test_a_file_that_is_named_needs_one_key(
    tmp_path: Path, text: str, status: int, said: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    done = lint(tmp_path, "a.json")
    assert done.returncode == status
    assert said in done.stdout + done.stderr
    # in a folder, such a file may be of another program
    assert "0 files" in lint(tmp_path, ".").stdout


def test_a_batch_script_is_compared_with_its_own_request(tmp_path: Path) -> None:
    """Also where only a shell knows the rest of the command."""
    (tmp_path / "job.sbatch").write_text(
        "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:4\n"
        "srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_endpoint $H:1 train.py\n"
    )
    done = lint(tmp_path, "job.sbatch")
    assert done.returncode == 1
    assert "job.sbatch:5: FAIL srun-starts-launcher-twice" in done.stdout
    assert "job.sbatch:5: FAIL slurm-request-mismatch" in done.stdout


@pytest.mark.parametrize(
    ("ids", "condition"),
    [("0,1", "invalid-device-ordinal"), ("0,1,2,3", None), ("[0, 1]", "launch-option-refused")],
)
def test_gpu_ids_of_accelerate(tmp_path: Path, ids: str, condition: str | None) -> None:
    text = f"distributed_type: DEEPSPEED\nnum_machines: 1\nnum_processes: 4\ngpu_ids: {ids}\n"
    (tmp_path / "a.yaml").write_text(text)
    document = json.loads(lint(tmp_path, "--format", "json", "a.yaml").stdout)
    shown = document["files"][0]["findings"]
    found = [(one["condition"], one["evidence"]["line"]) for one in shown]
    assert found == ([] if condition is None else [(condition, 4)])
