"""Models and data sets of the hub that a script surely loads, as far as it names them literally.

transformers 4.30 to 5.24 and diffusers 0.30 `from_pretrained`; datasets 2.14 to 5.2 load.py; read
2026-11-30.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.scripts.reach import dotted, imported_from, sure_calls, texts_assigned

#: `owner/name`, as the hub writes it.
OF_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
#: Packages that load from the hub and its cache alone. Others map names to other repositories.
_PACKAGES = frozenset({"datasets", "diffusers", "transformers"})
#: Arguments that say where it is, or that the hub is not asked.
_ELSEWHERE = frozenset({"cache_dir", "data_files", "local_files_only", None})
#: Variables that choose the cache, or whether the hub is asked: a script may set them.
_CHOOSES = re.compile(r"\b(?:HF_|HUGGINGFACE_|TRANSFORMERS_)(?:HOME|HUB|DATASETS|CACHE|OFFLINE)")


class Named(NamedTuple):
    """What a script loads.

    Attributes:
        name: `owner/name`.
        line: of the call.
        is_data: it is a data set.
    """

    name: str
    line: int
    is_data: bool


def models_loaded(tree: ast.Module) -> Iterator[tuple[str, int]]:
    r"""What calls of `from_pretrained` that surely run load, by name or path, with their lines.

    >>> text = "from transformers import AutoModel\nm = AutoModel.from_pretrained('./m')"
    >>> list(models_loaded(ast.parse(text)))
    [('./m', 2)]
    """
    names, texts = imported_from(tree, _PACKAGES), texts_assigned(tree)
    for call in sure_calls(tree):
        first, _, rest = dotted(call.func).partition(".")
        called = f"{names.get(first, '')}.{rest}".rstrip(".")
        if not (call.args and first in names and called.endswith(".from_pretrained")):
            continue
        given = call.args[0]
        value = given.value if isinstance(given, ast.Constant) else texts.get(dotted(given))
        if isinstance(value, str) and value:
            yield value, call.lineno


def named_of_hub(text: str, tree: ast.Module) -> Iterator[Named]:
    r"""What the calls that surely run load.

    >>> text = "from datasets import load_dataset\nROWS = 'org/rows'\nd = load_dataset(ROWS)"
    >>> list(named_of_hub(text, ast.parse(text)))
    [Named(name='org/rows', line=3, is_data=True)]
    """
    if _CHOOSES.search(text):
        return
    names, texts = imported_from(tree, _PACKAGES), texts_assigned(tree)
    for call in sure_calls(tree):
        first, _, rest = dotted(call.func).partition(".")
        called = f"{names.get(first, '')}.{rest}".rstrip(".")
        is_data = called == "datasets.load_dataset"
        is_model = first in names and called.endswith(".from_pretrained")
        if not call.args or not (is_data or is_model):
            continue
        given = call.args[0]
        value = given.value if isinstance(given, ast.Constant) else texts.get(dotted(given))
        if _ELSEWHERE & {keyword.arg for keyword in call.keywords}:
            continue
        if isinstance(value, str) and OF_HUB.fullmatch(value):
            yield Named(value, call.lineno, is_data)
