"""Containers of Kubernetes manifests and Compose files, with the job that they belong to.

Over 400 lines because each kind of object describes its pods in its own way.

Pure. A value that a template or a shell fills in (`$GPUS`) is not known; a text that is YAML only
after a template engine (`{{ .Values.gpus }}`) cannot be read.

Sources: Kubernetes 1.20 to 1.34 API reference (PodSpec, JobSpec, StatefulSetSpec), and
pkg/apis/core/validation for resources that cannot be overcommitted; kubeflow training-operator 1.3
to 1.9 (`PyTorchJobSpec`, its webhook, pkg/controller.v1/pytorch/envvar.go, master.go, elastic.go);
kubeflow mpi-operator v2beta1 (validation.go, default.go); JobSet 0.2 to 0.8; Volcano 1.7 to 1.12
(batch/v1alpha1, pkg/controllers/job/plugins); the Compose specification. Read 2026-11-30.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dsdoctor import yaml_text
from dsdoctor.model.facts.run import ManifestContainer
from dsdoctor.probes.container_specs import (
    SHM,
    as_list,
    compose_devices,
    compose_gpus,
    compose_variables,
    has_own_ipc,
    limited_gpus,
    mapping,
    pods_in,
    shm_volumes,
)
from dsdoctor.probes.manifest_variables import (
    ConfigMaps,
    Stated,
    config_maps,
    env_file,
    interpolated,
    of_kubernetes,
    of_pod,
    of_service,
)

#: Resources that are no device for computing.
_NO_DEVICE = re.compile(
    r"(?:cpu|memory|pods|storage|ephemeral-storage|hugepages-.*|.*(?:rdma|roce|/ib|efa|/hca).*)$"
)
_WHOLE = re.compile(r"[0-9]{1,6}$")
#: A part of a device: `0.5`, `500m`.
_PART = re.compile(r"[0-9]{0,6}\.[0-9]{0,8}[1-9]0{0,8}$|[0-9]{1,9}m$")
#: The name of an extended resource: a domain other than Kubernetes' own, and a name.
_EXTENDED = re.compile(r"(?!(?:[\w.-]+\.)?kubernetes\.io/)[\w.-]+\.[\w.-]+/[\w.-]+$")
#: CRI-O's own way to set the size (crio.conf(5), `allowed_annotations`).
_SHM_ANNOTATION = "io.kubernetes.cri-o.ShmSize"
#: Options of torchrun that operators set (`PET_…`): the training-operator in every PyTorchJob (1.7;
#: `nprocPerNode` is "auto" by default, a rank for each GPU), with a `Master` (1.7), and with an
#: `elasticPolicy` (1.4); the trainer 2.0 in the pods of a TrainJob.
_OF_PYTORCH = ("NNODES", "NPROC_PER_NODE")
_OF_MASTER = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")
_OF_ELASTIC = ("RDZV_BACKEND", "RDZV_ENDPOINT")
_OF_TRAINER = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "NNODES", "NPROC_PER_NODE")
#: In place of a value that only the operator knows.
_OPERATOR = "(set by the operator)"
#: How deep an object may be in another one.
_DEPTH = 8
#: The name that a container of a PyTorchJob must have.
_PYTORCH = "pytorch"


class Described(NamedTuple):
    """A container, where it stands, and the GPUs that it gets.

    Attributes:
        line: the first line of its mapping, from 1.
        container: what is stated.
        gpus: how many GPUs it gets at most, and the setting; None = not stated.
        stated: the environment that the file sets, and where.
        operator: what the operator of the job sets besides; the values are not known.
        fill: fills in the variables of its command as Kubernetes or Compose does.
    """

    line: int
    container: ManifestContainer
    gpus: tuple[int, str] | None
    stated: dict[str, Stated]
    operator: dict[str, str]
    fill: Callable[[str], str]

    @property
    def known(self) -> dict[str, str]:
        """The variables whose values the file states."""
        return {name: one.value for name, one in self.stated.items()}

    @property
    def variables(self) -> dict[str, str]:
        """All variables."""
        return self.operator | self.known


class ConfigText(NamedTuple):
    """A file in a ConfigMap.

    Attributes:
        name: the file's name.
        text: its content.
        before: the line before its first one.
    """

    name: str
    text: str
    before: int


class _Role(NamedTuple):
    """The part of a job that a pod plays.

    Attributes:
        job: what the job states for its containers.
        specification: where its pods are described.
        variables: those that the operator sets in them.
    """

    job: ManifestContainer
    specification: Any
    variables: dict[str, str] = {}


def read_manifest(
    documents: Sequence[Any], file: Callable[[str], str] = lambda _: ""
) -> tuple[list[Described], list[ConfigText]]:
    """The containers in documents (`yaml_text.documents`), and the files in their ConfigMaps.

    Args:
        documents: the documents.
        file: the text of a file beside them; "" = it cannot be read.

    Raises:
        ValueError: they are too large once expanded, or have a tag that is not known.
    """
    found: list[Described] = []
    objects: list[Any] = []
    for document in yaml_text.values(documents):
        if not isinstance(document, yaml_text.Mapping):
            continue
        if isinstance(document.get("services"), dict):
            found += _of_compose(document["services"], file)
        elif isinstance(document.get("kind"), str):
            objects += _objects(document)
    maps = config_maps(objects)
    for one in objects:
        found += _of_kubernetes(one, maps)
    return found, [text for one in objects for text in _files(one)]


def _objects(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The objects in a document: itself, and those of a list or of another object (AppWrapper)."""
    if isinstance(value, list):
        for one in value if depth else ():
            yield from _objects(one, depth - 1)
    elif isinstance(value, dict):
        if isinstance(value.get("kind"), str) and (depth == _DEPTH or "apiVersion" in value):
            yield value
        for one in value.values() if depth else ():
            yield from _objects(one, depth - 1)


