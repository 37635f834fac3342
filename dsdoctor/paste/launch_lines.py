"""Launch lines: the command that the reporter ran, and the variables that it got.

A command counts if it is at a prompt, in a trace of `set -x`, in a fenced block or a script, or on
a line that is nothing but a command. What a sentence or an answer advises does not, nor does a line
that was cut. If a text has several commands, the one whose output is an error counts; if that does
not decide, none does.
"""

from __future__ import annotations

import base64
import itertools
import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dsdoctor.model.facts.launch import LaunchCommand, MasterAddress
from dsdoctor.model.facts.machine import Environment
from dsdoctor.model.facts.run import ContainerStart
from dsdoctor.paste.container_files import Container, chosen, documents_of
from dsdoctor.paste.docker_container import gpus_of
from dsdoctor.paste.dockerfile import container_of, dockerfiles_of
from dsdoctor.paste.launch_containers import (
    SHELL,
    SHELL_OPTION,
    followed,
    in_shell,
    request_container,
)
from dsdoctor.paste.lines import LONGEST, Line
from dsdoctor.paste.passages import Passage, passages
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.pod_description import all_containers, described_pods
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.shell_passages import is_continued, shell_lines_of, typed_at
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.command_line import batch_options, parse_command
from dsdoctor.probes.command_tables import TRAINERS
from dsdoctor.probes.container_start import container_start
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.launch_devices import devices_of
from dsdoctor.probes.ports import sets_address
from dsdoctor.probes.shell_lines import commands_with_environment

#: Programs in Python that start no job.
_NO_JOB = re.compile(r"(?:setup|collect_env|ds_report|conftest|check\w*|test_install\w*)\.py$")
_NO_MODULE = frozenset(
    {"pip", "venv", "torch.utils.collect_env", "sglang.check_env", "http.server", "pytest",
     "ipykernel", "xformers.info", "bitsandbytes", "build", "json.tool"}
)  # fmt: skip
#: After the name of a package in a list of versions (`deepspeed 0.17.5`), and in rows of
#: `ds_report` (`deepspeed info ................... 0.17.5, unknown, unknown`).
_LISTED = re.compile(r"v?\d{1,4}(?:\.\w{1,12})+(?:\+\S*)?(?:\s|$)|(?:\S+ ){1,3}\.{5,}(?:\s|$)")
#: In the output of a command that failed.
_FAILED = re.compile(
    r"Traceback \(most|\b[A-Z]\w{2,40}(?:Error|Exception)\b"
    r"|\b(?:error|ERROR|Error|FAILED|fatal)\b[: ]"
    r"|Killed|Segmentation fault|core dumped|exit(?:s|ed)? with|exitcode|hangs?\b|stuck\b|usage: "
)
_SCRIPT_SHOWN = re.compile(r"(?:cat|more|less)\s+\S+\.(?:sh|slurm|sbatch|job|bash)\s*$")
#: deepspeed 0.19.8 launcher/runner.py `main`, for a job on one node. Its options have `=`.
_RUNNER = re.compile(
    r"\bcmd = \S{1,300} -u -m deepspeed\.launcher\.launch --world_info=(?P<world>\S{1,4000})"
    r"(?P<rest> .*)$"
)
#: Options of which each node of a run passes its own.
_OF_NODE = frozenset({"node_rank", "machine_rank", "node-rank", "machine-rank"})
#: Most commands of a text.
_MOST = 40
#: What Slurm sets for a job on several nodes.
_NUMBER_OF_NODES = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
#: In place of the path of a script that is not told.
_SCRIPT = "$SCRIPT"


class Launch(NamedTuple):
    """A command of the reporter's.

    Attributes:
        line: its first line.
        end: number of its last line.
        words: its words.
        environment: what was exported before it, each with its line.
        batch: what the script asks Slurm for.
        failed: the output below it is that of a failure.
        gpus: how many GPUs its container gets at most, and the setting that says so.
        container: how it starts a container; None if it starts none.
        in_file: a manifest, a compose file or a Dockerfile starts it; it may be another program's.
    """

    line: Line
    end: int
    words: tuple[str, ...]
    environment: dict[str, tuple[str, Line]]
    batch: dict[str, str]
    failed: bool = False
    gpus: tuple[int, str] | None = None
    container: ContainerStart | None = None
    in_file: bool = False


def launches_of(lines: Sequence[Line]) -> list[Launch]:
    """The launch lines of a text's reporter, in order, each once."""
    found: list[Launch] = []
    for passage in passages(lines):
        if len(found) < _MOST:
            found += itertools.islice(_jobs(passage), _MOST)
    found = [launch for launch in found if not launch.in_file] or found
    found = sorted(found or _logged(lines), key=lambda launch: launch.line.number)
    found = [
        launch._replace(failed=_fails(lines, launch, found[place + 1 : place + 2]))
        for place, launch in enumerate(found)
    ]
    each: dict[tuple[Any, ...], Launch] = {}
    for launch in found:
        variables = tuple((name, value) for name, (value, _) in launch.environment.items())
        key = (_without_rank(launch.words), variables)
        first = each.setdefault(key, launch)
        if launch.failed and not first.failed:
            each[key] = first._replace(failed=True)
    return list(each.values())


