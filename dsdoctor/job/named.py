"""What a command line names besides itself: the script around it, its config, the launcher's YAML.

`check -- bash run.sh` starts what is in `run.sh`; `accelerate launch --config_file a.yaml` reads
the number of processes and the DeepSpeed config from there. Everything that examines a command
goes through `resolve` first, so that `check`, `run`, `hook` and `preflight` judge the same job.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.framework import framework_of
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import behind_sbatch, parse_command
from dsdoctor.probes.command_tables import PRESETS, TRAINERS
from dsdoctor.probes.shell_lines import is_launch, launches
from dsdoctor.probes.yaml_files import default_accelerate, read_yaml

#: What runs a script; sbatch does on the job's first node.
_SHELL = re.compile(r"(?:ba|da|z|k)?sh$|sbatch$")
#: `dirname "$0"` in its usual spellings, and the same as an absolute path.
_FOLDER = (
    r"\$\(\s*dirname\s+(?:--\s+)?\"?(?:\$\(\s*(?:readlink -f|realpath)\s+\"?)?"
    r"\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?(?::-\$0)?\})\"?(?:\s*\)\"?)?\s*\)"
)
_FOLDER_OF_SCRIPT = re.compile(
    rf"(?P<absolute>\$\(\s*cd\s+(?:-P\s+|--\s+)*\"?{_FOLDER}\"?"
    rf"(?:\s*[&12]?>\s*(?:/dev/null|&1))*\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\))|{_FOLDER}"
)
#: What only a DeepSpeed config has at its top.
_OWN_KEYS = frozenset({"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"})
#: Shells within shells that are followed; more is a loop.
_DEEPEST = 4


def resolve(run: RunNeeds, host: Host) -> RunNeeds:
    """The same request with the command that really starts the job, and the config it names.

    What `--config` gave stays; a config that is named and is not there is named all the same, so
    that its own check reports it.
    """
    if not run.command:
        return run
    words, followed, reason = _follow(tuple(run.command), host, run.cwd)
    run = msgspec.structs.replace(run, command=words, followed=followed, not_followed=reason)
    parsed = parse_command(words)
    if not run.framework:
        run = msgspec.structs.replace(run, framework=_framework(parsed, host, run.cwd))
    if run.config_path is not None:
        return run
    path, named_by = _config(parsed, host, run.cwd)
    if path is None:
        return run
    return msgspec.structs.replace(
        run, config_path=path, config=parsed_config(path, host, run.cwd), config_named_by=named_by
    )


def from_trainer(path: str, host: Host, cwd: str) -> tuple[str | None, str]:
    """The DeepSpeed config that a trainer's or accelerate's YAML names, and the framework.

    None for the config means that the file holds it itself, or is none of these.

    Raises:
        UsageError: the YAML holds no DeepSpeed config and names none.
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
        named = f" (`{inner}` comes with the trainer)" if inner in PRESETS else ""
        raise UsageError(
            f"`--config {path}` holds no DeepSpeed config and names none{named}; expected"
            " `deepspeed:` with a file or a mapping"
        )
    return inner, "accelerate" if isinstance(plugin, dict) else "hf"


def _follow(words: tuple[str, ...], host: Host, cwd: str) -> tuple[tuple[str, ...], str, str]:
    """The innermost command, where it was found, and why it could not be determined."""
    if len(words) == 1 and " " in words[0]:
        try:
            words = tuple(shlex.split(words[0]))
        except ValueError as error:
            return words, "", f"`{words[0][:60]}` cannot be split into words: {error}"
    followed = ""
    for _ in range(_DEEPEST):
        place = _shell_at(words)
        if place is None:
            return words, followed, ""
        text, name, reason = _shell_text(words[place:], host, cwd)
        if reason:
            return words, followed, reason
        found = launches(text)
        if len(found) != 1:
            count = f"{len(found)} commands that launch a job" if found else "no launch command"
            return words, followed, f"{name} contains {count}, expected one"
        script = parse_command(found[0].words).script or ""
        if script.startswith("$"):  # options, the script or both: only the shell knows
            return words, followed, f"`{script}` in line {found[0].line} of {name} is not known"
        followed = name if name.startswith("the") else f"line {found[0].line} of {name}"
        words = (*_carried(words[:place]), *found[0].words)
    return words, followed, "shells that start other shells are nested too deeply"


