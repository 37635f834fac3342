"""The pod was evicted from its node.

## Why it matters
The kubelet evicts pods when its node runs short of memory, disk or process ids, and a drain
evicts all of them. The ranks of the pod end with SIGTERM.

## What to do
Read `kubectl describe pod` for the resource that ran short, set requests that match what the job
uses, write to a volume instead of the container's own layer, and resume from the last checkpoint.

## References
- https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("pod-evicted", id="DSD1655", scope=Scope.NODE, since="0.1")

HINT = "read `kubectl describe pod` for the resource that ran short, and raise the pod's requests for it"

SIGNATURES = (
    Signature(
        pattern=r"\b[Rr]eason: +Evicted\b|\bEvicted +\S+ +(?:\(x\d+ over \S+\) +)?kubelet\b|\bEvicted +pod/\S+ +The node ",
        source="kubernetes 1.20-1.34 pkg/kubelet, pkg/scheduler: events and pod status",
        examples=(
            "Reason:       Evicted",
            "  reason: Evicted",
            "Warning  Evicted  2m  kubelet  The node was low on resource: memory.",
            "Warning  Evicted  2m  (x3 over 5m)  kubelet  The node had condition",
            "2m   Warning   Evicted   pod/worker-1   The node had condition: [DiskPressure].",
        ),
        not_examples=("Reason:       EvictedByNobody",),
        level=Level.STRONG,
        masks=("job-cancelled", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"^(?:[a-z0-9.-]{1,63} +)?[a-z0-9.-]{1,253} +\d{1,3}/\d{1,3} +Evicted +\d",
        source="kubernetes 1.8-1.34 pkg/printers/internalversion/printers.go: kubectl get pods",
        examples=(
            "train-0   0/1   Evicted   0   15m",
            "lab   train-0   0/1   Evicted   0   15m",
        ),
        not_examples=("train-0 0/1 was Evicted 0 times",),
        level=Level.STRONG,
        masks=("job-cancelled", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"EvictionByEvictionAPI|TerminationByKubelet|evicting pod \S+/\S+",
        source="kubernetes 1.25-1.34: reasons of the pod condition DisruptionTarget; kubectl drain",
        examples=(
            "reason: EvictionByEvictionAPI",
            "reason: TerminationByKubelet",
            "evicting pod lab/train-0",
        ),
        not_examples=("evicting pod train",),
        level=Level.STRONG,
        masks=("job-cancelled", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout"),
    ),
)
