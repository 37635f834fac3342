"""Finds the launch lines of a shell script or of a `bash -c` string. Pure, and no shell is started.

Only simple commands are understood: assignments, arrays, `export`, `cd` and the command itself.
Expressions that a shell would compute (`$(…)`, loops) are left unchanged: a variable that is
computed, or that two branches set differently, is unknown. A default (`${GPUS:-8}`) counts, unless
a scheduler or the platform sets such a variable.

Over 400 lines because words, variables and arrays of one line are read by one state.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dsdoctor.probes.command_tables import MODULES, PROGRAMS, TRAINERS
from dsdoctor.probes.shell_programs import is_launch, may_launch
from dsdoctor.probes.shell_words import COMPUTED, array_words, masked, simple_commands

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
#: Shell keywords before a command.
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "time", "exec"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
#: How many heredocs in heredocs are read.
_DEEPEST = 3
_SHEBANG = re.compile(r"#!.{0,80}sh\b")
#: A file of commands that a heredoc is written to.
_SCRIPT_WRITTEN = re.compile(r"(?:>|\btee\b)[^|;&]*\.(?:sh|bash|sbatch|slurm|job|pbs)\b")
#: Programs that run the commands of their standard input, besides shells.
_READERS = frozenset({"ssh", "sbatch", "qsub"})
#: Programs that pass one of their words to a shell.
_CARRIERS = frozenset({"ssh", "pdsh", "clush", "tmux", "screen", "su", "sbatch", "xargs"})
#: A shell, which also runs the text after `-c`.
_SHELL = re.compile(r"(?:ba|z|da|k)?sh")
#: The words of a command that reads a heredoc.
_READ = re.compile(
    r"\s*(?:IFS=\S{0,10}\s+)?read(?=\s[^<]*-\w*d\s*(?:''|\"\"))(?:\s+-\w+|\s+(?:''|\"\"))+"
    r"\s+(?P<name>[A-Za-z_]\w*)\s*<<"
)
#: A quote spans at most this many lines; otherwise it is a stray one.
_QUOTED_LINES = 400
#: An array spans at most this many lines.
_ARRAY_LINES = 2000
#: Characters of one script that may be read again: after an open quote, and in an array that was
#: never closed. Each line of a script may require all that follows it.
_MOST_READ_AGAIN = 2 << 20
#: Characters that variables put into one script. Twenty lines can double a value twenty times; a
#: kernel takes no word of more than 128 KiB (`MAX_ARG_STRLEN`, execve(2)).
_MOST_FILLED = 4 << 20
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: A variable with a value for when it is not set.
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?[-=]([^{}$`]*)\}")
#: Defaults in defaults that are read.
_NESTED = 4
#: Variables that a scheduler or a platform sets for a job, so that their defaults say nothing.
_OF_PLATFORM = re.compile(
    r"(?:SLURM|PBS|LSB|OMPI|PMIX?|PMI|MV2|PET|MLP|ARNOLD|METIS|PAI|KUBERNETES|SM|AZ|NSML)_\w*"
    r"|\w*(?:ADDR|ADDRESS|_IP|_HOST|RANK|WORLD_SIZE|NNODES|NODES|NODE_COUNT|NUM_NODE|NODE_NUM)"
    r"|\w*(?:MACHINES|HOSTS|INSTANCES|WORKERS|WORKER_NUM)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+?=.*)?", re.DOTALL)
#: Values that one variable may have, depending on branches, that are kept.
_MOST_VALUES = 8
#: Names that one script may export; a job sets a few dozen.
_MOST_EXPORTED = 200
_OPENS = frozenset({"if", "case", "for", "while", "until", "select"})
_CLOSES = frozenset({"fi", "esac", "done"})
_OF_SHELL = _KEYWORDS | _OPENS | _CLOSES
#: Longer lines with `$(…)` are not searched for a job in it.
_LONGEST_BODY = 20_000
_ARRAY = re.compile(
    r"^[ \t]*(?:(?:export|local|readonly|declare(?: -\w+)?) )?"
    r"(?P<name>[A-Za-z_]\w*)(?P<more>\+)?=\("
)


#: A text without any of these launches nothing, like most scripts in a repository.
_NAMED = re.compile("|".join(sorted(map(re.escape, {*PROGRAMS, *TRAINERS, *MODULES}))))


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


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations and with the lines that a quote spans.

    Comment lines and heredocs are left out, except those that `read -d ''` reads (an assignment),
    that a shell reads, or that become a script. A quote that is not closed soon ends with its line.
    """
    yield from _logical(list(_continued(text)), _DEEPEST)


