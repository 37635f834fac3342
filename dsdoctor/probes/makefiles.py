"""What `make TARGET` runs, as the text of a shell script. Pure, and make is not started.

Rules, plain variables and target-specific ones are read as GNU make 4.4 reads them. A value that
make would compute (`$(wildcard …)`, `!=`) is unknown, and so is one that a conditional or an
included file may set.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

#: The files that make looks for, in this order.
NAMES = ("GNUmakefile", "makefile", "Makefile")
#: Options that take a value in the next word.
_TAKES = frozenset({"-C", "-f", "-I", "-o", "-W", "--directory", "--file", "--makefile"})
_VARIABLE = re.compile(
    r"(?P<prefix>(?:(?:export|override|private)\s+)*)(?P<name>[A-Za-z_][\w.-]*)\s*"
    r"(?P<how>:{0,3}=|\?=|\+=|!=)\s*(?P<value>.*)",
    re.DOTALL,
)
_RULE = re.compile(r"(?P<targets>[^:=#\s][^:=#]*?)\s*::?(?!=)\s*(?P<rest>.*)", re.DOTALL)
_EXPANDED = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<one>[@<^*?+A-Za-z_])|\((?P<round>[^()$]*)\)|\{(?P<curly>[^{}$]*)\})"
)
_CONDITIONAL = re.compile(r"(?:ifeq|ifneq|ifdef|ifndef)\b")
#: A recipe line of this form changes only the shell that runs it, which then ends.
_OWN_SHELL_ONLY = re.compile(r"(?:export\s|cd\s|[A-Za-z_]\w*=)[^&|;`(]*")
#: What stands for a value that is not known: a shell would compute it.
UNKNOWN = "$(unknown)"
_DEEPEST = 8
#: Most variables that are replaced, and the longest value of one: each may contain many others.
_MOST_REPLACED, _LONGEST = 5000, 4000
_MOST_GOALS = 50


class Call(NamedTuple):
    """The arguments of `make`.

    Attributes:
        goals: the targets; empty = the default one.
        folder: `-C`; "" = the working folder.
        file: `-f`; "" = the usual names.
        given: the variables that it sets.
    """

    goals: tuple[str, ...]
    folder: str
    file: str
    given: dict[str, str]


class _Rule(NamedTuple):
    needs: list[str]
    recipe: list[tuple[int, str]]


def arguments(words: Sequence[str]) -> Call:
    """What the words after `make` say.

    >>> arguments(["-C", "src", "-j4", "train", "N=2"])
    Call(goals=('train',), folder='src', file='', given={'N': '2'})
    """
    goals: list[str] = []
    given: dict[str, str] = {}
    options: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word in _TAKES:
            options[word] = left.pop(0) if left else ""
        elif word.startswith("--"):
            options[name] = value
        elif re.match(r"-[Cf].", word):
            options[word[:2]] = word[2:]
        elif word == "-j" and left and left[0].isdecimal():
            left.pop(0)
        elif equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            given[name] = value
        elif not word.startswith("-"):
            goals.append(word)
    folder = options.get("-C") or options.get("--directory") or ""
    file = options.get("-f") or options.get("--file") or options.get("--makefile") or ""
    return Call(tuple(goals), folder, file, given)


def shell_text(
    text: str, call: Call, environment: Mapping[str, str], exists: Callable[[str], bool]
) -> tuple[str, str]:
    r"""The recipes of the goals as a shell script with the same lines, or why it is not known.

    Args:
        text: the Makefile.
        call: the arguments of make.
        environment: variables of the shell.
        exists: whether a file exists, so that the rule of a prerequisite is not run for it.

    >>> text = "N ?= 2\ntrain: data\n\t@torchrun --nproc $(N) t.py\n"
    >>> shell_text(text, arguments(["train"]), {}, bool)
    ('\n\n(torchrun --nproc 2 t.py)\n', '')
    >>> shell_text(text, arguments(["test"]), {}, lambda path: False)[1]
    'it has no rule for `test`'
    """
    made = _Makefile(call.given, environment)
    made.read(text)
    goals = call.goals or made.default[:1]
    if not goals:
        return "", "it has no rule that is plain"
    lines = [""] * (text.count("\n") + 1)
    for number, name in made.exported:
        value = made.expand(f"$({name})")
        lines[number - 1] = f"export {name}={shlex.quote(value) if UNKNOWN not in value else value}"
    exports = "; ".join(f"export {key}={shlex.quote(value)}" for key, value in call.given.items())
    lines[0] = "; ".join(filter(None, (exports, lines[0])))
    done: set[str] = set()
    for goal in goals:
        reason = made.run(goal, lines, done, exists)
        if reason:
            return "", reason
    return "\n".join(lines), ""


class _Makefile:
    """What a Makefile says."""

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.given, self.environment = given, environment
        self.variables: dict[str, str] = {}
        self.of_target: dict[str, dict[str, str]] = {}
        self.rules: dict[str, _Rule] = {}
        self.default: list[str] = []
        self.exported: list[tuple[int, str]] = []
        #: Targets whose rules a conditional decides.
        self.doubtful: set[str] = set()
        self.included = self.one_shell = False
        self.left = _MOST_REPLACED

    def read(self, text: str) -> None:
        rows = text.split("\n")
        number = depth = 0
        targets: list[str] = []
        while number < len(rows):
            first, row = number + 1, rows[number]
            number += 1
            while row.endswith("\\") and number < len(rows):
                row += "\n" + rows[number]
                number += 1
            if row.startswith("\t"):
                self._add_recipe(targets, first, row)
                continue
            row = re.sub(r"(?<!\\)#.*", "", row, flags=re.DOTALL)
            row = " ".join(part.strip() for part in row.split("\\\n")).strip()
            if _CONDITIONAL.match(row):
                depth += 1
            elif row == "endif" or row.startswith("endif "):
                depth = max(0, depth - 1)
            elif row.startswith("define "):
                while number < len(rows) and rows[number].strip() != "endef":
                    number += 1
                self.variables[row.split()[1]] = UNKNOWN
            elif re.match(r"(?:-|s)?include\s", row):
                self.included = True
            elif row:
                targets = self._statement(first, row, targets, certain=not depth)

    def _statement(self, line: int, row: str, targets: list[str], *, certain: bool) -> list[str]:
        """Records one statement; the targets to which the recipe that follows belongs."""
        if row.startswith("export ") and "=" not in row:
            self.exported += [(line, name) for name in row.split()[1:]]
            return []
        variable = _VARIABLE.fullmatch(row)
        if variable:
            self._set(self.variables, variable, certain=certain)
            if "export" in variable["prefix"]:
                self.exported.append((line, variable["name"]))
            return []
        rule = _RULE.fullmatch(row)
        if rule is None:
            return []
        targets = self.expand(rule["targets"]).split()
        if ".ONESHELL" in targets:
            self.one_shell = True
        own = _VARIABLE.fullmatch(rule["rest"])
        if own:
            for target in targets:
                self._set(self.of_target.setdefault(target, {}), own, certain=certain)
            return []
        rest, _, command = rule["rest"].partition(";")
        needs = [word for word in self.expand(rest).split() if word != "|"]
        for target in targets:
            self.rules.setdefault(target, _Rule([], [])).needs.extend(needs)
            if not certain:
                self.doubtful.add(target)
            if not target.startswith(".") and "%" not in target:
                self.default.append(target)
        if command.strip():
            self._add_recipe(targets, line, command)
        return targets

    def _add_recipe(self, targets: Sequence[str], line: int, row: str) -> None:
        for target in targets:
            self.rules.setdefault(target, _Rule([], [])).recipe.append((line, row))

    def _set(self, variables: dict[str, str], found: re.Match[str], *, certain: bool) -> None:
        name, how, value = found["name"], found["how"], found["value"].strip()
        if how == "?=":
            if name in variables or name in self.environment:
                return
            value = UNKNOWN if self.included else value
        elif how == "+=":
            value = f"{variables.get(name, self.variables.get(name, ''))} {value}".strip()
        elif how == "!=":
            value = UNKNOWN
        elif how != "=":  # expanded where it stands
            value = self.expand(value, escaped=True)
        variables[name] = value if certain else UNKNOWN

    def expand(
        self,
        text: str,
        own: Mapping[str, str] | None = None,
        *,
        deep: int = _DEEPEST,
        escaped: bool = False,
    ) -> str:
        """A text with the values of its variables; what make computes is `UNKNOWN`."""

        def value(found: re.Match[str]) -> str:
            if found["dollar"]:
                return "$$" if escaped else "$"
            name = found["one"] or found["round"] or found["curly"] or ""
            if name.startswith("shell "):
                return f"$({name[6:]})"
            self.left -= 1
            if not re.fullmatch(r"[\w.@<^*?+-]+", name) or not deep or self.left < 0:
                return UNKNOWN
            if name in self.given:
                return self.given[name]
            for known in (own or {}, self.variables, self.environment):
                if name in known:
                    literal = known is self.environment
                    text = known[name] if literal else self.expand(known[name], own, deep=deep - 1)
                    return text if len(text) <= _LONGEST else UNKNOWN
            if name == "MAKE":
                return "make"
            return UNKNOWN if self.included or not name[0].isalpha() else ""

        return text if text == UNKNOWN else _EXPANDED.sub(value, text)

    def run(
        self, goal: str, lines: list[str], done: set[str], exists: Callable[[str], bool]
    ) -> str:
        """Writes what make runs for a goal into its lines; why that is not known, or ""."""
        if goal in done or len(done) > _MOST_GOALS:
            return ""
        done.add(goal)
        rule = self.rules.get(goal)
        if rule is None:
            return f"it has no rule for `{goal[:60]}`"
        if goal in self.doubtful:
            return f"a conditional decides what `{goal[:60]}` runs"
        for need in rule.needs:
            if need in self.rules and not exists(need):
                reason = self.run(need, lines, done, exists)
                if reason:
                    return reason
        own = {
            **self.of_target.get(goal, {}),
            "@": goal,
            "<": "".join(rule.needs[:1]),
            "^": " ".join(rule.needs),
        }
        for line, written in rule.recipe:
            row = self.expand(re.sub(r"^[\t ]*[@+-]*[\t ]*", "", written), own)
            rows = row.replace("\n\t", "\n").split("\n")
            if not self.one_shell:
                if _OWN_SHELL_ONLY.fullmatch(row) or not row.strip():
                    continue
                rows[0], rows[-1] = f"({rows[0]}", f"{rows[-1]})"
                if len(rows) == 1:
                    rows = [f"({row})"]
            lines[line - 1 : line - 1 + len(rows)] = rows
        return ""