def _files(values: Any) -> Iterator[ConfigText]:
    if values.get("kind") != "ConfigMap":
        return
    data = values.get("data")
    for name, text in mapping(data).items():
        if isinstance(text, str):
            yield ConfigText(str(name), text, getattr(data, "below", {}).get(name, 0))


# ---- Kubernetes --------------------------------------------------------------------------------


def _of_kubernetes(values: Any, maps: ConfigMaps) -> Iterator[Described]:
    annotated = _SHM_ANNOTATION in str(values)  # of the pod, wherever its kind has it
    for role in _roles(values):
        for pod in pods_in(role.specification):
            for one in as_list(pod.get("containers")):
                if isinstance(one, yaml_text.Mapping):
                    shm = _SHM_ANNOTATION if annotated else _shm(one, pod)
                    yield _container(one, pod, role, maps, shm)
    trainer = mapping(values.get("spec")).get("trainer")
    if values["kind"] == "TrainJob" and isinstance(trainer, yaml_text.Mapping):
        nodes, ranks = trainer.get("numNodes"), trainer.get("numProcPerNode")
        job = ManifestContainer(
            kind="TrainJob",
            pods=_whole(nodes),
            pods_by=f"`numNodes: {nodes}`",
            ranks=_whole(ranks),
            ranks_by="" if ranks is None else f"numProcPerNode: {ranks}",
        )
        # the rest of the pod is in a runtime of the cluster
        role = _Role(job, None, {f"PET_{name}": _OPERATOR for name in _OF_TRAINER})
        yield _container(trainer, {"runtimeClassName": "?"}, role, maps, "a runtime")


def _roles(values: Any) -> Iterator[_Role]:
    kind, spec = values["kind"], mapping(values.get("spec"))
    job = ManifestContainer(kind=str(kind))
    if kind == "PyTorchJob":
        yield from _pytorch_roles(spec, job)
    elif kind == "MPIJob":
        yield from _mpi_roles(spec, job)
    elif kind == "JobSet":
        parts = [one for one in as_list(spec.get("replicatedJobs")) if isinstance(one, dict)]
        for part in parts:
            inner = mapping(mapping(part.get("template")).get("spec"))
            replicas, each = _whole(part.get("replicas", 1)), _whole(inner.get("parallelism", 1))
            known = replicas is not None and each is not None and len(parts) == 1
            pods = (replicas or 0) * (each or 0) if known else None
            by = "`replicas` and `parallelism` of its replicated job"
            yield _Role(msgspec.structs.replace(job, pods=pods, pods_by=by), part)
    elif kind == "Job" and isinstance(spec.get("tasks"), list):  # Volcano's
        tasks = [one for one in spec["tasks"] if isinstance(one, dict)]
        for task in tasks:
            pods = _whole(task.get("replicas", 1)) if len(tasks) == 1 else None
            by = f"`replicas` of the task `{task.get('name', '')}`"
            # its plugin for PyTorch sets the address, but no option of torchrun
            own = msgspec.structs.replace(job, kind="Volcano Job", pods=pods, pods_by=by)
            yield _Role(own, task)
    elif kind in ("Job", "StatefulSet"):
        key = "parallelism" if kind == "Job" else "replicas"
        pods = _whole(spec.get(key, 1))
        # of one pod, the others may be in objects of their own
        pods = pods if pods is not None and pods > 1 else None
        yield _Role(msgspec.structs.replace(job, pods=pods, pods_by=f"`{key}: {pods}`"), values)
    elif kind in ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"):
        yield _Role(job, values, {f"PET_{name}": _OPERATOR for name in _OF_TRAINER})
    else:
        yield _Role(job, values)


