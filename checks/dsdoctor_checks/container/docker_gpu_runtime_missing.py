"""The container was started without the NVIDIA runtime.

## Why it matters
Docker passes GPUs to a container through NVIDIA's runtime. Without it the container has no GPU, or
does not start.

The option that passes GPUs to a container is `--gpus all` for Docker, `--device nvidia.com/gpu=all` for
Podman and `--nv` for Apptainer. `check -- docker run …` reports a command without it.

## What to do
Add that option. If Docker rejects it, install `nvidia-container-toolkit`, run `nvidia-ctk runtime configure --runtime=docker`, and restart
Docker.

## References
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
- https://apptainer.org/docs/user/latest/gpu.html (`--nv`; `always use nv` in apptainer.conf)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    ContainerRuntimes,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    LibCuda,
    Missing,
    NvidiaKernel,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    Status,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import cuda_works, driver_loaded, listed, stated_for_cpu, variable
from dsdoctor_checks._where import this_container

from ..cluster._slurm import gpus_of_node, in_job  # noqa: TID252  # families of one pack share it
from ._container_start import gpus_are_passed_on

CONDITION = Condition("docker-gpu-runtime-missing", id="DSD1150", scope=Scope.NODE, since="0.1")

_NONE = ("", "void", "none")


@check(CONDITION)
def runtime_hands_gpus_over(
    os: OsInfo | Missing,
    kernel: NvidiaKernel | Missing,
    env: Environment | Missing,
    lib: LibCuda | Missing,
    live: TorchLive | Missing,
    gpus: Gpus | Missing,
    run: RunNeeds,
    runtimes: ContainerRuntimes | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Reports a container without device nodes or libcuda on a host that has a driver.

    On the host, the command that starts the job's container has to pass GPUs on, and Docker has to
    know the runtime that it asks for.
    """
    wanted = run.container_runtime
    known = runtimes.names if isinstance(runtimes, ContainerRuntimes) else ()
    if run.container is not None:
        found = list(gpus_are_passed_on(run.container, runtimes, env, kernel, gpus, os))
        yield from found
        if found:
            return
    if wanted and isinstance(runtimes, ContainerRuntimes) and known and wanted not in known:
        yield fail(
            f"the job's container asks for the runtime `{wanted}`, but Docker knows only"
            f" {listed(runtimes.names)}",
            effect=f"Docker does not start it (`unknown or invalid runtime name: {wanted}`)",
            hint=_INSTALL,
            runtime=wanted,
            runtimes=list(runtimes.names),
        )
        return
    if isinstance(os, Missing):
        yield _not_read(os)
        return
    if isinstance(kernel, Missing):
        yield _not_read(kernel)
        return
    if stated_for_cpu(run, env, command):
        yield skip("the job is set to use the CPU")
        return
    if os.container is None or cuda_works(live):
        yield skip("not a container without GPUs")
        return
    loaded = driver_loaded(kernel)
    nodes = [node for node in kernel.device_nodes if re.fullmatch(r"nvidia\d+", node)]
    libcuda = _real(lib)
    value = variable(env, "NVIDIA_VISIBLE_DEVICES")
    asked = run.wants_gpu or (value is not None and value not in _NONE)
    evidence: dict[str, Any] = {
        "container": os.container,
        "driver": kernel.module_version,
        "device_nodes": nodes,
        "libcuda": libcuda,
        "nvidia_visible_devices": value,
    }
    # CUDA base images set the variable to `all`, which does not prove that the job needs GPUs
    tried = isinstance(live, TorchLive) and live.cuda_ok is False
    # somebody passed the devices on, but not the libraries: Apptainer without `--nv` and enroot without
    # its hook do that, and device plugins whose container has no runtime that adds them
    asked = asked or (bool(nodes) and tried) or _given_by_slurm(env)
    if not loaded or not asked or (nodes and libcuda):
        yield ok(**evidence)
        return
    say = fail if run.wants_gpu or tried or (value or "all") != "all" else warn
    mounted = next((path for path in _others(lib) if path.startswith(_MOUNTED)), None)
    if nodes and mounted:
        folder = posixpath.dirname(mounted)
        yield say(
            f"{this_container(os.container)} has libcuda in `{folder}`, where the loader does not look",
            effect="CUDA finds no driver, and the job exits at its first use of a GPU, or runs on the CPU",
            hint=f"set `LD_LIBRARY_PATH={folder}`, as NVIDIA's images do",
            mounted=mounted,
            **evidence,
        )
        return
    lacking = [] if nodes else ["no `/dev/nvidia*` device"]
    lacking += [] if libcuda else ["no libcuda"]
    yield say(
        f"the host has {_driver(kernel)}, but {this_container(os.container)} has "
        f"{' and '.join(lacking)}: it was started without "
        + ("`--nv`" if os.container == "apptainer" else "NVIDIA's runtime"),
        effect="CUDA finds no device, and the job exits at its first use of a GPU, or runs on the CPU",
        hint=_START.get(os.container, "start it with NVIDIA's runtime"),
        **evidence,
    )


