"""Kubernetes manifests and compose files: what the container of a job is given.

Only what is written is stated: not what Docker or a cluster adds by default, nor the size of a
/dev/shm that is the host's. Of several containers only what they agree on counts, of those that get
GPUs if one does.

Sources: Kubernetes 1.20 to 1.34 API reference, PodSpec, Container and EmptyDirVolumeSource; the
Compose specification, services and deploy. Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dsdoctor import yaml_text
from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.container_specs import (
    as_list,
    compose_devices,
    compose_gpus,
    compose_size,
    compose_variables,
    cpu_count,
    has_own_ipc,
    limited_gpus,
    mapping,
    pod_variables,
    pods_in,
    quantity,
    shm_volumes,
    words_of,
)
from dsdoctor.probes.environment import allowed

_BEGINS = re.compile(r"(?:apiVersion|services|kind):(?:\s|$)")
_TOP = re.compile(r"(?:[A-Za-z_][\w.-]{0,60}:(?:\s|$)|- |#|\s|\}|\]|$)")
_NEXT = re.compile(r"---\s*$")
_LIMITS = {"memlock": "limit_memlock", "nofile": "limit_nofile", "stack": "limit_stack"}
_MOST = 20


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
        """The first of the lines that contain most of the words."""
        return max(self.lines, key=lambda line: sum(word in line.text for word in words))


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
            for pod in pods_in(values):
                for container in pod["containers"][:_MOST]:
                    if isinstance(container, dict):
                        yield of_pod(container, pod, lines)


def chosen(found: Sequence[Container]) -> list[Container]:
    """The containers that may run the job: those with GPUs, if one has any."""
    with_gpus = [one for one in found if one.gpus is not None]
    return with_gpus or list(found)


# ---- Kubernetes --------------------------------------------------------------------------------


def of_pod(values: dict[str, Any], pod: dict[str, Any], lines: tuple[Line, ...]) -> Container:
    """A container of a pod.

    Args:
        values: of the container, as in a manifest.
        pod: the pod's specification, for its volumes.
        lines: those that state it.
    """
    limits = mapping(mapping(values.get("resources")).get("limits"))
    resources: dict[str, tuple[int | None, str]] = {}
    memory, cpus = quantity(limits.get("memory")), cpu_count(limits.get("cpu"))
    if memory:
        resources["memory_limit_bytes"] = (memory, "memory:")
    if cpus:
        resources["cpus_usable"] = (cpus, "cpu:")
    shared = _shared_memory(values, pod)
    if shared:
        resources["shm_total_bytes"] = (shared, "sizeLimit:")
    return Container(
        lines=lines,
        words=(*words_of(values.get("command")), *words_of(values.get("args"))),
        variables=pod_variables(values),
        gpus=limited_gpus(values),
        resources=resources,
    )


def _shared_memory(values: dict[str, Any], pod: dict[str, Any]) -> int | None:
    """The size of a /dev/shm of its own; None if the manifest does not limit it."""
    mounted = shm_volumes(values)
    for volume in as_list(pod.get("volumes")):
        if isinstance(volume, dict) and mounted == [volume.get("name")]:
            folder = mapping(volume.get("emptyDir"))
            return quantity(folder.get("sizeLimit")) if folder.get("medium") == "Memory" else None
    return None


# ---- Compose -----------------------------------------------------------------------------------


def _of_compose(values: dict[str, Any], lines: tuple[Line, ...]) -> Container:
    deploy = mapping(mapping(values.get("deploy")).get("resources"))
    limits = mapping(deploy.get("limits"))
    resources: dict[str, tuple[int | None, str]] = {}
    key = "mem_limit" if "mem_limit" in values else "memory"
    memory = compose_size(values.get("mem_limit", limits.get("memory")))
    cpus = cpu_count(values.get("cpus", limits.get("cpus")))
    if memory:
        resources["memory_limit_bytes"] = (memory, f"{key}:")
    if cpus:
        resources["cpus_usable"] = (cpus, "cpus:")
    shared = compose_size(values.get("shm_size"))
    if shared and has_own_ipc(values):
        resources["shm_total_bytes"] = (shared, "shm_size:")
    for name, limit in mapping(values.get("ulimits")).items():
        soft = limit.get("soft") if isinstance(limit, dict) else limit
        if name in _LIMITS and isinstance(soft, int):
            resources[_LIMITS[name]] = (None if soft < 0 else soft, f"{name}:")
    return Container(
        lines=lines,
        words=(*words_of(values.get("entrypoint")), *words_of(values.get("command"))),
        variables=compose_variables(values.get("environment")),
        gpus=compose_gpus(compose_devices(values)),
        resources=resources,
        runtime=str(values.get("runtime") or ""),
    )


# ---- what both have ----------------------------------------------------------------------------


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
