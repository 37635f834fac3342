"""Values of Kubernetes manifests and Compose files: pods, devices, sizes, commands.

Sources: Kubernetes 1.20 to 1.34 API reference, PodSpec, Container, EmptyDirVolumeSource and
Quantity; the Compose specification, services and deploy. Read 2026-11-28.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsdoctor.model.units import BINARY

#: The folder of shared memory in a container.
SHM = "/dev/shm"  # noqa: S108  # the folder is named, not used
_GPU = re.compile(r"(?:nvidia|amd)\.com/gpu$")
_QUANTITY = re.compile(
    r"(?P<number>\d{1,15}(?:\.\d{1,3})?)\s?(?P<unit>[kKmMgGtTpP]?)(?P<binary>i?)[bB]?$"
)
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_MILLI = re.compile(r"\d{1,9}m$")
#: How deep the specification of a pod may be: `spec.template.spec.replicatedJobs.template.spec…`.
_DEPTH = 20


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def words_of(value: Any) -> tuple[str, ...]:
    """A command, as a list or as a line; () if it is neither."""
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            return ()
    return tuple(str(word) for word in as_list(value) if not isinstance(word, (dict, list)))


def pods_in(value: Any, depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """The specifications of pods in a manifest, wherever its kind has them."""
    if not isinstance(value, dict) or not depth:
        return
    if isinstance(value.get("containers"), list):
        yield value
        return
    for inner in value.values():
        for one in inner if isinstance(inner, list) else [inner]:
            yield from pods_in(one, depth - 1)


def gpu_count(key: str, value: Any) -> int | None:
    """How many whole GPUs a limit of a container sets; None if it sets something else."""
    text = str(value)
    return int(text) if _GPU.match(key) and re.fullmatch(r"[1-9]\d{0,3}", text) else None


def limited_gpus(values: Mapping[str, Any]) -> tuple[int, str] | None:
    """How many GPUs a container gets at most, and the setting; None = not stated."""
    limits = mapping(mapping(values.get("resources")).get("limits"))
    counts = [
        (key, whole) for key, value in limits.items() if (whole := gpu_count(str(key), value))
    ]
    return (counts[0][1], f"{counts[0][0]}: {counts[0][1]}") if len(counts) == 1 else None


def pod_variables(values: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a container to which its manifest gives a value."""
    return {
        str(item["name"]): item["value"]
        for item in as_list(values.get("env"))
        if isinstance(item, dict) and isinstance(item.get("value"), str) and "name" in item
    }


def shm_volumes(values: Mapping[str, Any]) -> list[Any]:
    """The names of the volumes that a container mounts at /dev/shm."""
    return [
        mount.get("name")
        for mount in as_list(values.get("volumeMounts"))
        if isinstance(mount, dict) and str(mount.get("mountPath", "")).rstrip("/") == SHM
    ]


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


def cpu_count(value: Any) -> int | None:
    """Whole CPUs of a limit, at least one, as a process counts them."""
    text = str(value)
    if re.fullmatch(r"\d{1,6}m", text):
        return max(1, int(text[:-1]) // 1000)
    return max(1, int(float(text))) if re.fullmatch(r"\d{1,4}(?:\.\d{1,3})?", text) else None


def compose_gpus(devices: Sequence[Any]) -> tuple[int, str] | None:
    """How many GPUs a service reserves, and the setting; None if it does not count them."""
    if len(devices) != 1 or not isinstance(devices[0], dict):
        return None
    count, ids = str(devices[0].get("count")), devices[0].get("device_ids")
    if re.fullmatch(r"[1-9]\d{0,3}", count):
        return int(count), f"count: {count}"
    return (len(ids), f"device_ids: {ids}") if isinstance(ids, list) and ids else None


def compose_devices(values: Mapping[str, Any]) -> list[Any]:
    """The devices that a service reserves, in either form."""
    resources = mapping(mapping(values.get("deploy")).get("resources"))
    reserved = as_list(mapping(resources.get("reservations")).get("devices"))
    return [*reserved, *as_list(values.get("gpus"))]


def has_own_ipc(values: Mapping[str, Any]) -> bool:
    """Whether a service has a /dev/shm of its own."""
    return str(values.get("ipc", "private")) in ("private", "shareable")


def compose_size(value: Any) -> int | None:
    """Bytes of a size of Compose, whose units are powers of 1024; None for what is none.

    >>> compose_size("2gb"), compose_size("64m"), compose_size("${SHM}")
    (2147483648, 67108864, None)
    """
    found = _QUANTITY.match(str(value).strip())
    if found is None:
        return None
    return int(float(found["number"]) * BINARY.get(found["unit"].lower(), 1))


def compose_variables(value: Any) -> dict[str, str]:
    """The variables of a service, of either form; those without a value are left out."""
    if isinstance(value, dict):
        return {
            str(name): str(item).lower() if isinstance(item, bool) else str(item)
            for name, item in value.items()
            if isinstance(item, (str, int, float))
        }
    rows = [item.partition("=") for item in as_list(value) if isinstance(item, str)]
    return {name: item for name, equals, item in rows if equals}
