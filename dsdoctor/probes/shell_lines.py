"""Finds the launch lines of a shell script or of a `bash -c` string. Pure, and no shell is started.

Only simple commands are understood: assignments, arrays, `export`, `cd` and the command itself.
Expressions that a shell would compute (`$(…)`, loops) are left unchanged: a variable that is
computed, or that two branches set differently, is unknown.

Over 400 lines because words, variables and arrays of one line are read by one state.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dsdoctor.probes.command_tables import MODULES, PROGRAMS, TRAINERS

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_END = frozenset({";", "&&", "||", "|", "&", ";;", "(", ")", "{", "}", "\n", "|&"})
#: Shell keywords before a command.
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "time", "exec"})
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
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
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+?=.*)?", re.DOTALL)
#: Names that one script may export; a job sets a few dozen.
_MOST_EXPORTED = 200
#: Placeholder for what a shell computes, while a line is split into words; not a valid name.
_COMPUTED = "${\N{HORIZONTAL ELLIPSIS}}"
#: Characters that need more than a plain split: quotes, escapes, comments, operators.
_LEXED = re.compile(r"['\"\\#;&|()]")
_BLANKS = re.compile(r"[ \t\r\n]+")
_OPENS = frozenset({"if", "case", "for", "while", "until", "select"})
_CLOSES = frozenset({"fi", "esac", "done"})
_OF_SHELL = _KEYWORDS | _OPENS | _CLOSES
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
    """

    line: int
    words: tuple[str, ...]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations and with the lines that a quote spans.

    Heredocs and comment lines are left out, except a heredoc that `read -d ''` reads: it is an
    assignment. A quote that is not closed soon ends with its line.
    """
    rows = list(_continued(text))
    place, until, taken, left = 0, "", "", _MOST_READ_AGAIN
    held: list[str] = []
    while place < len(rows):
        begun, line = rows[place]
        place += 1
        if until and line.strip() != until:
            held.append(line)
            continue
        if until:
            if taken:
                yield begun, f"{taken}={shlex.quote(' '.join(held))}"
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
        yield begun, line


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
                    del self.known[name]
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
            return
        self._unsure.discard(name)
        if unknown or _COMPUTED in value:
            if self.known.pop(name, None) is not None and name not in self._fresh:
                self._gone.add(name)
            self._unsure.add(name)
        else:
            if name not in self.known and name not in self._gone:
                self._fresh.add(name)
            self.known[name] = value

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

    def split(self, line: str) -> str:
        """A line in which unquoted variables are split into words, and arrays into items."""

        def words(found: re.Match[str]) -> str:
            value = self.known.get(found["a"] or found["b"] or "")
            if found["array"]:
                items = self.arrays.get(found["array"])
                if items is None or not self._may_put(sum(map(len, items)) + len(items)):
                    return found[0]
                return " ".join(map(shlex.quote, items))
            if value is None or not any(blank in value.strip() for blank in " \t"):
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

    >>> next(commands_with_environment("export A=1\nB=2\ntrue\nunset A\ntrue", lambda words: True))
    (ShellCommand(line=3, words=('true',)), {'A': '1'})
    """
    for command, variables in _walked(text):
        if wanted(command.words):
            yield command, variables.environment()


def _walked(text: str) -> Iterator[tuple[ShellCommand, _Variables]]:
    """Each command, with the variables as they are before it."""
    variables = _Variables()
    for number, line in _with_arrays(text, variables):
        for words in _commands_of(line, variables):
            yield ShellCommand(number, words), variables


