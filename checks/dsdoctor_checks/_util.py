"""Helpers shared by several families: versions, the GPUs of a run, which code runs on which GPU.

Over 400 lines because of the examples of its many small functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.version import InvalidVersion, Version

from dsdoctor.api import (
    DeepSpeedLive,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    RunNeeds,
    TorchBuild,
    TorchLive,
    is_partial,
    whole,
    without_fix,
)

Capability = tuple[int, int]

#: Bytes.
GIB = 1 << 30

#: Values, in upper case, with which a variable of huggingface_hub is on (0.14-2.4 constants.py).
HUB_TRUE = ("1", "ON", "YES", "TRUE")

#: Tegra parts, which share no code with their major (torch/cuda/__init__.py `_CompatInterval`).
TEGRA: frozenset[Capability] = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
#: 10.1 was renamed 11.0 in CUDA 13 (ptxas of 13.0.88).
RENAMED: dict[Capability, Capability] = {(10, 1): (11, 0)}

_ARCH = re.compile(r"^(sm|compute)_(\d+)(\d)([af]?)$")


def own_environment(patient: Patient | Missing) -> bool:
    """Whether dsdoctor's own interpreter is examined because no other was found.

    With `uvx` and `pipx` that environment holds only dsdoctor: no job runs there.
    """
    return not isinstance(patient, Missing) and patient.chosen_by == "running interpreter"


def holds_no_job(patient: Patient | Missing) -> bool:
    """Whether nothing should be installed into what was examined: no environment was active.

    The distribution's own Python is often closed to pip.
    """
    if isinstance(patient, Missing):
        return False
    found = patient.chosen_by in ("python3 on PATH", "--python", "DSDOCTOR_PYTHON")
    return own_environment(patient) or (found and patient.executable.startswith("/usr/bin/"))


def hint_to_install(patient: Patient | Missing, install: str, *, trains: bool = False) -> str:
    """What to do about a package that the environment does not have.

    Args:
        patient: the interpreter examined.
        install: the command that installs the package there.
        trains: whether torch is installed, so the environment is a job's even if not selected.
    """
    named = "activate the environment that the job uses, or pass its interpreter with `--python`"
    if own_environment(patient) and not trains:
        return f"no environment is active, so dsdoctor's own was examined: {named}"
    if not isinstance(patient, Missing) and patient.left_by_python:
        now = ".".join(patient.version.split(".")[:2])
        return (
            f"the interpreter of `{patient.prefix}` was replaced, and its packages are those of Python"
            f" {patient.left_by_python}: create the environment again with Python"
            f" {patient.left_by_python}, or install its packages again for Python {now}"
        )
    if not trains and not isinstance(patient, Missing):
        if holds_no_job(patient):
            return f"{named}; without one, create it with `{patient.executable} -m venv DIR`"
        if patient.chosen_by == "python3 on PATH":
            return f"{named}; to install it for `{patient.executable}`, run `{install}`"
    return f"run `{install}`, or pass the job's interpreter with `--python`"


def numbers(version: str | None) -> tuple[int, ...]:
    """The leading dotted numbers of a version; () if there are none.

    >>> numbers("535.104.05"), numbers("2.13.0+cpu"), numbers(None)
    ((535, 104, 5), (2, 13, 0), ())
    """
    found = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def pair(version: str | None) -> tuple[int, int] | None:
    """Major and minor of a version; None unless it has both.

    >>> pair("12.8"), pair("2.11.0+cu130"), pair("12")
    ((12, 8), (2, 11), None)
    """
    found = numbers(version)
    return (found[0], found[1]) if len(found) > 1 else None


def is_version(text: str | None) -> bool:
    """Whether a text is a version and nothing else: it becomes a part of paths and requirements.

    >>> is_version("2.9.0a0+git1b2c"), is_version("12.8/../x"), is_version("1 --index-url=x")
    (True, False, False)
    """
    return re.fullmatch(r"[A-Za-z0-9]+(?:[._+!-][A-Za-z0-9]+)*", text or "") is not None


def at_least(version: str | None, floor: str) -> bool:
    """Whether a release is a given one or newer; an unreadable version counts as newer.

    >>> at_least("0.19.8+abc", "0.19.8"), at_least("0.9.5", "0.12.3"), at_least(None, "1")
    (True, False, True)
    """
    try:
        return version is None or Version(version).release >= Version(floor).release
    except InvalidVersion:
        return True


def surely_at_least(version: str | None, floor: str) -> bool:
    """Whether a release that can be read is a given one or newer.

    >>> surely_at_least("84.2.1", "82"), surely_at_least("unknown", "82"), surely_at_least(None, "1")
    (True, False, False)
    """
    try:
        return version is not None and Version(version).release >= Version(floor).release
    except InvalidVersion:
        return False


def gib(size: float) -> float:
    """Bytes as GiB, to one digit.

    >>> gib(1610612736)
    1.5
    """
    return round(size / GIB, 1)


def dotted(capability: Capability) -> str:
    """A compute capability as NVIDIA writes it.

    >>> dotted((8, 6))
    '8.6'
    """
    return f"{capability[0]}.{capability[1]}"


def parse_arch(arch: str) -> tuple[str, Capability, str] | None:
    """Kind, capability and suffix of an entry in an architecture list.

    >>> parse_arch("sm_86"), parse_arch("compute_120"), parse_arch("sm_90a"), parse_arch("gfx90a")
    (('sm', (8, 6), ''), ('compute', (12, 0), ''), ('sm', (9, 0), 'a'), None)
    """
    found = _ARCH.match(arch.strip())
    if found is None:
        return None
    return found.group(1), (int(found.group(2)), int(found.group(3))), found.group(4)


def code_for(arch_list: Iterable[str], capability: Capability) -> str | None:
    """The entry of an architecture list that runs on a GPU: machine code if any, else PTX.

    Machine code for X.Y runs on X.Z with Z >= Y. PTX of any lower or equal capability is compiled
    at startup. Code with the suffix `a` runs on its own capability only.

    >>> code_for(["sm_80", "sm_86"], (8, 9))
    'sm_86'
    >>> code_for(["sm_75", "sm_90", "compute_90"], (12, 0))
    'compute_90'
    >>> print(code_for(["sm_75", "sm_80"], (7, 0)))
    None
    """
    wanted = RENAMED.get(capability, capability)
    code: list[tuple[Capability, str]] = []
    ptx: list[tuple[Capability, str]] = []
    for arch in arch_list:
        parsed = parse_arch(arch)
        if parsed is None:
            continue
        kind, have, suffix = parsed
        have = RENAMED.get(have, have)
        apart = suffix == "a" or wanted in TEGRA or have in TEGRA
        if (
            kind == "sm"
            and have[0] == wanted[0]
            and have <= wanted
            and (have == wanted or not apart)
        ):
            code.append((have, arch))
        elif kind == "compute" and have <= wanted and (not suffix or have == wanted):
            ptx.append((have, arch))
    best = max(code, default=None) or max(ptx, default=None)
    return best[1] if best else None


def variable(env: Environment | Missing, name: str) -> str | None:
    """A variable of the environment; None if it is not set or the environment is not known."""
    return None if isinstance(env, Missing) else env.get(name)


def may_be_set(env: Environment | Missing, name: str) -> bool:
    """Whether a variable is set, or may be: of a pasted text, only some variables are known."""
    return isinstance(env, Missing) or is_partial(env.variables) or env.get(name) is not None


def hosts_may_be_listed(hostfile: Hostfile | Missing, command: LaunchCommand) -> bool:
    """Whether a hostfile lists hosts, or may: the command passes one that was not read."""
    if isinstance(hostfile, Missing):
        return command.hostfile is not None
    return bool(hostfile.entries)


def visible_tokens(env: Environment | Missing) -> tuple[str, ...] | None:
    """The entries of CUDA_VISIBLE_DEVICES up to the first -1; None if it is not set."""
    value = variable(env, "CUDA_VISIBLE_DEVICES")
    return None if value is None else _tokens(value)


def job_environment(
    env: Environment | Missing, command: LaunchCommand | Missing
) -> Environment | Missing:
    """The environment with the variables that the command itself sets, as `NAME=1 torchrun …` does.

    >>> here = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    >>> job_environment(here, LaunchCommand(env={"CUDA_VISIBLE_DEVICES": "2,3"})).variables
    {'CUDA_VISIBLE_DEVICES': '2,3'}
    """
    if not isinstance(command, LaunchCommand) or not isinstance(env, Environment):
        return env
    # a shell may still replace what has a `$`
    own = {name: value for name, value in command.env.items() if "$" not in value}
    if not own or is_partial(env.variables):
        return env
    return Environment(variables={**env.variables, **own})


def stated_for_cpu(
    run: RunNeeds, env: Environment | Missing, command: LaunchCommand | Missing
) -> bool:
    """Whether the job says itself that it runs on the CPU, and nothing in it needs a GPU.

    With `DS_ACCELERATOR=cpu`, an option such as `--cpu` of `accelerate launch`, or an empty
    CUDA_VISIBLE_DEVICES in front of the command: one in the environment may be a leftover.

    >>> none = Environment(variables={})
    >>> stated_for_cpu(RunNeeds(), none, LaunchCommand(env={"CUDA_VISIBLE_DEVICES": ""}))
    True
    >>> stated_for_cpu(RunNeeds(gpus=("0",)), none, LaunchCommand(options={"cpu": ""}))
    False
    """
    if run.wants_gpu or run.gpu_needed_by:
        return False
    value = variable(env, "DS_ACCELERATOR")
    if isinstance(command, Missing):
        return value == "cpu"
    return command.on_cpu({} if value is None else {"DS_ACCELERATOR": value})


def unset_by(command: LaunchCommand | Missing, name: str) -> str:
    """What unsets a variable of the job: the command may set it itself.

    >>> unset_by(LaunchCommand(env={"A": "1"}), "A"), unset_by(LaunchCommand(), "A")
    ('remove `A` from the command', 'run `unset A`')
    """
    of_command = isinstance(command, LaunchCommand) and name in command.env
    return f"remove `{name}` from the command" if of_command else f"run `unset {name}`"


def fixable(finding: Finding, command: LaunchCommand | Missing, *names: str) -> Finding:
    """A finding about variables, without a fix if the command sets one of them itself."""
    of_command = isinstance(command, LaunchCommand) and not command.env.keys().isdisjoint(names)
    return without_fix(finding) if of_command else finding


def _tokens(value: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for token in value.split(","):
        entry = token.strip()
        if entry == "-1" or (not entry and not tokens):
            break
        tokens.append(entry)
    return tuple(tokens)


def find(gpus: Iterable[Gpu], selector: str) -> Gpu | None:
    """The GPU that an `nvidia-smi` index, a UUID or its start, or a MIG id names."""
    text = selector.strip()
    index = whole(text)
    if index is not None:
        return next((gpu for gpu in gpus if gpu.index == index), None)
    lowered = text.lower()
    if lowered.startswith("mig-gpu-"):
        lowered = lowered[len("mig-") :].split("/", maxsplit=1)[0]
    if not lowered.startswith(("gpu-", "mig-")):
        return None
    for gpu in gpus:
        names = [gpu.uuid, *(device.uuid for device in gpu.mig_devices or ())]
        if any(name and name.lower().startswith(lowered) for name in names):
            return gpu
    return None


def cuda_order(gpus: Gpus, env: Environment | Missing) -> tuple[Gpu, ...]:
    """The GPUs as CUDA numbers them without CUDA_VISIBLE_DEVICES.

    In PCI order if CUDA_DEVICE_ORDER asks for it, else fastest first. NVIDIA does not document
    what "fastest" means: capability, then memory, is an assumption. It matters only if the GPUs
    differ; one that does not answer keeps its place among equal ones.
    """
    kinds = {(gpu.cc, (gpu.memory_total_bytes or 0) >> 30) for gpu in gpus.gpus if gpu.cc}
    if variable(env, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(kinds) == 1:
        return gpus.gpus
    return tuple(
        sorted(
            gpus.gpus,
            key=lambda gpu: (gpu.cc or (0, 0), (gpu.memory_total_bytes or 0) >> 30),
            reverse=True,
        )
    )


def visible(gpus: Gpus, env: Environment | Missing) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible; all if it is not set.

    CUDA stops reading at the first invalid entry.
    """
    tokens = visible_tokens(env)
    return gpus.gpus if tokens is None else _at(tokens, gpus, env)


