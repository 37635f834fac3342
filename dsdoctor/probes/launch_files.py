"""Checks whether the program and the script of the command after `check --` exist."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from dsdoctor.api import LaunchCommand, LaunchFiles, Missing, Patient, RunNeeds, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.probes.command_line import after_sbatch
from dsdoctor.probes.command_tables import ON_TRANSFORMERS, RUNNERS
from dsdoctor.probes.command_wrappers import runs_at, unwrap
from dsdoctor.probes.model_files import (
    checkpoint_loaded,
    files_lacking,
    has_weights,
    sentencepiece_file,
)
from dsdoctor.probes.module_files import missing_module, module_of, unfound_module
from dsdoctor.probes.shell_words import SYNTAX
from dsdoctor.probes.yaml_files import hub_home
from dsdoctor.scripts.hub_names import OF_HUB

#: Launchers that start `python SCRIPT`.
_STARTS_PYTHON = ("accelerate", "deepspeed", "torchrun")
_PYTHON = re.compile(r"python[\d.]*")
#: Builtins of the shell, which are not on PATH.
_SHELL = (
    *(".", "alias", "builtin", "cd", "command", "eval", "exec", "export", "module", "set"),
    *("source", "time", "ulimit", "umask", "unset", "wait"),
)
#: The shell script in what `RunNeeds.followed` says.
_FOLLOWED = re.compile(r" of `([^`]+)`")
#: Folders in which a script is looked for that is not in the working folder.
_MOST_FOLDERS = 100
#: Endings of the files that are looked for.
_SCRIPTS = (".py", ".sh", ".bash", ".slurm", ".sbatch", ".sub", ".job", ".pbs", ".lsf", ".bsub")
_SHELLS = re.compile(r"(?:ba|da|z|k)?sh")
#: Options of trainers for the model (transformers' examples, LLaMA-Factory, FastChat, axolotl).
MODELS = ("model_name_or_path", "pretrained_model_name_or_path", "base_model", "model_path")
#: Options that name the model below an adapter.
_BASES = ("base_model", "base_model_name_or_path", "base_model_path", "base_model_name")
#: Words of trainers that choose a checkpoint, or none, without its path.
_CHOICES = frozenset(
    {"1", "0", "auto", "best", "false", "last", "latest", "no", "none", "null", "true", "yes"}
)
_RESUME = "resume_from_checkpoint"
#: A checkpoint of transformers in the output directory.
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})")
#: The beginning of a path, which no name of the hub has.
_PATH = re.compile(r"\.{0,2}/")
#: Dashes and quotes that a word processor writes in place of `-`, `"` and `'`.
_TYPOGRAPHIC = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u201c\u201d\u2018"
#: A word that ends a command.
_OPERATOR = re.compile(r"[;&|<>()]+|\d?[<>]\S*")


def _shell_decides(command: LaunchCommand) -> bool:
    """Whether words up to the script need a shell, or an operator begins another command.

    The script's own arguments do not count: JSON contains brackets.
    """
    own = command.argv[: len(command.argv) - len(command.script_args)]
    if any(SYNTAX.search(word) for word in own):
        return True
    return any(_OPERATOR.fullmatch(word) for word in command.script_args)


def _exists(host: Host, path: str) -> bool | None:
    try:
        host.stat(path)
    except HostError as error:
        return False if error.missing.why is Why.ABSENT else None
    return True


def _is_file(host: Host, path: str) -> bool | None:
    """Whether a launcher finds a file; a folder is none."""
    try:
        return host.stat(path).kind != "dir"
    except HostError as error:
        return False if error.missing.why is Why.ABSENT else None


def _of_shell(command: LaunchCommand) -> str:
    """The script of `bash run.sh`; "" = the command starts no shell, or passes it a line."""
    name = posixpath.basename(command.program)
    if name != "sbatch" and not _SHELLS.fullmatch(name):
        return ""
    rest = list(command.argv[command.argv.index(command.program) + 1 :])
    if name == "sbatch":
        wrapped, rest = after_sbatch(rest)
        return "" if wrapped or not rest else rest[0]
    return rest[0] if rest and not rest[0].startswith(("-", "+")) else ""


def _is_python(command: LaunchCommand) -> bool:
    """Whether a launcher that starts Python itself takes the word `python` for the script.

    >>> _is_python(LaunchCommand(launcher="accelerate", script="python"))
    True
    >>> _is_python(LaunchCommand(launcher="torchrun", script="python", options={"no_python": ""}))
    False
    """
    return (
        (command.inner or command.launcher) in _STARTS_PYTHON
        and _PYTHON.fullmatch(command.script or "") is not None
        and not command.options.keys() & {"no_python", "module", "m"}
    )


def _wrong_word(host: Host, command: LaunchCommand, cwd: str) -> str:
    """Why the word that a launcher starts as Python is no script; "" = it may be one."""
    word = command.script or ""
    starts = (command.inner or command.launcher) in _STARTS_PYTHON
    if not starts or command.options.keys() & {"no_python", "module", "m"}:
        return ""
    if word[:1] and word[0] in _TYPOGRAPHIC:
        return "typographic"
    if word and not word.strip(" "):
        return "blank"
    bare = word and not posixpath.splitext(word)[1]
    return "no ending" if bare and _is_file(host, posixpath.join(cwd, f"{word}.py")) else ""


def _starts_here(command: LaunchCommand) -> bool:
    """Whether nothing around a program changes its folder, its packages or PYTHONPATH."""
    if command.program not in command.argv:  # words that a wrapper holds as one text
        return False
    before = command.argv[: command.argv.index(command.program)]
    return "PYTHONPATH" not in command.env and all("=" in word for word in before)


def _find_program(
    host: Host, program: str, command: LaunchCommand, run: RunNeeds, bin_dir: str
) -> str:
    """The path of the program; "" = not found."""
    if "/" in program:
        path = posixpath.normpath(posixpath.join(run.cwd, program))
        return "" if _exists(host, path) is False else path
    path = host.which(program, command.env.get("PATH")) or ""
    beside = posixpath.join(bin_dir, program) if bin_dir else ""
    return path or (beside if beside and _exists(host, beside) else "")


def _runner_of(command: LaunchCommand) -> str:
    """The program that starts the command in an environment; "" = none does.

    >>> _runner_of(LaunchCommand(argv=("env", "A=1", "uv", "run", "train.py")))
    'uv'
    >>> _runner_of(LaunchCommand(argv=("uv", "pip", "list")))
    ''
    """
    words = unwrap(list(command.argv), runners=False)[0]
    name = posixpath.basename(words[0]) if words else ""
    return words[0] if name in RUNNERS and runs_at(words, RUNNERS[name]) else ""


def _may_not_run(host: Host, path: str) -> bool:
    """Whether a path is certainly a file without permission to execute it."""
    try:
        found = host.stat(path)
    except HostError:
        return False
    return found.kind == "file" and found.mode is not None and not found.mode & 0o111


@probe
def launch_files(
    host: Host, run: RunNeeds, command: LaunchCommand, patient: Patient | Missing
) -> LaunchFiles:
    """Judges no path that a shell would expand first, and nothing on Windows (endings matter)."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "programs are not looked for on Windows")
    ends: dict[str, Any] = {
        "line_ends": run.followed if run.carriage_return else "",
        "line_ends_fatal": run.carriage_return == "script",
    }
    if _shell_decides(command) or not command.program:
        return LaunchFiles(folder=run.cwd, **ends)
    program = None if command.program in _SHELL else command.program
    runner = _runner_of(command)
    if runner and not _find_program(host, runner, command, run, ""):
        return LaunchFiles(program=runner, folder=run.cwd, **ends)
    bin_dir = "" if isinstance(patient, Missing) else patient.bin_dir or ""
    named = command.script or _of_shell(command)
    wrong = _wrong_word(host, command, run.cwd)
    judged = named.endswith(_SCRIPTS) or wrong or _is_python(command)
    script = named if judged else None
    config = (command.inner or command.launcher) == "accelerate" and command.options.get(
        "config_file"
    )
    path = None if script is None else posixpath.normpath(posixpath.join(run.cwd, script))
    exists = None if path is None else _exists(host, path)
    found = (_find_program(host, program, command, run, bin_dir) or None) if program else None
    if runner and found is None:  # a task of the project, or what the runner installs first
        program = None
    missing = None
    if (
        bin_dir
        and found
        and posixpath.dirname(found) == bin_dir
        and not isinstance(patient, Missing)
    ):
        name = module_of(command)
        missing = missing_module(host, name, (run.cwd, *patient.sys_path))
        if name and missing is None and _starts_here(command):
            missing = unfound_module(host, name, run, patient.executable)
    return LaunchFiles(
        program=program,
        program_path=found,
        program_not_executable=bool(
            found
            and program
            and ("/" in program or host.which(program, command.env.get("PATH")) is None)
            and _may_not_run(host, found)
        ),
        script=script,
        script_path=path,
        script_exists=exists,
        script_wrong=wrong,
        script_folder=_folder_with(host, script or "", run) if exists is False else "",
        **ends,
        launcher_config=config or None,
        launcher_config_exists=_is_file(host, posixpath.join(run.cwd, config)) if config else None,
        folder=run.cwd,
        missing_module=missing.name if missing else None,
        module_folder=missing.folder if missing else "",
        module_near=missing.near if missing else "",
        resumed=_resumed(host, command, run),
        loaded=None if _is_elsewhere(command, run) else checkpoint_loaded(host, command, run),
        **_model(host, command, run),
    )


