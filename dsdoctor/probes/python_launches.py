"""Finds commands that Python source starts: `os.system`, `subprocess.run` and their relatives.

Pure: the source is parsed, never run. What the source computes becomes an unknown shell variable.
"""

from __future__ import annotations

import ast
import shlex
from collections import Counter
from collections.abc import Iterator

#: Functions whose first argument is a command, by module.
_STARTERS = {
    "os": frozenset({"system", "popen"}),
    "subprocess": frozenset({"run", "call", "check_call", "check_output", "Popen", "getoutput"}),
}
_NAMES = frozenset({"system", "check_call", "check_output", "Popen"})
#: Longer sources are programs, not launch scripts.
_LONGEST = 200_000
#: What the source computes; a shell variable of this name is not set by any script.
_COMPUTED = "${PYTHON_VALUE}"


def started_commands(source: str) -> Iterator[tuple[int, str]]:
    r"""Commands as text for a shell, each with its line from 1.

    >>> list(started_commands("import os\nos.system('torchrun t.py')"))
    [(2, 'torchrun t.py')]
    >>> list(started_commands("subprocess.run(['torchrun', *more, f'{n}.py'], check=True)"))
    [(1, 'torchrun ${PYTHON_VALUE} ${PYTHON_VALUE}.py')]
    """
    if len(source) > _LONGEST:
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    assigned = _assigned(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _starts(node.func):
            argument = node.args[0]
            if isinstance(argument, ast.Name):
                argument = assigned.get(argument.id, argument)
            text = _text(argument)
            if text:
                yield node.lineno, text


def _starts(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr in _STARTERS.get(function.value.id, ())
    return isinstance(function, ast.Name) and function.id in _NAMES


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Variables that the source sets once and does not change."""
    nodes = list(ast.walk(tree))
    changes = Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    changes.update(
        node.value.id
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in ("append", "extend", "insert")
    )
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and changes[target.id] == 1
    }


def _text(argument: ast.expr) -> str:
    """The command as a shell would read it; "" if nothing of it is known."""
    if isinstance(argument, ast.List | ast.Tuple):
        words = [_word(item) for item in argument.elts]
        return " ".join(words) if words and words[0] != _COMPUTED else ""
    text = _written(argument)
    return "" if text == _COMPUTED else text


def _word(item: ast.expr) -> str:
    text = _written(item)
    return text if _COMPUTED in text else shlex.quote(text)


def _written(item: ast.expr) -> str:
    if isinstance(item, ast.Constant) and isinstance(item.value, str):
        return item.value
    if isinstance(item, ast.JoinedStr):
        return "".join(
            part.value
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
            else _COMPUTED
            for part in item.values
        )
    if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Add):
        return _written(item.left) + _written(item.right)
    return _COMPUTED
