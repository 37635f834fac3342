"""Which product a person means: `A100-80GB`, `H100 PCIe`, `RTX4090`, `8x NVIDIA L40S`.

Every word of what was written must fit the product's own name, its memory or its form; nothing is
matched in part. If several products match, it is unknown which one is meant.
"""

from __future__ import annotations

import difflib
import re

from dsdoctor.model.capabilities import BY_NAME
from dsdoctor.model.products import PRODUCTS, Product

#: A vendor's and a brand's words, which tell no two products of the table apart.
_BRANDS = frozenset({"nvidia", "tesla", "geforce", "gpu", "gpus"})
#: Words that make another product: without them the plain one is meant.
_VARIANTS = frozenset({"ti", "super", "d", "laptop", "3e"})
_FORM = re.compile(r"sxm\d?|pcie|nvl")
_MEMORY = re.compile(r"(\d{1,3})(?:g|gb|gib)")
_DIGIT = re.compile(r"\d")
#: The board that a product's name leaves out.
_BOARDS = {
    "H100 80GB HBM3": "sxm5",
    "H200": "sxm5",
    "H20": "sxm5",
    "H20-3e": "sxm5",
    "H800": "sxm5",
    "B200": "sxm6",
    "L4": "pcie",
    "L20": "pcie",
    "L40": "pcie",
    "L40S": "pcie",
    "A10": "pcie",
    "A30": "pcie",
    "A40": "pcie",
    "T4": "pcie",
}
#: Products' memory is sold in GB and reported in MiB, without what the driver reserves.
_MEMORY_TOLERANCE = 0.07


def products_named(text: str) -> list[str]:
    """Names in `products.PRODUCTS` of the products that a person may mean.

    >>> products_named("A100 80GB SXM"), products_named("RTX4090"), products_named("h100")
    (['A100-SXM4-80GB'], ['GeForce RTX 4090'], ['H100 PCIe', 'H100 NVL', 'H100 80GB HBM3'])
    """
    words = _words(text)
    if not any(_names_a_model(word) for word in words):
        return []
    exact = [name for name in PRODUCTS if _words(name) == words]
    return exact or [name for name, known in PRODUCTS.items() if _matches(words, name, known)]


def of_unknown_memory(text: str) -> list[str]:
    """Names of products that a person may mean, and whose memory is in no table.

    >>> of_unknown_memory("NVIDIA GB10"), of_unknown_memory("RTX 4090")
    (['GB10'], [])
    """
    words = _words(text)
    if not any(_names_a_model(word) for word in words):
        return []
    return [name for name in BY_NAME if name not in PRODUCTS and words <= _words(name)]


def similar(text: str) -> list[str]:
    """Products whose names look like what was written, the most similar first."""
    by_words = {" ".join(sorted(_words(name))): name for name in PRODUCTS}
    near = difflib.get_close_matches(" ".join(sorted(_words(text))), by_words, n=3, cutoff=0.6)
    return [by_words[one] for one in near]


def _words(text: str) -> frozenset[str]:
    r"""The words of a name that tell products apart.

    >>> sorted(_words("NVIDIA-GeForce RTX2080Ti"))
    ['2080', 'rtx', 'ti']
    """
    lower = re.sub(r"\b(rtx|gtx|titan)(?=[a-z]{0,2}\d)", r"\1 ", text.lower())
    lower = re.sub(r"\b(\d{4})(ti|super|d)\b", r"\1 \2", lower)
    lower = re.sub(r"\b(\d{1,3}) (?=g(?:i?b)?\b)", r"\1", lower)
    lower = re.sub(r"\b[hd]gx\b", "sxm", lower)  # boards of such machines
    return frozenset(re.findall(r"[a-z0-9]+", lower)) - _BRANDS


def _names_a_model(word: str) -> bool:
    if _MEMORY.fullmatch(word) or _FORM.fullmatch(word):
        return False
    return bool(_DIGIT.search(word)) or word == "titan"


def _matches(words: frozenset[str], name: str, known: Product) -> bool:
    own = _words(name)
    if own & _VARIANTS != words & _VARIANTS:
        return False
    return all(word in own or _describes(word, name, own, known) for word in words)


def _describes(word: str, name: str, own: frozenset[str], known: Product) -> bool:
    """Whether a word states a product's memory or board that its name states in another way."""
    memory = _MEMORY.fullmatch(word)
    if memory:
        stated = [one for one in own if _MEMORY.fullmatch(one)]
        if stated and not name.startswith("GH"):  # which names its CPU's memory
            return f"{memory[1]}gb" in stated
        size = int(memory[1])
        return abs(size - known.mib / 1024) <= _MEMORY_TOLERANCE * size
    board = _BOARDS.get(name, "")
    forms = {one for one in own if _FORM.fullmatch(one)} | ({board} if board else set())
    return word in forms or (word == "sxm" and any(one.startswith("sxm") for one in forms))