def _logical(rows: list[tuple[int, str]], deep: int) -> Iterator[tuple[int, str]]:
    place, until, taken, left = 0, "", "", _MOST_READ_AGAIN
    runs = False
    held: list[tuple[int, str]] = []
    while place < len(rows):
        begun, line = rows[place]
        place += 1
        if until and line.strip() != until:
            held.append((begun, line))
            continue
        if until:
            if taken:
                yield begun, f"{taken}={shlex.quote(' '.join(row for _, row in held))}"
            elif deep and (runs or _SHEBANG.match(held[0][1] if held else "")):
                yield from _logical(
                    [(row, text.replace(r"\$", "$")) for row, text in held], deep - 1
                )
            until, held = "", []
            continue
        if line.lstrip().startswith("#"):
            continue
        quote, end = _open_quote(line), place
        while quote and end < min(len(rows), place + _QUOTED_LINES) and left > 0:
            quote = _open_quote(rows[end][1], quote)
            left -= len(rows[end][1]) + 1
            end += 1
        if end > place and not quote:
            line = "\n".join([line, *(row for _, row in rows[place:end])])
            place = end
        elif found := _HEREDOC.search(line):
            until = found[2]
            name = _READ.match(line)
            taken = name["name"] if name else ""
            runs = _reads_script(line, found)
        yield begun, line


def _reads_script(line: str, heredoc: re.Match[str]) -> bool:
    """Whether what reads a heredoc is a shell, on this node or another, or writes a script.

    >>> line = "cat > job.sh <<EOF"
    >>> _reads_script(line, _HEREDOC.search(line))
    True
    """
    rest = f"{line[: heredoc.start()]} {line[heredoc.end() :]}"
    if _SCRIPT_WRITTEN.search(rest):
        return True
    read = [words for _, words in simple_commands(line[: heredoc.start()])][-1:]
    return any(posixpath.basename(word) in _READERS or _SHELL.fullmatch(posixpath.basename(word))
               for words in read for word in words)  # fmt: skip


