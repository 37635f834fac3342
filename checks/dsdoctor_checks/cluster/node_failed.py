"""A node of the job failed or was taken out of service.

## Why it matters
The scheduler lost a node: it crashed, was rebooted, or its daemon no longer answers. The ranks on
it end with no output, and the others wait for them.

## What to do
Look at the node's own log (`dmesg`, `journalctl -b -1`, `sinfo -R`, `kubectl describe node`),
have it checked with `dsdoctor check`, and resume from the last checkpoint on other nodes.

## References
- https://slurm.schedmd.com/slurm.conf.html (`SlurmdTimeout`)
- https://kubernetes.io/docs/concepts/architecture/nodes/
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    ClusterNode,
    ClusterNodes,
    Condition,
    Finding,
    Level,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)

CONDITION = Condition(
    "node-failed",
    id="DSD1653",
    scope=Scope.NODE,
    since="0.1",
    transient="another node can replace it",
)

#: States in which a scheduler starts no job on a node: what they mean, and whether the node failed
#: (Slurm 17.11-25.05 src/common/slurm_protocol_defs.c: short and long names; `inval`: the node
#: registered with less than slurm.conf states).
_OUT = {
    "down": ("down", True),
    "fail": ("failed", True),
    "failg": ("failing", True),
    "failing": ("failing", True),
    "error": ("in an error state", True),
    "inval": ("invalid", True),
    "invalid_reg": ("invalid", True),
    "notready": ("not ready", True),
    "drain": ("drained", False),
    "drained": ("drained", False),
    "drng": ("draining", False),
    "draining": ("draining", False),
    "unavailable": ("down or drained", False),  # of `sinfo -R`, which prints no state
}
_ACTION = {
    "slurm": "find the reason on the node (`scontrol show node {node}`, `dmesg`, `dsdoctor check`); "
    "after the fix, return it with `scontrol update NodeName={node} State=RESUME`",
    "kubernetes": "look at the kubelet and the container runtime of the node (`kubectl describe "
    "node {node}`, `journalctl -u kubelet`), and have it checked with `dsdoctor check`",
}
_MOST_NAMES = 8


def _state(node: ClusterNode) -> tuple[str, bool] | None:
    """What is wrong with a node and whether it failed; None if it takes jobs or is planned out."""
    if node.planned:
        return None
    found = [_OUT[word] for word in node.states if word in _OUT]
    worst = max(found, key=lambda each: each[1], default=None)
    if worst is None or not worst[1]:
        return worst if node.responds else ("not responding", True)
    return worst


@check(CONDITION)
def nodes_are_in_service(cluster: ClusterNodes) -> Iterator[Finding]:
    """Reports nodes that the scheduler has taken out of service, one finding for each reason."""
    found = [(row, node, _state(node)) for row, node in enumerate(cluster.nodes)]
    reasons = {node.names: node.reason for _, node, state in found if state and node.reason}
    groups: dict[tuple[str, str, bool, str], list[tuple[int, str]]] = {}
    stated = {
        node.names: state for _, node, state in found if state and node.states != ("unavailable",)
    }
    for row, node, state in found:
        if state is not None:
            known = stated.get(node.names, state) if "unavailable" in node.states else state
            reason = node.reason or reasons.get(node.names, "")
            groups.setdefault((node.scheduler, *known, reason), []).append((row, node.names))
    for (scheduler, word, failed, reason), members in groups.items():
        names = list(dict.fromkeys(name for _, name in members if name))
        which = ", ".join(names[:_MOST_NAMES]) or "a node"
        more = len(names) - _MOST_NAMES
        which += f" and {more} more" if more > 0 else ""
        several = len(names) > 1 or "[" in which  # `gpu[01-02]`
        yield (fail if failed else warn)(
            f"{which} {'are' if several else 'is'} out of service ({word}"
            + (f", reason `{reason}`" if reason else "")
            + "), expected nodes that accept jobs",
            effect="the scheduler starts no job there; a running one may lose its ranks",
            hint=_ACTION[scheduler].format(node=shlex.quote(names[0]) if names else "NODE"),
            nodes=names,
            state=word,
            reason=reason,
            more=max(more, 0),
            rows=[row for row, _ in members[:_MOST_NAMES]],
        )
    if not groups:
        yield ok(nodes=len(cluster.nodes)) if cluster.nodes else skip("no node is listed")


HINT = "resume on other nodes, and have the failed node checked (`sinfo -R`, `dmesg`, `dsdoctor check`)"

SIGNATURES = (
    Signature(
        pattern=r"srun: Prolog failure on node (?P<node>\S+)",
        source="slurm 2.3-25.05 src/srun/libsrun/allocate.c",
        message="the prolog of the site failed on node {node}, so Slurm drains the node",
        hint="find the reason on the node (`scontrol show node {node}`, and slurmd's log), or ask an administrator; submit again with `--exclude={node}`",
        examples=("srun: Prolog failure on node gpu-3",),
        not_examples=("srun: Prolog failure on node ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"CANCELLED AT \S+ DUE TO NODE FAILURE",
        source="slurm 20.02-25.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=(
            "slurmstepd: error: *** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        ),
        not_examples=("CANCELLED AT ONCE, SEE THE LOG, DUE TO NODE FAILURE",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"srun: error: Node failure on \S+",
        source="slurm 20.02-25.05 src/slurmd/slurmstepd, src/common/slurm_protocol_defs.c",
        examples=("srun: error: Node failure on n3",),
        not_examples=("srun: error: Node failure on ",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"has been marked dead because the (?:detector|monitor) has missed too many heartbeats from it",
        source="ray 0.6-2.4 src/ray/gcs/monitor.cc, src/ray/gcs/gcs_server/gcs_node_manager.cc",
        message="Ray lost a node of its cluster",
        examples=(
            "WARNING worker.py:1462 -- The node with node id: 8f205b and ip: 10.128.0.103 has been marked dead because the detector has missed too many heartbeats from it. This can happen when a raylet crashes unexpectedly or has lagging heartbeats.",
            "The node with client ID 8f205b has been marked dead because the monitor has missed too many heartbeats from it.",
        ),
        level=Level.STRONG,
        masks=("rank-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"The actor (?:died|is dead) because its node has died\.",
        source="ray 2.0-2.54 src/ray/gcs/gcs_server/gcs_actor_manager.cc",
        message="Ray lost a node of its cluster, and with it an actor",
        hint="look in `raylet.out` and the kernel log of that node, and restart Ray there; if it was preempted, the cluster's own log says so",
        examples=(
            "The actor died because its node has died. Node Id: 56b97436e67393f15565e024278867700c2bd0ec6ca9e0dac7261fd1",
            "The actor is dead because its node has died. Node Id: 56b97436e67393f15565e024278867700c2bd0ec6ca9e0dac7261fd1",
        ),
        unless=("the actor's node was preempted",),
        level=Level.LIKELY,
        masks=("rank-killed", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"\bJobState=NODE_FAIL\b|^\d[\w.+-]*[\s|].*[\s|]NODE_FAIL[\s|]",
        source="slurm 20.02-25.05 scontrol show job, sacct",
        examples=(
            "   JobState=NODE_FAIL Reason=NodeDown",
            "4711   train  gpu   lab  64  NODE_FAIL   0:0",
            "4711|train|NODE_FAIL|0:0",
        ),
        not_examples=("states such as NODE_FAIL count",),
        level=Level.CERTAIN,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bNodeNotReady\b.{0,80}Node is not ready|Node \S+ status is now: NodeNotReady|\bNodeLost\b",
        source="kubernetes 1.20-1.34: events and pod status",
        examples=(
            "Warning  NodeNotReady  4m  node-controller  Node is not ready",
            "Node gpu-3 status is now: NodeNotReady",
            "reason: NodeLost",
        ),
        not_examples=("Node is not ready for NodeNotReady",),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern="DeletionByTaintManager|TaintManagerEviction",
        source="kubernetes 1.20-1.34: events and pod status; DeletionByTaintManager since 1.25",
        message="Kubernetes ended the pod because of a taint of its node",
        hint="read the taints in `kubectl describe node`: `not-ready` and `unreachable` mean that the node failed; others were set by an administrator or an autoscaler",
        examples=(
            "reason: DeletionByTaintManager",
            "Normal  TaintManagerEviction  2m  taint-eviction-controller  Marking for deletion Pod lab/train-0",
            "9s  Normal  TaintManagerEviction  pod/train-0  Marking for deletion Pod lab/train-0",
        ),
        level=Level.STRONG,
        masks=(
            "host-oom-killed",
            "job-cancelled",
            "rank-killed",
            "nccl-timeout-watchdog",
            "rendezvous-timeout",
        ),
    ),
    Signature(
        pattern=r"^\s*State=[A-Z_+*]*(?:DRAIN|DOWN|FAIL|NOT_RESPONDING)[A-Z_+*]*\s+ThreadsPerCore=",
        source="slurm 17.11-25.05 scontrol show node, src/api/node_info.c",
        message="Slurm took the node out of service",
        examples=(
            "   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
            "   State=DOWN* ThreadsPerCore=2 TmpDisk=0 Weight=1",
            "   State=FAIL ThreadsPerCore=2 TmpDisk=0 Weight=1",
            "   State=IDLE+NOT_RESPONDING ThreadsPerCore=2 TmpDisk=0 Weight=1",
        ),
        not_examples=("   State=MIXED ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"gres/\S+ count reported lower than configured \((?P<found>\d+) < (?P<set>\d+)\)",
        source="slurm 20.02-25.05 src/common/gres.c, src/interfaces/gres.c",
        message="slurmd found {found} of the {set} GPUs that slurm.conf lists",
        examples=(
            "   Reason=gres/gpu count reported lower than configured (0 < 8) [slurm@2024-12-19T11:03:34]",
        ),
        not_examples=("gres/gpu count reported lower than configured (see slurm.conf)",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"^(?:ERROR: +)?nhc: +Health check failed: +(?P<said>.+)",
        source="LBNL Node Health Check 1.4 nhc",
        message="the health check of the node fails: {said}",
        examples=(
            "ERROR:  nhc:  Health check failed:  Check check_nv_gpu_count 2 returned 1",
            "nhc: Health check failed: check_ps_loadavg: Load average too high",
        ),
        not_examples=("what to do when nhc:  Health check failed:  is printed",),
        level=Level.STRONG,
        hint="run the check that failed by hand on the node (`nhc -v`), and have the node checked with "
        "`dsdoctor check`",
    ),
    Signature(
        pattern=r"has not produced any output \(state: NODE_FAIL",
        source="submitit 1.0-1.5 core/core.py: the state that sacct reports",
        examples=(
            "submitit.core.utils.UncompletedJobError: Job 123 (task: 0) with path /x/123_0_result.pkl has not produced any output (state: NODE_FAIL)",
        ),
        level=Level.STRONG,
        masks=("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
)
