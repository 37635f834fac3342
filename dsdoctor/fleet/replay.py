"""From a collector's recording to a snapshot, by the very probes that examine this machine."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from dsdoctor import records
from dsdoctor.api import Probe
from dsdoctor.errors import UsageError
from dsdoctor.host import HostError, ReplayHost
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot, masked
from dsdoctor.probes import environment, gpu_parse, machine, nvidia, patient
from dsdoctor.process import Result


class FleetNode(Fact, frozen=True, kw_only=True):
    """What only matters between nodes.

    Attributes:
        interfaces: network interface to its state (`up`, `down`, `unknown`).
        addresses: IPv4 addresses of the node.
        firmware: RDMA device to its firmware.
        mounts: mount point of a network file system to `type source`.
        resolved: name to addresses, or `error: …`.
        connected: `host:port` to `connected`, `refused` (both reach it), or why not.
        clock_offset_s: how far the node's clock is ahead of the collecting machine's; None where
            nobody has compared them.
    """

    interfaces: dict[str, str] = {}
    addresses: tuple[str, ...] = ()
    firmware: dict[str, str] = {}
    mounts: dict[str, str] = {}
    resolved: dict[str, tuple[str, ...] | str] = {}
    connected: dict[str, str] = {}
    clock_offset_s: float | None = None


def _result(value: Mapping[str, Any]) -> Result:
    return Result(
        argv=tuple(value.get("argv", ())),
        returncode=value.get("returncode"),
        stdout=base64.b64decode(value.get("stdout", "")),
        stderr=base64.b64decode(value.get("stderr", "")),
        timed_out=bool(value.get("timed_out")),
        seconds=float(value.get("seconds", 0.0)),
    )


def snapshot_of(recording: Mapping[str, Any], received: float | None = None) -> Snapshot:
    """A node's snapshot.

    Args:
        recording: what the collector printed.
        received: when it came, by the clock here; tells how far the node's clock is off.

    Raises:
        UsageError: it is no recording.
    """
    try:
        host = ReplayHost(recording)
        children: Mapping[str, Any] = recording["children"]
        node = dict(recording["node"])
        clock = float(recording["clock"])
        executable = str(recording["patient"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"a recording lacks {error}; collect anew with `fleet bundle`") from None
    snapshot = Snapshot(dsdoctor=str(recording.get("dsdoctor", "")))
    snapshot.created = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(clock))
    offset = None if received is None else round(clock - received, 3)
    try:
        snapshot.put(msgspec.convert({**node, "clock_offset_s": offset}, FleetNode))
    except msgspec.ValidationError as error:
        raise UsageError(f"a recording is broken: {error}") from None
    choice = PatientChoice(executable=executable, chosen_by="fleet")
    snapshot.put(choice)
    snapshot.put(RunNeeds(quick="torch_live" not in children))
    for probe in (environment.environment, machine.os_info, machine.resources):
        _run(probe, host, snapshot)
    _run(nvidia.nvidia_kernel, host, snapshot)
    _nvml(children.get("nvml"), snapshot)
    _patient(children, choice, snapshot)
    return masked(snapshot)


def _run(probe: Probe, host: ReplayHost, snapshot: Snapshot) -> None:
    from dsdoctor.registry import gives  # noqa: PLC0415  # beside its only use

    try:
        value = probe.function(host)
    except HostError as error:
        value = error.missing
    except Exception as error:  # noqa: BLE001  # a broken recording is no crash of the fleet
        value = Missing(why=Why.BROKEN, detail=f"{type(error).__name__}: {error}")
    (kind,) = gives(probe.function)
    _put(snapshot, kind, value)


def _put(snapshot: Snapshot, kind: type[Fact], value: Fact | Missing) -> None:
    if isinstance(value, Missing):
        snapshot.lack(kind, value)
    else:
        snapshot.put(value)


def _nvml(child: Mapping[str, Any] | None, snapshot: Snapshot) -> None:
    if child is None or "error" in child:
        detail = f"NVML was not asked on the node ({(child or {}).get('error', 'no child')})"
        for kind in nvidia.NVML_FACTS:
            snapshot.lack(kind, Missing(why=Why.BROKEN, detail=detail))
        return
    result = _result(child)
    kernel = snapshot.get(NvidiaKernel)
    bare = isinstance(kernel, NvidiaKernel) and not (
        kernel.pci or kernel.device_nodes or kernel.module_version
    )
    facts = nvidia.from_child(
        gpu_parse.parse(records.decode(result.stdout)), result, no_device=bare
    )
    for kind, value in zip(nvidia.NVML_FACTS, facts, strict=True):
        _put(snapshot, kind, value)
    if isinstance(snapshot.get(Gpus), Missing) and bare:
        snapshot.put(Gpus(count=0))


def _patient(children: Mapping[str, Any], choice: PatientChoice, snapshot: Snapshot) -> None:
    child = children.get("static")
    kinds = patient.STATIC_FACTS
    if child is None or "error" in child:
        said = (child or {}).get("error", "it was not started")
        detail = f"`{choice.executable}` cannot be run on the node: {said}"
        for kind in kinds:
            snapshot.lack(kind, Missing(why=Why.ABSENT, detail=detail))
    else:
        result = _result(child)
        static = patient.parse_static(patient_records(result), choice, result)
        for kind, value in zip(kinds, static, strict=True):
            _put(snapshot, kind, value)
    live = children.get("torch_live")
    if live is not None and "error" not in live:
        result = _result(live)
        found = patient.parse_live(patient_records(result), result)
        for live_kind, live_value in zip(patient.LIVE_FACTS, found, strict=True):
            _put(snapshot, live_kind, live_value)
    else:
        for kind in patient.LIVE_FACTS:
            snapshot.lack(kind, Missing(why=Why.NOT_ASKED, detail="torch not started (`--live`)"))


def patient_records(result: Result) -> list[dict[str, Any]]:
    """Records of a child in the patient."""
    from dsdoctor.interpreter import read_records  # noqa: PLC0415

    return read_records(result.stdout)
