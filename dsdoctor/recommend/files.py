"""The files of a plan: what `-o DIR` writes and what `smoke --plan` reads back."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec

from dsdoctor import files as writer
from dsdoctor import reading
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.launch_plan import LaunchPlan, decode, encode
from dsdoctor.recommend.output import (
    ACCELERATE_NAME,
    CONFIG_NAME,
    ENV_FILE_NAME,
    HOSTFILE_NAME,
    PLAN_NAME,
    carries_env,
    located,
    quote,
)

LAUNCH_NAME = "launch.sh"
SLURM_NAME = "job.sbatch"
#: Share of the predicted host memory that is requested from Slurm in addition.
SLURM_SPARE = 1.25


def _summary(plan: LaunchPlan) -> str:
    offload = "" if plan.offload == "none" else f" with {plan.offload} on the host"
    what = f"{plan.world} x {'GPU' if plan.gpu_ids else 'CPU rank'}"
    return (
        f"{_printable(plan.model.name)}: ZeRO-{plan.stage}{offload}, {plan.precision}, {what}, "
        f"micro-batch {plan.micro_batch}, {plan.sequence} tokens"
    )


def _printable(text: str) -> str:
    """A name that is safe in a comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def launch_script(plan: LaunchPlan) -> str:
    """`launch.sh`, to be called from the folder of the training script.

    Further arguments go to the script; MASTER_PORT, if set, overrides the planned port.
    """
    port = str(plan.master_port)
    words = tuple(
        "${MASTER_PORT:-" + port + "}" if word == port and before.endswith("port") else word
        for before, word in zip(("", *plan.argv), plan.argv, strict=False)
    )
    lines = [
        "#!/usr/bin/env bash",
        f"# {_summary(plan)}",
        "# Run it from the folder of your script; further arguments go to the script.",
        "set -euo pipefail",
        'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
    ]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(plan.env.items())]
    if "$MASTER_ADDR" in words:
        lines.append(': "${MASTER_ADDR:?set it to the name of the first node}"')
    if "$NODE_RANK" in words:
        lines.append(': "${NODE_RANK:?set it to 0 on the first node, 1 on the second, and so on}"')
    if carries_env(plan):
        line = f"'NAME slots={_slots(plan)}' for each of {plan.nodes} nodes"
        lines += [
            "# The launcher reads this file instead of ~/.deepspeed_env.",
            f'export DS_ENV_FILE="$here/{ENV_FILE_NAME}"',
            f'if [ ! -f "$here/{HOSTFILE_NAME}" ]; then',
            f'  echo "$here/{HOSTFILE_NAME} does not exist; write a line {line}" >&2',
            "  exit 2",
            "fi",
        ]
    command = " ".join(quote(word) for word in located(words, "$here"))
    return "\n".join([*lines, f'exec {command} "$@"', ""])


def accelerate_config(plan: LaunchPlan) -> str:
    """The YAML that `accelerate launch --config_file` reads.

    Paths, addresses and ports are on the command line, which overrides this file.
    """
    gpus = ",".join(map(str, plan.gpu_ids)) if plan.gpu_ids else "all"
    lines = [
        "compute_environment: LOCAL_MACHINE",
        "debug: false",
        "distributed_type: DEEPSPEED",
        "deepspeed_config:",
        f"  deepspeed_config_file: {CONFIG_NAME}",
        f"  zero3_init_flag: {'true' if plan.stage == 3 else 'false'}",  # noqa: PLR2004
    ]
    if plan.nodes > 1:
        lines.append("  deepspeed_multinode_launcher: standard")
    lines += [
        f"gpu_ids: {json.dumps(gpus)}",
        "machine_rank: 0",
        "main_training_function: main",
        f"num_machines: {plan.nodes}",
        f"num_processes: {plan.world}",
        "rdzv_backend: static",
        "same_network: true",
        "use_cpu: false",
        "",
    ]
    return "\n".join(lines)


def _slurm_command(plan: LaunchPlan) -> str:
    """The command of the task on each node: torchrun or accelerate, with its node from Slurm."""
    # the script and its arguments, as in the launch command
    behind = len(plan.argv) - plan.argv[::-1].index(plan.script) - 1
    script = " ".join(quote(word) for word in located(plan.argv[behind:], "$here"))
    if plan.launcher == "accelerate":
        return (
            f'{shlex.quote(plan.argv[0])} launch --config_file "$here/{ACCELERATE_NAME}" '
            f'--deepspeed_config_file "$here/{CONFIG_NAME}" --gpu_ids all '
            '--machine_rank "$SLURM_NODEID" --main_process_ip "$MASTER_ADDR" '
            f'--main_process_port "$MASTER_PORT" {script}'
        )
    program = plan.argv[0] if plan.launcher == "torchrun" else "torchrun"
    if plan.launcher == "deepspeed" and "/" in plan.argv[0]:
        program = f"{plan.argv[0].rpartition('/')[0]}/torchrun"
    return (
        f"{shlex.quote(program)} --nnodes {plan.nodes} --nproc-per-node {plan.gpus_per_node} "
        '--node-rank "$SLURM_NODEID" --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" '
        f"{script}"
    )