def _logged(lines: Sequence[Line]) -> Iterator[Launch]:
    """The command that DeepSpeed's launcher prints for this node, as its own command line."""
    for line in lines:
        found = _RUNNER.search(line.text) if "deepspeed.launcher.launch" in line.text else None
        if found is None:
            continue
        words = found["rest"].split()
        own = next((place for place, word in enumerate(words) if not word.startswith("--")), None)
        if own is not None and words[own].endswith(".py") and len(line.text) < LONGEST:
            slots = _slots(found["world"])
            ports = [word for word in words[:own] if word.startswith("--master_port=")]
            if slots is not None:
                argv = ("deepspeed", f"--include={slots}", *ports, *words[own:])
                yield Launch(line, line.number, argv, {}, {})
            return


def _slots(text: str) -> str | None:
    """The GPUs of this node in the launcher's `--world_info`; None for several nodes.

    >>> _slots("eyJsb2NhbGhvc3QiOiBbMCwgMV19")
    'localhost:0,1'
    """
    try:
        world = json.loads(base64.urlsafe_b64decode(text))
    except ValueError:
        return None
    if not isinstance(world, dict) or len(world) != 1:
        return None
    [(host, slots)] = world.items()
    if not isinstance(slots, list) or not all(type(slot) is int for slot in slots):
        return None
    return f"{host}:{','.join(map(str, slots))}"


def the_launch(found: Sequence[Launch]) -> Launch | None:
    """The command that the text is about; None if nothing decides which one that is."""
    jobs = [launch for launch in found if not _is_python(launch)] or list(found)
    if len(jobs) == 1:
        return jobs[0]
    failed = [launch for launch in jobs if launch.failed]
    return failed[0] if len(failed) == 1 else None


def _is_python(launch: Launch) -> bool:
    return parse_command(launch.words).launcher == "python"