def _folder_with(host: Host, script: str, run: RunNeeds) -> str:
    """Where a script is that does not exist in the working folder, as a path from that folder.

    Looked for in the folder of the shell script that starts it, in those above the working folder,
    and in those in it.
    """
    if script.startswith(("/", "~")):
        return ""
    by = _FOLLOWED.search(run.followed)
    try:
        inside = sorted(host.listdir(run.cwd))[:_MOST_FOLDERS]
    except HostError:
        inside = []
    names = [*([posixpath.dirname(by[1])] if by else ()), "..", "../..", *inside]
    near = dict.fromkeys(name for name in names if name and not name.startswith("/"))
    found = [
        name
        for name in near
        if _exists(host, posixpath.normpath(posixpath.join(run.cwd, name, script)))
    ]
    return found[0] if len(found) == 1 else ""


def _resumed(host: Host, command: LaunchCommand, run: RunNeeds) -> str | None:
    """The checkpoint that the script's arguments resume from, if they name a folder.

    A bare name that is no folder here may be one of the output directory.
    """
    given = _option(command, run, _RESUME)
    if run.trainer_values.get(_RESUME) == given == "true":
        return _newest(host, command, run)
    folder = resumed_by(command, run)
    if folder and "/" not in folder and not _exists(host, posixpath.join(run.cwd, folder)):
        return None
    return folder


