"""What a shell script has set so far, and what is known of it in a branch or a function."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from dsdoctor.probes.shell_words import COMPUTED

#: Characters that variables put into one script. Twenty lines can double a value twenty times; a
#: kernel takes no word of more than 128 KiB (`MAX_ARG_STRLEN`, execve(2)).
_MOST_FILLED = 4 << 20
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: The number of an array's items.
_COUNTED = re.compile(r"\$\{#([A-Za-z_]\w*)\[[@*]\]\}")
#: A variable with a value for when it is not set.
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*|[1-9]\d?):?[-=]([^{}$`]*)\}")
#: An argument that is the same word with and without quotes.
_PLAIN = re.compile(r"[\w./:=,@%+-]+")
#: Defaults in defaults that are read.
_NESTED = 4
#: Variables that a scheduler or a platform sets for a job, so that their defaults say nothing.
OF_PLATFORM = re.compile(
    r"(?:SLURM|PBS|LSB|OMPI|PMIX?|PMI|MV2|PET|MLP|ARNOLD|METIS|PAI|KUBERNETES|SM|AZ|NSML)_\w*"
    r"|\w*(?:ADDR|ADDRESS|_IP|_HOST|RANK|WORLD_SIZE|NNODES|NODES|NODE_COUNT|NUM_NODE|NODE_NUM)"
    r"|\w*(?:MACHINES|HOSTS|INSTANCES|WORKERS|WORKER_NUM)"
)
#: Values that one variable may have, depending on branches, that are kept.
_MOST_VALUES = 8
#: Names that one script may export; a job sets a few dozen.
_MOST_EXPORTED = 200
OPENS = frozenset({"if", "case", "for", "while", "until", "select"})
CLOSES = frozenset({"fi", "esac", "done"})


class Variables:
    """What a script has set so far.

    Attributes:
        known: values of variables.
        arrays: items of arrays.
        depth: how many blocks (`if`, `for`) enclose the line.
        exported: names that `export` has marked; commands get them.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self.known: dict[str, str] = dict(given)
        self.arrays: dict[str, list[str]] = {}
        self.depth = 0
        self.exported: set[str] = set(given)
        #: Arguments of the function that is being read; None outside, or if they are not known.
        self.arguments: list[str] | None = None
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
        if word in OPENS:
            if self.depth == 0:
                self._fresh, self._gone, self._always = set(), set(), False
            self.depth += 1
        elif word in ("else", "*"):
            self._always = True
        elif word in CLOSES and self.depth > 0:
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
        found = VARIABLE.fullmatch(word)
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
            known = self._value(found[1] or found[2])
            return found[0] if known is None or not self._may_put(len(known)) else known

        def count(found: re.Match[str]) -> str:
            items = self.arrays.get(found[1])
            return found[0] if items is None else str(len(items))

        word = _COUNTED.sub(count, word) if "${#" in word else word
        return VARIABLE.sub(value, word)

    def _value(self, name: str) -> str | None:
        if self.arguments is not None and re.fullmatch("[1-9]", name):
            return (*self.arguments, *[""] * 9)[int(name) - 1]
        return self.known.get(name)

    def defaults(self, line: str) -> str:
        """A line with the defaults of variables that are not set."""

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name.isdecimal() and self.arguments is not None:
                given = "".join(self.arguments[int(name) - 1 : int(name)])
                if not given:
                    return default
                return given if _PLAIN.fullmatch(given) else found[0]
            if name in self.known and (self.known[name] or ":" not in found[0]):
                return f"${{{name}}}"
            set_here = re.search(rf"\b{name}\+?=", line)
            if name in self._unsure or OF_PLATFORM.fullmatch(name) or (
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
            value = self._value(found["a"] or found["b"] or "")
            if found["array"] or found["all"]:
                items = self.arrays.get(found["array"]) if found["array"] else self.arguments
                if items is None or not self._may_put(sum(map(len, items)) + len(items)):
                    return found[0]
                return " ".join(map(shlex.quote, items))
            if value is None or (value.strip() and not any(b in value.strip() for b in " \t")):
                return found[0]
            if not self._may_put(len(value)):
                return found[0]
            return " ".join(map(shlex.quote, value.split()))

        return _UNQUOTED.sub(words, line)


#: A whole word that is one variable without quotes, or an array with or without them. In an
#: assignment no shell splits.
_UNQUOTED = re.compile(
    r"(?:(?<=\s)|^)(?:\$(?:\{(?P<a>\w+)\}|(?P<b>\w+))|(?P<quote>\"?)(?:\$\{(?P<array>\w+)\[[@*]\]\}"
    r"|(?P<all>\$(?:[@*]|\{[@*]\})))(?P=quote))(?=[\s;&|]|$)"
)
