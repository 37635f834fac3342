"""The words of a script that matter when it runs: names and short texts, without dead branches.

More is taken to be reached than really is: a function or class counts as soon as its name occurs.
Definitions of options, imports, comments and documentation are no use of what they name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dsdoctor.scripts.reach import dotted

#: Longer texts are messages, prompts or documentation.
_LONGEST = 60
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: Arguments that explain an option.
_EXPLAIN = frozenset({"help", "metadata", "description"})


class Words(NamedTuple):
    """What a script uses.

    Attributes:
        used: names, attributes, names of arguments, and short texts.
        called: what is called, the last part of its name.
        assigned: attributes and arguments that get a value other than None or False.
    """

    used: set[str]
    called: set[str]
    assigned: set[str]


def reached(trees: Sequence[ast.Module], is_off: Callable[[str], bool]) -> Words:
    """The words of a script and of its own modules.

    Args:
        trees: their syntax trees.
        is_off: whether the option of this name is surely not set, so that what depends on it
            does not run.
    """
    collector = _Collector(is_off)
    for tree in trees:
        for statement in tree.body:
            collector.visit(statement)
    collector.follow()
    return Words(collector.used, collector.called, collector.assigned)


def falsy_options(trees: Sequence[ast.Module]) -> set[str]:
    r"""Options that a script defines and that are off unless they are passed.

    >>> text = "class A:\n    lora: bool = False\n    r: int = 8\np.add_argument('--x-y')"
    >>> sorted(falsy_options([ast.parse(text)]))
    ['lora', 'x_y']
    """
    found: set[str] = set()
    others: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    (found if _is_falsy(part.value) else others).add(part.target.id)
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("add_argument"):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            action = given.get("action")
            on = isinstance(action, ast.Constant) and action.value == "store_false"
            off = not on and ("default" not in given or _is_falsy(given["default"]))
            for word in node.args:
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    (found if off else others).add(word.value.lstrip("-").replace("-", "_"))
    return found - others


def _is_falsy(value: ast.expr | None) -> bool:
    """Whether a default is a constant that counts as false; no default is required to be passed."""
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        return "default" in given and _is_falsy(given["default"])
    return isinstance(value, ast.Constant) and not value.value


class _Collector(ast.NodeVisitor):
    """Collects words; bodies of functions and classes wait until their names occur."""

    def __init__(self, is_off: Callable[[str], bool]) -> None:
        self.used: set[str] = set()
        self.called: set[str] = set()
        self.assigned: set[str] = set()
        self._is_off = is_off
        self._waiting: dict[str, list[list[ast.stmt]]] = {}
        self._ready: list[list[ast.stmt]] = []

    def follow(self) -> None:
        """Visits the bodies of what has been used, until nothing new is."""
        while self._ready:
            for statement in self._ready.pop():
                self._in_body(statement)

    def _use(self, word: str) -> None:
        self.used.add(word)
        self._ready += self._waiting.pop(word, [])

    def _wait(self, name: str, body: list[ast.stmt]) -> None:
        """Leaves a body until its name is used."""
        if name in self.used:
            self._ready.append(body)
        else:
            self._waiting.setdefault(name, []).append(body)

    def _in_body(self, statement: ast.stmt) -> None:
        """A statement of a function or class; a field with its default is only defined there."""
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self.visit(statement.value)
        else:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        """Dispatches by kind, without the recursion of NodeVisitor's method names."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return
        if isinstance(node, _DEFINITIONS):
            self._define(node)
        elif isinstance(node, (ast.If, ast.IfExp)):
            for part in self._branches(node):
                self.visit(part)
        elif isinstance(node, ast.Call):
            self._call(node)
        else:
            self._word(node)
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for part in node.decorator_list:
            self.visit(part)
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                self.visit(base)
            for inner in node.body:  # methods are called by whoever has the object
                if isinstance(inner, _DEFINITIONS):
                    self._wait(node.name, list(inner.body))
            rest = [inner for inner in node.body if not isinstance(inner, _DEFINITIONS)]
            self._wait(node.name, rest)
        else:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
            self._wait(node.name, list(node.body))

    def _branches(self, node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
        body = node.body if isinstance(node, ast.If) else [node.body]
        orelse = node.orelse if isinstance(node, ast.If) else [node.orelse]
        test, negated = node.test, False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, not negated
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        all_needed = not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or))
        off = [self._is_off(dotted(part).rpartition(".")[2]) for part in parts]
        is_false = any(off) if all_needed else all(off)
        if is_false:
            yield from body if negated else orelse
            return
        yield node.test
        yield from (*body, *orelse)

    def _call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        if name == "add_argument":
            return
        self.called.add(name)
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            nothing = isinstance(keyword.value, ast.Constant) and keyword.value.value in (
                None,
                False,
            )
            if nothing or keyword.arg in _EXPLAIN:
                continue
            if keyword.arg is not None:
                self._use(keyword.arg)
                self.assigned.add(keyword.arg)
            self.visit(keyword.value)

    def _word(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self._use(node.id)
        elif isinstance(node, ast.Attribute):
            self._use(node.attr)
            if isinstance(node.ctx, ast.Store):
                self.assigned.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for word in [node.value] if len(node.value) <= _LONGEST else []:
                self._use(word)
