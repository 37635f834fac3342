"""Has the collector run on many nodes, by an engine that exists: ClusterShell, srun or pdsh."""

from __future__ import annotations

import base64
import dataclasses
import importlib
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.fleet import frames
from dsdoctor.fleet.names import fold

#: Connecting, besides what the collector itself may take.
CONNECT_SECONDS = 10.0
FANOUT = 64

Answer = tuple[dict[str, Any] | None, str | None, float]
"""A node's recording, or why there is none, and when it came."""
Told = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Order:
    """What to run where.

    Attributes:
        nodes: names.
        collector: its text.
        arguments: of the collector.
        python: interpreter on the nodes.
        timeout: seconds for one node, connecting included.
        ssh_options: words for ssh.
        topology: file of ClusterShell's tree mode.
        engine: `clustershell`, `srun` or `pdsh`.
    """

    nodes: Sequence[str]
    collector: str
    arguments: Sequence[str] = ()
    python: str = "python3"
    timeout: float = 60.0
    ssh_options: str = ""
    topology: str | None = None
    engine: str = "clustershell"


def collect(order: Order, told: Told | None = None) -> dict[str, Answer]:
    """Recordings of all nodes; one that does not answer has a reason instead.

    Raises:
        UsageError: the engine is not installed, or starts nothing anywhere.
    """
    engines: Mapping[str, Callable[[Order, Told | None], dict[str, Answer]]] = {
        "clustershell": _clustershell,
        "srun": _srun,
        "pdsh": _pdsh,
    }
    answers = engines[order.engine](order, told)
    for node in order.nodes:
        answers.setdefault(node, (None, f"no answer within {order.timeout:g} s", time.time()))
    return {node: answers[node] for node in order.nodes}


def _quoted(words: Iterable[str]) -> str:
    import shlex  # noqa: PLC0415  # a remote shell reads it, ours does not

    return shlex.join(words)


def _why(status: int | None, error: bytes, order: Order) -> str:
    """Why a node sent no recording, from ssh's or the interpreter's words."""
    said = error.decode("utf-8", "replace").strip().splitlines()
    last = said[-1].strip()[:200] if said else ""
    if status == 127 or "not found" in last or "No such file" in last:  # noqa: PLR2004
        return f"`{order.python}` is not there; expected a Python of 3.8 or newer ({last})"
    if "SyntaxError" in last or "future feature" in last:
        return f"`{order.python}` is older than 3.8 ({last})"
    if status is None:
        return f"no answer within {order.timeout:g} s"
    return f"exit status {status}" + (f": {last}" if last else "")


def _clustershell(order: Order, told: Told | None) -> dict[str, Answer]:
    try:
        task_module = importlib.import_module("ClusterShell.Task")
        event_module = importlib.import_module("ClusterShell.Event")
    except ImportError:
        raise UsageError(
            "ClusterShell is not installed, which the fan-out over ssh needs; "
            "`pip install 'dsdoctor[fleet]'`, or give `--engine srun` or `--engine pdsh`"
        ) from None
    if shutil.which("ssh") is None:
        raise UsageError(
            "`ssh` is not on PATH, which the fan-out needs; install `openssh-client`, "
            "or give `--engine srun`"
        )
    answers: dict[str, Answer] = {}
    output: dict[str, list[bytes]] = {}
    errors: dict[str, list[bytes]] = {}

    class Listener(event_module.EventHandler):  # type: ignore[misc, name-defined]
        """Keeps what nodes print, and notes when they end."""

        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
            kept = output if sname == worker.SNAME_STDOUT else errors
            kept.setdefault(str(node), []).append(bytes(msg))

        def ev_hup(self, worker: Any, node: str, rc: int) -> None:  # noqa: ARG002
            _settle(str(node), rc)

        def ev_close(self, worker: Any, timedout: bool) -> None:
            if timedout:
                for node in worker.iter_keys_timeout():
                    _settle(str(node), None)

    def _settle(node: str, status: int | None) -> None:
        now = time.time()
        documents = frames.decode(b"\n".join(output.pop(node, ())))
        document = next(iter(documents.values()), None)
        words = b"\n".join(errors.pop(node, ()))
        reason = None if document is not None else _why(status, words, order)
        answers[node] = (document, reason, now)
        if told is not None:
            told(node)

    task = task_module.task_self()
    task.set_info("fanout", FANOUT)
    task.set_info("connect_timeout", min(CONNECT_SECONDS, order.timeout))
    task.set_info("command_timeout", order.timeout)
    task.set_default("stderr", True)
    task.set_default("stdout_msgtree", False)
    task.set_default("stderr_msgtree", False)
    if order.ssh_options:
        task.set_info("ssh_options", order.ssh_options)
    if order.topology is not None:
        try:
            task.load_topology(order.topology)
        except importlib.import_module("ClusterShell.Topology").TopologyError as error:
            raise UsageError(
                f"`--topology {order.topology}` cannot be used: {error}; expected ClusterShell's "
                "topology.conf, with lines such as `login: gpu[001-512]` below `[routes]`"
            ) from None
    worker = task.shell(
        _quoted([order.python, "-", *order.arguments]),
        nodes=fold(order.nodes),
        handler=Listener(),
        timeout=order.timeout,
        stdin=True,
    )
    worker.write(order.collector.encode())
    worker.set_write_eof()
    task.run()
    return answers


