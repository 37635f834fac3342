"""Finds the job behind a command line: in a shell script, with its config, in a launcher's YAML.

`check -- bash run.sh` starts what is in `run.sh`; `accelerate launch --config_file a.yaml` reads
the number of processes and the DeepSpeed config from there. Everything that examines a command
goes through `resolve` first, so that `check`, `run`, `hook` and `preflight` judge the same job.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.framework import (
    HF,
    fills_training_arguments,
    framework_of,
    imports_torch,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.job.accelerate_use import without_accelerate
from dsdoctor.job.batch import batch_of
from dsdoctor.job.deepspeed_use import deepspeed_use
from dsdoctor.job.environment import of_active, of_command
from dsdoctor.job.followed import follow
from dsdoctor.job.gpu_need import gpu_needed_by
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import ContainerStart, RunNeeds
from dsdoctor.paste.docker_container import command_in, gpus_of, runtime_of
from dsdoctor.probes.command_line import (
    parse_command,
    with_accelerate,
)
from dsdoctor.probes.command_tables import COUNTING, ON_TRANSFORMERS, PRESETS
from dsdoctor.probes.container_start import container_start
from dsdoctor.probes.launch_devices import Devices, devices_of
from dsdoctor.probes.yaml_files import (
    accelerate_file,
    accelerate_values,
    read_yaml,
    trainer_files,
    trainer_values,
)
from dsdoctor.scripts.ds_config_name import config_named_in
from dsdoctor.scripts.process_group import process_group

#: Top-level keys that only a DeepSpeed config has.
_OWN_KEYS = frozenset({"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"})


def resolve(run: RunNeeds, host: Host) -> RunNeeds:
    """The request with the command that really starts the job, and with the config it uses.

    A config of `--config` stays. A config that does not exist is set all the same, so that its own
    check reports it.
    """
    if not run.command:
        return run
    submitted = batch_of(run.command, host, run.cwd)
    batch = submitted.options
    words, followed, reason, activated, cut, folder, unset = follow(
        tuple(run.command), host, run.cwd
    )
    if folder:
        run = _started_in(folder, run)
    parsed, inside = parse_command(words), parse_command(command_in(words))
    used = _devices(parsed, host, run.cwd)
    text, trainer = _script_of(parsed, host, run.cwd), posixpath.basename(parsed.program)
    container = _container(words, host, run.cwd)
    selected = (
        None
        if container
        else of_command(words, host, run.cwd) or activated or of_active(words, host)
    )
    here = not (container or followed or batch) and parsed.argv[:1] == (parsed.program,)
    group = process_group(text) if here else None
    gpus, gpus_by = gpus_of(words) or (run.container_gpus, run.container_gpus_by)
    run = msgspec.structs.replace(
        run,
        command=words,
        followed=followed,
        carriage_return=cut,
        unset=unset,
        not_followed=reason,
        environment=selected.path if selected else "",
        environment_by=selected.why if selected else "",
        batch=batch,
        batch_refused=submitted.refused,
        batch_folder=submitted.folder,
        container_gpus=gpus,
        container_gpus_by=gpus_by,
        container_runtime=runtime_of(words),
        container=container,
        uses_deepspeed=None if container else deepspeed_use(parsed, text, host, run.cwd),
        group_line=group.line if group is not None and group.of_launcher else 0,
        gpu_needed_by=gpu_needed_by(parsed, group) if here else "",
        without_accelerate=container is None and without_accelerate(parsed, host, run.cwd),
        training_arguments=fills_training_arguments(text) or trainer == "llamafactory-cli",
        trainer_values=trainer_values(parsed, host, run.cwd),
        container_ranks=inside.num_gpus if inside.launcher in COUNTING else None,
        visible_devices=used.visible,
        device_count=used.first,
    )
    if not run.framework:
        framework = HF if trainer in ON_TRANSFORMERS else framework_of(text)
        run = msgspec.structs.replace(run, framework=framework)
    if run.framework == HF and container is None:
        run = msgspec.structs.replace(run, output_dir=_output_dir(parsed, run.trainer_values))
    if run.config_path is not None:
        return run
    path, named_by = _config(parsed, host, run.cwd)
    if path is None and container is None and (named := config_named_in(text)):
        path, named_by = named[0], f"line {named[1]} of `{parsed.script}`"
    if path is None:
        return run
    return msgspec.structs.replace(
        run, config_path=path, config=parsed_config(path, host, run.cwd), config_named_by=named_by
    )


def _started_in(folder: str, run: RunNeeds) -> RunNeeds:
    """The request for a job that starts in another folder than the one it was made in."""

    def absolute(path: str) -> str:
        return posixpath.normpath(posixpath.join(run.cwd, path))

    return msgspec.structs.replace(
        run,
        cwd=folder,
        config_path=run.config_path and absolute(run.config_path),
        hostfile=run.hostfile and absolute(run.hostfile),
        checkpoint=run.checkpoint and absolute(run.checkpoint),
        paths=tuple(map(absolute, run.paths)),
        writable=tuple(map(absolute, run.writable)),
    )


def _output_dir(parsed: LaunchCommand, values: Mapping[str, str]) -> str:
    """Where a trainer saves; "" if nothing says so, or only a shell can tell."""
    given = {**values, **dict(parsed.script_options())}.get("output_dir", "")
    return "" if re.search(r"[$`*?~{}<>|;&]|://", given) else given


def _container(words: Sequence[str], host: Host, cwd: str) -> ContainerStart | None:
    """How the command starts a container; its script is often mounted from this folder."""
    found = container_start(words)
    if found is None:
        return None
    text = _script_of(LaunchCommand(script=found.script), host, cwd)
    return msgspec.structs.replace(found, uses_torch=imports_torch(text))


def _devices(parsed: LaunchCommand, host: Host, cwd: str) -> Devices:
    try:
        name = str(host.query("hostname"))
    except HostError:
        name = ""
    return devices_of(with_accelerate(parsed, accelerate_values(parsed, host, cwd)), name)


def from_trainer(path: str, host: Host, cwd: str) -> tuple[str | None, str]:
    """The DeepSpeed config that a trainer's or accelerate's YAML refers to, and the framework.

    None for the config means that the file contains it itself, or is not such a YAML.

    Raises:
        UsageError: the YAML neither contains a DeepSpeed config nor refers to one.
    """
    values = read_yaml(path, host, cwd) if path.lower().endswith((".yaml", ".yml")) else None
    if values is None or _OWN_KEYS & values.keys():
        return None, ""
    inner, plugin = values.get("deepspeed"), values.get("deepspeed_config")
    if isinstance(plugin, dict):
        inner = plugin.get("deepspeed_config_file")
    if isinstance(inner, dict):
        return None, "hf"
    if not isinstance(inner, str) or not inner or inner in PRESETS:
        preset = f" (`{inner}` comes with the trainer)" if inner in PRESETS else ""
        raise UsageError(
            f"`--config {path}` neither contains a DeepSpeed config nor refers to one{preset}; "
            "expected `deepspeed:` with a file or a mapping"
        )
    return inner, "accelerate" if isinstance(plugin, dict) else "hf"


def _script_of(parsed: LaunchCommand, host: Host, cwd: str) -> str:
    """The text of the script; "" if it cannot be read."""
    if parsed.script is None or not parsed.script.endswith(".py"):
        return ""
    try:
        return read_text(host, posixpath.join(cwd, parsed.script))
    except HostError:
        return ""


def _config(parsed: LaunchCommand, host: Host, cwd: str) -> tuple[str | None, str]:
    """The DeepSpeed config that a command uses, and where that is set."""
    path = parsed.config_path
    if path is not None and "$" in path:  # only a shell can expand it
        return None, ""
    if path is not None and path not in PRESETS:
        return path, "the command line"
    if name := accelerate_file(parsed, host):
        inner = accelerate_values(parsed, host, cwd).get("deepspeed_config")
        path = inner.get("deepspeed_config_file") if isinstance(inner, dict) else None
        if isinstance(path, str) and path:
            return path, f"`{name}`"
    for word in trainer_files(parsed):
        value = (read_yaml(word, host, cwd) or {}).get("deepspeed")
        if isinstance(value, dict) and value:
            return word, f"`{word}`"  # axolotl takes the config itself as well
        if isinstance(value, str) and value and value not in PRESETS:
            return value, f"`{word}`"
    return None, ""


def parsed_config(path: str, host: Host, cwd: str) -> dict[str, object] | None:
    """The content of a config; None if it does not exist or does not parse."""
    from dsdoctor.probes.config import parse_config  # noqa: PLC0415  # hjson only when needed

    try:
        return parse_config(read_text(host, posixpath.join(cwd, path)), path).parsed
    except HostError:
        return None