def _commands_of(line: str, variables: _Variables) -> Iterator[tuple[str, ...]]:
    """The commands of a line; its assignments and blocks are recorded."""
    certain = True
    for joint, words in _simple_commands(variables.split(_masked(line))):
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
        exports = rest[:1] == ["export"]
        if exports:
            rest = rest[1:]
        filled = [variables.fill(word) for word in rest]
        assigned = 0
        while assigned < len(filled) and _ASSIGNMENT.match(filled[assigned]):
            assigned += 1
        # only an assignment of a literal cannot fail
        certain = assigned == len(filled) == len(words) and not perhaps
        certain = certain and not any(_COMPUTED in word for word in filled)
        if exports and all(_NAME.fullmatch(word) for word in filled):
            for word in filled:
                variables.export(word)
                if "=" in word:
                    variables.set(word, perhaps=perhaps)
        elif assigned == len(filled):
            for word in filled:
                variables.set(word, perhaps=perhaps)
        elif filled[0] == "unset":
            for word in filled[1:]:
                variables.unset(word)
        elif filled[0] == "eval":
            yield from (_shown(inner) for _, inner in _simple_commands(" ".join(filled[1:])))
        else:
            yield _shown(filled)


def _shown(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.replace(_COMPUTED, "$(\N{HORIZONTAL ELLIPSIS})") for word in words)


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
        words, closed = _array_words(_masked(held))
        left -= len(held)
        if rows >= _ARRAY_LINES or (not closed and left <= 0):
            variables.arrays.pop(name, None)
            name = ""
        elif closed:
            variables.set_array(name, [variables.fill(word) for word in words], more=more)
            name = ""


def _lexer(text: str, punctuation: str) -> shlex.shlex:
    """Splits as a shell does: at spaces and at these characters, up to a comment."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=punctuation)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return lexer


def _array_words(text: str) -> tuple[list[str], bool]:
    """Items up to the closing bracket, and whether it exists."""
    words: list[str] = []
    try:
        for word in _lexer(text, "()"):
            if word.startswith(")"):
                return words, True
            words.append(word)
    except ValueError:
        return words, False
    return words, False


def _masked(line: str) -> str:
    """A line with an unknown variable instead of each substitution that a shell computes."""
    if "$(" not in line and "`" not in line:
        return line
    made: list[str] = []
    place = 0
    while place < len(line):
        if line.startswith("$(", place):
            made.append(_COMPUTED)
            place = _closing(line, place + 1)
        elif line[place] == "`" and (end := line.find("`", place + 1)) > 0:
            made.append(_COMPUTED)
            place = end + 1
        else:
            made.append(line[place])
            place += 1
    return "".join(made)


def _closing(line: str, place: int) -> int:
    """The place after the closing bracket; the end of the line if there is none."""
    depth = 0
    for at in range(place, len(line)):
        depth += (line[at] == "(") - (line[at] == ")")
        if not depth:
            return at + 1
    return len(line)


def _simple_commands(line: str) -> Iterator[tuple[str, list[str]]]:
    """Words of each simple command, with the operator before it ("" = none)."""
    if not _LEXED.search(line):
        words = _BLANKS.split(line.strip(" \t\r\n"))
        if not _END.intersection(words):
            yield from [("", words)] if words != [""] else []
            return
    joint = ""
    words = []
    try:
        for word in _lexer(line, ";&|()"):
            if word in _END or (word and set(word) <= set(";&|()")):
                if words:
                    yield joint, words
                joint, words = word, []
            else:
                words.append(word)
    except ValueError:  # a quote that is never closed
        return
    if words:
        yield joint, words


def is_launch(words: Sequence[str]) -> bool:
    """Whether a command starts a launcher or a trainer, possibly after `srun`, `env` or `nohup`."""
    for place, word in enumerate(words):
        name = posixpath.basename(word)
        if name in PROGRAMS or name in TRAINERS:
            # `pip install deepspeed`, `which torchrun`
            return place == 0 or not {"install", "which", "echo", "pip"} & set(words[:place])
        if re.fullmatch(r"python[\d.]*", name) and list(words[place + 1 : place + 2]) == ["-m"]:
            module = "".join(words[place + 2 : place + 3])
            return module in MODULES
    return False


#: Programs that run the text after `-c`.
_SHELL = re.compile(r"(?:ba|z|da|k)?sh")


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
        elif is_launch(command.words):
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
    return []
