"""Texts that a script surely passes to Hugging Face's classes, as `report_to="wandb"`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from dsdoctor.scripts.reach import dotted, imported_from, sure_calls, texts_assigned

_PACKAGES = frozenset({"transformers", "trl", "sentence_transformers"})
#: Arguments of the Trainer's settings, and of models and their configs.
_OF_TRAINER = frozenset({"report_to", "optim"})
_OF_MODEL = frozenset({"attn_implementation"})
#: More settings than a script has.
_MOST = 50


class Setting(NamedTuple):
    """An argument whose value is a text.

    Attributes:
        line: line of the call.
        called: what is called, as the script writes it.
        argument: the argument's name.
        value: its value.
    """

    line: int
    called: str
    argument: str
    value: str


def settings_of(tree: ast.Module) -> list[Setting]:
    r"""The settings, in the order of their lines.

    >>> text = "from transformers import TrainingArguments as T\nT('o', report_to=['wandb', x])"
    >>> settings_of(ast.parse(text))
    [Setting(line=2, called='T', argument='report_to', value='wandb')]
    """
    names = imported_from(tree, _PACKAGES)
    texts = texts_assigned(tree)
    found: list[Setting] = []
    for call in sure_calls(tree):
        called = dotted(call.func)
        first, _, rest = called.partition(".")
        if first not in names:
            continue
        last = f"{names[first]}.{rest}".rstrip(".").rpartition(".")[2]
        wanted = _OF_TRAINER if last.endswith(("Arguments", "Config")) else frozenset()
        if last.endswith("Config") or last in ("from_pretrained", "from_config"):
            wanted |= _OF_MODEL
        for keyword in call.keywords:
            if keyword.arg in wanted:
                found += [
                    Setting(call.lineno, called, str(keyword.arg), value)
                    for value in _texts(keyword.value, texts)
                ]
    return sorted(found)[:_MOST]


def _texts(node: ast.expr, known: dict[str, str]) -> list[str]:
    """The texts that an expression surely is or contains."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [text for part in node.elts for text in _texts(part, known)]
    if isinstance(node, ast.Name) and node.id in known:
        return [known[node.id]]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
