"""How a command starts the job's container: what its options pass on of GPUs, memory and networks.

Sources, read 2026-11-29: docker/cli v18 to v28 cli/command/container/opts.go; podman-run(1) 4.0 to
5.6; nerdctl 1.0 to 2.1 docs/command-reference.md; apptainer 1.0 to 1.4 and singularity 2.6 to 4.3
cmd/internal/cli/action_flags.go; pyxis 0.12 to 0.20 args.c.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from dsdoctor.model.facts.run import ContainerStart
from dsdoctor.probes.command_line import parse_command, started
from dsdoctor.probes.shell_programs import is_launch

#: Programs that start containers, and the commands of theirs that do.
_OCI = frozenset({"docker", "podman", "nerdctl"})
_SIF = frozenset({"apptainer", "singularity"})
_VERBS = {**dict.fromkeys(_OCI, ("run",)), **dict.fromkeys(_SIF, ("exec", "run"))}
#: How far from the program its command may be: `docker --context x container run`.
_NEAR = 5
#: Devices that an option passes on, by name or as a file.
_DEVICE = re.compile(
    r"(?:[\w.-]+\.(?:com|io)/\S*gpu|nvidia\.com/|amd\.com/|habana\.ai/"
    r"|/dev/(?:nvidia|kfd|dri|dxg|davinci|accel|hl\d))"
)
_SHM = "/dev/shm"  # noqa: S108  # the folder is named, not used
_PYTHON = re.compile(r"python[\d.]*")
#: Options of scripts that start DataLoader workers (torch, transformers, fairseq, timm).
_WORKERS = frozenset({"num_workers", "dataloader_num_workers", "workers", "nworkers"})


def container_start(words: Sequence[str]) -> ContainerStart | None:
    """How a command starts a container; None if it starts none.

    >>> found = container_start(["docker", "run", "--gpus", "2", "image", "torchrun", "a.py"])
    >>> found.program, found.gpus, found.shm, found.launcher, found.script
    ('docker run', '--gpus 2', '', 'torchrun', 'a.py')
    >>> container_start(["srun", "apptainer", "exec", "a.sif", "python", "a.py"]).gpus
    ''
    """
    own = started(words)
    if not own:
        return None
    program = posixpath.basename(own[0])
    verb = next((n for n, word in enumerate(own[1:_NEAR], 1) if word in _VERBS.get(program, ())), 0)
    if verb:
        end = next((n for n in range(verb + 1, len(own)) if _begins(own[n:])), len(own))
        before = list(own[1:verb]) + list(own[verb + 1 : end])
        return _of(f"{program} {own[verb]}", before, own[end:], is_oci=program in _OCI)
    outer = parse_command(words).outer
    if outer.get("container_image"):
        return _of("srun --container-image", (), own, is_oci=False)
    return None


def _begins(words: Sequence[str]) -> bool:
    """Whether the command in the container begins here."""
    return is_launch(words[:1]) or _PYTHON.fullmatch(posixpath.basename(words[0])) is not None


def _of(
    program: str, before: Sequence[str], inside: Sequence[str], *, is_oci: bool
) -> ContainerStart:
    parsed = parse_command(inside)
    launcher = parsed.inner or parsed.launcher
    options = {name for name, _ in parsed.script_options()} | parsed.options.keys()
    pairs = list(_pairs(before))
    return ContainerStart(
        program=program,
        gpus=next(filter(None, (_gpu_option(*pair, is_oci=is_oci) for pair in pairs)), ""),
        shm=next(filter(None, (_shm_option(*pair) for pair in pairs)), "") if is_oci else "",
        network=next(filter(None, (_network_option(*pair) for pair in pairs)), "")
        if is_oci
        else "",
        unknown=any("$" in word or word.startswith("instance://") for word in before),
        launcher="" if launcher == "other" else launcher,
        script=parsed.script or "",
        nodes=parsed.num_nodes or 1,
        workers=bool(_WORKERS & options),
        on_cpu=parsed.on_cpu(dict(_variables(before))),
    )


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options, each with the value joined by `=`, or else the next word, which may be its value."""
    for word, after in zip(words, (*words[1:], ""), strict=False):
        if word.startswith("-"):
            name, joined, value = word.partition("=")
            yield name, value if joined else after


def _variables(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name, value in _pairs(words):
        if name in ("-e", "--env") and "=" in value:
            key, _, text = value.partition("=")
            yield key, text


def _gpu_option(name: str, value: str, *, is_oci: bool) -> str:
    """The option, if it passes GPUs on, or may do so."""
    if not is_oci:
        return name if name in ("--nv", "--nvccli", "--rocm") else ""
    named = {
        "--gpus": True,
        "--runtime": value not in ("runc", "crun"),
        "--device": _DEVICE.match(value) is not None,
        "--privileged": True,
        "--hooks-dir": True,
        "--env": value.startswith("NVIDIA_VISIBLE_DEVICES="),
        "-e": value.startswith("NVIDIA_VISIBLE_DEVICES="),
    }
    if not named.get(name):
        return ""
    return name if name == "--privileged" else f"{name} {value}".strip()


def _shm_option(name: str, value: str) -> str:
    """The option, if it decides about /dev/shm of a container of Docker, Podman or nerdctl."""
    own = {"--shm-size": True, "--ipc": value not in ("", "private", "shareable"), "--pod": True}
    mounts = name in ("-v", "--volume", "--mount", "--tmpfs") and _SHM in value
    return f"{name} {value}".strip() if own.get(name) or mounts else ""


def _network_option(name: str, value: str) -> str:
    """The option, if it gives the container another network than the default bridge."""
    if name in ("--network", "--net") and value not in ("", "bridge", "default"):
        return f"{name} {value}"
    return name if name in ("--pod", "--network-alias", "--ip") else ""