def resumed_by(command: LaunchCommand, run: RunNeeds) -> str | None:
    """The checkpoint that the script's arguments name, wherever it is; None if they name none.

    >>> words = ("--resume_from_checkpoint", "out/c")
    >>> resumed_by(LaunchCommand(launcher="torchrun", script_args=words), RunNeeds())
    'out/c'
    """
    given = _option(command, run, _RESUME)
    if given.lower() in {"", *_CHOICES} or given.startswith("-") or _is_elsewhere(command, run):
        return None
    return None if SYNTAX.search(given) or "://" in given else given


def _newest(host: Host, command: LaunchCommand, run: RunNeeds) -> str | None:
    """The checkpoint that `resume_from_checkpoint: true` in the YAML of LLaMA-Factory means.

    It is the newest in the output directory; with a script, the word is a path to transformers
    (LLaMA-Factory 0.9 hparams/parser.py; transformers 4.28-5.24 trainer.py, `get_last_checkpoint`).
    """
    values, folder = run.trainer_values, run.output_dir
    if posixpath.basename(command.program) != "llamafactory-cli" or not folder:
        return None
    if values.get("stage") in ("rm", "ppo") and values.get("finetuning_type") in ("full", "freeze"):
        return None  # it does not resume these
    try:
        names = host.listdir(posixpath.join(run.cwd, folder))
    except HostError as error:
        if error.missing.why is not Why.ABSENT:
            return None
        names = []
    steps = [int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
    return posixpath.join(folder, f"checkpoint-{max(steps)}" if steps else "checkpoint-*")


def _is_elsewhere(command: LaunchCommand, run: RunNeeds) -> bool:
    """Whether the script may run in another file system than this one."""
    local = command.launcher != "other" or posixpath.basename(command.program) in ON_TRANSFORMERS
    return run.container is not None or not local


def model_of(command: LaunchCommand, run: RunNeeds) -> str | None:
    """The model that a script or trainer is told to load, by the names that trainers give it.

    >>> words = ("--lr", "1", "--model_name_or_path", "org/model-7b")
    >>> model_of(LaunchCommand(script_args=words), RunNeeds())
    'org/model-7b'
    >>> model_of(LaunchCommand(script_args=("--model_path", "$MODEL")), RunNeeds())
    """
    swift = posixpath.basename(command.program) == "swift"
    model = _option(command, run, *MODELS, *(("model",) if swift else ()))
    return None if not model or model.startswith("-") or SYNTAX.search(model) else model


def _option(command: LaunchCommand, run: RunNeeds, *names: str) -> str:
    """The first of these options that the command line or a trainer's YAML sets."""
    passed = next((value for name, value in command.script_options() if name in names), "")
    return passed or next((run.trainer_values[n] for n in names if n in run.trainer_values), "")


def _model(host: Host, command: LaunchCommand, run: RunNeeds) -> dict[str, Any]:
    """Where the model of the command is."""
    model = model_of(command, run)
    if model is None:
        return {}
    folder = posixpath.normpath(posixpath.join(run.cwd, model))
    if _exists(host, posixpath.join(folder, "config.json")):
        denied = _may_not_read(host, posixpath.join(folder, "config.json"))
        other = any(name.startswith("tokenizer") for name, _ in command.script_options())
        tokenizer = "" if denied or other else sentencepiece_file(host, folder)
        return {
            "model": model,
            "model_folder": folder,
            "model_denied": denied,
            "model_lacks": () if denied else files_lacking(host, folder),
            "model_tokenizer": tokenizer,
        }
    if _exists(host, folder) and not _is_elsewhere(command, run):
        file = posixpath.join(folder, "adapter_config.json")
        base = "" if command.has_script_option(*_BASES) else _base_of(host, file, run.cwd)
        denied = _may_not_read(host, posixpath.join(folder, "config.json"))
        absent = _exists(host, file) is False and has_weights(host, folder)
        lacks = ("config.json",) if absent else ()
        return {"model": model, "model_base": base, "model_denied": denied, "model_lacks": lacks}
    if _exists(host, folder) is not False or not OF_HUB.fullmatch(model):
        absent = _PATH.match(model) is not None and _exists(host, folder) is False
        return {"model": model, "model_missing": absent and not _is_elsewhere(command, run)}
    name = "models--" + model.replace("/", "--")
    places = hub_caches(dict(host.env) | command.env)
    there = [_exists(host, posixpath.join(place, name)) for place in places]
    return {"model": model, "model_cached": None if None in there else any(there)}


def _may_not_read(host: Host, path: str) -> bool:
    """Whether this account is refused a file, or the folder that it is in."""
    try:
        host.read(path)
    except HostError as error:
        return error.missing.why is Why.DENIED
    return False


def _base_of(host: Host, path: str, cwd: str) -> str:
    """The path of an adapter's model, if nothing is there (peft 0.3-0.21 config.py)."""
    try:
        base = json.loads(host.read(path)).get("base_model_name_or_path")
    except (HostError, ValueError, AttributeError):
        return ""
    if not isinstance(base, str) or not _PATH.match(base):
        return ""
    return base if _exists(host, posixpath.join(cwd, base)) is False else ""


def hub_caches(variables: Mapping[str, str]) -> list[str]:
    """Where models may be cached (huggingface_hub constants.py; transformers 4 utils/hub.py)."""
    named = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
    return [
        posixpath.join(hub_home(variables), "hub"),
        *(variables[name] for name in named if variables.get(name)),
    ]
