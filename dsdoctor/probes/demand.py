"""The GPU and host memory that the run needs, if --plan or --model is sufficient."""

from __future__ import annotations

from dsdoctor.api import (
    DeepSpeedInstall,
    Environment,
    Gpus,
    LaunchCommand,
    Packages,
    RunNeeds,
    probe,
)
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
    packages: Packages | Missing,
) -> MemoryDemand:
    """The demand, if --plan or --model is sufficient to compute it."""
    if run.plan is None and run.model is None:
        raise HostError(
            Why.NOT_ASKED, "neither a plan nor a model was passed (`--plan`, `--model`)"
        )
    # importing the memory model takes 35 ms, which other checks should not pay
    from dsdoctor.recommend import demand  # noqa: PLC0415  # see above

    if run.plan is not None:
        return demand.of_plan(run.plan)
    ranks, nodes = demand.ranks_of(run, gpus, env, command)
    return demand.demand_of(
        run,
        ranks,
        nodes,
        deepspeed,
        demand.free_of(gpus),
        demand.transformers_in(packages),
    )
