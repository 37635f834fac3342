"""Runs the collector on many nodes through an existing engine.

ClusterShell, srun and pdsh are in this module, kubectl and Ray in separate modules.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import importlib
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dsdoctor import extras, process
from dsdoctor.errors import UsageError
from dsdoctor.fleet import frames
from dsdoctor.fleet.names import fold
from dsdoctor.model.plain import one_line
from dsdoctor.model.redact import mask

if TYPE_CHECKING:
    from dsdoctor.fleet.kubernetes import Target

#: Time for connecting, in addition to the collector's own limit.
CONNECT_SECONDS = 10.0
FANOUT = 64

Answer = tuple[dict[str, Any] | None, str | None, float]
"""A node's recording, or why there is none, and when it came."""
OnAnswer = Callable[[str], None]
"""Called with the name of each node that has answered, or can no longer answer."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What to run where.

    Attributes:
        nodes: names.
        collector: its source.
        arguments: of the collector.
        python: interpreter on the nodes.
        timeout: seconds for one node, connecting included.
        ssh_options: words for ssh.
        topology: file of ClusterShell's tree mode.
        engine: `clustershell`, `srun`, `pdsh`, `kubernetes` or `ray`.
        target: pods (`kubernetes`).
        address: of the cluster (`ray`), whose nodes are not known in advance.
    """

    nodes: Sequence[str]
    collector: str
    arguments: Sequence[str] = ()
    python: str = "python3"
    timeout: float = 60.0
    ssh_options: str = ""
    topology: str | None = None
    engine: str = "clustershell"
    target: Target | None = None
    address: str | None = None


def collect(order: Order, on_answer: OnAnswer | None = None) -> dict[str, Answer]:
    """Recordings of all nodes; a node that does not answer has a reason instead.

    Raises:
        UsageError: the engine is not installed, or started nothing on any node.
    """
    engines: Mapping[str, Callable[[Order, OnAnswer | None], dict[str, Answer]]] = {
        "clustershell": _clustershell,
        "srun": _srun,
        "pdsh": _pdsh,
        "kubernetes": _kubernetes,
        "ray": _ray,
    }
    answers = engines[order.engine](order, on_answer)
    for node in order.nodes:
        answers.setdefault(node, (None, f"no answer within {order.timeout:g} s", time.time()))
    return {node: answers[node] for node in order.nodes or sorted(answers)}


