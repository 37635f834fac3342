"""The model that a script loads, if it states its name literally."""

from __future__ import annotations

import ast

from dsdoctor.lazy_regex import lazy
from dsdoctor.scripts.reach import dotted, sure_calls, texts_assigned

#: Classes of transformers that load a language model with its head.
_LOADS = lazy(r"\w*For(?:CausalLM|Seq2SeqLM|ConditionalGeneration|ImageTextToText)|\w+LMHeadModel")
#: Trainers of TRL load what they are told as `model`.
_TRAINER = lazy(r"\w+Trainer")


def model_named_in(tree: ast.Module) -> tuple[str, int] | None:
    r"""The name and the line that loads it; None if it is not stated, or several are.

    >>> text = "NAME = 'org/m'\nm = AutoModelForCausalLM.from_pretrained(NAME, dtype='auto')"
    >>> model_named_in(ast.parse(text))
    ('org/m', 2)
    >>> model_named_in(ast.parse("t = AutoTokenizer.from_pretrained('org/m')"))
    """
    texts = texts_assigned(tree)
    found: dict[str, int] = {}
    for call in sure_calls(tree):
        given = _loaded(call)
        if given is None:
            continue
        name = given.value if isinstance(given, ast.Constant) else texts.get(dotted(given))
        if isinstance(name, str) and name:
            found.setdefault(name, call.lineno)
        elif _LOADS.fullmatch(dotted(call.func).split(".")[-2] if "." in dotted(call.func) else ""):
            return None  # a model that is not known
    return next(iter(found.items())) if len(found) == 1 else None


def _loaded(call: ast.Call) -> ast.expr | None:
    """What a call loads as a model; None = it loads none."""
    called = dotted(call.func)
    owner, _, name = called.rpartition(".")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if name == "from_pretrained" and _LOADS.fullmatch(owner.rpartition(".")[2]):
        return call.args[0] if call.args else keywords.get("pretrained_model_name_or_path")
    if _TRAINER.fullmatch(name):
        model = call.args[0] if call.args else keywords.get("model")
        return model if isinstance(model, ast.Constant) else None
    return None