def sbatch_script(plan: LaunchPlan, folder: str) -> str:
    """A Slurm script: one launcher on each node, the rendezvous on the first one.

    Slurm runs a copy of the script, so the script contains the path of the plan's folder.
    """
    threads = int(plan.env.get("OMP_NUM_THREADS", "1"))
    cpus = plan.gpus_per_node * max(threads, 1 + plan.workers)
    memory = next(
        (row.host_bytes for row in plan.memory.options if row.name == plan.memory.chosen), 0
    )
    lines = [
        "#!/usr/bin/env bash",
        f"# {_summary(plan)}",
        "#SBATCH --job-name=train",
        f"#SBATCH --nodes={plan.nodes}",
        "#SBATCH --ntasks-per-node=1",
        *([f"#SBATCH --gpus-per-node={plan.gpus_per_node}"] if plan.gpu_ids else []),
        f"#SBATCH --cpus-per-task={cpus}",
        *([f"#SBATCH --mem={int(memory * SLURM_SPARE) >> 20}M"] if memory else []),
        "set -euo pipefail",
        f"export here={shlex.quote(folder)}",
        'nodes="$(scontrol show hostnames "$SLURM_JOB_NODELIST")"',
        "MASTER_ADDR=\"${nodes%%$'\\n'*}\"",
        'MASTER_PORT="$((20000 + SLURM_JOB_ID % 20000))"',
        "export MASTER_ADDR MASTER_PORT",
        "# srun takes no --cpus-per-task from sbatch since Slurm 22.05.",
        'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"',
    ]
    # Slurm chooses the GPUs and sets CUDA_VISIBLE_DEVICES itself.
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in sorted(plan.env.items())
        if name != "CUDA_VISIBLE_DEVICES"
    ]
    inner = shlex.quote(_slurm_command(plan))
    return "\n".join([*lines, f"srun --kill-on-bad-exit=1 bash -c {inner}", ""])


def _slots(plan: LaunchPlan) -> int:
    """Slots that a hostfile needs, so that the highest requested GPU is one of them."""
    return max(plan.gpu_ids, default=plan.gpus_per_node - 1) + 1


def files(plan: LaunchPlan, *, folder: str = ".", slurm: bool = False) -> dict[str, str]:
    """Name and text of everything that -o writes."""
    result = {
        CONFIG_NAME: json.dumps(plan.ds_config, indent=2) + "\n",
        LAUNCH_NAME: launch_script(plan),
        PLAN_NAME: msgspec.json.format(encode(plan), indent=2).decode() + "\n",
    }
    if plan.launcher == "accelerate":
        result[ACCELERATE_NAME] = accelerate_config(plan)
    if carries_env(plan):
        # The deepspeed launcher carries only NCCL*, PYTHON*, MLFLOW*, MV2* and UCX* to the nodes,
        # and its file takes neither a comment nor an empty line.
        result[ENV_FILE_NAME] = "".join(
            f"{name}={value}\n" for name, value in sorted(plan.env.items())
        )
        if plan.hosts:
            slots = _slots(plan)
            result[HOSTFILE_NAME] = "".join(f"{host} slots={slots}\n" for host in plan.hosts)
    if slurm:
        result[SLURM_NAME] = sbatch_script(plan, str(Path(folder).resolve()))
    return result


def write(plan: LaunchPlan, folder: str | Path, *, slurm: bool = False) -> tuple[Path, ...]:
    """Writes the files of a plan into a folder, which is created if it does not exist.

    Raises:
        UsageError: the folder cannot be written.
    """
    target = Path(folder)
    written = []
    try:
        writer.make_folder(target)
        for name, text in files(plan, folder=str(target), slurm=slurm).items():
            path = target / name
            runnable = name in (LAUNCH_NAME, SLURM_NAME)
            writer.write(path, text, mode=0o755 if runnable else None)
            written.append(path)
    except OSError as error:
        raise UsageError(
            f"`{target}` cannot be written: {error.strerror or error}; pass another folder"
        ) from None
    return tuple(written)


def read(path: str | Path) -> LaunchPlan:
    """A saved plan: `launch.json`, or its folder.

    Raises:
        UsageError: it cannot be read, is not a plan, or contradicts its own DeepSpeed config.
    """
    place = Path(path)
    if place.is_dir():
        place /= PLAN_NAME
    try:
        plan = decode(reading.read(place))
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read: {error.strerror or error}; "
            "expected what `dsdoctor recommend -o DIR` writes"
        ) from None
    except (msgspec.DecodeError, DecodeError) as error:
        raise UsageError(
            f"`{path}` is not a launch plan ({error}); "
            "expected what `dsdoctor recommend -o DIR` writes"
        ) from None
    batch = plan.micro_batch * plan.accumulation * plan.world
    if not plan.argv or batch != plan.global_batch or plan.world != plan.nodes * plan.gpus_per_node:
        raise UsageError(
            f"`{path}` contradicts itself: {plan.micro_batch} x {plan.accumulation} x {plan.world} "
            f"on {plan.nodes} nodes of {plan.gpus_per_node} is not {plan.global_batch}; create "
            "it again with `dsdoctor recommend -o DIR`"
        )
    return plan
