"""What a script surely runs, read from its syntax tree.

Not under a condition, in `try`, or in a function that the script does not surely call.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from dsdoctor.framework import syntax_of

#: Functions that call the function that they are given, once and at once.
_CALLERS = frozenset({"Fire", "notebook_launcher", "spawn", "cli"})
#: What may not run, or is caught.
_UNSURE = (ast.If, ast.IfExp, ast.Try, ast.While, ast.For, ast.AsyncFor, ast.Lambda, ast.BoolOp,
           ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Match,
           ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # fmt: skip
#: Levels of a tree that functions here can walk by recursion.
_DEEPEST = 200
#: `trainer.py` of transformers 5.24, the longest file that is read for a call, has 24,000.
_MOST_NODES = 150_000
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of names and attributes; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of a script; None if it cannot be parsed, or is no script of a person.

    A tree may be deeper than Python's own recursion, as that of `a.a.a…`, or take too long.
    """
    tree = syntax_of(text)
    level: list[ast.AST] = [] if tree is None else [tree]
    nodes = 0
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        nodes += len(level)
        if not level:
            return tree
        if nodes > _MOST_NODES:
            break
    return None


def bindings(tree: ast.Module) -> Counter[str]:
    """How often each name is bound anywhere: by imports, assignments, definitions, parameters."""
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            counts.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            counts[node.id] += 1
        elif isinstance(node, _DEFINITIONS):
            counts[node.name] += 1
        elif isinstance(node, ast.arg):
            counts[node.arg] += 1
    return counts


def imported_once(tree: ast.Module) -> set[str]:
    """Names that one import binds, and nothing else."""
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    counts = bindings(tree)
    return {name for name in imported if counts[name] == 1}


def imported_from(tree: ast.Module, packages: Collection[str]) -> dict[str, str]:
    r"""Names that only imports of these packages bind, each with what it stands for.

    >>> tree = ast.parse("import torch\nimport torch.distributed as dist\nfrom torch import nn")
    >>> imported_from(tree, {"torch"})
    {'torch': 'torch', 'dist': 'torch.distributed', 'nn': 'torch.nn'}
    """
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meant = alias.name if alias.asname else top
                found.setdefault(alias.asname or top, []).append(meant)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                meant = f"{node.module}.{alias.name}"
                found.setdefault(alias.asname or alias.name, []).append(meant)
    counts = bindings(tree)
    return {
        name: meant[0]
        for name, meant in found.items()
        if len(set(meant)) == 1
        and counts[name] == len(meant)
        and meant[0].partition(".")[0] in packages
    }


def texts_assigned(tree: ast.Module) -> dict[str, str]:
    """Names that are bound once, to a text, and that text."""
    counts = bindings(tree)
    return {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name) and counts[target.id] == 1
    }


def sure_calls(tree: ast.Module) -> Iterator[ast.Call]:
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
        if isinstance(statement, ast.If) and is_main(statement.test):
            yield from _of_block(statement.body)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                yield from _of_node(item)
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


def is_main(test: ast.expr) -> bool:
    """Whether a condition is `__name__ == "__main__"`."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
    )
