"""Which releases of transformers, accelerate, DeepSpeed and torch train side by side.

    python benchmarks/stacks.py --work W --find-links wheels --pythons 3.10=/py310/bin/python -- ROW

For each row of `stacks.json`, uv makes an environment as a user's `pip install` lines leave it (a
later line does not mind what an earlier one needs; `!` means `--no-deps`), `check` judges the job's
command, the job runs (three steps of a small Llama under ZeRO-2 with transformers' Trainer,
on one CPU rank), and `diagnose` reads what it printed. A row is right if the job trains and `check`
finds nothing, or if it dies and both say which release to install. The folder `wheels` has CPU
builds of torch. What concerns GPUs is not seen.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Seconds for an installation, for the job, and for each of dsdoctor's commands.
DEADLINE = 900
CONFIG = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "zero_optimization": {"stage": 2},
}
JOB = """import importlib

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        row = torch.arange(i, i + 8)
        return {"input_ids": row, "labels": row}


try:  # nothing is compiled: only the releases are tried
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
except AttributeError:
    pass
config = LlamaConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
)
args = TrainingArguments(
    output_dir="out", max_steps=3, per_device_train_batch_size=2, deepspeed="ds_config.json",
    report_to=[], logging_steps=1, save_steps=3,
)
Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=Rows()).train()
print("JOB DONE")
"""  # fmt: skip


def call(command: list[str], folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command; one that takes too long counts as failed."""
    try:
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end within {DEADLINE} s")


def environment(row: dict[str, Any], python: str, folder: Path, links: Path) -> str:
    """Makes the environment of a row. Returns why it cannot be installed, or nothing."""
    env = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    override = folder / "torch.txt"
    override.write_text(f"torch=={row['torch']}+cpu\n", "utf-8")
    venv = str(folder / "venv")
    steps = [["uv", "venv", "-q", "--seed", "-p", python, venv]]
    install = ["uv", "pip", "install", "-q", "-p", venv, "--find-links", str(links)]
    for line in (f"torch=={row['torch']}+cpu hjson ninja py-cpuinfo", *row["install"]):
        alone = ["--no-deps"] if line.startswith("!") else ["--override", str(override)]
        steps.append([*install, *alone, *line.lstrip("!").split()])
    for step in steps:
        done = call(step, folder, env)
        if done.returncode:
            return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "uv failed"
    return ""


def try_out(row: dict[str, Any], python: str, work: Path, links: Path) -> dict[str, Any]:
    """Installs, judges and runs one row."""
    folder = work / row["name"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if refused := environment(row, python, folder, links):
        return {"name": row["name"], "ended": "not installed", "why": refused}
    (folder / "train.py").write_text(JOB, "utf-8")
    (folder / "ds_config.json").write_text(json.dumps(CONFIG), "utf-8")
    venv = folder / "venv"
    env = {
        **os.environ, "PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(venv),
        "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29811",
    }  # fmt: skip
    env.pop("PYTHONPATH", None)
    tool = [sys.executable, "-m", "dsdoctor"]
    ours = {**env, "PYTHONPATH": f"{HERE.parent}:{HERE.parent / 'checks'}"}
    command = ["torchrun", "--nproc_per_node", "1", "train.py"]
    judged = call(
        [*tool, "check", "--python", str(venv), "--format", "json", "--", *command], folder, ours
    )
    job = call([str(venv / "bin/python"), "train.py"], folder, env)
    (folder / "job.log").write_text(job.stdout + job.stderr, "utf-8")
    said = call([*tool, "diagnose", "job.log", "--format", "json"], folder, ours)
    shutil.rmtree(venv, ignore_errors=True)
    return {
        "name": row["name"],
        "ended": "trained" if "JOB DONE" in job.stdout else f"status {job.returncode}",
        "check": [
            f"{one['status']} {one['condition']}: {one['hint']}"
            for one in json.loads(judged.stdout or '{"findings": []}')["findings"]
            if one["status"] in ("fail", "warn")
        ],
        "diagnose": [
            f"{one['condition']}: {one['hint']}"
            for one in json.loads(said.stdout or '{"causes": []}')["causes"][:1]
        ],
    }


def main() -> int:
    """Tries the rows that are asked for, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="ROW")
    parser.add_argument("--work", type=Path, required=True, help="folder for environments and logs")
    parser.add_argument(
        "--find-links", type=Path, required=True, help="folder of torch's CPU wheels"
    )
    parser.add_argument(
        "--pythons", nargs="+", required=True, metavar="X.Y=PATH", help="interpreters by version"
    )
    asked = parser.parse_args()
    pythons = dict(pair.split("=", 1) for pair in asked.pythons)
    rows = json.loads((HERE / "stacks.json").read_text("utf-8"))
    for row in rows:
        if row["python"] in pythons and (not asked.names or row["name"] in asked.names):
            found = try_out(row, pythons[row["python"]], asked.work.resolve(), asked.find_links)
            print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
