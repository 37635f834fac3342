"""What the machine's own settings add to the command that starts the job's container."""

from __future__ import annotations

import contextlib
import json
import posixpath
import re

from dsdoctor.api import ContainerRuntimes, RunNeeds, Why, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists, read_text
from dsdoctor.probes.command_result import trouble

_DAEMON = "/etc/docker/daemon.json"
#: `--sysconfdir` of packages and of builds from source (apptainer 1.4, singularity-ce 4.3 mconfig).
_SIF_FILES = tuple(
    f"{folder}/{name}/{name}.conf"
    for name in ("apptainer", "singularity")
    for folder in ("/etc", "/usr/local/etc", "/opt/apptainer/etc")
)
_ALWAYS = re.compile(r"^\s*(always use (?:nv|rocm) = yes)\s*$", re.MULTILINE)
#: apptainer 1.0 to 1.4 and singularity 2.6 to 4.3 take each option from such a variable too.
_SIF_VARIABLES = tuple(
    f"{name}_{option}"
    for name in ("APPTAINER", "SINGULARITY")
    for option in ("NV", "NVCCLI", "ROCM")
)
_OFF = frozenset({"", "0", "f", "false", "no", "off"})
#: nvidia-container-toolkit 1.0 to 1.13 install such a hook, which Podman and CRI-O run.
_HOOKS = (
    "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
    "/etc/containers/oci/hooks.d/oci-nvidia-hook.json",
)
_PODMAN_FILES = ("/usr/share/containers/containers.conf", "/etc/containers/containers.conf")
_SHM_SIZE = re.compile(r"^\s*(shm_size\s*=.*?)\s*$", re.MULTILINE)
_ENROOT_HOOK = "/etc/enroot/hooks.d/98-nvidia.sh"


@probe
def container_runtimes(host: Host, run: RunNeeds) -> ContainerRuntimes:
    """Asks Docker for its runtimes, and reads the settings of what starts the container."""
    if run.container is None and not run.container_runtime:
        raise HostError(Why.NOT_ASKED, "the command starts no container")
    program = run.container.program.split()[0] if run.container else "docker"
    if program in ("apptainer", "singularity"):
        return ContainerRuntimes(gpus_by=_sif_setting(host))
    if program == "podman":
        return _of_podman(host)
    if program == "srun":
        cli = host.which("nvidia-container-cli") is not None
        return ContainerRuntimes(enroot_hook=exists(host, _ENROOT_HOOK), container_cli=cli)
    if program == "nerdctl":
        return ContainerRuntimes()
    return _of_docker(host)


def _of_docker(host: Host) -> ContainerRuntimes:
    """What `docker info` tells, which asks the daemon, and what the daemon's file sets."""
    path = host.which("docker")
    if path is None:
        raise HostError(Why.ABSENT, "there is no `docker` on PATH")
    settings: dict[str, object] = {}
    with contextlib.suppress(HostError, ValueError):
        found = json.loads(read_text(host, _DAEMON))
        settings = found if isinstance(found, dict) else {}
    size = settings.get("default-shm-size")
    shm_by = f"`default-shm-size` in {_DAEMON}" if size else ""
    line = "{{json .DefaultRuntime}} {{json .Runtimes}}"
    try:
        result = host.run([path, "info", "--format", line], timeout=TOOL_SECONDS)
        wrong, text = trouble(result, TOOL_SECONDS), result.text
    except HostError as error:
        wrong, text = error.missing.detail, ""
    if wrong is not None:  # the account may not ask the daemon
        if not settings:
            raise HostError(Why.DENIED, f"Docker did not list its runtimes: {wrong}")
        usual = str(settings.get("default-runtime", "runc"))
        return ContainerRuntimes(default=usual, shm_by=shm_by)
    first, _, rest = text.partition(" ")
    try:
        default, names = json.loads(first), json.loads(rest)
    except ValueError:
        default = names = None
    if not isinstance(names, dict) or not isinstance(default, str):
        raise HostError(Why.BROKEN, "the runtimes of `docker info` could not be read")
    return ContainerRuntimes(names=tuple(sorted(names)), default=default, shm_by=shm_by)


def _of_podman(host: Host) -> ContainerRuntimes:
    hook = next((path for path in _HOOKS if exists(host, path)), "")
    size = ""
    for path in (*_PODMAN_FILES, posixpath.join(_home(host), ".config/containers/containers.conf")):
        with contextlib.suppress(HostError):
            found = _SHM_SIZE.search(read_text(host, path))
            size = f"`{found[1]}` in {path}" if found else size
    return ContainerRuntimes(gpus_by=hook, shm_by=size)


def _home(host: Host) -> str:
    return host.env.get("HOME", "/root")


def _sif_setting(host: Host) -> str:
    """The variable or the administrator's setting that gives every container GPUs; "" = none."""
    for name in _SIF_VARIABLES:
        if host.env.get(name, "").lower() not in _OFF:
            return name
    for path in _SIF_FILES:
        with contextlib.suppress(HostError):
            found = _ALWAYS.search(read_text(host, path))
            if found:
                return f"`{found[1]}` in {path}"
    return ""