def _at(tokens: tuple[str, ...], gpus: Gpus, env: Environment | Missing) -> tuple[Gpu, ...]:
    """The GPUs that entries of CUDA_VISIBLE_DEVICES select, up to the first invalid one."""
    ordered = cuda_order(gpus, env)
    left: list[Gpu] = []
    for token in tokens:
        if token.isdecimal():
            found = ordered[int(token)] if int(token) < len(ordered) else None
        else:
            found = find(ordered, token)
        if found is None:
            break
        if found not in left:
            left.append(found)
    return tuple(left)


def chosen(
    gpus: Gpus | Missing, run: RunNeeds, env: Environment | Missing | None = None
) -> tuple[Gpu, ...]:
    """The GPUs that the run would use: those of --gpus, of the command, or the visible ones."""
    if isinstance(gpus, Missing):
        return ()
    if run.gpus:
        named = [find(gpus.gpus, selector) for selector in run.gpus]
        return tuple(gpu for gpu in named if gpu is not None)
    if env is None:
        return gpus.gpus
    of_command = run.visible_devices
    tokens = visible_tokens(env) if of_command is None else _tokens(of_command)
    found = gpus.gpus if tokens is None else _at(tokens, gpus, env)
    if run.device_count is None or run.device_count >= len(found):
        return found
    return (cuda_order(gpus, env) if tokens is None else found)[: run.device_count]


