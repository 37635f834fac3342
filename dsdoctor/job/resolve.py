"""Finds the job behind a command line: in a shell script, with its config, in a launcher's YAML.

`check -- bash run.sh` starts what is in `run.sh`; `accelerate launch --config_file a.yaml` reads
the number of processes and the DeepSpeed config from there. Everything that examines a command
goes through `resolve` first, so that `check`, `run`, `hook` and `preflight` judge the same job.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.framework import (
    HF,
    fills_training_arguments,
    framework_of,
    imports_torch,
    uses_deepspeed,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.job.environment import Selected, of_command, of_script
from dsdoctor.job.gpu_need import gpu_needed_by
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import ContainerStart, RunNeeds
from dsdoctor.paste.docker_container import command_in, gpus_of, runtime_of
from dsdoctor.probes.command_line import (
    after_sbatch,
    batch_options,
    parse_command,
    with_accelerate,
)
from dsdoctor.probes.command_tables import COUNTING, ON_TRANSFORMERS, PRESETS
from dsdoctor.probes.container_start import container_start
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.launch_devices import Devices, devices_of
from dsdoctor.probes.shell_lines import commands_with_environment, launches
from dsdoctor.probes.shell_programs import is_launch, unfollowed
from dsdoctor.probes.yaml_files import (
    accelerate_values,
    default_accelerate,
    read_yaml,
    trainer_files,
    trainer_values,
)
from dsdoctor.scripts.ds_config_name import config_named_in
from dsdoctor.scripts.process_group import process_group

#: Programs that run a shell script; sbatch does so on the job's first node.
_SHELL = re.compile(r"(?:ba|da|z|k)?sh$|sbatch$")
#: The usual spellings of `dirname "$0"`, and of the same folder as an absolute path.
_FOLDER = (
    r"\$\(\s*dirname\s+(?:--\s+)?\"?(?:\$\(\s*(?:readlink -f|realpath)\s+\"?)?"
    r"\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?(?::-\$0)?\})\"?(?:\s*\)\"?)?\s*\)"
)
_FOLDER_OF_SCRIPT = re.compile(
    rf"(?P<absolute>\$\(\s*cd\s+(?:-P\s+|--\s+)*\"?{_FOLDER}\"?"
    rf"(?:\s*[&12]?>\s*(?:/dev/null|&1))*\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\))|{_FOLDER}"
)
#: Top-level keys that only a DeepSpeed config has.
_OWN_KEYS = frozenset({"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"})
#: A function up to a bracket at the beginning of a line, or an argument of the script.
_ARGUMENT = re.compile(
    r"(?P<function>^(?:function[ \t]+[\w-]+[ \t]*(?:\([ \t]*\))?|[\w-]+[ \t]*\([ \t]*\))\s*\{"
    r"(?:[^\n]*\}[ \t;]*$|(?:(?!^\}).)*))"
    r"|\$(?:(?P<number>[1-9])(?!\w)|\{(?P<braced>[1-9])(?P<default>:?[-=][^{}$`]*)?\})"
    r'|"?\$(?:@|\*|\{@\}|\{\*\})"?',
    re.MULTILINE | re.DOTALL,
)
#: A script in a folder that a variable holds.
_IN_FOLDER = re.compile(r"\$(?:\w+|\{\w+\})/[^$\s]{1,400}\.py")
#: How many nested shells are followed; more is a loop.
_DEEPEST = 4


def resolve(run: RunNeeds, host: Host) -> RunNeeds:
    """The request with the command that really starts the job, and with the config it uses.

    A config of `--config` stays. A config that does not exist is set all the same, so that its own
    check reports it.
    """
    if not run.command:
        return run
    batch = _batch(run.command, host, run.cwd)
    words, followed, reason, activated, cut = _follow(tuple(run.command), host, run.cwd)
    parsed, inside = parse_command(words), parse_command(command_in(words))
    used = _devices(parsed, host, run.cwd)
    text, trainer = _script_of(parsed, host, run.cwd), posixpath.basename(parsed.program)
    container = _container(words, host, run.cwd)
    selected = None if container else of_command(words, host, run.cwd) or activated
    here = not (container or followed or batch) and parsed.argv[:1] == (parsed.program,)
    group = process_group(text) if here else None
    gpus, gpus_by = gpus_of(words) or (run.container_gpus, run.container_gpus_by)
    run = msgspec.structs.replace(
        run,
        command=words,
        followed=followed,
        carriage_return=cut,
        not_followed=reason,
        environment=selected.path if selected else "",
        environment_by=selected.why if selected else "",
        batch=batch,
        container_gpus=gpus,
        container_gpus_by=gpus_by,
        container_runtime=runtime_of(words),
        container=container,
        uses_deepspeed=uses_deepspeed(text),
        group_line=group.line if group is not None and group.of_launcher else 0,
        gpu_needed_by=gpu_needed_by(parsed, group) if here else "",
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


def _follow(
    words: tuple[str, ...], host: Host, cwd: str
) -> tuple[tuple[str, ...], str, str, Selected | None, str]:
    """The innermost command, where it was found, why it could not be determined.

    Then the environment that a script activates before it, and what gets the carriage return at the
    end of its line.
    """
    activated: Selected | None = None
    cut = ""
    if len(words) == 1 and " " in words[0]:
        try:
            words = tuple(shlex.split(words[0]))
        except ValueError as error:
            return words, "", f"`{words[0][:60]}` cannot be split into words: {error}", None, cut
    followed = ""
    for _ in range(_DEEPEST):
        place = _shell_at(words)
        if place is None:
            return words, followed, unfollowed(words), activated, cut
        text, name, reason = _shell_text(words[place:], host, cwd)
        if reason:
            return words, followed, reason, activated, cut
        found = launches(text)
        if len(found) != 1:
            count = f"{len(found)} commands that launch a job" if found else "no launch command"
            return words, followed, f"{name} contains {count}, expected one", activated, cut
        script = found[0].depends_on or parse_command(found[0].words).script or ""
        # options, the script or both, which only a shell can expand, and not its folder alone
        if script.startswith("$") and not _IN_FOLDER.fullmatch(script):
            unknown = f"`{script}` in line {found[0].line} of {name} is not known"
            return words, followed, unknown, activated, cut
        cut = _carriage_return(text, found[0].line)
        activated = of_script(text, found[0].line, name, host, cwd) or activated
        followed = name if name.startswith("the") else f"line {found[0].line} of {name}"
        # `srun` with its options, or assignments, may precede the shell and apply to the job
        exports = _exports(text, found[0].line)
        words = (*words[:place], *(("env", *exports) if exports else ()), *found[0].words)
    return words, followed, "shells that start other shells are nested too deeply", activated, cut


def _carriage_return(text: str, line: int) -> str:
    r"""What gets the carriage return at the end of a line, as `RunNeeds.carriage_return` says it.

    >>> text = "torchrun t.py\r\ntorchrun \\\r\ntorchrun t.py --n 2\r\ntorchrun t.py # two\r\n"
    >>> [_carriage_return(text, line) for line in (1, 2, 3, 4)]
    ['script', 'script', 'argument', '']
    """
    row = "".join(text.split("\n")[line - 1 : line])
    # after an operator it is a command of its own, and a comment may contain anything
    if not re.search(r"[^\s;&|)]\s*\r$", row) or "#" in row:
        return ""
    return "script" if re.search(r"(?:\\|\.py['\"]?)\s*\r$", row) else "argument"


def _exports(text: str, line: int) -> tuple[str, ...]:
    r"""What a script has exported before a command, as `env` takes it, where it concerns the job.

    >>> _exports("export NNODES=2 CUDA_VISIBLE_DEVICES=0,1 HF_TOKEN=x NCCL_P2P_LEVEL=$A\nt", 2)
    ('CUDA_VISIBLE_DEVICES=0,1', 'NNODES=2')
    """
    every = commands_with_environment(text, bool)
    exported = next((variables for command, variables in every if command.line == line), {})
    return tuple(
        f"{name}={value}"
        for name, value in sorted(exported.items())
        if allowed(name) and not set(value) & set("$`") and value.isprintable()
    )


def _batch(words: Sequence[str], host: Host, cwd: str) -> dict[str, str]:
    """What the Slurm job asks for that a command submits; empty if it submits none."""
    if len(words) == 1 and " " in words[0]:
        try:
            words = shlex.split(words[0])
        except ValueError:
            return {}
    place = next((n for n, word in enumerate(words[:12]) if _is_sbatch(word)), None)
    if place is None:
        return {}
    _, script = after_sbatch(words[place + 1 :])
    text = ""
    if script:
        with contextlib.suppress(HostError):
            text = read_text(host, posixpath.join(cwd, script[0]))
    return batch_options(text, words[place + 1 :])


def _is_sbatch(word: str) -> bool:
    return posixpath.basename(word) == "sbatch"


def _shell_at(words: Sequence[str]) -> int | None:
    """Position of the shell that the command starts; None if it starts none."""
    for place, word in enumerate(words[:12]):
        if _SHELL.fullmatch(posixpath.basename(word)):
            return place
        if is_launch(words[place : place + 3]) and posixpath.basename(word) != "srun":
            return None
    return None


def _shell_text(words: Sequence[str], host: Host, cwd: str) -> tuple[str, str, str]:
    """The text that the shell would run, its name for messages, and why it is not known."""
    if posixpath.basename(words[0]) == "sbatch":
        wrapped, rest = after_sbatch(words[1:])
        if wrapped:
            return wrapped, "the command of `--wrap`", ""
    else:
        rest = list(words[1:])
    while rest and rest[0].startswith(("-", "+")):
        option = rest.pop(0)
        if not option.startswith("--") and "c" in option[1:]:
            return (
                (rest[0], "the command of `-c`", "") if rest else ("", "", "`-c` without a command")
            )
        if option in ("-o", "+o", "--rcfile", "--init-file") and rest:
            rest.pop(0)
    if not rest:
        return (
            "",
            "",
            (
                "an interactive shell runs what is typed, and sbatch runs what it reads "
                "from standard input"
            ),
        )
    path = posixpath.join(cwd, rest[0])
    try:
        text = read_text(host, path)
    except HostError as error:
        return "", "", error.missing.detail
    folder = posixpath.dirname(rest[0]) or "."
    text = _FOLDER_OF_SCRIPT.sub(
        lambda found: (
            posixpath.normpath(posixpath.join(cwd, folder)) if found["absolute"] else folder
        ),
        text,
    )
    return _with_arguments(text, rest[1:]), f"`{rest[0]}`", ""


def _with_arguments(text: str, arguments: Sequence[str]) -> str:
    r"""A script with its arguments in place of `$1` and `"$@"`, except in functions.

    >>> _with_arguments('f() {\n  "$@" $1\n}\nf torchrun $1 "$@"', ["t.py"])
    'f() {\n  "$@" $1\n}\nf torchrun t.py t.py'
    >>> _with_arguments("torchrun --n ${1:-8} ${2:-t.py}", ["4"])
    'torchrun --n 4 t.py'
    """

    def value(found: re.Match[str]) -> str:
        if found["function"]:
            return found[0]
        place = found["number"] or found["braced"]
        if place is None:
            return shlex.join(arguments)
        number = int(place)
        given = arguments[number - 1] if number <= len(arguments) else None
        default = found["default"]
        if default and (given is None or (not given and default[0] == ":")):
            return default.lstrip(":")[1:]
        return found[0] if given is None else given

    return _ARGUMENT.sub(value, text)


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
    launcher = parsed.inner or parsed.launcher
    if launcher == "accelerate":
        name = parsed.options.get("config_file") or default_accelerate(host)
        inner = (read_yaml(name, host, cwd) or {}).get("deepspeed_config") if name else None
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
