"""Follows a command through shells and their scripts to the one that starts the job."""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.job.environment import Selected, of_script
from dsdoctor.job.make import make_at, recipes
from dsdoctor.job.queues import submitted
from dsdoctor.job.terminals import typed
from dsdoctor.job.unknown import unknown
from dsdoctor.probes.command_line import after_sbatch, parse_command
from dsdoctor.probes.command_options import after_starter
from dsdoctor.probes.command_tables import (
    PROGRAMS,
    STARTERS,
)
from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.shell_folders import all_run, folder_at, in_folders
from dsdoctor.probes.shell_lines import ShellCommand, commands_with_environment, launches
from dsdoctor.probes.shell_programs import is_launch, unfollowed
from dsdoctor.probes.shell_pythons import python_commands
from dsdoctor.probes.shell_unset import unset_names

#: Programs that run a shell script; sbatch does so on the job's first node.
_SHELL = re.compile(r"(?:ba|da|z|k)?sh$|sbatch$")
#: The first line of a script.
_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?P<program>\S+)")
_PYTHON = re.compile(r"python[\d.]*")
_EXECUTABLE = 0o111
#: A longer file is no script of a person.
_LONGEST = 1 << 20
#: The usual spellings of `dirname "$0"`, and of the same folder as an absolute path.
_FOLDER = (
    r"\$\(\s*dirname\s+(?:--\s+)?\"?(?:\$\(\s*(?:readlink -f|realpath)\s+\"?)?"
    r"\$(?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?(?::-\$0)?\})\"?(?:\s*\)\"?)?\s*\)"
)
_FOLDER_OF_SCRIPT = re.compile(
    rf"(?P<absolute>\$\(\s*cd\s+(?:-P\s+|--\s+)*\"?{_FOLDER}\"?"
    rf"(?:\s*[&12]?>\s*(?:/dev/null|&1))*\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\))|{_FOLDER}"
)
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
#: How many words before a shell are read: options of `srun` or of a container.
_FARTHEST = 60
#: How many nested shells are followed; more is a loop.
_DEEPEST = 4
#: A shell, `sbatch`, or a script that is started by its path.
_STARTS_SCRIPT = re.compile(r"^(?:\S*/)?(?:(?:ba|da|z|k)?sh|sbatch)$|/[^/]*$")
_NO_SHELL = ("", "", "it starts no shell")
#: How many scripts that a script starts are read.
_MOST_SCRIPTS = 20


class Followed(NamedTuple):
    """Where following a command has led.

    Attributes:
        words: the innermost command.
        place: where it was found; "" = it is as given.
        reason: why it could not be determined; "" = it was.
        activated: the environment that a script activates before it.
        cut: what gets the carriage return at the end of its line, as in `RunNeeds`.
        folder: where it starts; "" = in the working folder.
        unset: variables in it that neither the script nor the environment sets.
    """

    words: tuple[str, ...]
    place: str = ""
    reason: str = ""
    activated: Selected | None = None
    cut: str = ""
    folder: str = ""
    unset: tuple[str, ...] = ()


def follow(words: tuple[str, ...], host: Host, cwd: str) -> Followed:
    """Follows a command through shells to the one that starts the job."""
    if len(words) == 1 and " " in words[0]:
        try:
            split = tuple(shlex.split(words[0]))
            words = ("sh", "-c", words[0]) if _is_for_shell(words[0]) else split
        except ValueError as error:
            return Followed(words, reason=f"`{words[0][:60]}` cannot be split into words: {error}")
    done = Followed(words)
    for _ in range(_DEEPEST):
        handed = submitted(done.words)
        if handed != done.words:
            where = f"what `{posixpath.basename(done.words[0])}` submits"
            done = done._replace(words=handed, place=done.place or where)
        done = done._replace(words=typed(done.words))
        words, here = done.words, done.folder or cwd
        make = make_at(words)
        place = _shell_at(words) if make is None else make
        if place is None:
            at, interpreter = _interpreter_at(words, host, here)
            if interpreter:
                words = (*words[:at], interpreter, *words[at:])
            if interpreter != "sh":
                return done._replace(words=words, reason=unfollowed(words) or unknown(words))
            place = at
        if make is None:
            text, name, reason = _shell_text(words[place:], host, here)
        else:
            text, name, reason, here = recipes(words[place + 1 :], host, here)
        if reason:
            return done._replace(reason=reason)
        launched = launches(text)
        scripts = [] if launched else _scripts_in(text, host, here)
        found = launched or scripts or python_commands(text)
        several = len(found) > 1 and bool(launched) and all_run(text, found)
        if len(found) != 1 and not several:
            kind = f"commands that {'launch a job' if launched or scripts else 'run Python'}"
            count = f"{len(found)} {kind}" if found else "no launch command"
            return done._replace(reason=f"{name} contains {count}, expected one")
        launch, others = found[0], ", ".join(str(one.line) for one in found[1:])
        script = launch.depends_on or parse_command(launch.words).script or ""
        # options, the script or both, which only a shell can expand, and not its folder alone
        if script.startswith("$") and not _IN_FOLDER.fullmatch(script):
            return done._replace(reason=f"`{script}` in line {launch.line} of {name} is not known")
        folder = _folder(text, launch, here, host)
        if folder is None:
            where = f"the folder in which line {launch.line} of {name} starts it"
            return done._replace(reason=f"{where} is not known")
        exports = _exports(text, launch.line)
        # `srun` with its options, or assignments, may precede the shell and apply to the job
        before = (*words[:place], *(("env", *exports) if exports else ()))
        done = Followed(
            words=(*before, *launch.words),
            place=(name if name.startswith("the") else f"line {launch.line} of {name}")
            + (f", which starts it in `{folder}`" if folder != cwd else "")
            + (f"; what it launches after that was not checked (line {others})" if others else ""),
            activated=of_script(text, launch.line, name, host, here) or done.activated,
            cut=_carriage_return(text, launch.line),
            folder=folder if folder != cwd else "",
            unset=unset_names(text, launch.words, {**host.env, **_given(before)}),
        )
    return done._replace(reason="shells that start other shells are nested too deeply")


