"""Launch lines and scripts: read by the launchers' own parsers, and run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.host import free_port
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend import files, output
from dsdoctor.recommend.machine import Machine, machine_of
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.planning import PlanOptions, recommend
from tests.support.command import clean_environment

CHILDREN = Path(__file__).parent / "children"
LAUNCHERS = ("deepspeed", "torchrun", "accelerate")

#: What a rank sees; a training script's first lines would read the same.
SCRIPT = """\
import json, os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
         "DS_ACCELERATOR", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_DEEPSPEED_CONFIG_FILE")
seen = {name: os.environ.get(name) for name in names}
with open("rank-%s.json" % os.environ["RANK"], "w") as file:
    json.dump({"env": seen, "argv": sys.argv[1:]}, file)
"""


def plan_of(
    launcher: str, nodes: int = 1, *, hosts: tuple[str, ...] = (), gpus: int = 4
) -> LaunchPlan:
    return recommend(
        machine_of(gpu_gib=80, count=gpus, host_gib=1000, cpus=64),
        resolve("llama-3-8b"),
        PlanOptions(launcher=launcher, nodes=nodes, hosts=hosts, master_port=29512),
    )


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every kind of line, through the parser of its launcher."""
    root = tmp_path_factory.mktemp("lines")
    lines = {}
    for launcher in LAUNCHERS:
        for nodes in (1, 2):
            plan = plan_of(launcher, nodes, hosts=("node-a", "node-b")[: nodes * (nodes - 1)])
            folder = root / f"{launcher}-{nodes}"
            files.write(plan, folder)
            words = ["1" if word == "$NODE_RANK" else word for word in plan.argv]
            lines[f"{launcher}-{nodes}"] = {"argv": words, "folder": str(folder)}
    (root / "lines.json").write_text(json.dumps(lines))
    done = subprocess.run(
        [sys.executable, str(CHILDREN / "lines.py"), str(root / "lines.json"), str(root / "made")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DS_ACCELERATOR": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    made: dict[str, Any] = json.loads((root / "made").read_text())
    return made


@pytest.mark.train
def test_the_deepspeed_launcher_reads_its_line(parsed: dict[str, Any]) -> None:
    tail = {
        "script": "train.py",
        "script_args": ["--deepspeed", "--deepspeed_config", "ds_config.json"],
        "port": 29512,
    }
    one, two = parsed["deepspeed-1"], parsed["deepspeed-2"]
    assert one.items() >= (tail | {"active": {"localhost": [0, 1, 2, 3]}}).items()
    both = {"node-a": [0, 1, 2, 3], "node-b": [0, 1, 2, 3]}
    assert two.items() >= (tail | {"active": both, "address": "node-a"}).items()


@pytest.mark.train
def test_torchrun_reads_its_line(parsed: dict[str, Any]) -> None:
    one, two = parsed["torchrun-1"], parsed["torchrun-2"]
    assert (one["nodes"], one["ranks"], one["endpoint"]) == ([1, 1], 4, "127.0.0.1:29512")
    assert (two["nodes"], two["ranks"], two["endpoint"]) == ([2, 2], 4, "node-a:29512")
    assert two["rank"] == 1
    assert two["script_args"] == ["--deepspeed", "--deepspeed_config", "ds_config.json"]


@pytest.mark.train
def test_accelerate_reads_its_line(parsed: dict[str, Any]) -> None:
    pytest.importorskip("accelerate")
    for nodes in (1, 2):
        made = parsed[f"accelerate-{nodes}"]
        assert made["deepspeed"] is True
        assert (made["processes"], made["nproc_per_node"]) == (4 * nodes, "4")
        assert made["machines"] == nodes
        assert made["port"] == 29512
        assert made["visible"] == "0,1,2,3"
        assert made["config"] == "ds_config.json"
        assert made["script"] == "train.py"
    assert made["command"] is None  # not the deepspeed launcher: one accelerate on each node
    assert (made["rank"], made["address"]) == (1, "node-a")


@pytest.mark.train
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launch_sh_runs(tmp_path: Path, launcher: str) -> None:
    """Two CPU ranks under the real launcher, called from the folder of the script."""
    if launcher == "accelerate":
        pytest.importorskip("accelerate")
    work = tmp_path / "my work"
    work.mkdir()
    (work / "my train.py").write_text(SCRIPT)
    options = PlanOptions(
        launcher=launcher, cpu_ranks=2, script="my train.py", master_port=29613, global_batch=8
    )
    plan = recommend(Machine(host_bytes=1 << 36, cpus=4), resolve("gpt2"), options)
    files.write(plan, work / "run 1")
    port = str(free_port())
    done = subprocess.run(
        [str(work / "run 1" / "launch.sh"), "--epochs", "3 x"],
        cwd=work,
        env=clean_environment(tmp_path, MASTER_PORT=port),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = [json.loads((work / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    for rank, seen in enumerate(ranks):
        assert seen["env"]["RANK"] == seen["env"]["LOCAL_RANK"] == str(rank)
        assert seen["env"]["WORLD_SIZE"] == "2"
        assert seen["env"]["MASTER_PORT"] == port  # the variable wins over the plan
        assert seen["env"]["OMP_NUM_THREADS"] == "2"
        assert seen["env"]["DS_ACCELERATOR"] == "cpu"
        assert seen["argv"][-2:] == ["--epochs", "3 x"]
        config = seen["env"]["ACCELERATE_DEEPSPEED_CONFIG_FILE"]
        if launcher != "accelerate":
            config = seen["argv"][seen["argv"].index("--deepspeed_config") + 1]
        assert json.loads(Path(config).read_text()) == plan.ds_config


def test_launch_sh_without_a_hostfile_stops_and_says_what_to_write(tmp_path: Path) -> None:
    """The deepspeed launcher itself would only warn, and train on one node."""
    files.write(plan_of("deepspeed", 2), tmp_path)
    assert not (tmp_path / "hostfile").exists()
    done = subprocess.run(
        [str(tmp_path / "launch.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "write a line 'NAME slots=4' for each of 2 nodes" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("variable", ["MASTER_ADDR", "NODE_RANK"])
def test_launch_sh_names_the_variable_that_is_missing(tmp_path: Path, variable: str) -> None:
    files.write(plan_of("torchrun", 2), tmp_path)
    env = {"PATH": os.environ["PATH"], "MASTER_ADDR": "a", "NODE_RANK": "0"}
    del env[variable]
    done = subprocess.run(
        [str(tmp_path / "launch.sh")], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"{variable}: set it to" in done.stderr


def test_the_environment_reaches_other_nodes(tmp_path: Path) -> None:
    """The launcher's own file: no comment, no empty line, and every variable of the plan."""
    plan = plan_of("deepspeed", 2, hosts=("node-a", "node-b"))
    files.write(plan, tmp_path)
    lines = (tmp_path / ".deepspeed_env").read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines) == plan.env
    assert {"CUDA_DEVICE_ORDER", "OMP_NUM_THREADS"} <= set(plan.env)
    assert 'export DS_ENV_FILE="$here/.deepspeed_env"' in (tmp_path / "launch.sh").read_text()
    assert "DS_ENV_FILE=run/.deepspeed_env " in output.command_line(plan, "run")
    assert (tmp_path / "hostfile").read_text() == "node-a slots=4\nnode-b slots=4\n"


@pytest.mark.train
def test_the_real_launcher_hands_the_environment_to_pdsh(tmp_path: Path) -> None:
    """deepspeed itself runs; ssh and pdsh are stand-ins, pdsh records what it is to run there."""
    plan = recommend(
        machine_of(gpu_gib=80, count=4, host_gib=1000, cpus=64),
        resolve("llama-3-8b"),
        PlanOptions(nodes=2, hosts=("node-a", "node-b")),
    )
    files.write(plan, tmp_path / "run dir")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in (("ssh", "exit 0"), ("pdsh", 'printf "%s\\n" "$@" > "$LOG"')):
        (tools / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tools / name).chmod(0o755)
    env = clean_environment(tmp_path, LOG=str(tmp_path / "log"), DS_ACCELERATOR="cpu")
    env["PATH"] = f"{tools}:{env['PATH']}"
    (tmp_path / "train.py").write_text("")
    done = subprocess.run(
        [str(tmp_path / "run dir" / "launch.sh")],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    words = (tmp_path / "log").read_text()
    assert "node-a,node-b" in words
    for name, value in plan.env.items():
        assert f"export {name}={value};" in words
    assert "--master_addr=node-a" in words
    assert "--master_port=29500" in words


def test_gpus_from_the_middle_still_have_slots() -> None:
    """`--include a:5` needs a hostfile that offers six slots."""
    machine = machine_of(gpu_gib=80, count=8)
    machine = dataclasses.replace(machine, devices=machine.devices[4:6])
    plan = recommend(machine, resolve("gpt2"), PlanOptions(nodes=2, hosts=("a", "b")))
    assert "a:4,5@b:4,5" in plan.argv
    assert files.files(plan)["hostfile"] == "a slots=6\nb slots=6\n"


@pytest.mark.system
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("gpus", [0, 4])
def test_sbatch_takes_the_script(tmp_path: Path, launcher: str, gpus: int) -> None:
    """Slurm's own parser reads the options; without a controller it stops after that."""
    sbatch = shutil.which("sbatch")
    assert sbatch is not None, "slurm-wlm is not installed (tests/system-deps.sh)"
    machine = machine_of(gpu_gib=80, count=gpus, cpus=32) if gpus else Machine(host_bytes=1 << 36)
    options = PlanOptions(launcher=launcher, nodes=2, hosts=("a", "b"))
    files.write(recommend(machine, resolve("gpt2"), options), tmp_path / "a b", slurm=True)
    script = tmp_path / "a b" / "job.sbatch"
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=t\nSlurmctldHost=localhost\nSlurmctldPort=1\nMessageTimeout=1\n"
        "GresTypes=gpu\nAuthType=auth/none\nCredType=cred/none\n"
        "NodeName=a\nPartitionName=p Nodes=a Default=YES\n"
    )
    env = {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    done = subprocess.run(
        [sbatch, "--test-only", str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert "unrecognized option" not in done.stderr
    assert "Invalid" not in done.stderr, done.stderr
    text = script.read_text()
    bad = tmp_path / "bad.sbatch"
    bad.write_text(text.replace("#SBATCH --nodes", "#SBATCH --nodez"))
    done = subprocess.run(
        [sbatch, "--test-only", str(bad)], env=env, capture_output=True, text=True, check=False
    )
    assert "unrecognized option" in done.stderr  # the check can fail


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_slurm_job_calls_one_launcher_on_each_node(tmp_path: Path, launcher: str) -> None:
    """Run with stand-ins for srun and the launcher, that record what they were given."""
    machine = machine_of(gpu_gib=80, count=4, cpus=32)
    plan = recommend(machine, resolve("gpt2"), PlanOptions(launcher=launcher, nodes=2))
    files.write(plan, tmp_path / "run", slurm=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    stand_ins = {
        "srun": 'echo "srun $1 cpus=$SRUN_CPUS_PER_TASK" >> "$LOG"; shift; exec "$@"',
        "scontrol": "printf 'node-a\\nnode-b\\n'",
        "torchrun": 'printf "%s\\n" "$@" >> "$LOG"',
        "accelerate": 'printf "%s\\n" "$@" >> "$LOG"',
    }
    for name, body in stand_ins.items():
        path = tools / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    log = tmp_path / "log"
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "LOG": str(log),
        "SLURM_JOB_ID": "123",
        "SLURM_JOB_NODELIST": "node-[a-b]",
        "SLURM_NODEID": "1",
        "SLURM_CPUS_PER_TASK": "32",
    }
    done = subprocess.run(
        ["bash", str(tmp_path / "run" / "job.sbatch")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *words = log.read_text().splitlines()
    assert first == "srun --kill-on-bad-exit=1 cpus=32"
    assert "node-a" in words
    assert "20123" in words
    rank = "--machine_rank" if launcher == "accelerate" else "--node-rank"
    assert words[words.index(rank) + 1] == "1"
    assert str(tmp_path / "run" / "ds_config.json") in words
    assert words.index("train.py") > words.index(rank)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_scripts_are_sound_shell(tmp_path: Path, launcher: str) -> None:
    plan = plan_of(launcher, 2, hosts=("a", "b"))
    for path in files.write(plan, tmp_path, slurm=True):
        if path.suffix in {".sh", ".sbatch"}:
            assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
            assert path.stat().st_mode & stat.S_IXUSR
    assert json.loads((tmp_path / "ds_config.json").read_text()) == plan.ds_config


def test_names_from_files_cannot_break_out_of_the_scripts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "n_embd": 768,
                "n_head": 12,
                "n_layer": 12,
                "n_positions": 1024,
                "vocab_size": 50257,
                "_name_or_path": "x\ntouch broken\r$(touch broken)\x1b[31m",
            }
        )
    )
    options = PlanOptions(script="a'b $(touch broken).py", cpu_ranks=1, launcher="torchrun")
    plan = recommend(Machine(host_bytes=1 << 36), resolve(str(tmp_path)), options)
    files.write(plan, tmp_path / "run", slurm=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "torchrun").write_text("#!/usr/bin/env bash\nexit 0\n")
    (tools / "torchrun").chmod(0o755)
    done = subprocess.run(
        [str(tmp_path / "run" / "launch.sh")],
        cwd=tmp_path,
        env={"PATH": f"{tools}:{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == 0
    assert not (tmp_path / "broken").exists()


# ---- the saved plan ----------------------------------------------------------------------------


def test_a_saved_plan_is_read_back(tmp_path: Path) -> None:
    plan = plan_of("torchrun", 2, hosts=("a", "b"))
    files.write(plan, tmp_path)
    assert files.read(tmp_path) == plan
    assert files.read(tmp_path / "launch.json") == plan


def test_a_plan_of_an_older_dsdoctor_is_read(tmp_path: Path) -> None:
    """Keys that came later have defaults."""
    files.write(plan_of("torchrun"), tmp_path)
    value = json.loads((tmp_path / "launch.json").read_text())
    for key in ("gpu_uuids", "hosts", "master_port", "script"):
        del value[key]
    value["from a newer one"] = True
    (tmp_path / "launch.json").write_text(json.dumps(value))
    assert files.read(tmp_path).master_port == 29500


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"schema": "dsdoctor/report"}, "dsdoctor/report"),
        ({"micro_batch": 3}, "contradicts itself"),
        ({"world": "many"}, "is not a launch plan"),
        ({"argv": []}, "contradicts itself"),
        (None, "is not a launch plan"),
    ],
)
def test_what_is_no_plan_is_refused(
    tmp_path: Path, change: dict[str, Any] | None, words: str
) -> None:
    files.write(plan_of("torchrun"), tmp_path)
    path = tmp_path / "launch.json"
    value = json.loads(path.read_text()) | (change or {})
    path.write_text(json.dumps(value) if change is not None else "{")
    with pytest.raises(UsageError, match=words):
        files.read(path)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        files.read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        files.write(plan_of("torchrun"), tmp_path / "file")
