"""Checks with the launcher of the examined environment whether it accepts the command line."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Mapping
from typing import Any

from dsdoctor.api import (
    DeepSpeedInstall,
    LaunchCommand,
    LaunchParse,
    Missing,
    Packages,
    RunNeeds,
    TorchBuild,
    probe,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.redact import mask
from dsdoctor.probes.accelerate_fp8 import without_fp8
from dsdoctor.probes.accelerate_keys import rejected_by_plugin, too_few_ranks, unread
from dsdoctor.probes.accelerate_sections import Rejection
from dsdoctor.probes.accelerate_values import rejected_value, verdict
from dsdoctor.probes.command_line import launcher_words
from dsdoctor.probes.launcher_options import (
    BEFORE_SCRIPT,
    ambiguous_option,
    is_script_missing,
    misspelled_option,
    rejected_word,
)
from dsdoctor.probes.yaml_files import accelerate_fault, accelerate_values

#: An import from a cold network disk is slow and healthy.
SECONDS = 120.0
#: Commands of accelerate (1.15 commands/accelerate_cli.py).
_ACCELERATE = frozenset(
    {"config", "env", "estimate-memory", "launch", "merge-weights", "test", "to-fsdp2",
     "tpu-config"}
)  # fmt: skip


def _misspelled_command(command: LaunchCommand) -> str:
    """The word after `accelerate` that was meant to be `launch`; "" if there is none."""
    if command.launcher != "other" or posixpath.basename(command.program) != "accelerate":
        return ""
    import difflib  # noqa: PLC0415  # only for this command

    word = "".join(command.script_args[:1])
    near = difflib.get_close_matches(word, ["launch"], 1)
    return word if near and word not in _ACCELERATE else ""


#: The launcher's file below its package, and an option that every release of it has. Accelerate
#: makes further options while it runs.
_SOURCES = {
    "torchrun": ("distributed/run.py", "nnodes"),
    "deepspeed": ("launcher/runner.py", "include"),
}


def declared_options(source: str) -> frozenset[str]:
    """Names of the long options that a file adds to a parser, `-` as `_`.

    >>> sorted(declared_options('parser.add_argument("-H", "--hostfile", type=str)'))
    ['hostfile']
    """
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    words = (
        word.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for word in call.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    )
    return frozenset(word[2:].replace("-", "_") for word in words if word.startswith("--"))


def _ambiguous(launcher: str, error: str) -> LaunchParse:
    return LaunchParse(launcher=launcher, accepted=False, error=mask(error), advice=BEFORE_SCRIPT)


#: In the source of a torchrun that has each option with `-` and with `_` (torch 2.1 and later).
_BOTH_SPELLINGS = '"--nproc-per-node"'


def _unknown_option(
    host: Host,
    launcher: str,
    command: LaunchCommand,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    python: str,
) -> LaunchParse:
    """An option that the launcher's file does not declare; nothing is imported."""
    package = {"torchrun": torch, "deepspeed": deepspeed}.get(launcher)
    path = None if package is None or isinstance(package, Missing) else package.path
    reason = f"the options were not checked with {launcher} (`--quick`)"
    if path is None:  # not installed, or it makes its options while it runs
        error = misspelled_option(launcher, command.options)
        if error:
            return LaunchParse(launcher=launcher, accepted=False, error=mask(error))
        if error := ambiguous_option(launcher, command.script_args, python):
            return _ambiguous(launcher, error)
        raise HostError(Why.NOT_ASKED, reason)
    file, always = _SOURCES[launcher]
    source = read_text(host, posixpath.join(path, file))
    error = ambiguous_option(launcher, command.script_args, python)
    if error and (launcher == "deepspeed" or _BOTH_SPELLINGS in source):
        return _ambiguous(launcher, error)
    try:
        known = declared_options(source)
    except (SyntaxError, ValueError):
        known = frozenset()
    # argparse accepts the beginning of an option
    for name in command.options if always in known else ():
        if len(name) > 1 and not any(option.startswith(name) for option in known | {"help"}):
            return LaunchParse(
                launcher=launcher, accepted=False, error=f"unrecognized arguments: --{mask(name)}"
            )
    raise HostError(Why.NOT_ASKED, reason)