def _shell_at(words: Sequence[str]) -> int | None:
    """Place of the shell that the command starts, None where it starts none."""
    for place, word in enumerate(words[:12]):
        if _SHELL.fullmatch(posixpath.basename(word)):
            return place
        if is_launch(words[place : place + 3]) and posixpath.basename(word) != "srun":
            return None
    return None


def _carried(words: tuple[str, ...]) -> tuple[str, ...]:
    """What stands before the shell and still rules: `srun` and its options, assignments."""
    return words


def _shell_text(words: Sequence[str], host: Host, cwd: str) -> tuple[str, str, str]:
    """What the shell would run, its name, and why that is not known."""
    if posixpath.basename(words[0]) == "sbatch":
        wrapped, rest = behind_sbatch(words[1:])
        if wrapped:
            return wrapped, "the one after `--wrap`", ""
    else:
        rest = list(words[1:])
    while rest and rest[0].startswith(("-", "+")):
        option = rest.pop(0)
        if not option.startswith("--") and "c" in option[1:]:
            return (
                (rest[0], "the one after `-c`", "") if rest else ("", "", "`-c` without a command")
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
    beside = posixpath.dirname(rest[0]) or "."
    text = _FOLDER_OF_SCRIPT.sub(
        lambda found: (
            posixpath.normpath(posixpath.join(cwd, beside)) if found["absolute"] else beside
        ),
        text,
    )
    # its own arguments stand as $1 and "$@"
    for number, argument in enumerate(rest[1:10], 1):
        text = re.sub(rf"\$(?:{number}\b|\{{{number}\}})", lambda _, word=argument: word, text)  # type: ignore[misc]
    arguments = shlex.join(rest[1:])
    text = re.sub(r'"?\$(?:@|\*|\{@\}|\{\*\})"?', lambda _: arguments, text)
    return text, f"`{rest[0]}`", ""


def _framework(parsed: LaunchCommand, host: Host, cwd: str) -> str:
    """The framework that the script's imports name; "" where the script cannot be read."""
    if parsed.script is None or not parsed.script.endswith(".py"):
        return ""
    try:
        return framework_of(read_text(host, posixpath.join(cwd, parsed.script)))
    except HostError:
        return ""


def _config(parsed: LaunchCommand, host: Host, cwd: str) -> tuple[str | None, str]:
    """The DeepSpeed config that a command names, and by what."""
    path = parsed.config_path
    if path is not None and "$" in path:  # only the shell knows
        return None, ""
    if path is not None and path not in PRESETS:
        return path, "the command line"
    ruling = parsed.inner or parsed.launcher
    if ruling == "accelerate":
        name = parsed.options.get("config_file") or default_accelerate(host)
        inner = (read_yaml(name, host, cwd) or {}).get("deepspeed_config") if name else None
        path = inner.get("deepspeed_config_file") if isinstance(inner, dict) else None
        if isinstance(path, str) and path:
            return path, f"`{name}`"
    for word in _trainer_files(parsed):
        value = (read_yaml(word, host, cwd) or {}).get("deepspeed")
        if isinstance(value, str) and value and value not in PRESETS:
            return value, f"`{word}`"
    return None, ""


def _trainer_files(parsed: LaunchCommand) -> list[str]:
    """YAML files that a trainer or a script gets as an argument, the first few."""
    words = list(parsed.script_args)
    if posixpath.basename(parsed.program) in TRAINERS:
        words = list(parsed.argv)
    return [word for word in words if word.endswith((".yaml", ".yml"))][:3]


def parsed_config(path: str, host: Host, cwd: str) -> dict[str, object] | None:
    """A config that was named; None where it is not there or does not parse."""
    from dsdoctor.probes.config import parse_config  # noqa: PLC0415  # hjson only when needed

    try:
        return parse_config(read_text(host, posixpath.join(cwd, path)), path).parsed
    except HostError:
        return None
