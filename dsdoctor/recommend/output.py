"""What a plan is written as: DeepSpeed config, launch line, shell script, accelerate, Slurm."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

from dsdoctor.errors import UsageError
from dsdoctor.model.launch import LaunchPlan
from dsdoctor.recommend.memory import Setting

CONFIG_NAME = "ds_config.json"
ACCELERATE_NAME = "accelerate.yaml"
HOSTFILE_NAME = "hostfile"

#: Name and parameters of each optimizer in a DeepSpeed config.
_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adamw": ("AdamW", {"lr": 1e-5, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}),
    "adam": ("Adam", {"lr": 1e-5, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}),
    "lamb": ("Lamb", {"lr": 1e-4, "weight_decay": 0.01}),
    "lion": ("Lion", {"lr": 3e-6, "betas": [0.9, 0.99], "weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr": 1e-3, "weight_decay": 0.0}),
    "muon": ("Muon", {"lr": 1e-3, "weight_decay": 0.0, "momentum": 0.95}),
    "sgd": ("SGD", {"lr": 1e-3, "momentum": 0.0}),
}
#: Optimizers that ZeRO takes only when told that they are untested with it.
_UNTESTED = frozenset({"sgd", "lamb"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launch:
    """What the launch line needs to know.

    Attributes:
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        gpu_ids: indices in PCI order, empty = CPU ranks.
        ranks_per_node, nodes: size of the job.
        hosts: names of the nodes, where known.
        master_port: port of the rendezvous.
        threads: OMP_NUM_THREADS of each rank, 0 = the CPUs are not known.
        script: the user's script.
    """

    launcher: str
    gpu_ids: tuple[int, ...]
    ranks_per_node: int
    nodes: int = 1
    hosts: tuple[str, ...] = ()
    master_port: int = 29500
    threads: int = 1
    script: str = "train.py"


def ds_config(
    setting: Setting, *, optimizer: str, accumulation: int, global_batch: int
) -> dict[str, Any]:
    """A DeepSpeed configuration that says everything itself, without "auto"."""
    zero: dict[str, Any] = {"stage": setting.stage}
    if setting.stage:
        bucket = setting.bucket - setting.bucket % 2
        zero |= {
            "contiguous_gradients": True,
            "overlap_comm": setting.overlap,
            "reduce_bucket_size": bucket,
        }
        if setting.stage < 3:  # noqa: PLR2004
            zero |= {"reduce_scatter": True, "allgather_bucket_size": bucket}
        else:
            zero |= {
                "stage3_prefetch_bucket_size": min(50_000_000, bucket),
                "stage3_param_persistence_threshold": 100_000,
                "stage3_max_live_parameters": setting.max_live,
                "stage3_max_reuse_distance": setting.max_live,
                "stage3_gather_16bit_weights_on_model_save": True,
            }
            if optimizer == "muon":
                zero["reduce_scatter"] = False
        place = {"device": "cpu", "pin_memory": setting.pin_memory}
        if setting.offloads_optimizer:
            zero["offload_optimizer"] = dict(place)
        if setting.offloads_parameters:
            zero["offload_param"] = dict(place)
    name, params = _OPTIMIZERS[optimizer]
    config: dict[str, Any] = {
        "train_batch_size": global_batch,
        "train_micro_batch_size_per_gpu": setting.micro_batch,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        "optimizer": {"type": name, "params": dict(params)},
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    }
    if setting.precision == "bf16":
        config["bf16"] = {"enabled": True}
    elif setting.precision == "fp16":
        config["fp16"] = {
            "enabled": True,
            "loss_scale": 0,
            "initial_scale_power": 16,
            "loss_scale_window": 1000,
            "hysteresis": 2,
            "min_loss_scale": 1,
        }
    if optimizer in _UNTESTED and setting.stage:
        config["zero_allow_untested_optimizer"] = True
    return config


def environment(launch: Launch) -> dict[str, str]:
    """Variables of the launch.

    `CUDA_DEVICE_ORDER=PCI_BUS_ID` makes CUDA number GPUs as `nvidia-smi` does. The deepspeed
    launcher takes its GPUs from --include and drops CUDA_VISIBLE_DEVICES; torchrun needs it.
    torchrun sets OMP_NUM_THREADS=1 if nobody has, which starves the optimizer on the host.
    """
    env = {"OMP_NUM_THREADS": str(launch.threads)} if launch.threads else {}
    if not launch.gpu_ids:
        return {"DS_ACCELERATOR": "cpu", **env}
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if launch.launcher == "torchrun":
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.gpu_ids))
    return env


def argv(launch: Launch) -> tuple[str, ...]:
    """The launch command; `train.py` stands for the user's script."""
    tail = (launch.script, "--deepspeed", "--deepspeed_config", CONFIG_NAME)
    port = str(launch.master_port)
    if launch.launcher == "accelerate":
        return ("accelerate", "launch", "--config_file", ACCELERATE_NAME, launch.script)
    ranks = str(launch.ranks_per_node)
    if launch.launcher == "torchrun":
        if launch.nodes == 1:
            where: tuple[str, ...] = ("--nnodes", "1", "--master-addr", "127.0.0.1")
        else:
            master = launch.hosts[0] if launch.hosts else "$MASTER_ADDR"
            where = ("--nnodes", str(launch.nodes), "--node-rank", "$NODE_RANK")
            where += ("--master-addr", master)
        head = ("torchrun", "--nproc-per-node", ranks, *where, "--master-port", port)
        return (*head, *tail)
    slots = ",".join(map(str, launch.gpu_ids or range(launch.ranks_per_node)))
    if launch.nodes == 1:
        # DeepSpeed counts NUMA nodes as CPU devices, so --include may not know the second rank
        chosen: tuple[str, ...] = ("--include", f"localhost:{slots}")
        if not launch.gpu_ids:
            chosen = ("--num_gpus", ranks)
    else:
        chosen = ("--hostfile", HOSTFILE_NAME)
        if launch.hosts:
            chosen += ("--include", "@".join(f"{host}:{slots}" for host in launch.hosts))
        else:
            chosen += ("--num_nodes", str(launch.nodes), "--num_gpus", ranks)
    return ("deepspeed", *chosen, "--master_port", port, *tail)