def _without_rank(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that are the same on every node."""
    kept: list[str] = []
    skip = False
    for word in words:
        name, equals, _ = word.lstrip("-").partition("=")
        if not skip and not (word.startswith("--") and name in _OF_NODE):
            kept.append(word)
        skip = not skip and word.startswith("--") and name in _OF_NODE and not equals
    return tuple(kept)


def _fails(lines: Sequence[Line], launch: Launch, after: Sequence[Launch]) -> bool:
    """Whether an error follows before the next command."""
    end = after[0].line.number if after else len(lines) + 1
    for line in lines[launch.end : end - 1]:
        if typed_at(line) and not line.text.lstrip().startswith("+"):
            return False
        if _FAILED.search(line.text):
            return True
    return False


def _jobs(passage: Passage) -> Iterator[Launch]:
    """The jobs that a passage starts, with those of scripts that it shows."""
    for place, line in enumerate(passage.lines):
        if _SCRIPT_SHOWN.match(typed_at(line)):
            shown = tuple(
                itertools.takewhile(lambda below: not typed_at(below), passage.lines[place + 1 :])
            )
            yield from _of_shell(passage._replace(lines=shown, fenced=True))
    images = list(dockerfiles_of(passage))
    files = {line.number for file in images for line in file.lines}
    files |= {line.number for lines in documents_of(passage) for line in lines}
    files |= {line.number for lines, _ in described_pods(passage) for line in lines}
    if not files:
        yield from _of_shell(passage)
        return
    yield from _of_containers([*map(container_of, images), *chosen(all_containers(passage))])
    rest = tuple(line._replace(text="") if line.number in files else line for line in passage.lines)
    yield from _of_shell(passage._replace(lines=rest))


def _of_containers(found: Sequence[Container]) -> Iterator[Launch]:
    """The jobs that a manifest, a compose file or an image starts."""
    for container in found:
        words = container.words
        script = SHELL.fullmatch(posixpath.basename(words[0])) if len(words) > 2 else None  # noqa: PLR2004
        is_script = script is not None and SHELL_OPTION.fullmatch(words[1])
        text = words[2] if is_script else shlex.join(words)
        for command, environment in commands_with_environment(text, _starts_job):
            known = _known(followed(command.words))
            if known is None:
                continue
            line = container.line_of(*known)
            variables = {
                name: (value, container.line_of(name))
                for name, value in {**container.variables, **environment}.items()
                if allowed(name) and value and not is_placeholder(value)
            }
            end = container.lines[-1].number
            yield Launch(line, end, known, variables, {}, gpus=container.gpus, in_file=True)


def _of_shell(passage: Passage) -> Iterator[Launch]:
    """The jobs that the lines of a shell start."""
    kept, complete = shell_lines_of(passage)
    if not kept:
        return
    text = "\n".join(line.text for line in kept)
    batch = batch_options(text)
    for command, environment in commands_with_environment(text, _starts_job):
        place = command.line - 1
        end = _end(kept, place)
        words = _known(followed(command.words))
        if words is None or (end == kept[-1].number and not complete):  # the rest is missing
            continue
        variables = {
            name: (value, _set_at(name, kept[: place + 1]))
            for name, value in environment.items()
            if allowed(name) and not is_placeholder(value)
        }
        original = passage.lines[kept[place].number - passage.lines[0].number]
        yield Launch(
            original,
            end,
            words,
            variables,
            batch,
            gpus=gpus_of(command.words),
            container=container_start(in_shell(command.words)),
        )


def _set_at(name: str, lines: Sequence[Line]) -> Line:
    """The last line that sets a variable."""
    found = (line for line in reversed(lines) if re.search(rf"\b{name}\+?=", line.text))
    return next(found, lines[-1])


def _end(kept: Sequence[Line], place: int) -> int:
    while place + 1 < len(kept) and is_continued(kept[place].text):
        place += 1
    return kept[place].number


def _starts_job(given: Sequence[str]) -> bool:
    """Whether a command starts a training job, as far as its words show."""
    words = followed(given)
    if _LISTED.match(" ".join(words[1:])):
        return False
    found = parse_command(words)
    if posixpath.basename(found.program) in TRAINERS:
        return True
    if found.launcher == "other":
        return False
    if (found.inner or found.launcher) != "python":
        return found.script is not None and not _NO_JOB.search(found.script)
    script = found.script or ""
    module = "-m" in words and not script.endswith(".py")
    if module:
        return script not in _NO_MODULE and not script.startswith("torch.utils")
    return script.endswith(".py") and not _NO_JOB.search(script)


def _known(words: Sequence[str]) -> tuple[str, ...] | None:
    """The words of a command, placeholders replaced by variables; None if too much is unknown.

    A variable whose value is not known reads as "only the shell knows it". Where a whole word may
    stand for several options, nothing can be said of the command.
    """
    known: list[str] = []
    for word in words:
        if word.endswith(".py") and is_placeholder(word) and not word.startswith("$"):
            known.append(_SCRIPT)
        elif word in ("...", "…", "....", "[...]"):
            known.append("$MORE")
        elif not is_placeholder(word) or word.startswith("$"):
            known.append(word)
        else:
            name, equals, value = word.partition("=")
            is_own = equals and not is_placeholder(name)
            known.append(f"{name}=$VALUE" if is_own and is_placeholder(value) else "$VALUE")
    found = parse_command(known)
    script = found.script or ""
    if script.startswith("$") and script != _SCRIPT:  # options, the script, or both
        return None
    return tuple(known)


def _framework(command: LaunchCommand) -> str:
    """`hf` for a script that parses options of transformers' `TrainingArguments`; else unknown.

    Only there does `--deepspeed` take a file beside a batch size of each device: DeepSpeed's own
    `--deepspeed` is a switch.
    """
    options = dict(command.script_options())
    config = options.get("deepspeed", "")
    return "hf" if config.endswith(".json") and "per_device_train_batch_size" in options else ""


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = launches_of(lines)
    launch = the_launch(found)
    if launch is None:
        if found:
            numbers = ", ".join(str(each.line.number) for each in found[:6])
            into.lack(LaunchCommand, f"lines {numbers} launch jobs, and none of them alone fails")
        return
    command = parse_command(launch.words)
    into.whole(command, launch.line)
    into.request(command=command.argv, batch=launch.batch, framework=_framework(command))
    used = devices_of(command, hostname="")
    into.request(visible_devices=used.visible, device_count=used.first)
    if launch.container is not None:
        request_container(launch.container, command, lines, into)
    if launch.gpus:
        into.request(container_gpus=launch.gpus[0], container_gpus_by=launch.gpus[1])
    for name, (value, line) in launch.environment.items():
        into.override(Environment, f"variables.{name}", value, line)
    for name, value in command.env.items():
        # what was read of the machine was read with the shell's value
        path = f"variables.{name}"
        if allowed(name) and not is_placeholder(value) and not into.states(Environment, path):
            into.state(Environment, path, value, launch.line)
    nodes = launch.batch.get("nodes", "")
    for name in _NUMBER_OF_NODES if nodes.isdecimal() else ():
        if not into.states(Environment, f"variables.{name}"):
            into.state(Environment, f"variables.{name}", nodes, launch.line)
    host = command.master_addr
    if host is None and not sets_address(command):
        host = into.value(Environment, "variables.MASTER_ADDR")
    if host and not is_placeholder(host):
        into.state(MasterAddress, "host", host, launch.line)


READER = Reader("a launch line", _read)