def capabilities(
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
) -> dict[str, Capability]:
    """Compute capability of each GPU of the run, by `GPU <index> (<name>)`.

    Reported by NVML, else by torch, whose device numbers then apply. Empty if the command
    hides every GPU.
    """
    if not run.gpus and run.visible_devices is not None and not _tokens(run.visible_devices):
        return {}
    told = {
        (f"GPU {gpu.index}" if gpu.index is not None else "a GPU")
        + f" ({gpu.name or 'unnamed'})": gpu.cc
        for gpu in chosen(gpus, run, env)
        if gpu.cc is not None
    }
    if told or isinstance(live, Missing):
        return told
    return {
        f"GPU {device.index} ({device.name})": (device.major, device.minor)
        for device in live.devices
    }


def driver_loaded(kernel: NvidiaKernel | Missing) -> bool:
    """Whether the NVIDIA kernel module is loaded."""
    if isinstance(kernel, Missing):
        return False
    return kernel.module_version is not None or "nvidia" in kernel.modules


def driver_answers(nvml: Nvml | Missing) -> bool:
    """Whether NVML reported the driver's version."""
    try:
        return isinstance(nvml, Nvml) and nvml.error is None and nvml.driver_version is not None
    except NotStated:  # a paste may name the version only
        return False


#: cudaErrorNoDevice, before CUDA 10.1 and since.
NO_DEVICE = (38, 100)


