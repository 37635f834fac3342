"""The collector in pods, by `kubectl exec`: in the agent's DaemonSet or in a job's pods.

kubectl is used as installed, with the context and the rights of the caller. Its messages are those
of kubectl 1.20 to 1.34.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.fleet import frames
from dsdoctor.fleet.fanout import Answer, OnAnswer, Order, recording, why
from dsdoctor.fleet.own_pod import OwnPod
from dsdoctor.model.host_name import is_dns_name
from dsdoctor.model.plain import one_line
from dsdoctor.model.redact import mask

#: The agent's namespace in the chart and the kustomize folder of `deploy/`.
NAMESPACE = "dsdoctor"
SELECTOR = "app.kubernetes.io/name=dsdoctor"
#: Each kubectl process needs about 50 MiB.
_AT_ONCE = 16
_LIST_SECONDS = 30.0
#: Namespaces and containers (RFC 1123 label).
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SELECTOR = re.compile(r"[A-Za-z0-9!(][A-Za-z0-9 ._/=!(),-]{0,1000}")
_RIGHTS = "expected the rights `list` on `pods` and `create` on `pods/exec`"


@dataclasses.dataclass(frozen=True)
class Pod:
    """A pod that can run the collector, or why it cannot.

    Attributes:
        name: of the pod.
        node: of the pod; empty if it is not scheduled.
        problem: why no command can run in it; empty if one can.
    """

    name: str
    node: str
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class Target:
    """The pods in which the collector runs.

    Attributes:
        selector: of labels.
        namespace: None = the namespace of kubectl's context.
        container: None = the pod's default.
        pods: name in reports to the pod.
        own: the kind of pod if it is one of dsdoctor's own, not of a job.
    """

    selector: str
    namespace: str | None = None
    container: str | None = None
    own: OwnPod | None = None
    pods: Mapping[str, Pod] = dataclasses.field(default_factory=dict)

    @property
    def place(self) -> list[str]:
        """The option of kubectl that sets the namespace; empty = none."""
        return [] if self.namespace is None else [f"--namespace={self.namespace}"]


def target(selector: str | None, namespace: str | None, container: str | None) -> Target:
    """The pods selected by the options; without options the agent's pods.

    Raises:
        UsageError: a value is not valid.
    """
    if selector is None:
        namespace = namespace or NAMESPACE
        selector = SELECTOR
    if not _SELECTOR.fullmatch(selector):
        raise UsageError(
            f"`--selector {one_line(selector)[:80]}` is not a selector; expected, for "
            "example, `app=train`"
        )
    for option, word in (("--namespace", namespace), ("--container", container)):
        if word is not None and not _LABEL.fullmatch(word):
            raise UsageError(
                f"`{option} {one_line(word)[:80]}`: expected lowercase letters, digits and `-`"
            )
    own = OwnPod.AGENT if selector == SELECTOR else None
    return Target(selector, namespace, container, own)


def find(wanted: Target) -> Target:
    """The same, with the pods that exist.

    Raises:
        UsageError: kubectl or the cluster does not answer, or no pod matches.
    """
    pods = listed(wanted)
    if not pods:
        where = f"namespace `{wanted.namespace}`" if wanted.namespace else "the context's namespace"
        raise UsageError(
            f"no pod matches `--selector {wanted.selector}` in {where}; see `kubectl get pods "
            "--all-namespaces --show-labels`, or pass `--pod-image` to start one on each node"
        )
    nodes = [pod.node for pod in pods]
    # a node's name is more useful, if there is one pod on each
    by_node = all(nodes) and len(set(nodes)) == len(nodes)
    return dataclasses.replace(
        wanted, pods={(pod.node if by_node else pod.name): pod for pod in pods}
    )


def listed(wanted: Target) -> list[Pod]:
    """The pods of a selector that have not ended.

    Raises:
        UsageError: kubectl or the cluster does not answer.
    """
    argv = ["kubectl", "get", "pods", *wanted.place, f"--selector={wanted.selector}"]
    argv += ["--output=json", f"--request-timeout={_LIST_SECONDS:g}s"]
    try:
        done = process.run(argv, timeout=_LIST_SECONDS + 5)
    except OSError as error:
        raise UsageError(
            f"`kubectl` cannot be run ({error.strerror}); install it, or save reports from the "
            "pods (`dsdoctor fleet bundle`) and pass `--from`"
        ) from None
    if not done.ok:
        raise UsageError(refusal(done, "kubectl get pods", "may not list pods", _RIGHTS))
    try:
        items = json.loads(done.stdout)["items"]
        return [pod for pod in (_pod(item) for item in items) if pod is not None]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            "`kubectl get pods --output=json` did not print a list of pods; "
            "run it to see what it prints"
        ) from None


def refusal(done: process.Result, command: str, forbidden: str, rights: str) -> str:
    """Why kubectl failed, in one line.

    Args:
        done: how it ended.
        command: the command, for the message.
        forbidden: what the user may not do, for the message if the cluster reports that.
        rights: the expected rights.
    """
    if done.timed_out:
        return f"`{command}` did not answer in time; try `kubectl version`"
    lines = [one_line(line) for line in done.error_text.splitlines() if line.strip()]
    # log lines of its libraries (klog: `E1122 09:00:00.1`) come before the message
    said = (
        [line for line in lines if not re.match(r"[EWIF]\d{4} ", line)] or lines or ["no message"]
    )
    line = mask(said[-1])[:300]
    if "(Forbidden)" in line or "forbidden" in line:
        return f"`kubectl` {forbidden}: {line}; {rights}"
    if "(Unauthorized)" in line or "must be logged in" in line:
        return f"`kubectl` is not logged in: {line}; log in to the cluster first"
    return f"`{command}` failed: {line}; expected a cluster that answers"


def _pod(item: Mapping[str, Any]) -> Pod | None:
    """A pod of the list; None for one that has ended or is about to."""
    meta, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    phase = str(status.get("phase", "Unknown"))
    name, node = str(meta["name"]), str(spec.get("nodeName") or "")
    if meta.get("deletionTimestamp") or phase in ("Succeeded", "Failed"):
        return None
    if not is_dns_name(name) or (node and not is_dns_name(node)):
        return None  # the API server reports none of these
    return Pod(name, node, "" if phase == "Running" else f"pod {name} is {_why_not(phase, status)}")


def _why_not(phase: str, status: Mapping[str, Any]) -> str:
    """`Pending` and what it waits for.

    >>> _why_not("Pending", {"containerStatuses": [
    ...     {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]})
    'Pending (ImagePullBackOff: no such image)'
    """
    rows = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waits = [row.get("state", {}).get("waiting") for row in rows]
    waits += [
        row
        for row in status.get("conditions") or ()
        if row.get("type") == "PodScheduled" and row.get("status") == "False"
    ]
    for wait in waits:
        if wait and wait.get("reason") not in (None, "PodInitializing"):
            words = [str(wait["reason"]), str(wait.get("message") or "")]
            return f"{phase} ({mask(one_line(': '.join(w for w in words if w)))[:160]})"
    return phase


def collect(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    """Recordings from the pods of `order.target`.

    Raises:
        UsageError: kubectl may not start commands in any of them.
    """
    wanted = order.target
    assert wanted is not None  # noqa: S101  # the command sets it together with the engine
    answers: dict[str, Answer] = {}
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = {pool.submit(_ask, order, wanted, pod): name for name, pod in wanted.pods.items()}
        try:
            for done in concurrent.futures.as_completed(asked):
                answers[asked[done]] = done.result()
                if on_answer is not None:
                    on_answer(asked[done])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.kill_all()
            raise
    reasons = [str(reason) for _, reason, _ in answers.values()]
    forbidden = [text for text in reasons if "pods/exec" in text and "forbidden" in text]
    if forbidden and len(forbidden) == len(answers):
        raise UsageError(f"`kubectl` may not run commands in pods: {forbidden[0]}; {_RIGHTS}")
    return answers


def _ask(order: Order, wanted: Target, pod: Pod) -> Answer:
    if pod.problem:
        return None, pod.problem, time.time()
    argv = ["kubectl", "exec", *wanted.place, "--stdin"]
    argv += [] if wanted.container is None else [f"--container={wanted.container}"]
    argv += [pod.name, "--", order.python, "-", *order.arguments]
    printed = frames.Kept()
    try:
        done = process.run(
            argv, timeout=order.timeout, stdin=order.collector.encode(), on_stdout=printed.take
        )
    except OSError as error:
        raise UsageError(f"`kubectl` cannot be run ({error.strerror}); install it") from None
    document, reason = recording(functools.partial(frames.document, printed.lines()))
    if document is None and reason is None:
        reason = _reason(done, order)
    return document, reason, time.time()


#: What kubectl prints about the exit status of the command that it ran.
_ENDED = re.compile(r"command terminated with (?:non-zero exit code|exit code (\d+)).*")
#: What the container runtime prints if the program is not in the image.
_ABSENT = re.compile(
    r"executable file not found|no such file or directory: unknown|stat \S+: no such"
)


def _reason(done: process.Result, order: Order) -> str:
    """Why a pod sent no recording, from kubectl's messages."""
    if done.timed_out:
        return f"no answer within {order.timeout:g} s"
    lines = [one_line(line) for line in done.error_text.splitlines() if line.strip()]
    ended = next((found for line in lines if (found := _ENDED.fullmatch(line))), None)
    own = [
        line for line in lines if not _ENDED.fullmatch(line) and not line.startswith("Defaulted")
    ]
    if any(_ABSENT.search(line) for line in own):
        return why(127, "\n".join(own).encode(), order)
    if ended is not None and ended[1]:
        return why(int(ended[1]), "\n".join(own).encode(), order)
    return mask(own[-1])[:300] if own else f"exit status {done.returncode}"