_VARIABLE = re.compile(r"^\$[A-Z_]+$")


def _quote(word: str) -> str:
    return f'"{word}"' if _VARIABLE.match(word) else shlex.quote(word)


def command_line(plan: LaunchPlan) -> str:
    """One line for a shell: variables, then the command."""
    words = [f"{name}={shlex.quote(value)}" for name, value in sorted(plan.env.items())]
    return " ".join(words + [_quote(word) for word in plan.argv])


def launch_script(plan: LaunchPlan) -> str:
    """`launch.sh`: the same, to be kept; further arguments go to the script."""
    lines = ["#!/usr/bin/env bash", "set -euo pipefail", 'cd "$(dirname "$0")"']
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(plan.env.items())]
    if "$MASTER_ADDR" in plan.argv:
        lines.append(': "${MASTER_ADDR:?set it to the name of the first node}"')
    if "$NODE_RANK" in plan.argv:
        lines.append(': "${NODE_RANK:?set it to 0 on the first node, 1 on the second, …}"')
    words = " ".join(_quote(word) for word in plan.argv)
    return "\n".join([*lines, f'exec {words} "$@"', ""])


def accelerate_config(plan: LaunchPlan) -> str:
    """The YAML that `accelerate launch --config_file` reads."""
    gpu = bool(plan.gpu_ids)
    multi = plan.nodes > 1
    lines = [
        "compute_environment: LOCAL_MACHINE",
        "debug: false",
        f"distributed_type: {'DEEPSPEED' if gpu else 'MULTI_CPU'}",
        "deepspeed_config:",
        f"  deepspeed_config_file: {CONFIG_NAME}",
        f"  zero3_init_flag: {'true' if plan.stage == 3 else 'false'}",  # noqa: PLR2004
    ]
    if multi:
        lines.append("  deepspeed_multinode_launcher: standard")
    lines += [
        f"gpu_ids: {json.dumps(','.join(map(str, plan.gpu_ids)) if gpu else 'all')}",
        "machine_rank: 0",
        "main_training_function: main",
        f"num_machines: {plan.nodes}",
        f"num_processes: {plan.world}",
        "rdzv_backend: static",
        "same_network: true",
        f"use_cpu: {'false' if gpu else 'true'}",
        "",
    ]
    return "\n".join(lines)