def failed_to_start(live: TorchLive | Missing) -> bool:
    """Whether CUDA told torch why it does not start, which is more than that it finds no device."""
    if not isinstance(live, TorchLive) or live.cuda_ok is not False:
        return False
    return live.cuda_error_code is not None and live.cuda_error_code not in NO_DEVICE


def gpu_expected(
    run: RunNeeds,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing | None = None,
    live: TorchLive | Missing | None = None,
) -> bool:
    """Whether a GPU is present or requested; only then are CUDA's needs judged.

    A GPU assigned to a virtual machine (vfio-pci) does not count, nor does one that
    CUDA_VISIBLE_DEVICES hides on purpose.
    """
    if run.wants_gpu:
        return True
    if env is not None and visible_tokens(env) == ():
        return False
    if isinstance(live, TorchLive) and live.devices:
        return True
    if isinstance(gpus, Gpus) and gpus.gpus:
        return True
    if isinstance(kernel, Missing):
        return False
    return any(not (gpu.driver or "").startswith("vfio") for gpu in kernel.pci)


def gpus_hidden(
    os: OsInfo | Missing, kernel: NvidiaKernel | Missing, env: Environment | Missing
) -> bool:
    """Whether the driver has GPUs that are not assigned to this container or Slurm job."""
    if variable(env, "SLURM_JOB_ID"):
        return True
    if isinstance(os, Missing) or isinstance(kernel, Missing) or os.container is None:
        return False
    return not any(re.fullmatch(r"nvidia\d+", node) for node in kernel.device_nodes)


def is_jetson(os: OsInfo | Missing) -> bool:
    """Whether this is a Jetson: its GPU is part of the chip, on no PCI bus, and its kernel NVIDIA's.

    Before JetPack 6 it has neither NVML nor `nvidia-smi` (L4T 32 to 36).
    """
    return isinstance(os, OsInfo) and os.release.endswith("-tegra")


#: Names for accelerators of DeepSpeed (accelerator/real_accelerator.py, 0.19.8) that are not CUDA.
_ACCELERATORS = {
    "hpu": "Intel Gaudi (`hpu`)",
    "klxpu": "Kunlun XPU (`klxpu`)",
    "mlu": "Cambricon MLU (`mlu`)",
    "mps": "Apple MPS (`mps`)",
    "npu": "Ascend NPU (`npu`)",
    "sdaa": "Tecorigin SDAA (`sdaa`)",
    "supa": "Biren SUPA (`supa`)",
    "xpu": "Intel XPU (`xpu`)",
}