def _of_accelerate(
    values: Mapping[str, Any],
    command: LaunchCommand,
    run: RunNeeds,
    packages: Packages | Missing,
) -> LaunchParse | None:
    """What stops a run of accelerate, as far as its files and the tables tell."""
    by_script = run.framework == "hf" and "deepspeed_config_file" not in command.options
    passed = command.config_path if by_script else None
    error = rejected_by_plugin(values, command.options, run.config, passed or "")
    if error:
        return LaunchParse(launcher="accelerate", accepted=False, error=mask(error), in_ranks=True)
    release = None if isinstance(packages, Missing) else packages.version("accelerate")
    rejection = rejected_value(values, command.options, launched=True, release=release)
    if rejection is None and not isinstance(packages, Missing):
        rejection = without_fp8(values, command.options, packages.packages, release)
    if rejection is not None:
        return verdict(rejection)
    few = too_few_ranks(values, command.options)
    return LaunchParse(launcher="accelerate", accepted=True, too_few_ranks=few) if few else None


@probe
def launch_parse(
    host: Host,
    choice: PatientChoice,
    run: RunNeeds,
    command: LaunchCommand,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    packages: Packages | Missing,
    patient: Patient | Missing,
) -> LaunchParse | Missing:
    """The parser's answer, from a child that imports the launcher and starts nothing."""
    launcher = command.inner or command.launcher
    misspelled = _misspelled_command(command)
    if misspelled:
        error = f"`{mask(misspelled)}` is not one of its commands; the closest is `launch`"
        return LaunchParse(launcher="accelerate", accepted=False, error=error)
    if launcher not in ("deepspeed", "torchrun", "accelerate"):
        raise HostError(Why.NOT_ASKED, "the command starts no launcher that can check its options")
    error = rejected_word(launcher, command.options)
    if error:
        return LaunchParse(launcher=launcher, accepted=False, error=mask(error))
    values = accelerate_values(command, host, run.cwd)
    if launcher == "accelerate":
        if fault := accelerate_fault(command, host, run.cwd):
            return verdict(
                Rejection(fault, "correct the file, or write it with `accelerate config`")
            )
        stopped = _of_accelerate(values, command, run, packages)
        if stopped is not None:
            return stopped
    if run.quick:
        if is_script_missing(launcher, command.options, command.script):
            said, advice = "the script is missing", "pass the script after the launcher's options"
            return LaunchParse(launcher=launcher, accepted=False, error=said, advice=advice)
        # of a Python that is not known, assume one that does not stop
        python = "3.15" if isinstance(patient, Missing) else patient.version
        return _unknown_option(host, launcher, command, torch, deepspeed, python)
    words = launcher_words(run)
    if any("$" in word or "`" in word for word in words):
        raise HostError(Why.NOT_ASKED, "the command contains variables that a shell would replace")
    records, result = run_child(
        host,
        choice.executable,
        "parse_launch",
        [launcher, *words],
        timeout=SECONDS,
        cwd=posixpath.normpath(run.cwd),
    )
    for record in records:
        if "absent" in record:
            detail = f"{launcher} could not be started: {record['absent']}"
            return Missing(why=Why.ABSENT, detail=mask(detail))
        if "accepted" in record:
            error = mask(str(record.get("error", "")))
            ignored = {mask(str(key)): str(near) for key, near in record.get("ignored", {}).items()}
            # of other sections only a table knows what is read
            ignored |= {mask(key): near for key, near in unread(values).items() if "." in key}
            return LaunchParse(
                launcher=launcher,
                accepted=bool(record["accepted"]),
                error=error,
                ignored=ignored,
                in_file=bool(record.get("in_ranks")),
                in_ranks=bool(record.get("in_ranks")),
                advice=BEFORE_SCRIPT if error.startswith("ambiguous option") else "",
            )
    if result.timed_out:
        detail = f"{launcher} had not parsed the command line within {SECONDS:g} s"
        return Missing(why=Why.TIMEOUT, detail=detail)
    detail = f"the process that runs the parser of {launcher} ended with status {result.returncode}"
    return Missing(why=Why.BROKEN, detail=detail)
