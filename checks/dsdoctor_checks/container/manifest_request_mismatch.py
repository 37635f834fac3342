"""A Kubernetes manifest or Compose file gives its container other GPUs or pods than its command uses.

## Why it matters
A container sees the GPUs that it asks for, and none if it asks for none. More ranks than GPUs stop with
`invalid device ordinal`. `torchrun --nnodes 4` in a job of two pods waits for the others until it
times out; with fewer nodes than pods, or with `--standalone`, each pod trains a model of its own. Without
`--nproc_per_node`, torchrun starts one rank, and the other GPUs of the pod are paid for and idle.

## What to do
Let the manifest and the command state the same numbers, or leave them to the operator: the
training-operator sets `PET_NNODES` and `PET_NPROC_PER_NODE` (`nprocPerNode` of a PyTorchJob), which
torchrun takes for options that the command does not have.

## References
- https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/pytorch/
- https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
- https://docs.docker.com/compose/how-tos/gpu-support/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    ManifestContainer,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import NODE_OPTION, RANK_OPTIONS, amount, ranks_of_mpirun

CONDITION = Condition(
    "manifest-request-mismatch",
    id="DSD1105",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("invalid-device-ordinal", "rendezvous-timeout"),
)
#: Launchers that start ranks on their own node only.
_OWN_NODE = frozenset({"accelerate", "torchrun"})
#: Kinds whose pods make one run; those of a Job may also try different settings.
_TOGETHER = frozenset({"JobSet", "PyTorchJob", "Volcano Job"})
#: Options of Open MPI that let it start more ranks than slots.
_OVERSUBSCRIBE = (
    "oversubscribe",
    "map_by",
    "rankfile",
    "rf",
    "host",
    "H",
    "hostfile",
    "machinefile",
)
_COMPOSE = "reserve it in `deploy.resources.reservations.devices` (`driver: nvidia`, `count: N`, `capabilities: [gpu]`)"
_KUBERNETES = "set `nvidia.com/gpu: N` in `resources.limits` of the container"


@check(CONDITION)
def request_fits_command(command: LaunchCommand, run: RunNeeds) -> Iterator[Finding]:
    """Compares the devices and pods of a container with the ranks and nodes of its command."""
    container = run.manifest
    if container is None:
        yield skip("the command is in no manifest")
        return
    found = [
        *_devices(command, container),
        *_ranks(command, container, run),
        *_nodes(command, container),
        *_slots(command, container),
    ]
    yield from found
    if not found:
        yield ok(container=container.name)


def _launcher(command: LaunchCommand) -> str:
    return command.inner or command.launcher


def _devices(command: LaunchCommand, container: ManifestContainer) -> Iterator[Finding]:
    """A container without devices, whose command needs them."""
    if container.has_devices or container.workers is not None or command.on_cpu():
        return
    launcher = _launcher(command)
    options, given = command.options, dict(command.script_options())
    asks = (
        f"`{launcher} --num_gpus {options['num_gpus']}`"
        if launcher == "deepspeed" and "num_gpus" in options
        else "`--nproc_per_node gpu`"
        if options.get("nproc_per_node") == "gpu"
        else "NCCL"
        if "nccl" in (given.get("backend"), given.get("dist_backend"), given.get("ddp_backend"))
        else ""
    )
    compose = container.kind.startswith("Compose")
    if asks and not command.outer:
        yield warn(
            f"the container asks for no GPU, but its command uses {asks}",
            effect="CUDA finds no device in it"
            + (", unless Docker's default runtime passes GPUs on" if compose else ""),
            hint=_COMPOSE if compose else _KUBERNETES,
            container=container.name,
        )


def _ranks(
    command: LaunchCommand, container: ManifestContainer, run: RunNeeds
) -> Iterator[Finding]:
    """The ranks that the job states, or torchrun's one, on the GPUs of the pod."""
    gpus = run.container_gpus
    if (
        gpus is None
        or _launcher(command) != "torchrun"
        or command.inner
        or RANK_OPTIONS & command.options.keys()
    ):
        return
    if container.ranks is not None and container.ranks > gpus:
        yield fail(
            f"the job starts {container.ranks} ranks in each pod (`{container.ranks_by}`), but the"
            f" container gets {amount(gpus, 'GPU')} (`{run.container_gpus_by}`)",
            effect=f"ranks from {gpus} on stop with `invalid device ordinal`",
            hint=f"set both to the same number, such as `{container.ranks_by.split(':')[0]}: {gpus}`",
            ranks=container.ranks,
            gpus=gpus,
        )
    elif gpus > 1 and not container.ranks_by and "PET_NPROC_PER_NODE" not in command.env:
        yield warn(
            f"torchrun starts one rank, but the container gets {amount(gpus, 'GPU')}"
            f" (`{run.container_gpus_by}`)",
            effect=f"{amount(gpus - 1, 'GPU')} of each pod {'is' if gpus == 2 else 'are'} idle",  # noqa: PLR2004
            hint=f"pass `--nproc_per_node {gpus}`",
            ranks=1,
            gpus=gpus,
        )


