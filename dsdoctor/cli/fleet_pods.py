"""The pods that `fleet check --kubernetes` examines: existing ones, or those of `--pod-image`."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import Any

from dsdoctor.cli import common
from dsdoctor.fleet import own_pod
from dsdoctor.fleet.fanout import Order
from dsdoctor.fleet.kubernetes import Target
from dsdoctor.model.snapshot import Snapshot


def _end_by_exception() -> None:
    """SIGTERM and SIGHUP end the command as SIGINT does, so that its pods are deleted."""

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # deleting takes a moment
        sys.exit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def target(places: dict[str, Any], stack: contextlib.ExitStack) -> Target:
    """Existing pods, or new ones that are deleted when the stack is closed."""
    from dsdoctor.fleet import kubernetes  # noqa: PLC0415  # few ask for it

    if places["pod_image"] is None:
        asked = kubernetes.target(places["selector"], places["namespace"], places["container"])
        return kubernetes.find(asked)
    from dsdoctor.fleet import pods  # noqa: PLC0415  # only for `--pod-image`

    asked = kubernetes.target(places["selector"] or pods.GPU_NODES, places["namespace"], None)
    name = places["runtime_class"] or pods.RUNTIME_CLASS
    wanted = pods.Wanted(
        places["pod_image"],
        asked.selector,
        asked.namespace,
        "" if name == "none" else name,
        places["remote_python"],
        seconds=max(300.0, 4 * places["timeout"]),
        live=places["live"],
    )

    _end_by_exception()
    return stack.enter_context(pods.started(wanted, places["timeout"], common.warn))


def leave_node(snapshot: Snapshot, order: Order, places: dict[str, Any]) -> None:
    """Removes what is about a pod of dsdoctor's own, not about its node."""
    own = order.target.own if order.target is not None else None
    if own is not None:
        own_pod.leave_node(snapshot, own, is_named=places["python"] is not None)
