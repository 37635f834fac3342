"""Kubernetes manifests and compose files: what the container of a job is given.

Only what is written is stated: not what Docker or a cluster adds by default, nor the size of a
/dev/shm that is the host's. Of several containers only what they agree on counts, of those that get
GPUs if one does.

Sources: Kubernetes 1.20 to 1.34 API reference, PodSpec, Container and EmptyDirVolumeSource; the
Compose specification, services and deploy. Read 2026-11-28.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dsdoctor import yaml_text
from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.environment import allowed

_BEGINS = re.compile(r"(?:apiVersion|services|kind):(?:\s|$)")
_TOP = re.compile(r"(?:[A-Za-z_][\w.-]{0,60}:(?:\s|$)|- |#|\s|\}|\]|$)")
_NEXT = re.compile(r"---\s*$")
_GPU = re.compile(r"(?:nvidia|amd)\.com/gpu$")
_QUANTITY = re.compile(
    r"(?P<number>\d{1,15}(?:\.\d{1,3})?)\s?(?P<unit>[kKmMgGtTpP]?)(?P<binary>i?)[bB]?$"
)
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_MILLI = re.compile(r"\d{1,9}m$")
_LIMITS = {"memlock": "limit_memlock", "nofile": "limit_nofile", "stack": "limit_stack"}
#: How deep the specification of a pod may be: `spec.pytorchReplicaSpecs.Worker.template.spec`.
_DEPTH = 8
_MOST = 20
_SHM = "/dev/shm"  # noqa: S108  # a mount point of the container


class Container(NamedTuple):
    """A container of a file.

    Attributes:
        lines: those of its document.
        words: its command; empty = that of its image.
        variables: the environment that the file sets.
        gpus: how many GPUs it gets at most, and the setting that says so; None = not stated.
        resources: fields of `Resources`, each with a word of the line that states it.
        runtime: Docker's runtime that it asks for; "" = none.
    """

    lines: tuple[Line, ...]
    words: tuple[str, ...]
    variables: dict[str, str]
    gpus: tuple[int, str] | None
    resources: dict[str, tuple[int | None, str]]
    runtime: str = ""

    def line_of(self, *words: str) -> Line:
        """The first line that contains all of the words, or else the first one's line."""
        for wanted in (words, words[:1]):
            for line in self.lines:
                if all(word in line.text for word in wanted):
                    return line
        return self.lines[0]


def documents_of(passage: Passage) -> Iterator[tuple[Line, ...]]:
    """The lines of each YAML document of a passage that is whole."""
    if passage.fenced and not passage.closed:
        return
    lines, found = passage.lines, list[Line]()
    for place, line in enumerate((*lines, Line(0, ""))):
        ended = place == len(lines)
        if found and not ended and not _NEXT.match(line.text) and _TOP.match(line.text):
            found.append(line)
            continue
        # where a text was cut, its last line has no end
        if found and (passage.fenced or not ended or not found[-1].text.strip()):
            yield tuple(found)
        found = [line] if _BEGINS.match(line.text) else []


def containers_of(passage: Passage) -> Iterator[Container]:
    """The containers of the files in a passage."""
    for lines in documents_of(passage):
        try:
            values = yaml_text.load("\n".join(line.text for line in lines))
        except ValueError:
            continue
        if not isinstance(values, dict):
            continue
        services = values.get("services")
        if isinstance(services, dict):
            for service in services.values():
                if isinstance(service, dict):
                    yield _of_compose(service, lines)
        elif "kind" in values:
            for pod in _pods(values, _DEPTH):
                for container in pod["containers"][:_MOST]:
                    if isinstance(container, dict):
                        yield of_pod(container, pod, lines)


def chosen(found: Sequence[Container]) -> list[Container]:
    """The containers that may run the job: those with GPUs, if one has any."""
    with_gpus = [one for one in found if one.gpus is not None]
    return with_gpus or list(found)


# ---- Kubernetes --------------------------------------------------------------------------------


