"""From a collector's recording to a snapshot, with the same probes that examine this machine."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from dsdoctor import records
from dsdoctor.api import Probe
from dsdoctor.errors import UsageError
from dsdoctor.host import HostError, ReplayHost
from dsdoctor.interpreter import read_records
from dsdoctor.model import decode
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot, masked
from dsdoctor.probes import environment, gpu_parse, machine, nvidia, patient, torch_live
from dsdoctor.process import Result


class FleetNode(Fact, frozen=True, kw_only=True):
    """Data for the comparison between nodes.

    Attributes:
        interfaces: network interface to its state (`up`, `down`, `unknown`).
        addresses: IPv4 addresses of the node.
        firmware: RDMA device to its firmware.
        mounts: mount point of a network file system to `type source`.
        resolved: name to addresses, or `error: …`.
        connected: `host:port` to `connected`, `refused` (reachable in both cases), or the error.
        clock_offset_s: how far the node's clock is ahead of the collecting machine's; None if
            they were not compared.
        cpus_logical: CPUs of the node; None if `Resources` says it.
        memory_total_bytes: RAM of the node; None if `Resources` says it.
    """

    interfaces: dict[str, str] = {}
    addresses: tuple[str, ...] = ()
    firmware: dict[str, str] = {}
    mounts: dict[str, str] = {}
    resolved: dict[str, tuple[str, ...] | str] = {}
    connected: dict[str, str] = {}
    clock_offset_s: float | None = None
    cpus_logical: int | None = None
    memory_total_bytes: int | None = None


#: No clock is later: 2200-01-01.
_LATEST = 7_258_118_400.0
_Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=_LATEST)]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a script ended on a node, as the collector reports it.

    Attributes:
        argv, returncode, timed_out, seconds: as in `process.Result`.
        stdout, stderr: base64.
        error: why it was not started.
    """

    argv: tuple[str, ...] = ()
    returncode: Annotated[int, msgspec.Meta(ge=-255, le=255)] | None = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    seconds: _Seconds = 0.0
    error: str | None = None


#: Version of recordings: in a later version, fields may have another meaning.
VERSION = 1


class Recording(msgspec.Struct, kw_only=True):
    """What a collector prints (probes/children/collector.py).

    Attributes:
        system, env, answers: for `ReplayHost`.
        patient: the interpreter that was examined.
        children: scripts that ran.
        node: fields of `FleetNode`, except the clock.
        clock: seconds since the epoch when it ended.
        dsdoctor: version of the dsdoctor that wrote the collector.
        version: of this format; fields may be added to a version, and are ignored here.
    """

    system: str
    env: dict[str, str]
    answers: dict[str, dict[str, Any]]
    patient: str
    children: dict[str, Ended]
    node: FleetNode
    clock: _Seconds
    dsdoctor: str = ""
    version: int = VERSION


def _result(child: Ended) -> Result:
    try:
        stdout, stderr = base64.b64decode(child.stdout), base64.b64decode(child.stderr)
    except ValueError:
        stdout, stderr = b"", b"what it printed is broken"
    return Result(
        argv=child.argv,
        returncode=child.returncode,
        stdout=stdout,
        stderr=stderr,
        timed_out=child.timed_out,
        seconds=child.seconds,
    )


def snapshot_of(document: Mapping[str, Any], received: float | None = None) -> Snapshot:
    """A node's snapshot.

    Args:
        document: what the collector printed.
        received: when it arrived, by the local clock, to compute the node's clock offset.

    Raises:
        UsageError: it is not a recording, or has a later format.
    """
    try:
        recording = decode.convert(dict(document), Recording)
    except decode.DecodeError as error:
        raise UsageError(
            f"a recording is broken: {error}; collect again with `fleet bundle`"
        ) from None
    if recording.version != VERSION:
        raise UsageError(
            f"a recording is of format {recording.version} (dsdoctor "
            f"{recording.dsdoctor[:40] or 'unknown'}), expected {VERSION}; collect again with "
            "`fleet bundle` of this dsdoctor, or merge with that one"
        )
    host = ReplayHost(msgspec.structs.asdict(recording))
    children = recording.children
    snapshot = Snapshot(dsdoctor=recording.dsdoctor)
    snapshot.created = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(recording.clock))
    offset = None if received is None else round(recording.clock - received, 3)
    snapshot.put(msgspec.structs.replace(recording.node, clock_offset_s=offset))
    choice = PatientChoice(executable=recording.patient, chosen_by="fleet")
    snapshot.put(choice)
    snapshot.put(RunNeeds(quick="torch_live" not in children))
    for probe in (environment.environment, machine.os_info, machine.resources):
        _run(probe, host, snapshot)
    _run(nvidia.nvidia_kernel, host, snapshot)
    _nvml(children.get("nvml"), snapshot)
    _patient(children, choice, snapshot)
    return masked(snapshot)