def _given_by_slurm(env: Environment | Missing) -> bool:
    """Whether a Slurm job that has GPUs on this node started the container."""
    if isinstance(env, Missing) or not in_job(env):
        return False
    given = gpus_of_node(env)
    return given is not None and given[0] > 0


#: Where the device plugins of GKE and of old NVIDIA runtimes mount the driver's files.
_MOUNTED = "/usr/local/nvidia/"


def _real(lib: LibCuda | Missing) -> str | None:
    """The libcuda that was passed on, also behind a toolkit's stub."""
    if isinstance(lib, Missing) or not lib.stub:
        return None if isinstance(lib, Missing) else lib.path
    return next((path for path in lib.others if "/stubs/" not in path), None)


def _others(lib: LibCuda | Missing) -> tuple[str, ...]:
    return lib.others if isinstance(lib, LibCuda) and lib.path is None else ()


def _driver(kernel: NvidiaKernel) -> str:
    """The driver for a message; a container may not show its version."""
    return (
        f"driver {kernel.module_version}" if kernel.module_version else "the NVIDIA driver loaded"
    )


def _not_read(fact: Missing) -> Finding:
    status = Status.UNKNOWN if fact.is_unknown else Status.SKIP
    return Finding(status=status, message=fact.detail)


_INSTALL = (
    "install `nvidia-container-toolkit`, run `nvidia-ctk runtime configure --runtime=docker`, and"
    " restart Docker"
)
_START = {
    "docker": "start it with `--gpus all`; if Docker rejects that, install `nvidia-container-toolkit`, run `nvidia-ctk runtime configure --runtime=docker` and restart Docker",
    "podman": "run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` as root on the host, and start "
    "the container with `--device nvidia.com/gpu=all`",
    "apptainer": "start it with `--nv`",
    "enroot": "set `NVIDIA_VISIBLE_DEVICES=all` where the container is started (before `srun --container-image`):"
    " enroot passes GPUs on only if that variable or the image asks for them",
    "kubernetes": "set `nvidia.com/gpu` in `resources.limits` of this container, and "
    "`runtimeClassName: nvidia` if that is not the default",
}

HINT = _INSTALL

