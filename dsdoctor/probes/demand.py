"""The GPU and host memory that the run needs, as far as the options or the command describe it."""

from __future__ import annotations

import contextlib
import posixpath
import sys

from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    Environment,
    Gpus,
    Hostfile,
    LaunchCommand,
    Packages,
    RunNeeds,
    TorchBuild,
    TorchLive,
    TrainingJob,
    probe,
)
from dsdoctor.framework import packages_in, syntax_of
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.lazy_regex import lazy
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.partial import NotStated
from dsdoctor.model.ranks import hosts_of, ranks_of

#: Keys that the memory model leaves out, and that change nothing but activations.
_NO_STATE = frozenset(
    f"activation_checkpointing.{key}"
    for key in ("partition_activations", "cpu_checkpointing", "contiguous_memory_optimization")
)

#: Packages that start no further process for a rank unless a word below stands in the script.
_ONE_PROCESS = sys.stdlib_module_names | {
    "accelerate", "datasets", "deepspeed", "einops", "evaluate", "huggingface_hub", "numpy",
    "pandas", "peft", "safetensors", "sklearn", "tokenizers", "torch", "torchvision", "tqdm",
    "transformers", "wandb", "yaml",
}  # fmt: skip
#: Words of a script that starts other processes, or that spreads one model over several GPUs.
_MORE_THAN_ONE = lazy(
    r"spawn|fork|launch|elastic|distributed\.run|[Pp]rocess(?:es|ing)?\b|Popen|os\.(?:system|exec|popen)"
    r"|runpy|importlib|device_map|max_memory|cuda:[1-9{]"
)
#: Variables with which something else starts one process for each rank: torchrun, MPI, Slurm.
_OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_", "PMI_", "PMIX_", "SLURM_PROCID")


@probe
def memory_demand(
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
    job: TrainingJob | Missing,
    hostfile: Hostfile | Missing,
    live: TorchLive | Missing,
    chosen: DeepSpeedLive | Missing,
    torch: TorchBuild | Missing,
    host: Host,
) -> MemoryDemand:
    """The demand, if --plan, --model or the command is sufficient to compute it."""
    described = isinstance(job, TrainingJob) and job.shape and (job.preset or run.config)
    if run.plan is None and run.model is None and not described:
        raise HostError(
            Why.NOT_ASKED,
            "neither a plan nor a model was passed (`--plan`, `--model`), and the command does not"
            " name a model that is known, with a DeepSpeed config",
        )
    # importing the memory model takes 35 ms, which other checks should not pay
    from dsdoctor.recommend import demand  # noqa: PLC0415  # see above
    from dsdoctor.recommend.config_setting import left_out  # noqa: PLC0415

    if run.plan is not None:
        return demand.of_plan(run.plan)
    ranks, nodes = demand.gpus_and_nodes(run, gpus, env, command)
    total = ranks_of(run, command, hostfile, env, gpus)
    hosts = hosts_of(command, hostfile, env) if isinstance(command, LaunchCommand) else None
    known = total is not None and hosts is not None and total.count % hosts == 0
    if total is not None and hosts is not None and known:
        ranks, nodes = total.count // hosts if ranks else 0, hosts
    stays_on_cpu = isinstance(command, LaunchCommand) and command.on_cpu()
    if not ranks and not stays_on_cpu:
        ranks = _devices_of_torch(live, chosen, torch, packages, env)
    if ranks > 1 and not known and _is_one_process(host, run, command, env):
        ranks, nodes = 1, 1
    if run.model is None:
        if not known:
            raise HostError(Why.ABSENT, "the number of ranks and hosts of the command is not known")
        others = [key for key in left_out(run.config or {}) if key not in _NO_STATE]
        if others:
            raise HostError(Why.UNSUPPORTED, f"the memory with `{others[0]}` is not known")
    return demand.demand_of(
        demand.completed(run, job),
        ranks,
        nodes,
        deepspeed,
        demand.free_of(gpus),
        demand.transformers_in(packages),
        source="command" if run.model is None else "model",
    )


def _devices_of_torch(
    live: TorchLive | Missing,
    chosen: DeepSpeedLive | Missing,
    torch: TorchBuild | Missing,
    packages: Packages | Missing,
    env: Environment | Missing,
) -> int:
    """Devices that torch sees where NVML sees none: 0 if the run is one of the CPU.

    NVML knows neither AMD's GPUs nor NPUs. What DeepSpeed chose decides, then `DS_ACCELERATOR`,
    then the build of torch.

    Raises:
        HostError: an accelerator is used, but the number of its devices is not known.
    """
    name = chosen.accelerator if isinstance(chosen, DeepSpeedLive) else None
    with contextlib.suppress(NotStated):  # a paste may not contain them
        if name is None and isinstance(env, Environment):
            name = env.get("DS_ACCELERATOR")
        if name == "cpu":
            return 0
        if isinstance(live, TorchLive) and live.devices:
            return len(live.devices)
        if name is None and isinstance(packages, Packages) and "torch-npu" in packages.packages:
            name = "npu"
        tried = isinstance(live, TorchLive) and live.imported.ok
        if name is None and not tried and isinstance(torch, TorchBuild):
            name = "rocm" if torch.hip is not None else None
    if name in (None, "cuda"):
        return 0
    raise HostError(Why.UNSUPPORTED, f"the memory of the accelerator (`{name}`) is not known")


def _is_one_process(
    host: Host, run: RunNeeds, command: LaunchCommand | Missing, env: Environment | Missing
) -> bool:
    """Whether the command surely starts one rank on whatever GPUs there are: `python train.py`.

    Not if the script cannot be read, or may start others itself.
    """
    if not isinstance(command, LaunchCommand) or not command.by_python_alone or command.outer:
        return False
    script = command.script or ""
    if run.gpus or run.expect_gpus or run.container is not None:
        return False
    with contextlib.suppress(NotStated, HostError):
        names = {*command.env, *(env.variables if isinstance(env, Environment) else ())}
        if any(name.startswith(_OF_A_RANK) for name in names) or not script.endswith(".py"):
            return False
        text = read_text(host, posixpath.join(run.cwd, script))
        tree = syntax_of(text)
        return (
            tree is not None
            and packages_in(tree) <= _ONE_PROCESS
            and _MORE_THAN_ONE.search(text) is None
        )
    return False
