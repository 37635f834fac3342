"""The launch: DeepSpeed config, variables and command."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping
from typing import Any

from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend.setting import Setting

CONFIG_NAME = "ds_config.json"
ACCELERATE_NAME = "accelerate.yaml"
HOSTFILE_NAME = "hostfile"
ENV_FILE_NAME = ".deepspeed_env"
PLAN_NAME = "launch.json"

#: Name and parameters of each optimizer in a DeepSpeed config.
_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adamw": ("AdamW", {"lr": 1e-5, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}),
    "adam": ("Adam", {"lr": 1e-5, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}),
    "lamb": ("Lamb", {"lr": 1e-4, "weight_decay": 0.01}),
    "lion": ("Lion", {"lr": 3e-6, "betas": [0.9, 0.99], "weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr": 1e-3, "weight_decay": 0.0}),
    "muon": ("Muon", {"lr": 1e-3, "weight_decay": 0.0, "momentum": 0.95}),
    "sgd": ("SGD", {"lr": 1e-3, "momentum": 0.0}),
    "adafactor": ("Adafactor", {"lr": 1e-3, "weight_decay": 0.0}),
}
#: Optimizers that the script must create (`bitsandbytes.optim.AdamW8bit`): DeepSpeed cannot.
OF_THE_SCRIPT = {"adamw8bit": "bitsandbytes.optim.AdamW8bit"}
#: Optimizers that ZeRO takes only with `zero_allow_untested_optimizer`.
_UNTESTED = frozenset({"sgd", "lamb", "adafactor", *OF_THE_SCRIPT})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launch:
    """The inputs of the launch command.

    Attributes:
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        gpu_ids: indices in PCI order, empty = CPU ranks.
        mig_uuid: the slice to run on, None = whole GPUs.
        ranks_per_node, nodes: size of the job.
        hosts: names of the nodes, if known.
        master_port: port of the rendezvous.
        threads: OMP_NUM_THREADS of each rank, 0 = the CPUs are not known.
        script: the user's script.
        config_words: arguments that pass the DeepSpeed config to it.
        arguments: further arguments for it.
        programs: launcher to its path, if PATH does not lead to the environment's.
        expandable: torch's allocator maps memory page by page, so that fragments do not keep a
            large block from its place.
    """

    launcher: str
    gpu_ids: tuple[int, ...]
    ranks_per_node: int
    mig_uuid: str | None = None
    nodes: int = 1
    hosts: tuple[str, ...] = ()
    master_port: int = 29500
    threads: int = 1
    script: str = "train.py"
    config_words: tuple[str, ...] = ("--deepspeed", "--deepspeed_config", CONFIG_NAME)
    arguments: tuple[str, ...] = ()
    programs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    expandable: bool = False


def ds_config(
    setting: Setting, *, optimizer: str, accumulation: int, global_batch: int
) -> dict[str, Any]:
    """A complete DeepSpeed configuration, without "auto"."""
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
                "stage3_prefetch_bucket_size": min(setting.prefetch, bucket),
                "stage3_param_persistence_threshold": 100_000,
                "stage3_max_live_parameters": setting.max_live,
                "stage3_max_reuse_distance": setting.reuse,
                "stage3_gather_16bit_weights_on_model_save": True,
            }
            if optimizer == "muon":
                zero["reduce_scatter"] = False
        place = {"device": "cpu", "pin_memory": setting.pin_memory}
        if setting.offloads_optimizer:
            zero["offload_optimizer"] = dict(place)
        if setting.offloads_parameters:
            zero["offload_param"] = dict(place)
    config: dict[str, Any] = {
        "train_batch_size": global_batch,
        "train_micro_batch_size_per_gpu": setting.micro_batch,
        "gradient_accumulation_steps": accumulation,
        "gradient_clipping": 1.0,
        "zero_optimization": zero,
        "steps_per_print": 100,
        "wall_clock_breakdown": False,
    }
    if optimizer in _OPTIMIZERS:
        name, params = _OPTIMIZERS[optimizer]
        config["optimizer"] = {"type": name, "params": dict(params)}
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
    launcher takes its GPUs from --include and drops CUDA_VISIBLE_DEVICES, accelerate sets it from
    `gpu_ids` of its config; torchrun needs it. torchrun sets OMP_NUM_THREADS=1 if it is not set,
    which starves the optimizer on the host.
    """
    env = {"OMP_NUM_THREADS": str(launch.threads)} if launch.threads else {}
    if not launch.gpu_ids:
        return {"DS_ACCELERATOR": "cpu", **env}
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if launch.expandable:
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    if launch.mig_uuid:
        env["CUDA_VISIBLE_DEVICES"] = launch.mig_uuid
    elif launch.launcher == "torchrun":
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.gpu_ids))
    return env


