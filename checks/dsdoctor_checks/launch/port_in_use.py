"""The master port is already in use, or only root may open it.

## Why it matters
Launchers use port 29500 by default. A second job on the machine stops with `EADDRINUSE`, or its
ranks connect to the first job's store and hang. Ports below 1024 are root's on most systems.

## What to do
Use a different port for each job on the machine, or stop the process that still uses it. Use a port
above 1024.

## References
deepspeed/constants.py (`TORCH_DISTRIBUTED_DEFAULT_PORT`), torch/distributed/run.py, Linux
Documentation/networking/ip-sysctl.rst (`ip_unprivileged_port_start`)
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Level,
    MasterPort,
    Missing,
    Packages,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import at_least

CONDITION = Condition(
    "port-in-use", id="DSD1207", scope=Scope.JOB, since="0.1", fixes=("choose-port",)
)

_OPTIONS = {"accelerate": "--main_process_port", "deepspeed": "--master_port"}


@check(CONDITION)
def port_is_free(
    port: MasterPort, command: LaunchCommand | Missing, packages: Packages | Missing
) -> Iterator[Finding]:
    """Fails for the port of this command; warns if only the default port is in use."""
    kind = ""
    if isinstance(command, LaunchCommand):
        kind = command.inner or command.launcher
    option = _OPTIONS.get(kind, "--master-port")
    if port.reserved and not port.taken:
        yield fail(
            f"only root may open port {port.port} on this node, but it is the master port",
            effect="rank 0 stops with `failed to bind … (errno: 13 - Permission denied)`",
            hint=f"add `{option} 29500`" if kind != "python" else "set `MASTER_PORT=29500`",
            port=port.port,
            suggested=29500,
        )
        return
    if not port.taken:
        yield ok(port=port.port)
        return
    if not port.asked and (kind == "python" or _starts_torchrun(command)):
        return  # it may not open this port
    if kind == "other" and not _starts_torchrun(command):
        return
    if isinstance(command, LaunchCommand) and _chooses_another(command, packages):
        yield ok(port=port.port, taken=True)
        return
    free = port.port + 1
    what = "the master port of this command" if kind else "the default of the launchers"
    which = f"port {port.port} of `{port.host}`" if port.remote else f"port {port.port}"
    # on another node it may be this job, started there a moment ago
    yield (fail if kind and not port.remote else warn)(
        f"{which} is in use by {port.holder}, but it is {what}"
        if port.holder
        else f"{which} is in use, but it is {what}",
        effect="rank 0 stops with `EADDRINUSE`, `Address already in use`",
        hint=f"set `MASTER_PORT={free}`"
        if kind in ("python", "other")
        else f"add `{option} {free}`",
        port=port.port,
        suggested=free,
        holder=port.holder,
    )


def _starts_torchrun(command: LaunchCommand | Missing) -> bool:
    """Whether it is a trainer that passes `MASTER_PORT` to torchrun.

    llamafactory 0.9.5 launcher.py, ms-swift 4.6 cli/main.py (read 2026-11-29).
    """
    if isinstance(command, Missing):
        return False
    return posixpath.basename(command.program) in ("llamafactory-cli", "swift")


def _chooses_another(command: LaunchCommand, packages: Packages | Missing) -> bool:
    """Whether accelerate starts its ranks on a free port instead, which it does on one node.

    accelerate 1.8-1.15 utils/launch.py; 1.7 stops with a `ConnectionError` (read 2026-11-29).
    """
    if (command.inner or command.launcher) != "accelerate" or (command.num_nodes or 1) > 1:
        return False
    version = packages.version("accelerate") if isinstance(packages, Packages) else None
    return version is not None and at_least(version, "1.8")


HINT = "pass another port with `--master_port` or `--rdzv_endpoint`, or stop the old run"

#: What servers print of their own port, and the option that chooses another.
SERVERS_HINT = "end the server that uses the port (`ss -ltnp` shows it), or choose another port"

SIGNATURES = (
    Signature(
        pattern=r"error while attempting to bind on address \('?(?P<host>[^']{1,80})', (?P<port>\d{1,5})(?:, \d+){0,2}\): ",
        source="CPython 3.7-3.14 Lib/asyncio/base_events.py, as uvicorn 0.5-0.38 and aiohttp 3 print it",
        examples=(
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            "OSError: [Errno 98] error while attempting to bind on address ('::', 8000, 0, 0): address already in use",
        ),
        not_examples=("[Errno 98] error while attempting to bind on address (8000): ",),
        level=Level.CERTAIN,
        masks=("rendezvous-timeout",),
        message="A server could not open port {port}: it is already in use",
        hint=SERVERS_HINT,
    ),
    Signature(
        pattern=r"OSError: Cannot find empty port in range: (?P<range>\d{1,5}-\d{1,5})",
        source="gradio 3.0-5.49 networking.py, http_server.py",
        examples=(
            "OSError: Cannot find empty port in range: 7860-7860. You can specify a different port by setting the GRADIO_SERVER_PORT environment variable.",
        ),
        not_examples=("OSError: Cannot find empty port in range: all",),
        level=Level.CERTAIN,
        message="Gradio found no free port in {range}",
        hint="end the server that uses the port (`ss -ltnp` shows it), or set `GRADIO_SERVER_PORT`",
    ),
    Signature(
        pattern=r"Tried to launch distributed communication on port `(?P<port>\d{1,9})`, but another process",
        source="accelerate 0.18-1.15 commands/launch.py, utils/launch.py",
        examples=(
            "ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it.",
        ),
        not_examples=(
            "Tried to launch distributed communication on port `{main_process_port}`, but",
        ),
        level=Level.CERTAIN,
        message="Port {port} of this machine, that of the main process, is already in use",
        hint="pass another `--main_process_port`, on one node also 0 for any free port, or stop the old run",
    ),
    Signature(
        pattern="(?<!mail )(?<!bind failed : )(?<!bind failed: )[Aa]ddress already in use|EADDRINUSE|Only one usage of each socket address",
        source=(
            "glibc 2.17-2.41 strerror (EADDRINUSE), as torch's socket.cpp, Python and Ray print "
            "it; Windows 10-11 WSAEADDRINUSE"
        ),
        examples=(
            "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
            "RuntimeError: Address already in use",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
            "Only one usage of each socket address",
        ),
        not_examples=(
            "ValueError: email address already in use",
            "NCCL WARN Call to bind failed: Address already in use",
        ),
        level=Level.CERTAIN,
        masks=("rendezvous-timeout",),
    ),
    Signature(
        pattern=r"failed to bind to \S+:\d{1,4} \(errno: 13 ",
        source="torch 1.11-2.13 csrc/distributed/c10d/socket.cpp",
        examples=(
            "RuntimeError: The server socket has failed to bind to [::]:520 (errno: 13 - Permission denied).",
        ),
        not_examples=("failed to bind to [::]:29500 (errno: 98 - Address already in use)",),
        level=Level.CERTAIN,
        masks=("rendezvous-timeout",),
        message="The master port is one that only root may open",
        hint="pass a port above 1024 with `--master_port`",
    ),
    Signature(
        pattern=r"(?i)failed to listen on any local network address(?!.{0,200}(?:code: -|errno: )(?!98|13)\d)|failed to bind to address \S*:\d+|\bport:? ?'?\d{2,5}'? (?:is|was) (?:already (?:in use|occupied|taken|allocated)|not available)",
        source="torch 1.0-2.13 csrc/distributed/c10d/socket.cpp",
        examples=(
            "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network address.",
            "ValueError: Port 29501 is already in use. Please choose another port.",
            "failed to bind to address x1:7",
        ),
        not_examples=(
            "the name `port` is already in use by a variable",
            # the address is none of this machine
            "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -99, name: EADDRNOTAVAIL, message: address not available",
        ),
        level=Level.STRONG,
        masks=("rendezvous-timeout",),
    ),
)
