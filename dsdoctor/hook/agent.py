"""Watches one node of Kubernetes: runs the health check and reports what it found.

    python3 -m dsdoctor.hook.agent --node gpu-1 --taint dsdoctor/unhealthy

It runs in the container of the DaemonSet in `deploy/`. Each round runs `dsdoctor hook npd` as a
child with a deadline, sets the node's condition, writes an event if the verdict changed, adds or
removes the taint if one is configured, and serves the metrics of the hook to Prometheus. An
inconclusive verdict does not change the taint.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import http.server
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dsdoctor import files, process
from dsdoctor.hook import nodeapi
from dsdoctor.hook.decide import PREFIX
from dsdoctor.model.host_name import is_dns_name
from dsdoctor.model.plain import one_line, shortened

CONDITION = "GPUProblem"
#: After its budget, a hook that its own limits did not end gets this long before it is killed.
_GRACE_SECONDS = 15.0
#: How often an unchanged condition is renewed, as by node-problem-detector.
HEARTBEAT_SECONDS = 300.0
MESSAGE_LENGTH = 1024
#: A scraper that reads slowly must not block a thread for longer.
_SCRAPE_SECONDS = 5.0
#: The NVIDIA container runtime adds this device to a container along with the driver's library.
DEVICE = Path("/dev/nvidiactl")
#: Families that would judge the limits, mounts and environment of the DaemonSet's own container.
IGNORED = ("host", "memory", "storage", "nccl", "torch", "launch", "container")


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of the agent.

    Attributes:
        node: name of this node in Kubernetes.
        folder: where verdicts, counters and metrics are stored.
        interval: seconds between two rounds.
        budget: seconds for one verdict.
        condition: type of the node's condition.
        taint: key of the taint; empty = none is set.
        effect: of the taint.
        events: whether changes of the verdict are written as events.
        port: for `/metrics` and `/healthz`; None = no server.
        ignore: checks that are left out.
        device: if it does not exist, the container has no GPUs and cannot judge the node.
        once: run one round, then exit.
    """

    node: str
    folder: Path
    interval: float = 60.0
    budget: float = 30.0
    condition: str = CONDITION
    taint: str = ""
    effect: str = "NoSchedule"
    events: bool = True
    port: int | None = None
    ignore: tuple[str, ...] = IGNORED
    device: Path = DEVICE
    once: bool = False


def camel(words: str) -> str:
    """A reason in CamelCase, as Kubernetes requires.

    >>> camel("gpu-lost"), camel("status-3"), camel("")
    ('GpuLost', 'Status3', 'Unknown')
    """
    return "".join(word[:1].upper() + word[1:] for word in words.split("-")) or "Unknown"


def condition_for(record: dict[str, Any] | None, *, has_device: bool = True) -> dict[str, str]:
    """Status, reason and message of the node's condition for a verdict of the hook.

    Args:
        record: the verdict file of the hook; None if it wrote none.
        has_device: whether the container runtime gave this container access to the GPUs.

    >>> condition_for({"verdict": "healthy", "gpus": {"0": "GPU-1"}, "reason": "dsdoctor: ok"})
    {'status': 'False', 'reason': 'GPUIsHealthy', 'message': 'no confirmed fault on 1 GPU'}
    """
    if record is None:
        return _unknown("no-verdict", "the health check wrote no verdict")
    verdict, gpus = record.get("verdict"), record.get("gpus") or {}
    blind = _unknown("no-gpu-in-container", "this container sees no GPU; check `runtimeClassName`")
    if not has_device:
        return blind
    message = one_line(str(record.get("reason", ""))).removeprefix(PREFIX).strip()
    if verdict == "faulty":
        rows = [row for row in record.get("findings", ()) if row["status"] == "fail"]
        first: dict[str, Any] = next(iter(rows), {})
        hint = one_line(str(first.get("hint", "")))
        return {
            "status": "True",
            "reason": camel(str(first.get("condition", ""))),
            "message": shortened(f"{message}; hint: {hint}" if hint else message, MESSAGE_LENGTH),
        }
    if verdict != "healthy":
        return _unknown(str(record.get("cause") or "unknown"), message)
    if not gpus:
        return blind
    count = f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}"
    return {
        "status": "False",
        "reason": "GPUIsHealthy",
        "message": f"no confirmed fault on {count}",
    }


