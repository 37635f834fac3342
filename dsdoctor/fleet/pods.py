"""Pods for one check, if no agent runs: one on each node, removed after the check.

Each is the pod of a Job, so that the cluster itself removes it if dsdoctor cannot. The Job ends
after its deadline, and is deleted with its pod a minute later (`ttlSecondsAfterFinished`, stable
since Kubernetes 1.23). It has the rights of the policy `restricted` and no token. It takes no GPU
from a job: the runtime class mounts the driver's library, as for the agent (deploy/).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.fleet import kubernetes
from dsdoctor.fleet.kubernetes import Pod, Target
from dsdoctor.fleet.own_pod import OwnPod
from dsdoctor.model.plain import one_line
from dsdoctor.model.redact import mask

#: Set by NVIDIA's GPU feature discovery.
GPU_NODES = "nvidia.com/gpu.present=true"
RUNTIME_CLASS = "nvidia"
#: The label of one check's Jobs and pods; its value is the check's number.
LABEL = "dsdoctor/check"
_CREATE_SECONDS = 60.0
#: torch with the CUDA contexts of eight GPUs.
_LIVE_MEMORY = "16Gi"
#: kubectl creates the jobs one after another.
_EACH_SECONDS = 0.2
_POLL = 0.5
#: How the problem of a pod ends whose containers wait for something that only an event names.
_NO_REASON = "(ContainerCreating)"
#: How long a Job and its pod stay after they have ended, unless they are deleted.
_TTL_SECONDS = 60
_RIGHTS = (
    "expected the rights `list` on `nodes` and `pods`, `create` on `pods/exec`, and `create`, "
    "`list` and `delete` on `jobs`"
)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which pods to start.

    Attributes:
        image: with Python 3.8 or newer.
        nodes: label selector of the nodes.
        namespace: None = the namespace of kubectl's context.
        runtime_class: the class that mounts the driver's library; empty = none.
        python: interpreter in the image.
        seconds: their maximum lifetime.
        live: torch is started in them.
        number: of this check.
    """

    image: str
    nodes: str = GPU_NODES
    namespace: str | None = None
    runtime_class: str = RUNTIME_CLASS
    python: str = "python3"
    seconds: float = 600.0
    live: bool = False
    number: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex[:10])

    @property
    def target(self) -> Target:
        """These pods, for `kubernetes.collect`."""
        return Target(f"{LABEL}={self.number}", self.namespace, "check", OwnPod.CHECK)