def _parsed(
    kinds: Sequence[type[Fact]],
    parse: Callable[[], Sequence[Fact | Missing]],
    snapshot: Snapshot,
) -> None:
    """Stores the parsed output of a child; a broken recording is not a crash of dsdoctor."""
    try:
        found = parse()
    except Exception as error:  # noqa: BLE001  # whatever a node may have sent
        why = Missing(why=Why.BROKEN, detail=f"the recording is broken: {type(error).__name__}")
        found = (why,) * len(kinds)
    for kind, value in zip(kinds, found, strict=True):
        _store(snapshot, kind, value)


def _run(probe: Probe, host: ReplayHost, snapshot: Snapshot) -> None:
    from dsdoctor.packs.registry import gives  # noqa: PLC0415  # next to its only use

    try:
        value = probe.function(host)
    except HostError as error:
        value = error.missing
    except Exception as error:  # noqa: BLE001  # a broken recording must not crash the fleet command
        value = Missing(why=Why.BROKEN, detail=f"{type(error).__name__}: {error}")
    (kind,) = gives(probe.function)
    _store(snapshot, kind, value)


def _store(snapshot: Snapshot, kind: type[Fact], value: Fact | Missing) -> None:
    if isinstance(value, Missing):
        snapshot.lack(kind, value)
    else:
        snapshot.put(value)


def _nvml(child: Ended | None, snapshot: Snapshot) -> None:
    if child is None or child.error is not None:
        detail = f"NVML was not queried on the node ({child.error if child else 'no child'})"
        for kind in nvidia.NVML_FACTS:
            snapshot.lack(kind, Missing(why=Why.BROKEN, detail=detail))
        return
    result = _result(child)
    kernel = snapshot.get(NvidiaKernel)
    bare = isinstance(kernel, NvidiaKernel) and not (
        kernel.pci or kernel.device_nodes or kernel.module_version
    )
    _parsed(
        nvidia.NVML_FACTS,
        lambda: nvidia.from_child(
            gpu_parse.parse(records.decode(result.stdout)), result, no_device=bare
        ),
        snapshot,
    )
    if isinstance(snapshot.get(Gpus), Missing) and bare:
        snapshot.put(Gpus(count=0))


def _patient(children: Mapping[str, Ended], choice: PatientChoice, snapshot: Snapshot) -> None:
    child = children.get("static")
    if child is None or child.error is not None:
        said = child.error if child else "it was not started"
        detail = f"`{choice.executable}` cannot be run on the node: {said}"
        for kind in patient.STATIC_FACTS:
            snapshot.lack(kind, Missing(why=Why.ABSENT, detail=detail))
    else:
        result = _result(child)
        _parsed(
            patient.STATIC_FACTS,
            lambda: patient.parse_static(patient_records(result), choice, result),
            snapshot,
        )
    live = children.get("torch_live")
    if live is not None and live.error is None:
        found = _result(live)
        _parsed(
            torch_live.LIVE_FACTS,
            lambda: torch_live.parse_live(patient_records(found), found),
            snapshot,
        )
    else:
        for kind in torch_live.LIVE_FACTS:
            snapshot.lack(kind, Missing(why=Why.NOT_ASKED, detail="torch not started (`--live`)"))


def patient_records(result: Result) -> list[dict[str, Any]]:
    """Records of a child that ran in the examined environment."""
    return read_records(result.stdout)