def _launcher(order: Order) -> str:
    """The collector as one word for `python -c`, for engines that forward no standard input."""
    packed = base64.b64encode(zlib.compress(order.collector.encode(), 9)).decode()
    return f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{packed}')))"


def _srun(order: Order, told: Told | None) -> dict[str, Answer]:
    argv = [
        "srun",
        f"--nodes={len(order.nodes)}",
        "--ntasks-per-node=1",
        f"--nodelist={fold(order.nodes)}",
        "--label",
        "--kill-on-bad-exit=0",
        "--input=all",
        "--overlap",
        order.python,
        "-",
        *order.arguments,
    ]
    return _whole(order, argv, order.collector.encode(), told, None, _srun_refused)


def _srun_refused(done: process.Result) -> None:
    """Tells nodes that are silent from a Slurm that started nothing on any of them.

    Raises:
        UsageError: srun speaks of itself only, and of no task (`N: …` with --label).
    """
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    own = [line.strip() for line in lines if line.startswith("srun: ") and "task" not in line]
    if done.ok or done.stdout.strip() or not own or len(own) < len(lines):
        return
    errors = [line for line in own if "fatal" in line or "Unable" in line] or own
    raise UsageError(
        f"`srun` started nothing: {errors[0].removeprefix('srun: ')[:200]}; expected a Slurm "
        "controller that answers, and an allocation with these nodes (`salloc`); elsewhere give "
        "`--engine clustershell`"
    )


def _pdsh(order: Order, told: Told | None) -> dict[str, Answer]:
    import os  # noqa: PLC0415

    command = _quoted([order.python, "-c", _launcher(order), *order.arguments])
    argv = ["pdsh", "-S", "-R", "ssh", "-f", str(FANOUT), "-w", ",".join(order.nodes)]
    argv += ["-t", f"{min(CONNECT_SECONDS, order.timeout):.0f}", "-u", f"{order.timeout:.0f}"]
    env = dict(os.environ)
    if order.ssh_options:
        env["PDSH_SSH_ARGS_APPEND"] = order.ssh_options
    return _whole(order, [*argv, command], None, told, env)


def _whole(
    order: Order,
    argv: list[str],
    stdin: bytes | None,
    told: Told | None,
    env: Mapping[str, str] | None,
    refused: Callable[[process.Result], None] = lambda _: None,
) -> dict[str, Answer]:
    """Runs an engine that mixes the output of all nodes.

    Args:
        order: what to run where.
        argv: the engine's command line.
        stdin: for the engine.
        told: is told of each node.
        env: the engine's environment.
        refused: raises UsageError if the engine itself did not work.
    """
    waves = (len(order.nodes) + FANOUT - 1) // FANOUT
    limit = order.timeout * waves + CONNECT_SECONDS
    try:
        done = process.run(argv, timeout=limit, stdin=stdin, env=env)
    except OSError as error:
        raise UsageError(
            f"`{argv[0]}` cannot be run ({error.strerror}); install it, or give another `--engine`"
        ) from None
    refused(done)
    now = time.time()
    documents = frames.decode(done.stdout)
    answers: dict[str, Answer] = {}
    for node in order.nodes:
        document = documents.get(node) or documents.get(node.split(".")[0])
        if document is None:
            line = _line_about(node, done.stderr)
            reason = line or (
                f"no answer within {order.timeout:g} s" if done.timed_out else "no report"
            )
            answers[node] = (None, reason, now)
        else:
            answers[node] = (document, None, float(document.get("clock", now)))
        if told is not None:
            told(node)
    return answers


def _line_about(node: str, error: bytes) -> str:
    lines = error.decode("utf-8", "replace").splitlines()
    about = [line.strip() for line in lines if node in line]
    return about[0][:200] if about else ""