def manifest(wanted: Wanted, nodes: list[str]) -> dict[str, Any]:
    """A Job for each node, in the format of `kubectl create`."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [_job(wanted, node, number) for number, node in enumerate(nodes)],
    }


def _job(wanted: Wanted, node: str, number: int) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "dsdoctor-check", LABEL: wanted.number}
    restricted = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    spec: dict[str, Any] = {
        "nodeName": node,  # bypasses the scheduler: a cordoned node is checked too
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "check",
                "image": wanted.image,
                # it only has to run until `kubectl exec`
                "command": [wanted.python, "-c", f"import time; time.sleep({wanted.seconds:.0f})"],
                "env": [
                    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                    # `compute` adds libcuda, which torch needs
                    {
                        "name": "NVIDIA_DRIVER_CAPABILITIES",
                        "value": "compute,utility" if wanted.live else "utility",
                    },
                ],
                "resources": {
                    "requests": {"cpu": "20m", "memory": "64Mi"},
                    "limits": {"memory": _LIVE_MEMORY if wanted.live else "512Mi"},
                },
                "securityContext": restricted,
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }
    if wanted.runtime_class:
        spec["runtimeClassName"] = wanted.runtime_class
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"dsdoctor-check-{wanted.number}-{number}", "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(wanted.seconds),
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@contextlib.contextmanager
def started(wanted: Wanted, patience: float, report: Callable[[str], None]) -> Iterator[Target]:
    """The pods, one on each node, while the context is open.

    Args:
        wanted: the pods to start.
        patience: seconds until they must run.
        report: called with one line if they could not be deleted.

    Raises:
        UsageError: kubectl or the cluster does not answer or rejects it, or no node matches.
    """
    nodes = _nodes(wanted)
    text = json.dumps(manifest(wanted, nodes)).encode()
    try:
        words = ["create", "--filename=-", *wanted.target.place]
        _kubectl(words, text, "may not create jobs", _CREATE_SECONDS + _EACH_SECONDS * len(nodes))
        yield dataclasses.replace(wanted.target, pods=_running(wanted, nodes, patience))
    finally:
        problem = _delete(wanted)
        if problem:
            report(problem)


def _nodes(wanted: Wanted) -> list[str]:
    out = _kubectl(
        ["get", "nodes", f"--selector={wanted.nodes}", "--output=json"], None, "may not list nodes"
    )
    try:
        found = [str(item["metadata"]["name"]) for item in json.loads(out)["items"]]
    except (ValueError, KeyError, TypeError):
        raise UsageError("`kubectl get nodes --output=json` did not print a list") from None
    if not found:
        raise UsageError(
            f"no node matches `--selector {wanted.nodes}`; see `kubectl get nodes --show-labels`"
        )
    return sorted(found)


def _running(wanted: Wanted, nodes: list[str], patience: float) -> dict[str, Pod]:
    """Node to its pod, once all of them run or the time is up."""
    end = time.monotonic() + patience
    while True:
        pods = {pod.node: pod for pod in kubernetes.listed(wanted.target)}
        ready = all(node in pods and not pods[node].problem for node in nodes)
        if ready or time.monotonic() >= end:
            none = f"no pod ran on it within {patience:g} s"
            found = {node: pods.get(node) or Pod("", node, none) for node in nodes}
            return found if ready else _with_events(wanted, found)
        time.sleep(_POLL)


def _with_events(wanted: Wanted, pods: dict[str, Pod]) -> dict[str, Pod]:
    """The same, with the last warning about each pod that waits without a reason of its own.

    The kubelet reports a sandbox or a volume that it cannot create as an event only. The events
    are left out if they cannot be listed, which needs a right that the check does not require.
    """
    if not any(pod.problem.endswith(_NO_REASON) for pod in pods.values()):
        return pods
    words = ["get", "events", *wanted.target.place, "--output=json"]
    words += ["--field-selector=involvedObject.kind=Pod,type=Warning"]
    told: dict[str, str] = {}
    with contextlib.suppress(UsageError, ValueError, KeyError, TypeError):
        for item in json.loads(_kubectl(words, None, "may not list events"))["items"]:
            told[str(item["involvedObject"]["name"])] = one_line(str(item["message"]))
    return {
        node: dataclasses.replace(pod, problem=f"{pod.problem}: {mask(told[pod.name])[:300]}")
        if pod.problem.endswith(_NO_REASON) and pod.name in told
        else pod
        for node, pod in pods.items()
    }


def _delete(wanted: Wanted) -> str:
    """Deletes the Jobs with their pods; the line for the user if that was not possible."""
    argv = ["kubectl", "delete", "jobs", *wanted.target.place]
    argv += [f"--selector={LABEL}={wanted.number}", "--ignore-not-found", "--wait=false"]
    try:
        done = process.run(argv, timeout=_CREATE_SECONDS)
    except OSError:
        return ""  # kubectl is missing, so nothing was created
    if done.ok:
        return ""
    return (
        f"the jobs of this check could not be deleted ({one_line(done.error_text)[-200:]}); they "
        f"end on their own within {wanted.seconds + _TTL_SECONDS:.0f} s, or run `{' '.join(argv)}`"
    )


def _kubectl(
    words: list[str], stdin: bytes | None, refused: str, seconds: float = _CREATE_SECONDS
) -> str:
    try:
        done = process.run(["kubectl", *words], timeout=seconds, stdin=stdin)
    except OSError as error:
        raise UsageError(f"`kubectl` cannot be run ({error.strerror}); install it") from None
    if not done.ok:
        raise UsageError(
            kubernetes.refusal(done, f"kubectl {' '.join(words[:2])}", refused, _RIGHTS)
        )
    return done.text