def _nodes(command: LaunchCommand, container: ManifestContainer) -> Iterator[Finding]:
    launcher, pods = _launcher(command), container.pods
    if pods is None or launcher not in _OWN_NODE or command.inner:
        return
    option, used = NODE_OPTION[launcher], command.num_nodes
    stated = command.options.get(option[2:], "")
    evidence = {"pods": pods, "nodes": used, "launcher": launcher}
    apart = (
        "`--standalone`"
        if "standalone" in command.options and used in (None, 1)
        else "torchrun without `--nnodes`"
        if used is None and launcher == "torchrun" and "PET_NNODES" not in command.env
        else ""
    )
    if apart and pods > 1 and container.kind in _TOGETHER:
        yield warn(
            f"{apart} starts a run of its own in each of the {pods} pods ({container.pods_by})",
            effect="no pod knows of the others: each trains a model of its own",
            hint=f"pass `{option} {pods}` and the same `--rdzv-endpoint` in each pod",
            **evidence,
        )
    elif used is None or ":" in stated:
        return
    elif used > pods:
        yield fail(
            f"the command waits for {used} nodes (`{option}`), but the job has {amount(pods, 'pod')}"
            f" ({container.pods_by})",
            effect="the launchers wait for the missing nodes until they time out",
            hint=f"pass `{option} {pods}`, or set the number of pods to {used}",
            **evidence,
        )
    elif used < pods and not container.elastic:
        yield warn(
            f"the job has {pods} pods ({container.pods_by}), but the command uses {used} (`{option}`)",
            effect="the other pods wait, or train a model of their own",
            hint=f"pass `{option} {pods}`",
            **evidence,
        )


def _slots(command: LaunchCommand, container: ManifestContainer) -> Iterator[Finding]:
    """An MPIJob: Open MPI takes hosts and slots from the hostfile that the operator writes."""
    workers, slots = container.workers, container.slots
    if workers is None or command.launcher != "mpirun":
        return
    if container.worker_gpus and slots > container.worker_gpus:
        yield fail(
            f"`slotsPerWorker: {slots}` starts {slots} ranks on each worker, which gets"
            f" {amount(container.worker_gpus, 'GPU')}",
            effect=f"ranks from {container.worker_gpus} on stop with `invalid device ordinal`",
            hint=f"set `slotsPerWorker: {container.worker_gpus}`",
            slots=slots,
            gpus=container.worker_gpus,
        )
    asked = ranks_of_mpirun(command)
    if asked is None or any(name in command.outer for name in _OVERSUBSCRIBE):
        return
    if asked > workers * slots:
        yield fail(
            f"mpirun is to start {asked} ranks, but the job has {amount(workers * slots, 'slot')}"
            f" ({amount(workers, 'worker')} with `slotsPerWorker: {slots}`)",
            effect="Open MPI stops: there are not enough slots available",
            hint=f"pass `-np {workers * slots}`, or set `slotsPerWorker` to the GPUs of a worker",
            asked=asked,
            slots=workers * slots,
        )