def _pytorch_roles(spec: Mapping[str, Any], job: ManifestContainer) -> Iterator[_Role]:
    roles = {
        str(name): mapping(role) for name, role in mapping(spec.get("pytorchReplicaSpecs")).items()
    }
    elastic = mapping(spec.get("elasticPolicy"))
    counts = [_whole(role.get("replicas", 1)) for role in roles.values()]
    most = _whole(elastic.get("maxReplicas", 0))
    pods = None if None in counts or most is None else sum(filter(None, counts))
    by = " + ".join(f"`{name}` {count}" for name, count in zip(roles, counts, strict=True))
    if pods is not None and most is not None and most > pods:
        pods, by = most, f"`maxReplicas: {most}`"
    options = [
        *_OF_PYTORCH,
        *(_OF_ELASTIC if elastic else ()),
        *(_OF_MASTER if "Master" in roles else ()),
    ]
    variables = {f"PET_{name}": _OPERATOR for name in options}
    own, inner = spec.get("nprocPerNode"), elastic.get("nProcPerNode")
    ranks = own if own is not None else inner
    key = "nprocPerNode" if own is not None else "elasticPolicy.nProcPerNode"
    refused = list[str]()
    if elastic and "Worker" not in roles:
        refused.append("elastic-without-workers")
    if own is not None and inner is not None:
        refused.append("ranks-stated-twice")
    if _whole(roles.get("Master", {}).get("replicas", 1)) not in (1, None):
        refused.append("one-master")
    for name, role in roles.items():
        names = [
            str(one.get("name", ""))
            for pod in pods_in(role)
            for one in as_list(pod["containers"])
            if isinstance(one, dict)
        ]
        lacks = names and _PYTORCH not in names and not any("$" in one for one in names)
        job_of_role = msgspec.structs.replace(
            job,
            pods=pods,
            pods_by=by,
            elastic=bool(elastic),
            ranks=_whole(ranks),
            ranks_by=f"{key}: {ranks}",
            refused=(*refused, *(["container-named-pytorch"] if lacks else [])),
        )
        refused = []  # once is enough
        yield _Role(job_of_role, {name: role}, variables)


def _mpi_roles(spec: Mapping[str, Any], job: ManifestContainer) -> Iterator[_Role]:
    roles = mapping(spec.get("mpiReplicaSpecs"))
    worker, launcher = mapping(roles.get("Worker")), mapping(roles.get("Launcher"))
    gpus = [
        limited_gpus(one)
        for pod in pods_in(worker)
        for one in as_list(pod["containers"])
        if isinstance(one, dict)
    ]
    workers, slots = _whole(worker.get("replicas", 0)), _whole(spec.get("slotsPerWorker", 1))
    if workers is not None and spec.get("runLauncherAsWorker") is True:
        workers += 1
    # MPICH and Intel MPI start more ranks than there are slots
    checked = spec.get("mpiImplementation", "OpenMPI") == "OpenMPI" and slots is not None
    counted = gpus[0] if len(gpus) == 1 else None
    wrong = _whole(launcher.get("replicas", 1)) not in (1, None)
    yield _Role(
        msgspec.structs.replace(
            job,
            workers=workers if checked and worker else None,
            slots=slots or 1,
            worker_gpus=counted[0] if counted else None,
            refused=("one-launcher",) if wrong else (),
        ),
        launcher,
    )
    yield _Role(job, worker)


