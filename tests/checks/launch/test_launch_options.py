"""Options that the launcher's own parser refuses, and placeholders that were left."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dsdoctor.api import LaunchParse, Missing, TorchBuild, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.host.fake import FakeHost
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes import launch_parser
from dsdoctor.probes.command_line import launch_command, parse_command
from dsdoctor.probes.launch_parser import declared_options
from dsdoctor.probes.launch_parser import launch_parse as asker
from dsdoctor.testing import assert_fail, assert_ok, judge
from dsdoctor_checks.launch import launch_option_refused, launch_placeholder_left

#: One whose argparse looks for its options among those of the script too.
PYTHON = Patient(executable="/e/bin/python", chosen_by="test", version="3.11.9")
ABSENT = Missing(why=Why.NOT_ASKED, detail="a test")


def test_a_command_line_that_the_launcher_accepts_is_ok() -> None:
    accepted = LaunchParse(launcher="torchrun", accepted=True)
    assert_ok(judge(launch_option_refused.the_launcher_accepts_its_options, launch_parse=accepted))


def test_a_refusal_is_quoted() -> None:
    fact = LaunchParse(launcher="torchrun", accepted=False, error="unrecognized arguments: --x")
    judged = judge(launch_option_refused.the_launcher_accepts_its_options, launch_parse=fact)
    finding = assert_fail(judged, "unrecognized arguments: --x")
    assert "torchrun --help" in finding.hint


PARSED = [
    ("deepspeed --num_gpus 2 t.py --lr 1", True, ""),
    ("deepspeed --num_gpus two t.py", False, "invalid int value"),
    ("deepspeed --nope t.py", False, "unrecognized arguments"),
    ("torchrun --nproc-per-node 2 t.py --nope", True, ""),
    ("torchrun --nope 3 t.py", False, "unrecognized arguments"),
    ("torchrun --nproc-per-node 2", False, "required"),
    ("torchrun --nproc-per-node=-1 t.py", False, "nproc_per_node must be > 0"),
    ("torchrun --nproc-per-node gpu t.py", True, ""),
    ("torchrun --nproc-per-node gpuu t.py", False, "gpuu"),
    ("torchrun --nnodes 2:1 --rdzv-backend c10d --rdzv-endpoint h:1 t.py", False, "min_nodes"),
    ("accelerate launch --num_processes 2 t.py", True, ""),
    ("accelerate launch --num_processes two t.py", False, "invalid int value"),
    ("accelerate launch --use_deepspeed --num_processes -2 t.py", False, "must be > 0"),
    ("accelerate launch --multi_gpu --num_processes 1 t.py", False, "at least 2 processes"),
    ("accelerate launch --use_deepspeed --multi_gpu t.py", False, "at a time"),
    ("accelerate lunch t.py", False, "the closest is `launch`"),
    ("srun -N 2 torchrun --max-restarts x t.py", False, "invalid int value"),
]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("accelerate launch --num_processes -2 t.py", "warn"),
        ("accelerate launch --num_processes 0 t.py", "warn"),
        ("accelerate launch --num_processes 4 t.py", "ok"),
        ("torchrun --num_processes -2 t.py", "ok"),
    ],
)
def test_accelerate_starts_one_process_for_a_number_below_one(line: str, status: str) -> None:
    command = parse_command(line.split())
    judged = judge(
        launch_option_refused.the_launcher_accepts_its_options,
        launch_parse=LaunchParse(launcher=command.launcher, accepted=True),
        launch_command=command,
    )
    assert judged.statuses == [status]


@pytest.mark.train
@pytest.mark.parametrize(("line", "accepted", "error"), PARSED, ids=[row[0] for row in PARSED])
def test_the_real_parsers_are_asked(line: str, accepted: bool, error: str) -> None:
    run = RunNeeds(command=tuple(line.split()))
    choice = PatientChoice(executable=sys.executable, chosen_by="test", why="test")
    none = Missing(why=Why.ABSENT, detail="not read")
    found = asker.function(
        LocalHost(), choice, run, parse_command(run.command), none, none, none, none
    )
    assert isinstance(found, LaunchParse)
    assert found.accepted is accepted
    assert error in found.error


@pytest.mark.train
def test_nothing_is_written_where_torchrun_would_put_its_logs(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "file").touch()
    child = Path(launch_parser.__file__).parent / "children" / "parse_launch.py"
    for words in (["t.py"], ["--log-dir", "logs/a", "t.py"], ["--log-dir", "file", "t.py"]):
        done = subprocess.run(
            [sys.executable, str(child), "torchrun", *words],
            cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)},
            capture_output=True, text=True, timeout=500, check=True,
        )  # fmt: skip
        assert ('"accepted": true' in done.stdout) is ("file" not in words), done.stdout
    assert "is a file" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "temporary"]
    assert not list(temporary.glob("torchelastic_*"))


RUN_PY = """
def get_args_parser():
    parser.add_argument("--nnodes", action=env, type=str)
    parser.add_argument("--nproc-per-node", "--nproc_per_node", default="1")
    parser.add_argument("-m", "--module", action=check_env)