SIGNATURES = (
    Signature(
        pattern="could not select device driver",
        source="docker 19.03-28 daemon/devices.go",
        examples=(
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            'Error response from daemon: could not select device driver "nvidia" with capabilities: [[compute utility]]',
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="(?i)unknown or invalid runtime name: nvidia",
        source="docker 23-28 daemon/runtime_unix.go",
        examples=("docker: Error response from daemon: unknown or invalid runtime name: nvidia.",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?i)unknown runtime specified nvidia",
        source="docker 1.12-20.10 daemon/daemon_unix.go",
        examples=("docker: Error response from daemon: Unknown runtime specified nvidia.",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?i)nvidia-container-runtime\S*: (?:executable file )?not found",
        source="go 1.0-1.24 os/exec/lp_unix.go",
        examples=('exec: "nvidia-container-runtime-hook": executable file not found',),
        not_examples=("nvidia-container-runtime 1.14",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?i)unresolvable CDI devices",
        source="container-device-interface 0.3-1.0 pkg/cdi/container-edits.go",
        examples=("unresolvable CDI devices",),
        level=Level.CERTAIN,
    ),
    Signature(
        # NVIDIA's runtime mounts the program; images have none
        pattern=r"\x22nvidia-smi\\{0,3}\x22: executable file not found in \$PATH",
        source="go 1.0-1.24 os/exec/lp_unix.go, as runc and crun print it",
        examples=(
            'docker: Error response from daemon: OCI runtime create failed: exec: "nvidia-smi": executable file not found in $PATH: unknown.',
            '\\"nvidia-smi\\": executable file not found in $PATH": unknown.',
        ),
        not_examples=('exec: "nvidia-smi.sh": executable file not found in $PATH',),
        level=Level.CERTAIN,
        masks=("container-not-started",),
        message="The container was started without NVIDIA's runtime, which provides `nvidia-smi`",
        hint=(
            "start it with `docker run --gpus all`; in Kubernetes, request `nvidia.com/gpu`, and make NVIDIA's"
            " runtime the default of containerd or Docker, or set `runtimeClassName: nvidia`"
        ),
    ),
    Signature(
        pattern="(?i)nvidia-container-runtime-hook.{0,60}not found",
        source="go 1.0-1.24 os/exec/lp_unix.go",
        examples=('exec: "nvidia-container-runtime-hook": executable file not found',),
        not_examples=('exec: "nvidia-container-runtime-hook": executable file not',),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"nvidia-container-cli: init\w{5,12} error: load library failed: libnvidia-ml\.so",
        source="libnvidia-container 1.4-1.17 src/nvc.c; that Docker Desktop is not supported: its maintainers",
        examples=(
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown.",
        ),
        not_examples=(
            "nvidia-container-cli: driver rpc error: load library failed: libnvidia-ml.so.1",
        ),
        level=Level.CERTAIN,
        message="NVIDIA's container hook finds no library of the driver (`libnvidia-ml.so.1`)",
        hint=(
            "run `nvidia-smi` on the host: if it lists no GPU, install the NVIDIA driver there (in WSL2: on"
            " Windows). If it does, this Docker does not see the host's libraries: run `sudo ldconfig`, and"
            " use Docker Engine (`docker-ce`), not Docker Desktop (`docker context ls`) or the snap"
        ),
    ),
    Signature(
        pattern=r"nvidia-container-cli: (?!.*(?:version mismatch|requirement|load library failed: libnvidia-ml))(?:initiali[sz]ation|initalization|driver rpc) error: (?P<why>[^\n\\]{1,160}?)(?=: unknown\b|\.?\s*$|[\x22\x27\\])",
        source="libnvidia-container 1.0-1.17 src/cli/main.c, nvc.c: an init that found no driver; releases before 1.4 misspell it",
        examples=(
            "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
            "nvidia-container-cli: driver rpc error: timed out",
            "nvidia-container-cli: initalization error: driver error: failed to process request",
            "nvidia-container-cli: initialisation error: x",
        ),
        not_examples=(
            "nvidia-container-cli: initialization error: driver/library version mismatch",
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown.",
        ),
        level=Level.CERTAIN,
        message="NVIDIA's container hook ran and found no working driver on the host: {why}",
        hint=(
            "run `nvidia-smi` on the host: it must list the GPUs before any container gets one; "
            "if it does not, install or reload the NVIDIA driver there (in WSL2: on Windows)"
        ),
    ),
    Signature(
        pattern=r"(?i)nvidia-container-cli: (?!.*(?:version mismatch|requirement)|(?:ldcache|mount|container|device|detection|init\w{5,12}|driver rpc) error).{0,120}(?:error|not found)",
        source=(
            "libnvidia-container 1.0-1.17 src/cli/main.c, as runc prints its hook's words; go 1 "
            "os/exec/lp_unix.go"
        ),
        examples=(
            "nvidia-container-cli: input error: invalid mount spec",
            "nvidia-container-cli: not found",
        ),
        not_examples=(
            "nvidia-container-cli: initialization error",
            "nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"nvidia-container-runtime\S*: no such file",
        source="go 1 os/exec_posix.go, as runc prints it: the hook of nvidia-container-toolkit",
        examples=(
            "error running hook #0: fork/exec /usr/bin/nvidia-container-runtime-hook: no such file or directory: unknown.",
        ),
        not_examples=(
            "error running hook #0: fork/exec /usr/bin/nvidia-container-runtime-hook: no such",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"no runtime for \x22nvidia\x22 is configured",
        source="containerd 1.2-2.0 pkg/cri, failed to get sandbox runtime",
        examples=('failed to get sandbox runtime: no runtime for "nvidia" is configured',),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"RuntimeHandler \x22nvidia\x22 not supported",
        source="kubernetes 1.12-1.23 pkg/kubelet/dockershim/docker_sandbox.go",
        examples=('RuntimeHandler "nvidia" not supported',),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern="nvidia-docker: command not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=("nvidia-docker: command not found",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible",),
    ),
    Signature(
        pattern=r"exec: \\*\"nvidia-container-runtime\\*\": executable file not found",
        source="Go 1.13-1.24 os/exec/lp_unix.go",
        examples=(
            'starting container process caused: exec: "nvidia-container-runtime": executable file not found in $PATH',
        ),
        not_examples=('exec: "train.sh": executable file not found in $PATH',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"no known GPU vendor found|Use the NVIDIA Container Toolkit to start this container|failed to inject CDI devices",
        source=(
            "docker 19.03-28 cli; nvidia-container-toolkit 1.0-1.17; NVIDIA NGC containers "
            "20.01-25.09 entrypoint; docker 25-28 daemon/cdi.go"
        ),
        examples=(
            "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found",
            "   Use the NVIDIA Container Toolkit to start this container with GPU support; see",
            "failed to inject CDI devices",
        ),
        not_examples=(),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
    ),
)
