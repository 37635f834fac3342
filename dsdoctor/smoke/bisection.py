"""Which single change makes a failing run pass: one knob at a time, each with a deadline."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from dsdoctor.model.observation import Observation
from dsdoctor.model.smoke import SmokeReport
from dsdoctor.packs.registry import Registry
from dsdoctor.smoke.job import SmokePlan, offload_of, ops_of, precision_of, with_precision

Change = Callable[[SmokePlan], SmokePlan]

#: Families of conditions that none of these changes can fix.
SETTLED = frozenset({"config", "launch", "ops", "python", "storage"})
_COMMUNICATION = ("rendezvous", "collectives", "engine-init", "steps")
_TRAINING = ("engine-init", "steps", "checkpoint")


@dataclasses.dataclass(frozen=True)
class Try:
    """One knob.

    Attributes:
        knob, value: what is changed, and to what.
        cost: what it costs in speed.
        change: returns the plan with the change.
    """

    knob: str
    value: str
    cost: str
    change: Change


def _variable(name: str, value: str) -> Change:
    return lambda plan: dataclasses.replace(plan, env={**plan.env, name: value})


def _configured(plan: SmokePlan, config: dict[str, Any], **job: Any) -> SmokePlan:
    changed = {
        **plan.job, **job, "ds_config": config, "precision": precision_of(config),
        "ops": ops_of(config, plan.device),
    }  # fmt: skip
    return dataclasses.replace(plan, job=changed)


def _micro_batch(plan: SmokePlan) -> SmokePlan:
    config = copy.deepcopy(plan.job["ds_config"])
    passes = plan.job["accumulation"]
    config["train_micro_batch_size_per_gpu"] = 1
    config["gradient_accumulation_steps"] = passes
    config["train_batch_size"] = passes * plan.world
    return _configured(plan, config, micro_batch=1)


def _offload(plan: SmokePlan) -> SmokePlan:
    config = copy.deepcopy(plan.job["ds_config"])
    zero = dict(config.get("zero_optimization") or {})
    zero["stage"] = max(2, zero.get("stage", 0))
    zero["offload_optimizer"] = {"device": "cpu", "pin_memory": False}
    config["zero_optimization"] = zero
    return _configured(plan, config)


def _other_precision(value: str) -> Change:
    return lambda plan: _configured(plan, with_precision(plan.job["ds_config"], value))


def knobs(plan: SmokePlan, failed: SmokeReport, registry: Registry) -> Iterator[Try]:
    """The knobs for the failed phase, the cheapest in speed first."""
    phase = next((phase.name for phase in failed.phases if phase.status == "fail"), "")
    units = [registry.find(cause.condition) for cause in failed.causes]
    if any(u and (u.family in SETTLED or Observation.KILLED in u.condition.names) for u in units):
        return
    if phase in _COMMUNICATION and plan.world > 1:
        if plan.device == "cuda":
            yield Try(
                "NCCL_P2P_DISABLE", "1", "GPUs exchange data through host memory, not directly",
                _variable("NCCL_P2P_DISABLE", "1"),
            )  # fmt: skip
            yield Try(
                "NCCL_SHM_DISABLE", "1", ("GPUs without a direct connection exchange data over "
                    "sockets"),
                _variable("NCCL_SHM_DISABLE", "1"),
            )  # fmt: skip
            yield Try(
                "NCCL_IB_DISABLE", "1", "hosts exchange data over TCP instead of InfiniBand",
                _variable("NCCL_IB_DISABLE", "1"),
            )  # fmt: skip
        name = "NCCL_SOCKET_IFNAME" if plan.device == "cuda" else "GLOO_SOCKET_IFNAME"
        if plan.launch.nodes == 1:
            yield Try(name, "lo", "none on one host", _variable(name, "lo"))
    if phase in _TRAINING:
        yield from _training(plan)


def _training(plan: SmokePlan) -> Iterator[Try]:
    if plan.job["micro_batch"] > 1:
        yield Try("micro-batch", "1", "more passes for the same batch", _micro_batch)
    precision = plan.job["precision"]
    others = ["fp32"] if plan.device == "cpu" else ["bf16", "fp32"]
    for value in others:
        if value != precision:
            cost = "twice the memory, slow matmuls" if value == "fp32" else "none on GPUs from 8.0"
            yield Try("precision", value, cost, _other_precision(value))
    if offload_of(plan.job["ds_config"])[1] == "none":
        yield Try("offload", "optimizer", "each step crosses to the host and back", _offload)
