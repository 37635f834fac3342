"""The size of a model of which only the name is known."""

from __future__ import annotations

import re

from dsdoctor.recommend.models import from_size
from dsdoctor.recommend.shape import ModelShape

#: A size in a name; `A3B` is the active part of a model, `8x7B` one of eight experts.
_SIZE = re.compile(r"(?<![A-Za-z\d.])(\d{1,3}(?:\.\d{1,2})?)[bB](?![A-Za-z\d])")
#: Weights that a repository holds in fewer bits.
_FEWER_BITS = re.compile(r"[48]-?bit|int-?[48]|awq|gptq|bnb|[fn][pf][48]|gguf|quant", re.IGNORECASE)
#: The least that a published model has of the size in its name: StableLM-3B has 2.8 billion.
_LEAST = 0.9


def from_name(text: str) -> ModelShape | None:
    """A model whose name states its size, by its least; None if it states none, or several.

    >>> from_name("lmsys/vicuna-13b-v1.5").parameters
    11700000000
    >>> from_name("mistralai/Mixtral-8x7B"), from_name("x/llama-7b-awq"), from_name("a-7b-to-1b")
    (None, None, None)
    """
    last = text.rstrip("/").rpartition("/")[2]
    sizes = _SIZE.findall(last)
    if len(sizes) != 1 or not float(sizes[0]) or _FEWER_BITS.search(last):
        return None
    return from_size(f"{_LEAST * float(sizes[0]):.6f}B")
