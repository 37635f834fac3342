"""Finds the launch lines of a shell script or of a `bash -c` string. Pure, and no shell is started.

Only simple commands are understood: assignments, arrays, `export`, `cd` and the command itself.
Expressions that a shell would compute (`$(…)`, loops) are left unchanged: a variable that is
computed, or that two branches set differently, is unknown. A default (`${GPUS:-8}`) counts, unless
a scheduler or the platform sets such a variable.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dsdoctor.probes.command_tables import MODULES, PROGRAMS, TRAINERS, UNFOLLOWED
from dsdoctor.probes.python_launches import started_commands
from dsdoctor.probes.shell_functions import Rows, split_functions
from dsdoctor.probes.shell_programs import PYTHON, is_launch, may_launch, unfollowed
from dsdoctor.probes.shell_rows import logical_lines
from dsdoctor.probes.shell_variables import CLOSES, OPENS, VARIABLE, Variables
from dsdoctor.probes.shell_words import COMPUTED, SHELL, array_words, masked, simple_commands

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
#: Shell keywords before a command.
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "time", "exec"})
#: How many heredocs in heredocs are read.
_DEEPEST = 3
#: Programs that pass one of their words to a shell.
_CARRIERS = frozenset({"ssh", "pdsh", "clush", "tmux", "screen", "su", "sbatch", "xargs"})
#: An array spans at most this many lines.
_ARRAY_LINES = 2000
#: Characters of one script that may be read again in an array that was never closed.
_MOST_READ_AGAIN = 2 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+?=.*)?", re.DOTALL)
_DECLARATIONS = frozenset({"local", "declare", "readonly", "typeset"})
#: Calls of functions of one script that are followed.
_MOST_CALLS = 30
_OF_SHELL = _KEYWORDS | OPENS | CLOSES
#: Longer lines with `$(…)` are not searched for a job in it.
_LONGEST_BODY = 20_000
_ARRAY = re.compile(
    r"^[ \t]*(?:(?:export|local|readonly|declare(?: -\w+)?) )?"
    r"(?P<name>[A-Za-z_]\w*)(?P<more>\+)?=\("
)


#: A text without any of these launches nothing, like most scripts in a repository.
_NAMED = re.compile("|".join(sorted(map(re.escape, {*PROGRAMS, *TRAINERS, *MODULES}))))

_UNFOLLOWED = re.compile(
    rf"\b(?:{'|'.join(sorted({name for name, *_ in UNFOLLOWED} - {'kubectl'}))})\b"
)


class ShellCommand(NamedTuple):
    """One simple command.

    Attributes:
        line: number of its first line, from 1.
        words: its words, without quotes, with known variables expanded.
        depends_on: the variable that decides which program it starts; its words are those of one
            possible value. "" = the program is known.
    """

    line: int
    words: tuple[str, ...]
    depends_on: str = ""


_NOTHING: Mapping[str, str] = {}
_ARRAY_INSIDE = re.compile(r"\b([A-Za-z_]\w*)\+?=\(")


def commands(text: str, given: Mapping[str, str] = _NOTHING) -> list[ShellCommand]:
    r"""Simple commands in order, with variables expanded that the text itself sets, or `given`.

    >>> commands('N=2\nexport A=b\ntorchrun --nproc-per-node $N \\\n  t.py # go')[0].words
    ('torchrun', '--nproc-per-node', '2', 't.py')
    >>> commands('A="--nnodes 2"\nP=$(free_port)\ntorchrun $A --master_port $P t.py')[0].words
    ('torchrun', '--nnodes', '2', '--master_port', '$P', 't.py')
    """
    return [command for command, _ in walked(text, given)]


def commands_with_environment(
    text: str, wanted: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[ShellCommand, dict[str, str]]]:
    r"""The commands whose words are wanted, each with what the text has exported before it.

    >>> text = "export A=1\nB=2\ntrue\nunset A\ntrue"
    >>> command, variables = next(commands_with_environment(text, lambda words: True))
    >>> command.line, variables
    (3, {'A': '1'})
    """
    for command, variables in walked(text):
        if wanted(command.words):
            yield command, variables.environment()


def walked(
    text: str, given: Mapping[str, str] = _NOTHING
) -> Iterator[tuple[ShellCommand, Variables]]:
    """Each command, with the variables as they are before it; of a function, where it is called."""
    variables = Variables(given)
    rows, functions = split_functions(list(logical_lines(text)))
    calls = _Calls(functions)
    yield from _walked_rows(rows, variables, calls)
    for name in [name for name in functions if name not in calls.made]:
        yield from _walked_rows(functions[name], variables, calls)


class _Calls:
    """The functions of a script, and which of them it has called."""

    def __init__(self, functions: Mapping[str, Rows]) -> None:
        self.functions = functions
        self.made: set[str] = set()
        self._left = _MOST_CALLS
        self._deep = 0

    def of(self, words: Sequence[str]) -> tuple[str, list[str]] | None:
        """The function that a command calls, and its arguments; None if it calls none."""
        place = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), 0)
        name = words[place]
        if name not in self.functions or not self._left or self._deep >= _DEEPEST:
            return None
        self._left -= 1
        self.made.add(name)
        return name, list(words[place + 1 :])

    @contextlib.contextmanager
    def inside(self, variables: Variables, arguments: list[str]) -> Iterator[None]:
        before = variables.arguments
        variables.arguments = arguments if not any("$@" in word for word in arguments) else None
        self._deep += 1
        yield
        self._deep -= 1
        variables.arguments = before


def _walked_rows(
    rows: Rows, variables: Variables, calls: _Calls
) -> Iterator[tuple[ShellCommand, Variables]]:
    for number, line in _with_arrays(rows, variables):
        for written in _commands_of(line, variables):
            call = calls.of(written)
            if call is not None:
                name, arguments = call
                with calls.inside(variables, arguments):
                    yield from _walked_rows(calls.functions[name], variables, calls)
                continue
            depends_on, words = _chosen(written, variables)
            yield ShellCommand(number, words, depends_on), variables


def _chosen(words: tuple[str, ...], variables: Variables) -> tuple[str, tuple[str, ...]]:
    """The variable that decides which program starts, and the words of a job that it may start."""
    place = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), 0)
    variable, job = _job_of(words[place:], variables, _DEEPEST)
    return (variable, (*words[:place], *job)) if job else ("", words)


def _job_of(words: tuple[str, ...], variables: Variables, deep: int) -> tuple[str, tuple[str, ...]]:
    """The unknown program, or the word after Python, and a job that one of its values starts."""
    if not words:  # `$RUN` of which one value is empty
        return "", ()
    at = 0
    if PYTHON.fullmatch(posixpath.basename(words[0])):
        at = min(2 if words[1:2] == ("-m",) else 1, len(words) - 1)
    variable = words[at]
    if not VARIABLE.fullmatch(variable) or (not at and words[1:2] == ("-m",)):
        return "", ()
    values = variables.values_of(variable)
    job = may_launch(words[at:], values) if not at else ()
    for value in values if deep and not job else ():
        candidate = (*words[:at], *value.split(), *words[at + 1 :])
        if is_launch(candidate):
            return variable, candidate
        job = _job_of(candidate, variables, deep - 1)[1]
        if job:
            break
    return (variable, job) if job else ("", ())


def _commands_of(
    line: str, variables: Variables, deep: int = _DEEPEST
) -> Iterator[tuple[str, ...]]:
    """The commands of a line; its assignments and blocks are recorded."""
    certain = True
    text, bodies = masked(variables.defaults(line), variables.known.get)
    for joint, words in simple_commands(variables.split(text)):
        perhaps = joint in ("&&", "||") and not (certain and joint == "&&")
        place = 0
        while place < len(words) and words[place] in _OF_SHELL:
            word = words[place]
            variables.keyword(word)
            if word == "exec" and words[place + 1 : place + 2] == ["-a"]:  # a name
                place += 2
            # `for x in …`, `case $x in`: no command
            place = len(words) if word in OPENS - _KEYWORDS else place + 1
        rest = words[place:]
        if rest == ["*"]:  # of `case`
            variables.keyword("*")
        filled = [variables.fill(word) for word in rest]
        # only an assignment of a literal cannot fail
        certain = bool(filled) and len(rest) == len(words) and not perhaps
        certain = certain and all(_ASSIGNMENT.match(word) for word in filled)
        certain = certain and not any(COMPUTED in word for word in filled)
        yield from _run(filled, variables, perhaps=perhaps)
    # of `out=$(torchrun …)`, whose other commands start nothing
    for body in bodies if deep and len(line) < _LONGEST_BODY else ():
        if _NAMED.search(body):
            yield from filter(is_launch, _commands_of(body, variables, deep - 1))


def _run(words: Sequence[str], variables: Variables, *, perhaps: bool) -> Iterator[tuple[str, ...]]:
    """A simple command, unless it only changes variables."""
    exported = words[1:] if words[:1] == ["export"] else []
    declared = [word for word in words[1:] if not word.startswith("-")]
    if exported and all(_NAME.fullmatch(word) for word in exported):
        for word in exported:
            variables.export(word)
            if "=" in word:
                variables.set(word, perhaps=perhaps)
    elif words and words[0] in _DECLARATIONS and all(map(_NAME.fullmatch, declared)):
        for word in declared:
            if "=" in word:
                variables.set(word, perhaps=perhaps)
    elif all(_ASSIGNMENT.match(word) for word in words):
        for word in words:
            variables.set(word, perhaps=perhaps)
    elif _is_builtin(words, variables, perhaps=perhaps):
        pass
    elif words[0] == "eval":
        yield from (_shown(inner) for _, inner in simple_commands(" ".join(words[1:])))
    elif words != ["export"]:
        yield _shown(exported or words)


def _is_builtin(words: Sequence[str], variables: Variables, *, perhaps: bool) -> bool:
    """Whether a command only changes variables or arguments; it is carried out."""
    if words[0] == "shift" and variables.arguments is not None:
        count = "".join(words[1:2]) or "1"
        variables.arguments = variables.arguments[int(count) if count.isdecimal() else 0 :]
    elif words[:2] == ["set", "--"]:
        known = not (perhaps or variables.depth) and not any("$@" in word for word in words)
        variables.arguments = list(words[2:]) if known else None
    elif words[:2] == ["printf", "-v"] and words[3:]:
        variables.set(f"{words[2]}={_printed(words[3], words[4:])}", perhaps=perhaps)
    elif words[0] == "unset":
        for word in words[1:]:
            variables.unset(word)
    else:
        return False
    return True


def _printed(form: str, values: Sequence[str]) -> str:
    """What `printf` prints with plain conversions; anything else is computed.

    >>> _printed("torchrun --nproc %d %s", ["8", "t.py"]), _printed("%05d", ["8"]) == COMPUTED
    ('torchrun --nproc 8 t.py', True)
    """
    parts = re.split("%[sdi]", form)
    if "%" in "".join(parts) or "\\" in form or len(parts) != len(values) + 1:
        return COMPUTED
    return "".join(part for pair in zip(parts, (*values, ""), strict=True) for part in pair)


def _shown(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.replace(COMPUTED, "$(\N{HORIZONTAL ELLIPSIS})") for word in words)


def _with_arrays(rows: Rows, variables: Variables) -> Iterator[tuple[int, str]]:
    """Logical lines without the arrays, which are recorded in order."""
    name, more, held, spanned, left = "", False, "", 0, _MOST_READ_AGAIN
    for number, line in rows:
        begun = None if name else _ARRAY.match(line)
        if begun:
            name, more, held = begun["name"], bool(begun["more"]), line[begun.end() :]
            spanned = 0
        elif name:
            held += "\n" + line
            spanned += 1
        else:
            for other in _ARRAY_INSIDE.findall(line):  # after `then` or `&&`: uncertain
                variables.arrays.pop(other, None)
            yield number, line
            continue
        if ")" not in line and spanned < _ARRAY_LINES:
            continue
        words, closed = array_words(masked(held, variables.known.get).line)
        left -= len(held)
        if spanned >= _ARRAY_LINES or (not closed and left <= 0):
            variables.arrays.pop(name, None)
            name = ""
        elif closed:
            variables.set_array(name, [variables.fill(word) for word in words], more=more)
            name = ""


def launches(text: str, given: Mapping[str, str] = _NOTHING) -> list[ShellCommand]:
    """The launch lines of a script, and of the strings that it passes to `bash -c`.

    Args:
        text: the script.
        given: the environment that it gets, as far as it is known.

    >>> launches("srun -N 2 bash -lc 'torchrun train.py'")[0].words
    ('srun', '-N', '2', 'torchrun', 'train.py')
    """
    found = commands(text, given) if _NAMED.search(text) else []
    return [launch for command in found for launch in _launches_in(command)]


def launches_with_environment(
    text: str, given: Mapping[str, str] = _NOTHING
) -> Iterator[tuple[ShellCommand, dict[str, str]]]:
    """The launch lines, each with what the script has exported before it."""
    if not _NAMED.search(text):
        return
    for command, variables in walked(text, given):
        found = _launches_in(command)
        environment = variables.environment() if found else {}
        yield from ((launch, environment) for launch in found)


def _launches_in(command: ShellCommand) -> list[ShellCommand]:
    """What a command of a script launches, itself or by a shell or Python that it starts."""
    inner = _passed_to_shell(command)
    source = _python_source(command.words)
    if source:
        return [
            ShellCommand(command.line, one.words, one.depends_on)
            for _, text in started_commands(source)
            for one in commands(text)
            if is_launch(one.words)
        ]
    if inner:
        return inner
    return [command] if command.depends_on or is_launch(command.words) else []


def starts_jobs(text: str) -> bool:
    """Whether a text contains the name of a program that starts jobs."""
    return bool(_NAMED.search(text) or _UNFOLLOWED.search(text))


def not_followed(text: str) -> list[tuple[int, str]]:
    """Lines of a script that start a job in a way that is not followed, each with the reason.

    >>> not_followed("sky launch task.yaml")
    [(1, '`sky launch` starts the job on machines of a cloud')]
    """
    if not _UNFOLLOWED.search(text):
        return []
    found = ((command, unfollowed(command.words)) for command in commands(text))
    # most of what scripts apply to a cluster is no job
    return [
        (command.line, reason)
        for command, reason in found
        if reason and "kubectl" not in map(posixpath.basename, command.words[:1])
    ]


def _python_source(words: Sequence[str]) -> str:
    """What a command passes to `python -c`; "" if it passes nothing."""
    for place, word in enumerate(words[:-2]):
        if PYTHON.fullmatch(posixpath.basename(word)) and words[place + 1] == "-c":
            return words[place + 2]
    return ""


def _runs_script(words: Sequence[str]) -> bool:
    """Whether a command runs a script or module with Python."""
    place = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), 0)
    runs = PYTHON.fullmatch(posixpath.basename(words[place])) is not None
    return runs and any(word == "-m" or word.endswith(".py") for word in words[place + 1 :])


def _passed_to_shell(command: ShellCommand) -> list[ShellCommand]:
    """The launch lines in the text after `bash -c`, with an `srun` that starts the shell."""
    for place, word in enumerate(command.words[:-2]):
        option = command.words[place + 1]
        if not SHELL.fullmatch(posixpath.basename(word)) or not re.fullmatch(r"-\w*c", option):
            continue
        outer = command.words[:place] if is_launch(command.words[:place]) else ()
        inside = commands(command.words[place + 2])
        found = [one for one in inside if is_launch(one.words)]
        if outer and not found:  # `srun bash -c "cd x && python t.py"`: a rank for each task
            found = [one for one in inside if _runs_script(one.words)]
        return [ShellCommand(command.line, (*outer, *one.words)) for one in found]
    if posixpath.basename(command.words[0]) not in _CARRIERS:
        return []
    # `ssh host "cd x && torchrun …"`, `sbatch --wrap="…"`
    texts = [re.sub(r"^--wrap=", "", word) for word in command.words[1:] if " " in word.strip()]
    inner = (one for text in texts if _NAMED.search(text) for one in commands(text))
    return [ShellCommand(command.line, one.words) for one in inner if is_launch(one.words)]