def other_accelerator(
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
    env: Environment | Missing,
) -> str | None:
    """The accelerator that is not from NVIDIA and that DeepSpeed uses; None if there is none.

    DeepSpeed's own choice decides, then `DS_ACCELERATOR`, then what is installed: a ROCm build of
    torch, `torch_neuronx`, `torch_npu`, or a build for Intel's XPUs.

    >>> from dsdoctor.api import Why
    >>> none = Missing(why=Why.ABSENT, detail="")
    >>> other_accelerator(TorchBuild(version="2.9.1", hip="6.4"), none, none, none)
    'AMD ROCm'
    >>> other_accelerator(none, none, none, Environment(variables={"DS_ACCELERATOR": "npu"}))
    'Ascend NPU (`npu`)'
    """
    chosen_by_deepspeed = deepspeed.accelerator if isinstance(deepspeed, DeepSpeedLive) else None
    name = chosen_by_deepspeed or variable(env, "DS_ACCELERATOR")
    if name in _ACCELERATORS:
        return _ACCELERATORS[name]
    if name in (None, "cuda") and isinstance(torch, TorchBuild) and torch.hip is not None:
        return "AMD ROCm"
    if name in (None, "cpu") and _has_neuron(packages):
        return "AWS Neuron"
    if isinstance(torch, TorchBuild) and torch.cuda is not None:
        return None  # a build for NVIDIA, whatever else is installed
    if name is None and isinstance(packages, Packages) and "torch-npu" in packages.packages:
        return _ACCELERATORS["npu"]
    if name is None and _is_for_xpu(torch, packages):
        return _ACCELERATORS["xpu"]
    return None


def _has_neuron(packages: Packages | Missing) -> bool:
    """Whether torch drives Trainium or Inferentia: its build may be one for CUDA all the same."""
    return is_listed(packages, "torch-neuronx")


def is_listed(packages: Packages | Missing, name: str) -> bool:
    """Whether a distribution is known to be installed."""
    try:
        return isinstance(packages, Packages) and name in packages.packages
    except NotStated:
        return False


def _is_for_xpu(torch: TorchBuild | Missing, packages: Packages | Missing) -> bool:
    """Whether torch, or Intel's extension of it, is a build for XPUs: those of both end in `+xpu`."""
    try:
        version = torch.version if isinstance(torch, TorchBuild) else None
        found = packages.packages if isinstance(packages, Packages) else {}
        ipex = found.get("intel-extension-for-pytorch")
    except NotStated:
        return False
    return any((one or "").endswith("+xpu") for one in (version, ipex.version if ipex else None))


def cuda_works(live: TorchLive | Missing) -> bool:
    """Whether torch has initialized CUDA on this machine, which overrules every table."""
    return isinstance(live, TorchLive) and live.cuda_ok is True


def amount(count: int, noun: str) -> str:
    """A number with its noun, which takes a plural s.

    >>> amount(1, "GPU"), amount(8, "GPU")
    ('1 GPU', '8 GPUs')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(items: Iterable[object]) -> str:
    """Items joined as in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    texts = [str(item) for item in items]
    if len(texts) == 1:
        return texts[0]
    first, last = ", ".join(texts[:-1]), texts[-1]
    return f"{first} and {last}"


def node_count(
    env: Environment | Missing, hostfile: Hostfile | Missing, command: LaunchCommand | Missing
) -> int:
    """How many nodes the run spans; 1 if nothing says otherwise."""
    counts = [1]
    if isinstance(hostfile, Hostfile):
        counts.append(len(hostfile.entries))
    if isinstance(command, LaunchCommand):
        counts.append(command.num_nodes or 1)
    said = (variable(env, name) or "" for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"))
    return max(*counts, *(whole(text) or 1 for text in said))


#: The option of each launcher for the number of nodes, and those for ranks on each.
NODE_OPTION = {
    "torchrun": "--nnodes",
    "accelerate": "--num_machines",
    "deepspeed": "--num_nodes",
}
RANK_OPTIONS = frozenset({"nproc_per_node", "num_gpus", "num_accelerators", "num_processes"})


def ranks_of_mpirun(command: LaunchCommand) -> int | None:
    """How many ranks mpirun is to start; None = not stated, or not a number.

    >>> ranks_of_mpirun(LaunchCommand(launcher="mpirun", outer={"np": "8"}))
    8
    """
    given = next((command.outer[name] for name in ("np", "n", "c") if name in command.outer), "")
    return whole(given)
