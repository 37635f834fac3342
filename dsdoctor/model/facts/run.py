"""The request: what the run needs, against which checks judge the machine."""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.model.facts.base import Fact


class Scope(enum.Enum):
    """Who can fix a condition: the node's administrator, the environment's owner, or the job."""

    NODE = "node"
    USER_ENV = "user-env"
    JOB = "job"


class Floors(msgspec.Struct, frozen=True, kw_only=True):
    """Minimum requirements of a profile (`check --profile`); None = not specified.

    Attributes:
        name: name of the profile.
        gpus: minimum number of GPUs.
        gpu_memory_gib: memory of each GPU, in GiB.
        compute_capability: compute capability of each GPU (`8.0`).
        cpu_cores: CPUs that the job may use.
        ram_gib: host memory of the machine or its cgroup, in GiB.
        disk_gib: free space where the job writes, in GiB.
        disk_path: the folder to measure; None = the working directory of the job.
        python: minimum Python version.
        torch: minimum torch version.
        deepspeed: minimum DeepSpeed version.
        cuda: minimum CUDA version of torch.
        driver: minimum driver version.
        packages: name of a distribution to its minimum version.
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


class ContainerStart(msgspec.Struct, frozen=True, kw_only=True):
    """How a command starts the container of the job, as far as its words show.

    Attributes:
        program: `docker run`, `apptainer exec`, `srun --container-image` …
        gpus: the option that passes GPUs on (`--gpus all`, `--nv`); "" = none does.
        shm: the option that decides about /dev/shm (`--ipc=host`); "" = none does.
        network: the option that decides about its network (`--network host`); "" = none does.
        unknown: words that only a shell knows, or a container that runs already, may decide these.
        launcher: what it starts: a launcher, `python`, or "" for anything else.
        script: the script that this starts; "" = none was found.
        nodes: nodes of the run, as the command inside says.
        workers: options of the script set DataLoader workers.
        on_cpu: the command keeps the job on the CPU.
        uses_torch: the script can be read here and imports torch, or a library on top of it.
    """

    program: str
    gpus: str = ""
    shm: str = ""
    network: str = ""
    unknown: bool = False
    launcher: str = ""
    script: str = ""
    nodes: int = 1
    workers: bool = False
    on_cpu: bool = False
    uses_torch: bool = False


class ManifestContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container that a Kubernetes manifest or a Compose file describes, and the job around it.

    Attributes:
        kind: of the object in the file (`PyTorchJob`), or `Compose service`.
        name: of the container or service.
        has_devices: it gets devices, or may get them in a way that does not count them.
        limits: devices by their resource names, as limited in the file (`nvidia.com/gpu: "8"`).
        requests: the same, as requested.
        shm: the setting that decides about /dev/shm; "" = none does.
        pods: how many pods start its command together; None = not stated, or not fixed.
        pods_by: the settings that say so.
        elastic: fewer pods may start it, too.
        ranks: ranks of each pod, as the job states them beside the command; None = it does not.
        ranks_by: the setting that says so.
        workers: pods on which the `mpirun` of this container starts ranks; None = not one.
        slots: ranks of each of them.
        worker_gpus: GPUs of each of them; None = not stated.
        refused: rules of Kubernetes or of the job's operator that the object breaks, by name, after
            `:` with the variable that one of them is about.
    """

    kind: str
    name: str = ""
    has_devices: bool = False
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    shm: str = ""
    pods: int | None = None
    pods_by: str = ""
    elastic: bool = False
    ranks: int | None = None
    ranks_by: str = ""
    workers: int | None = None
    slots: int = 1
    worker_gpus: int | None = None
    refused: tuple[str, ...] = ()


class PlanNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that a launch plan (`check --plan`) states.

    Attributes:
        path: the file.
        option: name of the selected option (`zero-2`).
        gpus_per_node: GPUs on this host; 0 = the run uses CPUs.
        gpu_ids: indices of those GPUs, in PCI order.
        gpu_bytes: peak on each of them.
        host_bytes: peak on each host.
        gpu_state_bytes: the part of the GPU peak that does not depend on the data.
        host_state_bytes: the same for the host.
        gpu_items: components of the GPU peak.
        host_items: components of the host peak.
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
    """The request, as given on the command line.

    Attributes:
        gpus: selectors given with --gpus (index, UUID or MIG id), in order; empty = all.
        expect_gpus: number of GPUs that must be present; None = not given.
        config_path: the DeepSpeed config passed with --config, or in the command.
        config_named_by: what names it; "" for --config.
        config: that config, parsed as DeepSpeed parses it; None if not given or not parsable.
        framework: what hands the config to DeepSpeed: `hf`, `lightning`, `accelerate` or `native`;
            "" = unknown.
        training_arguments: the script fills transformers' `TrainingArguments` with the options of
            its command line, so an option that is missing has its default.
        trainer_values: options that the YAML of a trainer sets, as the command line would write
            them; empty = the command passes no YAML.
        output_dir: where transformers' Trainer saves, on this machine; "" = unknown.
        quick: torch is not imported.
        deep: trial builds and GPU work are allowed.
        cwd: working directory of the job.
        build_ops: ops that `DS_BUILD_*=1` in the environment requests to pre-build (`OPS` = all).
        command: the command after `check --` (for a shell, the command it starts); empty = none.
        followed: where in a shell script or string the command was found; "" = it is as given.
        carriage_return: what gets the carriage return at the end of that line of a shell script, as
            Windows ends it: `script` (or it cuts off the rest of the command), `argument`; "" =
            there is none.
        unset: variables in the command that neither its script nor the environment sets.
        environment: folder or interpreter that the command itself selects (`uv run`, a path, a
            script that activates it); "" = none, the shell decides.
        environment_by: what selects it, in words.
        not_followed: why the command that starts the job could not be determined; "" = it was.
        batch: options of the Slurm job that the command submits, of `sbatch` and of the script's
            `#SBATCH` lines, by long names without dashes (`ntasks_per_node`); empty = none.
        batch_refused: why sbatch refuses the script: `line breaks` of Windows, or `no interpreter`
            in its first line; "" = it does not.
        batch_folder: folder of the job's output (`--output`, `--error`) that does not exist here.
        visible_devices: `CUDA_VISIBLE_DEVICES` of the ranks on this host, if the command or its
            launcher sets it; None = neither does.
        device_count: how many of the visible GPUs the ranks on this host use, the first ones; None
            = not stated.
        container_gpus: GPUs that the job's container gets at most, of its manifest, compose file
            or `docker run`; None = not stated.
        container_gpus_by: the setting that says so (`nvidia.com/gpu: 2`).
        container_ranks: ranks that a launcher in the job's container starts on this host, as the
            command states them; None = not stated, or no container.
        container_runtime: the runtime that the job's container asks for (`--runtime=nvidia` of
            `docker run`, `runtime: nvidia` of a compose file); "" = none.
        uses_deepspeed: whether the command starts DeepSpeed's launcher, or a script that imports
            DeepSpeed in any case; False = nothing in the script, its own modules, the command or
            its files may start DeepSpeed; None = unknown.
        group_line: line in which the script surely creates torch's process group from the variables
            of a launcher, and sets none itself; 0 = unknown, or it does not.
        gpu_needed_by: what in the command or the script surely needs a GPU here; "" = nothing
            certainly does.
        without_accelerate: nothing that the script and its own modules import uses accelerate;
            False = something does, or it is unknown.
        container: how the command starts the job's container; None = it starts none.
        manifest: the container of a manifest in which the command stands; None = in none.
        hostfile: the file given with --hostfile.
        paths: paths that must exist and be readable (`--path`).
        writable: folders that must be writable (`--writable`).
        checkpoint: the folder given with --checkpoint.
        model: shape of the model given with --model, as `recommend` describes it.
        model_given: the argument of --model; "" = none.
        sequence: sequence length in tokens, for activations; None = not given.
        finetune: `full` (all parameters) or `lora` (adapters); None = not given.
        lora_rank: rank of the adapters.
        modules_to_save: modules that are trained in full in addition to them.
        plan: resources of the plan given with --plan.
        floors: minimum requirements of the profile given with --profile.
    """

    gpus: tuple[str, ...] = ()
    expect_gpus: int | None = None
    config_path: str | None = None
    config_named_by: str = ""
    config: dict[str, object] | None = None
    framework: str = ""
    training_arguments: bool = False
    trainer_values: dict[str, str] = msgspec.field(default_factory=dict)
    output_dir: str = ""
    quick: bool = False
    deep: bool = False
    cwd: str = "."
    build_ops: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    followed: str = ""
    carriage_return: str = ""
    unset: tuple[str, ...] = ()
    environment: str = ""
    environment_by: str = ""
    not_followed: str = ""
    batch: dict[str, str] = {}
    batch_refused: str = ""
    batch_folder: str = ""
    visible_devices: str | None = None
    device_count: int | None = None
    container_gpus: int | None = None
    container_gpus_by: str = ""
    container_ranks: int | None = None
    container_runtime: str = ""
    uses_deepspeed: bool | None = None
    group_line: int = 0
    gpu_needed_by: str = ""
    without_accelerate: bool = False
    container: ContainerStart | None = None
    manifest: ManifestContainer | None = None
    hostfile: str | None = None
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    checkpoint: str | None = None
    model: dict[str, object] | None = None
    model_given: str = ""
    sequence: int | None = None
    finetune: str | None = None
    lora_rank: int = 16
    modules_to_save: tuple[str, ...] = ()
    plan: PlanNeeds | None = None
    floors: Floors | None = None

    @property
    def wants_gpu(self) -> bool:
        """Whether the user requires GPUs."""
        return bool(self.gpus) or bool(self.expect_gpus)

    @property
    def without_deepspeed(self) -> bool:
        """Whether the job surely does without DeepSpeed: no config is given, nothing starts it."""
        return self.config is None and self.uses_deepspeed is False