def _unknown(cause: str, message: str) -> dict[str, str]:
    return {
        "status": "Unknown",
        "reason": camel(cause),
        "message": shortened(message, MESSAGE_LENGTH),
    }


def metrics_for(metrics: str, status: str) -> str:
    """The hook's metrics, which must not contradict the node's condition.

    A hook in a container without GPUs judges that container and calls it healthy, or faulty; one
    that wrote no verdict leaves the metrics of an earlier round.

    >>> metrics_for('dsdoctor_hook_healthy{hook="npd"} 1', "Unknown")
    'dsdoctor_hook_healthy{hook="npd"} -1'
    """
    if status != "Unknown":
        return metrics
    metrics = re.sub(r"(?m)^(dsdoctor_hook_healthy\{.*\}) .*$", r"\1 -1", metrics)
    return re.sub(r"(?m)^dsdoctor_condition_failed\{.*\n", "", metrics)


class Agent:
    """The rounds of one node.

    Attributes:
        options: its options.
        metrics: the text of `/metrics`, from the last round.
        last: when the last round ended, on the monotonic clock.
    """

    def __init__(
        self, options: Options, api: nodeapi.Api, check: Callable[[], dict[str, Any] | None]
    ) -> None:
        self.options = options
        self.api = api
        self.check = check
        self.metrics = ""
        self.last = time.monotonic()
        self._known: dict[str, str] | None = None
        self._renewed = 0.0

    def round(self) -> bool:
        """Judges once and reports the result; False if the API did not accept it."""
        found = condition_for(self.check(), has_device=self.options.device.exists())
        with contextlib.suppress(OSError):
            written = (self.options.folder / "metrics.prom").read_text(encoding="utf-8")
            self.metrics = metrics_for(written, found["status"])
        say(f"verdict status={found['status']} reason={found['reason']} {found['message']}")
        accepted = nodeapi.attempt(lambda: self._report(found), lambda text: say(f"api {text}"))
        self.last = time.monotonic()
        return accepted

    def _report(self, found: dict[str, str]) -> None:
        options = self.options
        if self._known is None:
            self._known = nodeapi.condition_of(
                nodeapi.node(self.api, options.node), options.condition
            )
        known, now = self._known, rfc3339()
        same = all(known.get(key) == found[key] for key in ("status", "reason", "message"))
        changed = known.get("status") != found["status"]
        if not same or time.monotonic() - self._renewed >= HEARTBEAT_SECONDS:
            fresh = {"type": options.condition, **found, "lastHeartbeatTime": now}
            fresh |= {"lastTransitionTime": now} if changed else {}
            nodeapi.set_condition(self.api, options.node, fresh)
            self._known, self._renewed = {**known, **found}, time.monotonic()
        if options.taint and found["status"] != "Unknown":
            taint = {"key": options.taint, "effect": options.effect}
            nodeapi.set_taint(self.api, options.node, taint, present=found["status"] == "True")
        # a node that starts healthy is not reported
        news = changed and not (found["status"] == "False" and not known)
        if options.events and (news or known.get("reason", found["reason"]) != found["reason"]):
            kind = "Normal" if found["status"] == "False" else "Warning"
            event = {"type": kind, "reason": found["reason"], "message": found["message"]}
            nodeapi.write_event(self.api, options.node, event, now)

    def alive(self) -> bool:
        """Whether the last round ended recently enough."""
        late = 3 * self.options.interval + self.options.budget + _GRACE_SECONDS
        return time.monotonic() - self.last < late