def _continued(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined if they end with a backslash, each with the number of its first line."""
    begun, held = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        begun = begun if held else number
        comment = not held and raw.lstrip().startswith("#")
        if raw.endswith("\\") and not raw.endswith("\\\\") and not comment:
            held += raw[:-1] + " "
            continue
        yield begun, held + raw
        held = ""
    if held:
        yield begun, held


def _open_quote(line: str, quote: str = "") -> str:
    r"""The quote that is open at the end of a line; "" if there is none.

    >>> _open_quote("bash -c 'torchrun"), _open_quote("it\\'s # don't"), _open_quote("x'", "'")
    ("'", '', '')
    """
    if not (quote and quote in line) and "'" not in line and '"' not in line:
        return quote
    place = 0
    while place < len(line):
        letter = line[place]
        if letter == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (place == 0 or line[place - 1].isspace()):
            break
        place += 1
    return quote


class _Variables:
    """What a script has set so far.

    Attributes:
        known: values of variables.
        arrays: items of arrays.
        depth: how many blocks (`if`, `for`) enclose the line.
        exported: names that `export` has marked; commands get them.
    """

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.depth = 0
        self.exported: set[str] = set()
        self._unsure: set[str] = set()
        #: Values of unsure variables, depending on the branches that are taken.
        self._perhaps: dict[str, list[str]] = {}
        #: Variables that only the outermost block has set, and those that it has made unknown.
        self._fresh: set[str] = set()
        self._gone: set[str] = set()
        self._always = False
        self._left = _MOST_FILLED

    def _may_put(self, length: int) -> bool:
        """Whether this many characters may still be inserted; otherwise the variable stays."""
        self._left -= min(length, self._left + 1)
        return self._left >= 0

    def export(self, word: str) -> None:
        """Handles a word after `export`: `NAME` or `NAME=value`."""
        if len(self.exported) < _MOST_EXPORTED:
            self.exported.add(word.partition("=")[0].removesuffix("+"))

    def unset(self, name: str) -> None:
        """Handles a name after `unset`; in a block, the variable is uncertain afterwards."""
        self.known.pop(name, None)
        if self.depth:
            self._unsure.add(name)
        else:
            self.exported.discard(name)

    def environment(self) -> dict[str, str]:
        """Exported variables whose values are known."""
        return {name: self.known[name] for name in sorted(self.exported & self.known.keys())}

    def keyword(self, word: str) -> None:
        """Handles a keyword of a block: without `else`, what only the block sets is uncertain."""
        if word in _OPENS:
            if self.depth == 0:
                self._fresh, self._gone, self._always = set(), set(), False
            self.depth += 1
        elif word in ("else", "*"):
            self._always = True
        elif word in _CLOSES and self.depth > 0:
            self.depth -= 1
            if self.depth == 0 and not self._always:
                for name in self._fresh & self.known.keys():
                    self._may_be(name, self.known.pop(name))
                    self._unsure.add(name)

    def set(self, word: str, *, perhaps: bool = False) -> None:
        """Handles an assignment; a value that is computed or depends on a branch is unknown.

        Args:
            word: `NAME=value` or `NAME+=value`.
            perhaps: it follows `&&` or `||`, so it depends on another command.
        """
        name, _, value = word.partition("=")
        perhaps = perhaps or self.depth > 0
        if name.endswith("+"):
            name = name[:-1]
            before = self.known.get(name)
            unknown = before is None or perhaps or not self._may_put(len(before))
            value = value if unknown else f"{before}{value}"
        elif perhaps and self.depth == 0:
            unknown = self.known.get(name) != value
        else:
            unknown = perhaps and self.known.get(name, value) != value
        if name in self._unsure and perhaps:
            self._may_be(name, value)
            return
        self._unsure.discard(name)
        # several words of which some are computed: the others count
        partly = COMPUTED in value and len(value.split()) > 1 and not value.startswith(COMPUTED)
        if unknown or (COMPUTED in value and not partly):
            before = self.known.pop(name, None)
            if before is not None and name not in self._fresh:
                self._gone.add(name)
            self._unsure.add(name)
            self._may_be(name, before, value)
        else:
            if name not in self.known and name not in self._gone:
                self._fresh.add(name)
            self.known[name] = value

    def _may_be(self, name: str, *values: str | None) -> None:
        kept = self._perhaps.setdefault(name, [])
        kept += [value for value in values if value and len(kept) < _MOST_VALUES]

    def values_of(self, word: str) -> list[str]:
        """What a word that is one unknown variable may be, as far as the script sets it."""
        found = _VARIABLE.fullmatch(word)
        return self._perhaps.get(found[1] or found[2], []) if found else []

    def set_array(self, name: str, items: list[str], *, more: bool) -> None:
        """Handles an array, or items that are appended to one."""
        if self.depth > 0 and (more or name in self.arrays):
            self.arrays.pop(name, None)
        elif not more:
            self.arrays[name] = items
        elif name in self.arrays:
            self.arrays[name] += items

    def fill(self, word: str) -> str:
        """A word with known variables expanded."""

        def value(found: re.Match[str]) -> str:
            known = self.known.get(found[1] or found[2])
            return found[0] if known is None or not self._may_put(len(known)) else known

        return _VARIABLE.sub(value, word)

    def defaults(self, line: str) -> str:
        """A line with the defaults of variables that are not set."""

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in self.known and (self.known[name] or ":" not in found[0]):
                return f"${{{name}}}"
            set_here = re.search(rf"\b{name}\+?=", line)
            if name in self._unsure or _OF_PLATFORM.fullmatch(name) or (
                set_here and not line.lstrip().startswith((f"{name}=", f"export {name}="))
            ):  # fmt: skip
                return f"${{{name}}}"
            return default if self._may_put(len(default)) else found[0]

        for _ in range(_NESTED if "${" in line else 0):
            line, count = _DEFAULT.subn(value, line)
            if not count:
                break
        return line

    def split(self, line: str) -> str:
        """A line in which unquoted variables are split into words, and arrays into items."""

        def words(found: re.Match[str]) -> str:
            value = self.known.get(found["a"] or found["b"] or "")
            if found["array"]:
                items = self.arrays.get(found["array"])
                if items is None or not self._may_put(sum(map(len, items)) + len(items)):
                    return found[0]
                return " ".join(map(shlex.quote, items))
            if value is None or (value.strip() and not any(b in value.strip() for b in " \t")):
                return found[0]
            if not self._may_put(len(value)):
                return found[0]
            return " ".join(map(shlex.quote, value.split()))

        return _UNQUOTED.sub(words, line)


_ARRAY_INSIDE = re.compile(r"\b([A-Za-z_]\w*)\+?=\(")
#: A whole word that is one variable without quotes, or an array with or without them. In an
#: assignment no shell splits.
_UNQUOTED = re.compile(
    r"(?:(?<=\s)|^)(?:\$(?:\{(?P<a>\w+)\}|(?P<b>\w+))|(?P<quote>\"?)\$\{(?P<array>\w+)\[[@*]\]\}"
    r"(?P=quote))(?=[\s;&|]|$)"
)


def commands(text: str) -> list[ShellCommand]:
    r"""Simple commands in order, with variables expanded that the text itself sets.

    >>> commands('N=2\nexport A=b\ntorchrun --nproc-per-node $N \\\n  t.py # go')[0].words
    ('torchrun', '--nproc-per-node', '2', 't.py')
    >>> commands('A="--nnodes 2"\nP=$(free_port)\ntorchrun $A --master_port $P t.py')[0].words
    ('torchrun', '--nnodes', '2', '--master_port', '$P', 't.py')
    """
    return [command for command, _ in _walked(text)]


def commands_with_environment(
    text: str, wanted: Callable[[Sequence[str]], bool]
) -> Iterator[tuple[ShellCommand, dict[str, str]]]:
    r"""The commands whose words are wanted, each with what the text has exported before it.

    >>> text = "export A=1\nB=2\ntrue\nunset A\ntrue"
    >>> command, variables = next(commands_with_environment(text, lambda words: True))
    >>> command.line, variables
    (3, {'A': '1'})
    """
    for command, variables in _walked(text):
        if wanted(command.words):
            yield command, variables.environment()


def _walked(text: str) -> Iterator[tuple[ShellCommand, _Variables]]:
    """Each command, with the variables as they are before it."""
    variables = _Variables()
    for number, line in _with_arrays(text, variables):
        for written in _commands_of(line, variables):
            depends_on, words = _chosen(written, variables)
            yield ShellCommand(number, words, depends_on), variables


def _chosen(words: tuple[str, ...], variables: _Variables) -> tuple[str, tuple[str, ...]]:
    """The variable that decides which program starts, and the words of a job that it may start."""
    place = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), 0)
    first = words[place]
    if not _VARIABLE.fullmatch(first) or words[place + 1 : place + 2] == ("-m",):
        return "", words
    job = may_launch(words[place:], variables.values_of(first))
    return (first, (*words[:place], *job)) if job else ("", words)


def _commands_of(
    line: str, variables: _Variables, deep: int = _DEEPEST
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
            # `for x in …`, `case $x in`: no command
            place = len(words) if word in _OPENS - _KEYWORDS else place + 1
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


def _run(
    words: Sequence[str], variables: _Variables, *, perhaps: bool
) -> Iterator[tuple[str, ...]]:
    """A simple command, unless it only changes variables."""
    exported = words[1:] if words[:1] == ["export"] else []
    if exported and all(_NAME.fullmatch(word) for word in exported):
        for word in exported:
            variables.export(word)
            if "=" in word:
                variables.set(word, perhaps=perhaps)
    elif all(_ASSIGNMENT.match(word) for word in words):
        for word in words:
            variables.set(word, perhaps=perhaps)
    elif words[0] == "unset":
        for word in words[1:]:
            variables.unset(word)
    elif words[0] == "eval":
        yield from (_shown(inner) for _, inner in simple_commands(" ".join(words[1:])))
    elif words != ["export"]:
        yield _shown(exported or words)


def _shown(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.replace(COMPUTED, "$(\N{HORIZONTAL ELLIPSIS})") for word in words)


def _with_arrays(text: str, variables: _Variables) -> Iterator[tuple[int, str]]:
    """Logical lines without the arrays, which are recorded in order."""
    name, more, held, rows, left = "", False, "", 0, _MOST_READ_AGAIN
    for number, line in logical_lines(text):
        begun = None if name else _ARRAY.match(line)
        if begun:
            name, more, held = begun["name"], bool(begun["more"]), line[begun.end() :]
            rows = 0
        elif name:
            held += "\n" + line
            rows += 1
        else:
            for other in _ARRAY_INSIDE.findall(line):  # after `then` or `&&`: uncertain
                variables.arrays.pop(other, None)
            yield number, line
            continue
        if ")" not in line and rows < _ARRAY_LINES:
            continue
        words, closed = array_words(masked(held, variables.known.get).line)
        left -= len(held)
        if rows >= _ARRAY_LINES or (not closed and left <= 0):
            variables.arrays.pop(name, None)
            name = ""
        elif closed:
            variables.set_array(name, [variables.fill(word) for word in words], more=more)
            name = ""


def launches(text: str) -> list[ShellCommand]:
    """The launch lines of a script, and of the strings that it passes to `bash -c`.

    >>> launches("srun -N 2 bash -lc 'torchrun train.py'")[0].words
    ('srun', '-N', '2', 'torchrun', 'train.py')
    """
    if not _NAMED.search(text):
        return []
    found: list[ShellCommand] = []
    for command in commands(text):
        inner = _passed_to_shell(command)
        if inner:
            found += inner
        elif command.depends_on or is_launch(command.words):
            found.append(command)
    return found


def _passed_to_shell(command: ShellCommand) -> list[ShellCommand]:
    """The launch lines in the text after `bash -c`, with an `srun` that starts the shell."""
    for place, word in enumerate(command.words[:-2]):
        option = command.words[place + 1]
        if not _SHELL.fullmatch(posixpath.basename(word)) or not re.fullmatch(r"-\w*c", option):
            continue
        outer = command.words[:place] if is_launch(command.words[:place]) else ()
        found = [one for one in commands(command.words[place + 2]) if is_launch(one.words)]
        return [ShellCommand(command.line, (*outer, *one.words)) for one in found]
    if posixpath.basename(command.words[0]) not in _CARRIERS:
        return []
    # `ssh host "cd x && torchrun …"`, `sbatch --wrap="…"`
    texts = [re.sub(r"^--wrap=", "", word) for word in command.words[1:] if " " in word.strip()]
    inner = (one for text in texts if _NAMED.search(text) for one in commands(text))
    return [ShellCommand(command.line, one.words) for one in inner if is_launch(one.words)]
