"""Where a script loads a checkpoint of DeepSpeed from.

`engine.load_checkpoint(load_dir, tag=None, …)`: DeepSpeed 0.6 to 0.19 runtime/engine.py, read
2026-11-30.
"""

from __future__ import annotations

import ast

from dsdoctor.scripts.reach import dotted, sure_calls

_METHOD = "load_checkpoint"
#: Arguments with which the optimizer's states, which depend on the ranks, are not loaded.
_PARTLY = frozenset({"load_optimizer_states", "load_module_only", "custom_load_fn"})


def option_of_checkpoint(tree: ast.Module) -> str:
    r"""The option whose value every `load_checkpoint` of a script gets; "" = none, or several.

    A call under a condition counts: it is the one that is made if the option is passed.

    >>> option_of_checkpoint(ast.parse("if args.load:\n    engine.load_checkpoint(args.load)"))
    'load'
    >>> option_of_checkpoint(ast.parse("load_checkpoint(model, args.load)"))
    ''
    """
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == _METHOD
    ]
    names = {_option(call) for call in calls}
    return names.pop() if len(names) == 1 else ""


def folder_of_checkpoint(tree: ast.Module) -> str:
    """The folder that a call which surely runs loads, as it is written; "" = none.

    >>> folder_of_checkpoint(ast.parse("engine.load_checkpoint('out', tag='best')"))
    ''
    >>> folder_of_checkpoint(ast.parse("engine.load_checkpoint('out')"))
    'out'
    """
    for call in sure_calls(tree):
        given = _loaded(call) if dotted(call.func).endswith(f".{_METHOD}") else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return given.value
    return ""


def _option(call: ast.Call) -> str:
    """The attribute of `args` that is loaded."""
    given = _loaded(call)
    named = dotted(given) if given is not None else ""
    return named.partition(".")[2] if named.count(".") == 1 else ""


def _loaded(call: ast.Call) -> ast.expr | None:
    """What is loaded, with its newest tag and the optimizer's states."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if len(call.args) > 1 or keywords.keys() & {*_PARTLY, "tag", None}:
        return None
    return call.args[0] if call.args else keywords.get("load_dir")
