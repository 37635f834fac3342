"""Calls of a script whose arguments the installed package does not take.

Only calls that surely run are judged: not those under a condition, in `try`, or in a function that
the script does not surely call. Sources: CPython 3.10 to 3.14 Lib/dataclasses.py and the language
reference, "Calls"; read 2026-11-29.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.scripts.dataclass_fields import fields_of
from dsdoctor.scripts.parser import UnknownParserError, dotted
from dsdoctor.scripts.renamed import successor
from dsdoctor.scripts.sources import Defined, Sources

#: Packages whose names and arguments change with the releases.
PACKAGES = frozenset(
    {"accelerate", "datasets", "diffusers", "lightning", "peft", "pytorch_lightning",
     "transformers", "trl"}
)  # fmt: skip
#: Functions that call the function that they are given, once and at once.
_CALLERS = frozenset({"Fire", "notebook_launcher", "spawn", "cli"})
#: What may not run, or is caught.
_UNSURE = (ast.If, ast.IfExp, ast.Try, ast.While, ast.For, ast.AsyncFor, ast.Lambda, ast.BoolOp,
           ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Match,
           ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: Decorators that leave the arguments of a class as they are.
_PLAIN = frozenset({"dataclass", "requires", "add_start_docstrings", "deprecated", "final"})
#: Bases deeper than any class has.
_DEEPEST = 12


class WrongCall(NamedTuple):
    """An argument that a class or function does not take.

    Attributes:
        line: line of the call.
        called: what is called, as the script writes it.
        argument: the argument's name.
        near: what it is called there, or one with a similar name; "" = there is none.
        package: top-level module of the package that defines it.
    """

    line: int
    called: str
    argument: str
    near: str
    package: str


def wrong_calls(tree: ast.Module, sources: Sources) -> Iterator[WrongCall]:
    """The calls that raise `TypeError`, in the order of their lines."""
    bound = _bound_once(tree)
    found = []
    for call in _sure_calls(tree):
        name = dotted(call.func)
        root = name.partition(".")[0]
        if root not in bound or not call.keywords:
            continue
        defined = sources.find("", name)
        package = "" if defined is None else sources.package_of(defined[1])
        if defined is None or package not in PACKAGES:
            continue
        known = parameters_of(name, defined, sources)
        given = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
        for argument in given if known is not None else ():
            if argument not in (known or ()):
                near = successor(argument, known or ())
                found.append(WrongCall(call.lineno, name, argument, near, package))
    yield from sorted(found)


def _bound_once(tree: ast.Module) -> set[str]:
    """Names that one import binds, and nothing else."""
    counts: dict[str, int] = {}
    imported = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            imported |= set(names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return {name for name in imported if counts[name] == 1}


def _sure_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that run whenever the script does."""
    local = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting: list[Sequence[ast.stmt]] = [tree.body]
    entered = set()
    while waiting:
        for call in _of_block(waiting.pop()):
            yield call
            names = [dotted(call.func)]
            if names[0].rpartition(".")[2] in _CALLERS:
                names += map(dotted, call.args)
            for name in names:
                if name in local and name not in entered:
                    entered.add(name)
                    waiting.append(local[name].body)


def _of_block(statements: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    for statement in statements:
        if isinstance(statement, ast.If) and _is_main(statement.test):
            yield from _of_block(statement.body)
        else:
            yield from _of_node(statement)
        leaves = any(isinstance(part, (ast.Return, ast.Raise)) for part in ast.walk(statement))
        if leaves and not isinstance(statement, _DEFINITIONS):
            return  # what follows may not be reached


def _of_node(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, _UNSURE):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _of_node(child)


def _is_main(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )


def parameters_of(
    name: str, defined: tuple[Defined, str], sources: Sources, depth: int = 0
) -> set[str] | None:
    """Names of arguments that a class or function takes; None = any, or not known.

    Args:
        name: what is called, as the file that calls it writes it.
        defined: the class or function, and the file that defines it.
        sources: where bases are found.
        depth: how many classes are derived from this one.
    """
    node, file = defined
    if isinstance(node, ast.FunctionDef):
        return _of_function(node)
    decorators = {
        dotted(part.func if isinstance(part, ast.Call) else part).rpartition(".")[2]
        for part in node.decorator_list
    }
    made = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    makes_others = any(function.name == "__init_subclass__" for function in made)
    # of a metaclass, or a decorator such as huggingface_hub's `strict`, anything may come
    if depth > _DEEPEST or node.keywords or decorators - _PLAIN or makes_others:
        return None
    for constructor in ("__init__", "__new__"):
        for function in made:
            if function.name == constructor:
                return _of_function(function)
    if "dataclass" in decorators:
        if "InitVar" in ast.dump(node):
            return None
        try:
            return set(fields_of(node.name, lambda at, n: sources.find_class(at or file, n)))
        except UnknownParserError:
            return None
    base = dotted(node.bases[0]) if len(node.bases) == 1 else ""
    found = sources.find(file, base) if base else None
    return None if found is None else parameters_of(name, found, sources, depth + 1)


def _of_function(function: ast.FunctionDef) -> set[str] | None:
    given = function.args
    if given.kwarg is not None:
        return None
    # `@deprecate_kwarg("tokenizer", new_name="processing_class")` takes the old name too
    also = {
        part.value
        for decorator in function.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    return {part.arg for part in (*given.args, *given.kwonlyargs)} | also