def rfc3339() -> str:
    """The current time, as Kubernetes writes times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def say(text: str) -> None:
    """Prints a line for `kubectl logs`."""
    sys.stdout.write(f"dsdoctor-agent {one_line(text)}\n")
    sys.stdout.flush()


def run_hook(options: Options) -> dict[str, Any] | None:
    """Runs `dsdoctor hook npd` and returns its verdict; None if it wrote none."""
    verdict = options.folder / "verdict.json"
    argv = [*process.own_module("dsdoctor"), "hook", "npd", "--max-age", "0"]
    argv += ["--budget", f"{options.budget:g}", "--run-folder", str(options.folder / "run")]
    argv += ["--json", str(verdict), "--textfile", str(options.folder / "metrics.prom")]
    for name in options.ignore:
        argv += ["--ignore", name]
    verdict.unlink(missing_ok=True)
    env = {**os.environ, "NODE_NAME": options.node}
    done = process.run(argv, timeout=options.budget + _GRACE_SECONDS, env=env)
    try:
        found = json.loads(verdict.read_bytes())
    except (OSError, ValueError):
        say(f"check status={done.returncode} {done.error_text}")
        return None
    return found if isinstance(found, dict) else None


def serve(agent: Agent, port: int) -> http.server.ThreadingHTTPServer:
    """Serves `/metrics` and `/healthz` from background threads.

    Raises:
        OSError: the port is in use.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = _SCRAPE_SECONDS

        def do_GET(self) -> None:  # the name that http.server calls
            text, status = "", 404
            if self.path == "/metrics":
                text, status = agent.metrics, 200
            elif self.path == "/healthz":
                status = 200 if agent.alive() else 503
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Does not log scrapes."""

    server = http.server.ThreadingHTTPServer(("", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 86400:  # noqa: PLR2004  # a second to a day
        raise argparse.ArgumentTypeError(f"`{text}`: expected 1 to 86400 s")
    return value


def parsed(argv: Sequence[str] | None) -> tuple[Options, str]:
    """The options, and the URL of the API server, which may be empty; exits with 2 on misuse."""
    parser = argparse.ArgumentParser("python3 -m dsdoctor.hook.agent", allow_abbrev=False)
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""))
    parser.add_argument("--api", default="", help="URL of the API server [the pod's]")
    parser.add_argument("--folder", type=Path, default=Path("/run/dsdoctor"))
    parser.add_argument("--interval", type=_seconds, default=60.0)
    parser.add_argument("--budget", type=_seconds, default=30.0)
    parser.add_argument("--condition", default=CONDITION)
    parser.add_argument(
        "--taint",
        default=os.environ.get("DSDOCTOR_TAINT", ""),
        help="key of the taint of a faulty node [none]",
    )
    parser.add_argument(
        "--effect", default="NoSchedule", choices=["NoSchedule", "PreferNoSchedule"]
    )
    parser.add_argument("--no-events", dest="events", action="store_false")
    parser.add_argument("--port", type=int)
    parser.add_argument("--ignore", action="append", help="family or condition")
    parser.add_argument("--device", type=Path, default=DEVICE)
    parser.add_argument("--once", action="store_true")
    given = vars(parser.parse_args(argv))
    if not is_dns_name(given["node"]):
        parser.error(
            f"`--node {given['node']}`: expected the node's name, or `NODE_NAME` from "
            "`spec.nodeName`"
        )
    if given["taint"] and not nodeapi.is_taint_key(given["taint"]):
        parser.error(f"`--taint {given['taint']}`: expected a key such as `dsdoctor/unhealthy`")
    if not given["condition"].isalnum():
        parser.error(f"`--condition {given['condition']}`: expected a word such as `{CONDITION}`")
    url = given.pop("api")
    given["ignore"] = tuple(given["ignore"] or IGNORED)
    return Options(**given), url


def main(argv: Sequence[str] | None = None) -> int:
    """Runs rounds until a signal arrives."""
    options, url = parsed(argv)
    try:
        api = nodeapi.Api(url) if url else nodeapi.Api.in_cluster(os.environ)
        files.make_folder(options.folder / "run", mode=0o700)
    except (nodeapi.ApiError, OSError) as error:
        sys.stderr.write(f"dsdoctor-agent: {error}\n")
        return 2
    agent = Agent(options, api, lambda: run_hook(options))
    if options.once:
        return 0 if agent.round() else 1
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _stop(stopped))
    if options.port is not None:
        try:
            serve(agent, options.port)
        except OSError as error:
            sys.stderr.write(f"dsdoctor-agent: `--port {options.port}`: {error.strerror}\n")
            return 2
    while not stopped.is_set():
        begun = time.monotonic()
        agent.round()
        stopped.wait(max(1.0, options.interval - (time.monotonic() - begun)))
    return 0


def _stop(stopped: threading.Event) -> None:
    stopped.set()
    process.kill_all()  # a check that is running


if __name__ == "__main__":
    sys.exit(main())