"""


@pytest.mark.parametrize(
    ("line", "source", "error"),
    [
        pytest.param("torchrun --nnodes 1 t.py", RUN_PY, "", id="declared"),
        pytest.param("torchrun --nproc_per_node 2 t.py --lr 1", RUN_PY, "", id="with underscores"),
        pytest.param("torchrun --nproc 2 t.py", RUN_PY, "", id="the beginning of an option"),
        pytest.param("torchrun -m pkg.t", RUN_PY, "", id="one letter"),
        pytest.param("torchrun --bogus t.py", RUN_PY, "arguments: --bogus", id="unknown"),
        pytest.param("srun --gres=gpu:8 -N 2 torchrun --nnodes 2 t.py", RUN_PY, "", id="of srun"),
        pytest.param("srun -N 2 torchrun --bogus t.py", RUN_PY, "--bogus", id="unknown under srun"),
        pytest.param(
            "torchrun t.py --run 3", RUN_PY, "is ambiguous", id="of the script, ambiguous"
        ),
        pytest.param("torchrun --nnodes 1", RUN_PY, "the script is missing", id="no script"),
        pytest.param("torchrun --nnodes 1 --help", RUN_PY, "", id="a question"),
        pytest.param("torchrun --bogus t.py", "import x", "", id="another parser"),
        pytest.param("torchrun --bogus t.py", "def (", "", id="a file that is no Python"),
        pytest.param("accelerate launch --bogus t.py", RUN_PY, "", id="a launcher not read"),
    ],
)
def test_without_torch_the_launchers_file_is_read(line: str, source: str, error: str) -> None:
    host = FakeHost(files={"/env/torch/distributed/run.py": source})
    run = RunNeeds(command=tuple(line.split()), quick=True)
    choice = PatientChoice(executable="/env/bin/python", chosen_by="test", why="test")
    torch = TorchBuild(version="2.9.1", path="/env/torch")
    missing = Missing(why=Why.ABSENT, detail="no DeepSpeed")
    command = parse_command(run.command)
    if error:
        found = asker.function(host, choice, run, command, torch, missing, missing, PYTHON)
        assert isinstance(found, LaunchParse)
        assert error in found.error
        return
    with pytest.raises(HostError, match="--quick"):
        asker.function(host, choice, run, command, torch, missing, missing, PYTHON)


@pytest.mark.train
def test_the_installed_launcher_declares_its_options_in_that_file() -> None:
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    text = (Path(spec.origin).parent / "distributed" / "run.py").read_text()
    declared = declared_options(text)
    assert {"nnodes", "nproc_per_node", "rdzv_endpoint", "max_restarts", "standalone"} <= declared
    assert "nope" not in declared


@pytest.mark.train
@pytest.mark.parametrize(
    ("text", "ignored", "error"),
    [
        pytest.param(
            "deepspeed_config:\n  zero_stagee: 3\n  zero_stage: 2\n",
            {"zero_stagee": "zero_stage"},
            "",
            id="a-key-of-deepspeed-misspelt",
        ),
        pytest.param(
            "deepspeed_config:\n  zero_stage: 3\n  offload_param_device: cpu\n",
            {},
            "",
            id="known-keys",
        ),
        pytest.param(
            "deepspeed_config: {zero_stage: 2}\nnum_processes: -2\n",
            {},
            "must be > 0",
            id="fewer-ranks-than-one",
        ),
        pytest.param("num_procesess: 2\n", {}, "num_procesess", id="a-key-of-accelerate-misspelt"),
    ],
    ids=[
        "a misspelled plugin key",
        "keys that accelerate reads",
        "fewer ranks than one",
        "a misspelled top-level key",
    ],
)
def test_accelerate_is_asked_about_its_configuration(
    tmp_path: Path, text: str, ignored: dict[str, str], error: str
) -> None:
    config = tmp_path / "acc.yaml"
    head = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n"
    config.write_text(
        head.replace("num_processes: 2\n", "" if error else "num_processes: 2\n") + text
    )
    run = RunNeeds(command=("accelerate", "launch", "--config_file", str(config), "t.py"))
    choice = PatientChoice(executable=sys.executable, chosen_by="test", why="test")
    none = Missing(why=Why.ABSENT, detail="not read")
    found = asker.function(
        LocalHost(), choice, run, parse_command(run.command), none, none, none, none
    )
    assert isinstance(found, LaunchParse)
    assert found.ignored == ignored
    assert found.accepted is not bool(error)
    assert error in found.error
    findings = judge(launch_option_refused.the_launcher_accepts_its_options, launch_parse=found)
    assert findings.statuses == (["fail"] if error else ["warn"] if ignored else ["ok"])


YAML = "distributed_type: DEEPSPEED\nnum_processes: 1\n"
FILE = "deepspeed_config:\n  deepspeed_config_file: ds.json\n"
GOOD = '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {}}'
#: accelerate's YAML, options, DeepSpeed config, what the plugin of accelerate rejects ("" = nothing)
PLUGIN = [
    pytest.param(YAML + FILE, "", GOOD, "", id="one-place"),
    pytest.param(YAML + FILE + "  zero3_init_flag: true\n", "", GOOD, "", id="not-in-the-config"),
    pytest.param(YAML + FILE + "  zero_stage: 2\n", "", GOOD, "`zero_stage` is set", id="stage"),
    pytest.param("mixed_precision: 'no'\n" + YAML + FILE, "", GOOD, "`mixed_precision` is set",
                 id="no-precision"),
    pytest.param("mixed_precision: bf16\n" + YAML + FILE + "  gradient_clipping: 1.0\n", "", GOOD,
                 "`gradient_clipping` and `mixed_precision` are set", id="two"),
    pytest.param("mixed_precision: 'no'\n" + YAML + FILE, "--mixed_precision bf16", GOOD, "",
                 id="the-option-decides"),
    pytest.param(YAML + FILE, "--mixed_precision fp16", GOOD, "enables bf16", id="two-precisions"),
    pytest.param(YAML + FILE, "--zero_stage 2", GOOD, "", id="an-option"),
    pytest.param(YAML + FILE, "", '{"train_batch_size": 1}', "does not contain `zero_optimization`",
                 id="no-zero"),
    pytest.param(YAML + "deepspeed_config:\n  zero_stage: 2\n", "", GOOD, "", id="no-file"),
]  # fmt: skip


def _plugin_of(text: str, options: str, config: str, script: str = "t.py") -> LaunchParse | None:
    host = FakeHost(
        files={
            "/w/acc.yaml": text,
            "/w/ds.json": config,
            "/w/hf.py": "from transformers import Trainer",
        }
    )
    words = f"accelerate launch --config_file acc.yaml {options} {script}".split()
    run = resolve(RunNeeds(cwd="/w", command=tuple(words), quick=True), host)
    choice = PatientChoice(executable=sys.executable, chosen_by="test", why="test")
    none = Missing(why=Why.ABSENT, detail="not read")
    try:
        found = asker.function(
            host, choice, run, parse_command(run.command), none, none, none, none
        )
    except HostError:
        return None
    assert isinstance(found, LaunchParse)
    return found


@pytest.mark.parametrize(("text", "options", "config", "error"), PLUGIN)
def test_accelerate_takes_a_setting_from_one_place(
    text: str, options: str, config: str, error: str
) -> None:
    found = _plugin_of(text, options, config)
    assert (found is not None) == bool(error)
    if found is not None:
        judged = judge(launch_option_refused.the_launcher_accepts_its_options, launch_parse=found)
        assert "each rank stops" in assert_fail(judged, error).effect


def test_transformers_creates_the_plugin_of_the_config_passed_to_the_script() -> None:
    text = YAML + "deepspeed_config:\n  zero_stage: 2\n"
    found = _plugin_of(text, "", GOOD, "hf.py --deepspeed ds.json")
    assert found is not None
    assert found.error == "`zero_stage` is set in addition to the script's `--deepspeed`"
    assert _plugin_of(text, "", GOOD, "t.py --deepspeed ds.json") is None


@pytest.mark.train
@pytest.mark.parametrize(("text", "options", "config", "error"), PLUGIN[1:9:2])
def test_the_real_plugin_rejects_the_same(
    tmp_path: Path, text: str, options: str, config: str, error: str
) -> None:
    (tmp_path / "acc.yaml").write_text(text)
    (tmp_path / "ds.json").write_text(config)
    (tmp_path / "t.py").write_text(
        "import os\nfrom accelerate.utils import DeepSpeedPlugin\n"
        "plugin = DeepSpeedPlugin()\n"
        "plugin.set_mixed_precision(os.environ['ACCELERATE_MIXED_PRECISION'])\n"
    )
    words = ["-m", "accelerate.commands.launch", "--config_file", "acc.yaml", *options.split()]
    ran = subprocess.run(
        [sys.executable, *words, "t.py"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ran.returncode != 0) == bool(error), ran.stderr[-2000:]
    assert ("ValueError" in ran.stderr) == bool(error)


PLACEHOLDERS = [
    ("deepspeed --num_gpus {NUM_GPUS} t.py", True),
    ("deepspeed --master_port <port> t.py", True),
    ("torchrun --master-port your_port t.py", True),
    ("torchrun --nproc-per-node 2 /path/to/train.py", True),
    ("torchrun --nproc-per-node $N train.py", False),
    ("deepspeed --num_gpus 2 --master_port 29500 your_model.py", False),
    ("deepspeed --include localhost:0,1 train.py", False),
]


@pytest.mark.parametrize(("line", "left"), PLACEHOLDERS, ids=[row[0] for row in PLACEHOLDERS])
def test_placeholders(line: str, left: bool) -> None:
    judged = judge(
        launch_placeholder_left.no_placeholder_is_left, launch_command=parse_command(line.split())
    )
    if left:
        assert_fail(judged, "is a placeholder")
    else:
        assert_ok(judged)


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ("[0, 1]", "`gpu_ids` is a list"),
        ("0", "`gpu_ids` is a number"),
        ("'0'", "`gpu_ids` lists one GPU (`0`)"),
        ("0,1", ""),
        ("all", ""),
        ("null", ""),
    ],
)
def test_gpu_ids_that_stop_accelerate(ids: str, error: str) -> None:
    text = f"distributed_type: MULTI_GPU\ngpu_ids: {ids}\nnum_processes: 2\n"
    run = RunNeeds(cwd="/w", command=("accelerate", "launch", "--config_file", "a.yaml", "t.py"))
    host = FakeHost(files={"/w/a.yaml": text})
    command = launch_command.function(host, run)
    choice = PatientChoice(executable=sys.executable, chosen_by="--python", why="a test")
    quick = msgspec.structs.replace(run, quick=True)
    if not error:
        with pytest.raises(HostError):  # not asked with --quick
            asker.function(host, choice, quick, command, ABSENT, ABSENT, ABSENT, ABSENT)
        return
    found = asker.function(host, choice, quick, command, ABSENT, ABSENT, ABSENT, ABSENT)
    assert isinstance(found, LaunchParse)
    assert error in found.error
    judged = judge(launch_option_refused.the_launcher_accepts_its_options, launch_parse=found)
    assert "configuration file stops the run" in assert_fail(judged, error).message


@pytest.mark.parametrize(("ids", "listed"), [("0,1", "0,1"), ("[0, 1]", None)])
def test_gpu_ids_of_the_file_are_those_of_the_command(ids: str, listed: str | None) -> None:
    host = FakeHost(files={"/w/a.yaml": f"distributed_type: DEEPSPEED\ngpu_ids: {ids}\n"})
    words = ("accelerate", "launch", "--config_file", "a.yaml")
    command = launch_command.function(host, RunNeeds(cwd="/w", command=(*words, "t.py")))
    assert command.options.get("gpu_ids") == listed
    command = launch_command.function(
        host, RunNeeds(cwd="/w", command=(*words, "--gpu_ids", "3", "t.py"))
    )
    assert command.options["gpu_ids"] == "3"