def _scripts_in(text: str, host: Host, cwd: str) -> list[ShellCommand]:
    """The commands of a script that start another script, which launches a job."""
    found: list[ShellCommand] = []
    starting = (
        one
        for one in in_folders(text, cwd, host.env)
        if any(_STARTS_SCRIPT.search(word) for word in one[0].words[:_FARTHEST])
    )
    for command, folder in itertools.islice(starting, _MOST_SCRIPTS):
        words, here = command.words, folder or cwd
        place = _shell_at(words)
        if place is None:
            at, interpreter = _interpreter_at(words, host, here)
            words = ("sh", *words[at:]) if interpreter == "sh" else ()
        inner, name, reason = _shell_text(words[place or 0 :], host, here) if words else _NO_SHELL
        # of `bash -c`, the launches are known
        if not reason and not name.startswith("the") and launches(inner):
            found.append(command)
    return found


def _given(words: Sequence[str]) -> dict[str, str]:
    """The variables that words before a command set."""
    parts = (word.partition("=") for word in words if "=" in word)
    return {name: value for name, _, value in parts}


def _folder(text: str, launch: ShellCommand, cwd: str, host: Host) -> str | None:
    """The folder in which a launch line starts the job; None = not known, though it matters.

    Where only the shell can tell, and the script is in the working folder, that folder is meant.
    """
    folder = folder_at(text, launch, cwd, host.env)
    if folder not in (cwd, None) and not exists(host, folder):  # perhaps the script makes it
        folder = None
    script = parse_command(launch.words).script or ""
    if folder == cwd or not script.endswith(".py") or script.startswith(("/", "$", "~")):
        return folder or cwd
    if folder is not None and exists(host, posixpath.normpath(posixpath.join(folder, script))):
        return folder
    return cwd if exists(host, posixpath.normpath(posixpath.join(cwd, script))) else folder


def _interpreter_at(words: Sequence[str], host: Host, cwd: str) -> tuple[int, str]:
    """Where the program stands that is a script, and its interpreter; "" = it is none.

    A script that may not be executed is left alone: that is what stops it.
    """
    rest, _ = unwrap(list(words))
    starter = PROGRAMS.get(posixpath.basename(rest[0])) if rest else None
    if starter in STARTERS:
        rest, _ = unwrap(after_starter(starter, rest[1:])[1])
    place = len(words) - len(rest)
    if not rest or "/" not in rest[0] or [*words[place:]] != rest:
        return 0, ""
    path = posixpath.normpath(posixpath.join(cwd, rest[0]))
    try:
        found = host.stat(path)
        small = found.kind == "file" and found.mode & _EXECUTABLE and found.size <= _LONGEST
        first = read_text(host, path).partition("\n")[0] if small else ""
    except HostError:
        return 0, ""
    named = _SHEBANG.match(first)
    if named is None:
        return 0, ""
    name = posixpath.basename(named["program"])
    if _SHELL.fullmatch(name):
        return place, "sh"
    # a launcher is a script of Python too, and its name says more
    ours = _PYTHON.fullmatch(name) and rest[0].endswith(".py")
    return (place, named["program"]) if ours else (0, "")


def _is_for_shell(line: str) -> bool:
    """Whether a line contains an operator of the shell, outside quotes, or a substitution.

    >>> _is_for_shell("torchrun t.py 2>&1 | tee log"), _is_for_shell("python t.py 'a > b'")
    (True, False)
    """
    if "$(" in line or "`" in line:
        return True
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.commenters = ""
    return any(word and set(word) <= set("|&;<>") for word in words)


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


def _shell_at(words: Sequence[str]) -> int | None:
    """Position of the shell that the command starts; None if it starts none."""
    for place, word in enumerate(words[:_FARTHEST]):
        name = posixpath.basename(word)
        if _SHELL.fullmatch(name):
            return place
        if _PYTHON.fullmatch(name):  # its arguments are no commands
            return None
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
    path = posixpath.normpath(posixpath.join(cwd, rest[0]))
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
