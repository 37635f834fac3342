"""Pods that are dsdoctor's own: what their container has says nothing about a job on the node."""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.fleet.replay import FleetNode
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.probes import patient, torch_live


class OwnPod(enum.Enum):
    """Kinds of dsdoctor's own pods."""

    #: Of the DaemonSet, whose image contains dsdoctor.
    AGENT = "the agent's pod"
    #: Started for one check (`--pod-image`).
    CHECK = "a pod that exists for this check"


#: Limits, `/dev/shm` and variables, which a job's pod gets from its own manifest.
_OF_THE_CONTAINER: tuple[type[Fact], ...] = (Resources, Environment)
_OF_THE_IMAGE: tuple[type[Fact], ...] = (*patient.STATIC_FACTS, *torch_live.LIVE_FACTS)


def leave_node(snapshot: Snapshot, pod: OwnPod, *, is_named: bool) -> None:
    """Removes the facts that are not about the node.

    Args:
        snapshot: of the pod; it is changed.
        pod: the kind of pod.
        is_named: the user named the environment to examine. Otherwise an image without torch is
            not that of a job.
    """
    torch = snapshot.get(TorchBuild)
    is_of_a_job = is_named or (isinstance(torch, TorchBuild) and torch.version is not None)
    resources, node = snapshot.get(Resources), snapshot.get(FleetNode)
    if isinstance(resources, Resources) and isinstance(node, FleetNode):
        found = msgspec.structs.replace(
            node,
            cpus_logical=resources.cpus_logical,
            memory_total_bytes=resources.memory_total_bytes,
        )
        snapshot.put(found)
    missing = Missing(why=Why.NOT_ASKED, detail=f"collected in {pod.value}, not in a job's")
    for kind in _OF_THE_CONTAINER if is_of_a_job else _OF_THE_CONTAINER + _OF_THE_IMAGE:
        snapshot.facts.pop(kind.key(), None)
        snapshot.lack(kind, missing)
