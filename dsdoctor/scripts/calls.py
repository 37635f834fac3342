"""Calls of a script whose arguments the installed package does not take.

Only calls that surely run are judged. Sources: CPython 3.10 to 3.14 Lib/dataclasses.py and the
language reference, "Calls"; read 2026-11-29.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from dsdoctor.scripts.dataclass_fields import fields_of
from dsdoctor.scripts.parser import UnknownParserError
from dsdoctor.scripts.reach import dotted, imported_once, sure_calls
from dsdoctor.scripts.renamed import successor
from dsdoctor.scripts.sources import Defined, Sources

#: Packages whose names and arguments change with the releases.
PACKAGES = frozenset(
    {"accelerate", "datasets", "diffusers", "lightning", "peft", "pytorch_lightning",
     "transformers", "trl"}
)  # fmt: skip
#: More wrong arguments than anybody reads.
_MOST = 100
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


def wrong_calls(tree: ast.Module, sources: Sources) -> list[WrongCall]:
    """The calls that raise `TypeError`, in the order of their lines."""
    if _brings_packages(tree):
        return []
    bound = imported_once(tree)
    taken: dict[str, tuple[str, set[str] | None]] = {}
    found = []
    for call in sure_calls(tree):
        name = dotted(call.func)
        if name.partition(".")[0] not in bound or not call.keywords:
            continue
        if name not in taken:
            taken[name] = _taken_by(name, sources)
        package, known = taken[name]
        if known is None:
            continue
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                near = successor(keyword.arg, known)
                found.append(WrongCall(call.lineno, name, keyword.arg, near, package))
    return sorted(found)[:_MOST]


def _brings_packages(tree: ast.Module) -> bool:
    """Whether a script may import another copy of a package than the installed one."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Attribute) and dotted(node) == "sys.path" for node in nodes):
        return False
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return any(name in text for text in texts if isinstance(text, str) for name in PACKAGES)


def _taken_by(name: str, sources: Sources) -> tuple[str, set[str] | None]:
    """The package of a name, and the arguments that it takes; None = any, or not judged."""
    defined = sources.find("", name)
    package = "" if defined is None else sources.package_of(defined[1])
    if defined is None or package not in PACKAGES:
        return "", None
    return package, parameters_of(name, defined, sources)


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
            return set(fields_of(node.name, sources.find_class, file))
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
