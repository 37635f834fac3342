"""What the run will take of GPU and host memory, where --plan or --model says enough."""

from __future__ import annotations

from dsdoctor.api import DeepSpeedInstall, Environment, Gpus, LaunchCommand, RunNeeds, probe
from dsdoctor.host import HostError
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.memory import MemoryDemand


@probe
def memory_demand(
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    deepspeed: DeepSpeedInstall | Missing,
) -> MemoryDemand:
    """The demand, where --plan or --model says enough to compute it."""
    if run.plan is None and run.model is None:
        raise HostError(Why.NOT_ASKED, "neither a plan nor a model was given (`--plan`, `--model`)")
    # the memory model takes 35 ms to import, which every other check would pay
    from dsdoctor.recommend import demand  # noqa: PLC0415

    if run.plan is not None:
        return demand.of_plan(run.plan)
    ranks, nodes = demand.ranks_of(run, gpus, env, command)
    return demand.demand_of(run, ranks, nodes, deepspeed, demand.free_of(gpus))