def _torchrun(launch: Launch) -> tuple[str, ...]:
    if launch.nodes == 1:
        where: tuple[str, ...] = ("--nnodes", "1", "--master-addr", "127.0.0.1")
    else:
        master = launch.hosts[0] if launch.hosts else "$MASTER_ADDR"
        where = ("--nnodes", str(launch.nodes), "--node-rank", "$NODE_RANK")
        where += ("--master-addr", master)
    ranks = str(launch.ranks_per_node)
    return ("--nproc-per-node", ranks, *where, "--master-port", str(launch.master_port))


def _accelerate(launch: Launch) -> tuple[str, ...]:
    words: tuple[str, ...] = ("launch", "--config_file", ACCELERATE_NAME)
    words += ("--deepspeed_config_file", CONFIG_NAME)
    if launch.nodes > 1:
        master = launch.hosts[0] if launch.hosts else "$MASTER_ADDR"
        words += ("--machine_rank", "$NODE_RANK", "--main_process_ip", master)
    return (*words, "--main_process_port", str(launch.master_port))


def _deepspeed(launch: Launch) -> tuple[str, ...]:
    slots = ",".join(map(str, launch.gpu_ids or range(launch.ranks_per_node)))
    port = ("--master_port", str(launch.master_port))
    if launch.nodes == 1 and not launch.gpu_ids:
        # On CPUs the launcher has as many slots as there are sockets; a count is not compared.
        return ("--num_gpus", str(launch.ranks_per_node), *port)
    if launch.nodes == 1:
        return ("--include", f"localhost:{slots}", *port)
    if not launch.hosts:
        ranks = str(launch.ranks_per_node)
        nodes = ("--num_nodes", str(launch.nodes), "--num_gpus", ranks)
        return ("--hostfile", HOSTFILE_NAME, *nodes, *port)
    include = "@".join(f"{host}:{slots}" for host in launch.hosts)
    # Without --master_addr the launcher takes the first address that the first host prints, which
    # may be that of a bridge.
    master = ("--master_addr", launch.hosts[0])
    return ("--hostfile", HOSTFILE_NAME, "--include", include, *master, *port)


def argv(launch: Launch) -> tuple[str, ...]:
    """The launch command; paths of files that `-o` writes are relative to their folder."""
    program = launch.programs.get(launch.launcher, launch.launcher)
    if launch.launcher == "accelerate":
        return (program, *_accelerate(launch), launch.script, *launch.arguments)
    options = _torchrun(launch) if launch.launcher == "torchrun" else _deepspeed(launch)
    return (program, *options, launch.script, *launch.config_words, *launch.arguments)


_WRITTEN = frozenset({CONFIG_NAME, ACCELERATE_NAME, HOSTFILE_NAME})
_TAKES_FILE = frozenset(
    {"--config_file", "--deepspeed_config_file", "--hostfile", "--deepspeed_config", "--deepspeed"}
)


def located(words: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """The command with the files of `-o` in their folder.

    >>> located(("deepspeed", "--hostfile", "hostfile"), "run")
    ('deepspeed', '--hostfile', 'run/hostfile')
    """
    before = ("", *words)
    return tuple(
        f"{folder.rstrip('/')}/{word}" if word in _WRITTEN and previous in _TAKES_FILE else word
        for previous, word in zip(before, words, strict=False)
    )


_VARIABLE = re.compile(r"^\$(\{[A-Za-z_]+(:-[\w.]+)?\}|[A-Za-z_]+)(/[\w.]+)?$")


def quote(word: str) -> str:
    """A word quoted for a shell; our own variables stay variables."""
    return f'"{word}"' if _VARIABLE.match(word) else shlex.quote(word)


def carries_env(plan: LaunchPlan) -> bool:
    """Whether variables must be forwarded to other nodes by the deepspeed launcher's file."""
    return plan.launcher == "deepspeed" and plan.nodes > 1


def command_line(plan: LaunchPlan, folder: str | None = None) -> str:
    """One line for a shell: variables, then the command.

    Args:
        plan: what to launch.
        folder: where `-o` wrote its files, None = they were not written.
    """
    env = dict(plan.env)
    words = plan.argv
    if folder is not None:
        words = located(words, folder)
        if carries_env(plan):
            env["DS_ENV_FILE"] = f"{folder.rstrip('/')}/{ENV_FILE_NAME}"
    said = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    return " ".join(said + [quote(word) for word in words])
