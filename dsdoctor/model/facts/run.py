"""What this run asks for: the yardstick that checks judge the machine against."""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.model.facts.base import Fact


class Scope(enum.Enum):
    """Who can mend a condition: the node's owner, the user's environment, or the job."""

    NODE = "node"
    USER_ENV = "user-env"
    JOB = "job"


class Floors(msgspec.Struct, frozen=True, kw_only=True):
    """What a requirements profile asks for at least (`check --profile`); None = it does not say.

    Attributes:
        name: of the profile.
        gpus: how many there must be.
        gpu_memory_gib: memory of each of them.
        compute_capability: of each of them.
        cpu_cores: CPUs that the job may use.
        ram_gib: host memory of the machine, or of its cgroup.
        disk_gib: free space where the job writes.
        disk_path: where that is; None = the folder the job starts in.
        python, torch, deepspeed, cuda, driver: versions.
        packages: name of a distribution to its version.
    """

    name: str
    gpus: int | None = None
    gpu_memory_gib: float | None = None
    compute_capability: str | None = None
    cpu_cores: int | None = None
    ram_gib: float | None = None
    disk_gib: float | None = None
    disk_path: str | None = None
    python: str | None = None
    torch: str | None = None
    deepspeed: str | None = None
    cuda: str | None = None
    driver: str | None = None
    packages: dict[str, str] = {}


class PlanNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch plan (`check --plan`) says that it will take.

    Attributes:
        path: the file.
        option: name of the chosen option (`zero-2`).
        gpus_per_node: GPUs on this host; 0 = it runs on CPUs.
        gpu_ids: which ones, in PCI order.
        gpu_bytes: peak on each of them.
        host_bytes: peak on each host.
        gpu_state_bytes: of the peak on a GPU, what does not depend on the data.
        host_state_bytes: the same of the host.
        gpu_items: what that is made of.
        host_items: what that is made of.
    """

    path: str
    option: str
    gpus_per_node: int
    gpu_ids: tuple[int, ...] = ()
    gpu_bytes: int = 0
    host_bytes: int = 0
    gpu_state_bytes: int = 0
    host_state_bytes: int = 0
    gpu_items: dict[str, int] = {}
    host_items: dict[str, int] = {}


class RunNeeds(Fact, frozen=True, kw_only=True):
    """The request, as the command line gave it.

    Attributes:
        gpus: selectors given with --gpus (index, UUID or MIG id), in order; empty = all.
        expect_gpus: how many GPUs must be there, or None.
        config_path: the DeepSpeed config given with --config, or named by the command.
        config_named_by: what names it, "" for --config.
        config: that config, parsed as DeepSpeed parses it; None when not given or not parsable.
        quick: torch is not started.
        deep: trial compiles and GPU work are allowed.
        cwd: the folder the job starts in.
        build_ops: ops that `DS_BUILD_*=1` in the environment asks to pre-build (`OPS` for all).
        command: the command behind `check --` (of a shell: what that starts), empty without one.
        followed: where in a shell script or string the command was found, "" = it is as given.
        not_followed: why the command that starts the job could not be told, "" = it could.
        hostfile: the file given with --hostfile.
        paths: what must be there and readable (`--path`).
        writable: folders that must be writable (`--writable`).
        checkpoint: folder given with --checkpoint.
        model: shape of the model given with --model, as `recommend` describes it.
        sequence: tokens in a sequence, for activations; None = not said.
        finetune: `full` (all parameters), `lora` (adapters), or None = not said.
        lora_rank: rank of the adapters.
        plan: what the plan given with --plan will take.
        floors: what the profile given with --profile asks for.
    """

    gpus: tuple[str, ...] = ()
    expect_gpus: int | None = None
    config_path: str | None = None
    config_named_by: str = ""
    config: dict[str, object] | None = None
    quick: bool = False
    deep: bool = False
    cwd: str = "."
    build_ops: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    followed: str = ""
    not_followed: str = ""
    hostfile: str | None = None
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    checkpoint: str | None = None
    model: dict[str, object] | None = None
    sequence: int | None = None
    finetune: str | None = None
    lora_rank: int = 16
    plan: PlanNeeds | None = None
    floors: Floors | None = None

    @property
    def wants_gpu(self) -> bool:
        """Whether the user said that GPUs must be there."""
        return bool(self.gpus) or bool(self.expect_gpus)