def _kubernetes(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    from dsdoctor.fleet import kubernetes  # noqa: PLC0415  # it builds on this module

    return kubernetes.collect(order, on_answer)


def _ray(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    from dsdoctor.fleet import ray  # noqa: PLC0415  # it builds on this module

    return ray.collect(order, on_answer)


def recording(
    read: Callable[[], dict[str, Any] | None],
) -> tuple[dict[str, Any] | None, str | None]:
    """A recording, or why the output is not one; neither if nothing was printed."""
    try:
        return read(), None
    except frames.BrokenFramesError as error:
        return None, f"its report cannot be used: {error}"


def _quoted(words: Iterable[str]) -> str:
    import shlex  # noqa: PLC0415  # a remote shell reads it, ours does not

    return shlex.join(words)


def why(status: int | None, error: bytes, order: Order) -> str:
    """Why a node sent no recording, from the messages of ssh or of the interpreter."""
    said = error.decode("utf-8", "replace").strip().splitlines()
    last = mask(one_line(said[-1]))[:200] if said else ""
    if status == 127 or "not found" in last or "No such file" in last:  # noqa: PLR2004
        return f"`{order.python}` does not exist; expected Python 3.8 or newer ({last})"
    if "SyntaxError" in last or "future feature" in last:
        return f"`{order.python}` is older than 3.8 ({last})"
    if status is None:
        return f"no answer within {order.timeout:g} s"
    return f"exit status {status}" + (f": {last}" if last else "")


def _clustershell(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    try:
        task_module = importlib.import_module("ClusterShell.Task")
        event_module = importlib.import_module("ClusterShell.Event")
    except ImportError:
        raise UsageError(
            "ClusterShell, which the fan-out over ssh needs, is not installed; run "
            f"`{extras.command_for('fleet')}`, or pass `--engine srun` or `--engine pdsh`"
        ) from None
    if shutil.which("ssh") is None:
        raise UsageError(
            "`ssh`, which the fan-out needs, is not on PATH; install `openssh-client`, "
            "or pass `--engine srun`"
        )
    answers: dict[str, Answer] = {}
    output: dict[str, frames.Kept] = {}
    errors: dict[str, frames.Kept] = {}

    class Listener(event_module.EventHandler):  # type: ignore[misc, name-defined]  # untyped
        """Stores the output of nodes, and records when they end."""

        def ev_read(self, worker: Any, node: str, sname: str, msg: bytes) -> None:
            kept = output if sname == worker.SNAME_STDOUT else errors
            kept.setdefault(str(node), frames.Kept()).take_line(bytes(msg))

        def ev_hup(self, worker: Any, node: str, rc: int) -> None:  # noqa: ARG002
            _settle(str(node), rc)

        def ev_close(self, worker: Any, timedout: bool) -> None:
            if timedout:
                for node in worker.iter_keys_timeout():
                    _settle(str(node), None)

    def _settle(node: str, status: int | None) -> None:
        now = time.time()
        words = errors.pop(node, frames.Kept()).whole()
        document, reason = recording(
            lambda: frames.document(output.pop(node, frames.Kept()).lines())
        )
        if document is None and reason is None:
            reason = why(status, words, order)
        answers[node] = (document, reason, now)
        if on_answer is not None:
            on_answer(node)

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


def _srun(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    argv = [
        "srun",
        f"--nodes={len(order.nodes)}",
        "--ntasks-per-node=1",
        f"--nodelist={fold(order.nodes)}",
        "--label",
        "-v",  # prints which task is on which node
        "--kill-on-bad-exit=0",
        "--input=all",
        "--overlap",
        order.python,
        "-",
        *order.arguments,
    ]
    return _whole(
        order, argv, order.collector.encode(), on_answer, None, _srun_refused, _srun_channels
    )


#: Lines of `srun -v`; output of tasks begins with their number, so no task can forge these.
_LAUNCHED = re.compile(rb"(?m)^srun: launching \S+ on host (\S+), [0-9]+ tasks?: ([0-9]+)\s*$")


def _srun_channels(error: bytes) -> dict[str, str]:
    """Node to the number that srun prints before its lines."""
    return {
        found[1].decode("utf-8", "replace"): found[2].decode()
        for found in _LAUNCHED.finditer(error)
    }


def _srun_refused(done: process.Result) -> None:
    """Distinguishes silent nodes from a Slurm that started nothing on any of them.

    Raises:
        UsageError: srun reports only its own errors, and no task (`N: …` with --label).
    """
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    own = [line.strip() for line in lines if line.startswith(("srun: error: ", "srun: fatal: "))]
    started = _LAUNCHED.search(done.stderr) or any("task" in line for line in own)
    if done.ok or done.stdout.strip() or started or not own:
        return
    errors = [line for line in own if "fatal" in line or "Unable" in line] or own
    first = one_line(errors[0]).removeprefix("srun: ")[:200]
    raise UsageError(
        f"`srun` started nothing: {first}; expected a Slurm "
        "controller that answers, and an allocation with these nodes (`salloc`); elsewhere pass "
        "`--engine clustershell`"
    )


def _pdsh(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    command = _quoted([order.python, "-c", _launcher(order), *order.arguments])
    argv = ["pdsh", "-S", "-R", "ssh", "-f", str(FANOUT), "-w", ",".join(order.nodes)]
    argv += ["-t", f"{min(CONNECT_SECONDS, order.timeout):.0f}", "-u", f"{order.timeout:.0f}"]
    env = dict(os.environ)
    if order.ssh_options:
        env["PDSH_SSH_ARGS_APPEND"] = order.ssh_options
    return _whole(order, [*argv, command], None, on_answer, env)


def _whole(
    order: Order,
    argv: list[str],
    stdin: bytes | None,
    on_answer: OnAnswer | None,
    env: Mapping[str, str] | None,
    refused: Callable[[process.Result], None] = lambda _: None,
    channels: Callable[[bytes], dict[str, str]] = lambda _: {},
) -> dict[str, Answer]:
    """Runs an engine whose output contains the lines of all nodes.

    Args:
        order: what to run where.
        argv: the engine's command line.
        stdin: for the engine.
        on_answer: called with each node.
        env: the engine's environment.
        refused: raises UsageError if the engine itself did not work.
        channels: node to the prefix of its lines, if the engine does not use the node's name.
    """
    waves = (len(order.nodes) + FANOUT - 1) // FANOUT
    limit = order.timeout * waves + CONNECT_SECONDS
    said = frames.Channels()
    try:
        done = process.run(argv, timeout=limit, stdin=stdin, env=env, on_stdout=said.take)
    except OSError as error:
        raise UsageError(
            f"`{argv[0]}` cannot be run ({error.strerror}); install it, or pass another `--engine`"
        ) from None
    refused(done)
    now = time.time()
    said.end()
    prefixes = channels(done.stderr)
    answers: dict[str, Answer] = {}
    for node in order.nodes:
        channel = next((name for name in _called(node, prefixes) if name in said), "")
        document, reason = recording(functools.partial(said.document, channel))
        if document is None:
            reason = (
                reason
                or _line_about(node, done.stderr)
                or (f"no answer within {order.timeout:g} s" if done.timed_out else "no report")
            )
            answers[node] = (None, reason, now)
        else:
            answers[node] = (document, None, said.received(channel))
        if on_answer is not None:
            on_answer(node)
    return answers


def _called(node: str, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Possible names of a node's channel: pdsh and Slurm leave out the domain."""
    short = node.rpartition("@")[2].partition(".")[0]
    for name in (node, node.rpartition("@")[2], short):
        if prefixes:
            yield from [prefixes[name]] * (name in prefixes)
        else:
            yield name


def _line_about(node: str, error: bytes) -> str:
    """What an engine reports about a node, not what another node prints about it."""
    for line in error.decode("utf-8", "replace").splitlines():
        text = one_line(line)
        if re.match(rf"(?:(?:pdsh@\S+|srun): (?:error: )?)?{re.escape(node)}: ", text):
            return mask(text)[:200]
    return ""