def _pods(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The specifications of pods in a manifest, wherever its kind has them."""
    if not isinstance(value, dict) or not depth:
        return
    if isinstance(value.get("containers"), list):
        yield value
        return
    for inner in value.values():
        for one in inner if isinstance(inner, list) else [inner]:
            yield from _pods(one, depth - 1)


def of_pod(values: dict[str, Any], pod: dict[str, Any], lines: tuple[Line, ...]) -> Container:
    """A container of a pod.

    Args:
        values: of the container, as in a manifest.
        pod: the pod's specification, for its volumes.
        lines: those that state it.
    """
    limits = _mapping(_mapping(values.get("resources")).get("limits"))
    variables = {
        str(item["name"]): item["value"]
        for item in _list(values.get("env"))
        if isinstance(item, dict) and isinstance(item.get("value"), str) and "name" in item
    }
    counts = [(key, whole) for key, value in limits.items() if (whole := _gpus(key, value))]
    resources: dict[str, tuple[int | None, str]] = {}
    memory, cpus = quantity(limits.get("memory")), _cpus(limits.get("cpu"))
    if memory:
        resources["memory_limit_bytes"] = (memory, "memory:")
    if cpus:
        resources["cpus_usable"] = (cpus, "cpu:")
    shared = _shared_memory(values, pod)
    if shared:
        resources["shm_total_bytes"] = (shared, "sizeLimit:")
    return Container(
        lines=lines,
        words=(*_words(values.get("command")), *_words(values.get("args"))),
        variables=variables,
        gpus=(counts[0][1], f"{counts[0][0]}: {counts[0][1]}") if len(counts) == 1 else None,
        resources=resources,
    )


def _gpus(key: str, value: Any) -> int | None:
    text = str(value)
    return int(text) if _GPU.match(key) and re.fullmatch(r"[1-9]\d{0,3}", text) else None


def _shared_memory(values: dict[str, Any], pod: dict[str, Any]) -> int | None:
    """The size of a /dev/shm of its own; None if the manifest does not limit it."""
    mounted = [
        mount.get("name")
        for mount in _list(values.get("volumeMounts"))
        if isinstance(mount, dict) and str(mount.get("mountPath", "")).rstrip("/") == _SHM
    ]
    for volume in _list(pod.get("volumes")):
        if isinstance(volume, dict) and mounted == [volume.get("name")]:
            folder = _mapping(volume.get("emptyDir"))
            return quantity(folder.get("sizeLimit")) if folder.get("medium") == "Memory" else None
    return None


def quantity(value: Any) -> int | None:
    """Bytes of a quantity of Kubernetes; None for what is none.

    >>> quantity("16Gi"), quantity("2G"), quantity(1024), quantity("{{ .Values.memory }}")
    (17179869184, 2000000000, 1024, None)
    """
    found = _QUANTITY.match(str(value).strip())
    if found is None or _MILLI.match(str(value)):
        return None
    units = BINARY if found["binary"] else _DECIMAL
    return int(float(found["number"]) * units.get(found["unit"].lower(), 1))


def _cpus(value: Any) -> int | None:
    """Whole CPUs of a limit, at least one, as a process counts them."""
    text = str(value)
    if re.fullmatch(r"\d{1,6}m", text):
        return max(1, int(text[:-1]) // 1000)
    return max(1, int(float(text))) if re.fullmatch(r"\d{1,4}(?:\.\d{1,3})?", text) else None


# ---- Compose -----------------------------------------------------------------------------------


def _of_compose(values: dict[str, Any], lines: tuple[Line, ...]) -> Container:
    deploy = _mapping(_mapping(values.get("deploy")).get("resources"))
    limits = _mapping(deploy.get("limits"))
    resources: dict[str, tuple[int | None, str]] = {}
    key = "mem_limit" if "mem_limit" in values else "memory"
    memory = compose_size(values.get("mem_limit", limits.get("memory")))
    cpus = _cpus(values.get("cpus", limits.get("cpus")))
    if memory:
        resources["memory_limit_bytes"] = (memory, f"{key}:")
    if cpus:
        resources["cpus_usable"] = (cpus, "cpus:")
    own = str(values.get("ipc", "private")) in ("private", "shareable")
    shared = compose_size(values.get("shm_size"))
    if shared and own:
        resources["shm_total_bytes"] = (shared, "shm_size:")
    for name, limit in _mapping(values.get("ulimits")).items():
        soft = limit.get("soft") if isinstance(limit, dict) else limit
        if name in _LIMITS and isinstance(soft, int):
            resources[_LIMITS[name]] = (None if soft < 0 else soft, f"{name}:")
    devices = _list(_mapping(deploy.get("reservations")).get("devices"))
    return Container(
        lines=lines,
        words=(*_words(values.get("entrypoint")), *_words(values.get("command"))),
        variables=_compose_variables(values.get("environment")),
        gpus=_compose_gpus([*devices, *_list(values.get("gpus"))]),
        resources=resources,
        runtime=str(values.get("runtime") or ""),
    )


def _compose_variables(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {
            str(name): str(item).lower() if isinstance(item, bool) else str(item)
            for name, item in value.items()
            if isinstance(item, (str, int, float))
        }
    rows = [item.partition("=") for item in _list(value) if isinstance(item, str)]
    return {name: item for name, equals, item in rows if equals}


def _compose_gpus(devices: Sequence[Any]) -> tuple[int, str] | None:
    if len(devices) != 1 or not isinstance(devices[0], dict):
        return None
    count, ids = devices[0].get("count"), devices[0].get("device_ids")
    if type(count) is int and count > 0:
        return count, f"count: {count}"
    return (len(ids), f"device_ids: {ids}") if isinstance(ids, list) and ids else None


def compose_size(value: Any) -> int | None:
    """Bytes of a size of Compose, whose units are powers of 1024; None for what is none.

    >>> compose_size("2gb"), compose_size("64m"), compose_size("${SHM}")
    (2147483648, 67108864, None)
    """
    found = _QUANTITY.match(str(value).strip())
    if found is None:
        return None
    return int(float(found["number"]) * BINARY.get(found["unit"].lower(), 1))


# ---- what both have ----------------------------------------------------------------------------


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(value: Any) -> tuple[str, ...]:
    """A command, as a list or as a line; () if it is neither."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            return ()
    return tuple(str(word) for word in _list(value) if not isinstance(word, (dict, list)))


def state_container(found: Sequence[Container], into: Statements) -> None:
    """States what containers agree on."""
    first, rest = found[0], found[1:]
    if first.runtime and all(one.runtime == first.runtime for one in rest):
        into.request(container_runtime=first.runtime)
    for name, value in first.variables.items():
        same = all(one.variables.get(name) == value for one in rest)
        if same and allowed(name) and value and not is_placeholder(value):
            into.state(Environment, f"variables.{name}", value, first.line_of(name))
    for name, (size, word) in first.resources.items():
        if all(one.resources.get(name, (0, ""))[0] == size for one in rest):
            into.state(Resources, name, size, first.line_of(word))