def sbatch_script(plan: LaunchPlan) -> str:
    """A Slurm script: one launcher on each node, the rendezvous on the first one."""
    gres = [f"#SBATCH --gpus-per-node={plan.gpus_per_node}"] if plan.gpu_ids else []
    cpus = plan.gpus_per_node * (int(plan.env.get("OMP_NUM_THREADS", "1")) + plan.workers)
    memory = max(
        (option.host_bytes for option in plan.memory.options if option.verdict == "chosen"),
        default=0,
    )
    lines = [
        "#!/usr/bin/env bash",
        "#SBATCH --job-name=train",
        f"#SBATCH --nodes={plan.nodes}",
        "#SBATCH --ntasks-per-node=1",
        *gres,
        f"#SBATCH --cpus-per-task={cpus}",
        *([f"#SBATCH --mem={-(-memory * 5 // 4 >> 20)}M"] if memory else []),
        "#SBATCH --exclusive" if not plan.gpu_ids else "#SBATCH --kill-on-bad-exit=1",
        "set -euo pipefail",
        'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
        'MASTER_PORT="$((20000 + SLURM_JOB_ID % 20000))"',
        "export MASTER_ADDR MASTER_PORT",
    ]
    # Slurm chooses the GPUs and sets CUDA_VISIBLE_DEVICES itself.
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in sorted(plan.env.items())
        if name != "CUDA_VISIBLE_DEVICES"
    ]
    script = shlex.quote(plan.argv[-4] if plan.launcher != "accelerate" else plan.argv[-1])
    inner = (
        f"torchrun --nnodes {plan.nodes} --nproc-per-node {plan.gpus_per_node} "
        '--node-rank "$SLURM_NODEID" --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" '
        f"{script} --deepspeed --deepspeed_config {CONFIG_NAME}"
    )
    return "\n".join([*lines, f"srun bash -c {shlex.quote(inner)}", ""])


def files(plan: LaunchPlan, *, slurm: bool = False) -> dict[str, str]:
    """Name and text of everything that -o writes."""
    from dsdoctor.model.launch import encode  # noqa: PLC0415

    result = {
        CONFIG_NAME: json.dumps(plan.ds_config, indent=2) + "\n",
        "launch.sh": launch_script(plan),
        "launch.json": encode(plan).decode() + "\n",
    }
    if plan.launcher == "accelerate":
        result[ACCELERATE_NAME] = accelerate_config(plan)
    if plan.launcher == "deepspeed" and plan.nodes > 1:
        # The deepspeed launcher carries only NCCL*, PYTHON*, MLFLOW*, MV2* and UCX* to the nodes.
        result[".deepspeed_env"] = "".join(
            f"{name}={value}\n" for name, value in sorted(plan.env.items())
        )
        include = plan.argv[plan.argv.index("--include") + 1] if "--include" in plan.argv else ""
        hosts = [part.split(":")[0] for part in include.split("@")] if include else []
        slots = max(plan.gpu_ids, default=plan.gpus_per_node - 1) + 1
        if hosts:
            result[HOSTFILE_NAME] = "".join(f"{host} slots={slots}\n" for host in hosts)
    if slurm:
        result["job.sbatch"] = sbatch_script(plan)
    return result


def write(plan: LaunchPlan, folder: str | Path, *, slurm: bool = False) -> tuple[Path, ...]:
    """Writes the files of a plan into a folder, which is made if it is not there.

    Raises:
        UsageError: the folder cannot be written.
    """
    target = Path(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in files(plan, slurm=slurm).items():
            path = target / name
            path.write_text(text, encoding="utf-8")
            if name.endswith((".sh", ".sbatch")):
                path.chmod(0o755)
            written.append(path)
    except OSError as error:
        raise UsageError(f"`{target}` cannot be written: {error.strerror}") from error
    return tuple(written)