def _container(
    values: Any, pod: Mapping[str, Any], role: _Role, maps: ConfigMaps, shm: str
) -> Described:
    job = role.job
    resources = mapping(values.get("resources", values.get("resourcesPerNode")))
    limits, requests = _devices(resources.get("limits")), _devices(resources.get("requests"))
    container = msgspec.structs.replace(
        job,
        name=str(values.get("name") or ""),
        limits=limits,
        requests=requests,
        has_devices=bool(limits or requests or resources.get("claims"))
        or bool(pod.get("runtimeClassName") or pod.get("resourceClaims"))
        or mapping(values.get("securityContext")).get("privileged") is True
        or any(
            isinstance(item, dict) and item.get("name") == "NVIDIA_VISIBLE_DEVICES"
            for item in as_list(values.get("env"))
        )
        or bool(values.get("envFrom")),
        shm=shm,
        refused=(*job.refused, *_refused_devices(limits, requests), *_refused_variables(values)),
    )
    stated = of_pod(values, maps)
    known = {name: one.value for name, one in stated.items()}
    fill = functools.partial(of_kubernetes, known=known)
    gpus = limited_gpus({"resources": resources})
    return Described(values.line, container, gpus, stated, role.variables, fill)


def _refused_variables(values: Mapping[str, Any]) -> Iterator[str]:
    """The value of a variable is text: a number or a word such as `true` needs quotes."""
    given = [item for item in as_list(values.get("env")) if isinstance(item, dict)]
    wrong = [item for item in given if isinstance(item.get("value"), (bool, int, float))]
    if wrong:
        yield f"variable-not-text:{wrong[0].get('name')}"


def _devices(values: Any) -> dict[str, str]:
    return {
        str(key): str(value)
        for key, value in mapping(values).items()
        if not _NO_DEVICE.match(str(key)) and str(value) not in ("0", "None")
    }


def _refused_devices(limits: Mapping[str, str], requests: Mapping[str, str]) -> Iterator[str]:
    """Rules for devices: they are whole, they are limited, and the request equals the limit."""
    for name in {*limits, *requests}:
        limit, request = limits.get(name), requests.get(name)
        given = [value for value in (limit, request) if value is not None]
        known = all(_WHOLE.match(value) or _PART.match(value) for value in given)
        if not _EXTENDED.match(name) or not known:  # a template may fill it in
            continue
        if any(map(_PART.match, given)):
            yield "device-not-whole"
        elif limit is None:
            yield "device-without-limit"
        elif request not in (None, limit):
            yield "device-request-differs"


def _shm(values: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    if pod.get("hostIPC") is True:
        return "hostIPC"
    return next((f"volume {name}" for name in shm_volumes(values)), "")


def _whole(value: Any) -> int | None:
    """A whole number; None for a template, or a word such as `auto`."""
    text = str(value)
    return int(text) if _WHOLE.match(text) else None


# ---- Compose -----------------------------------------------------------------------------------


def _of_compose(services: Mapping[str, Any], file: Callable[[str], str]) -> Iterator[Described]:
    fill = functools.partial(interpolated, known=env_file(file(".env")))
    for name, values in services.items():
        if not isinstance(values, yaml_text.Mapping):
            continue
        devices = [
            {key: fill(one) if key == "count" else one for key, one in mapping(device).items()}
            if isinstance(mapping(device).get("count"), str)
            else device
            for device in compose_devices(values)
        ]
        given = compose_variables(values.get("environment"))
        has_devices = bool(
            devices
            or values.get("gpus")
            or values.get("runtime")
            or values.get("devices")
            or values.get("privileged")
            or values.get("extends")
            or "<<" in values
            or "env_file" in values
            or "NVIDIA_VISIBLE_DEVICES" in given
        )
        yield Described(
            values.line,
            ManifestContainer(
                kind="Compose service",
                name=str(name),
                has_devices=has_devices,
                shm=_compose_shm(values),
            ),
            compose_gpus(devices),
            of_service(values, fill, file),
            {},
            fill,
        )


def _compose_shm(values: Mapping[str, Any]) -> str:
    if "shm_size" in values:
        return f"shm_size: {values['shm_size']}"
    if not has_own_ipc(values):
        return f"ipc: {values['ipc']}"
    mounts = [*as_list(values.get("volumes")), values.get("tmpfs")]
    if SHM in str(mounts):
        return "a volume"
    return "extends" if "extends" in values else ""
