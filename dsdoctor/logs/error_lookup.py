"""Looks up an exception in the error index, and parses only the rows that may match it.

`error_index` describes the index and how a message matches one of its entries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import error_keys
from dsdoctor.logs.errors import Error
from dsdoctor.logs.products import package_of, raiser_of

if TYPE_CHECKING:  # few errors are in the index
    from collections.abc import Callable

    from dsdoctor.logs.error_index import Entry, ErrorIndex, Label, Match

#: Most words of a chunk.
CHUNK = 6
#: Fewest literal words by which a copied message is known; fewer occur in unlike programs.
COPIED_WORDS = 5
#: Bytes of a chunk's hash: a text matches one of a million others by chance once in a million.
DIGEST = 5
#: Words of a text that are examined.
MOST_WORDS = 600
WORD = lazy(r"[A-Za-z_]+")
#: What pydantic prints around the message of an exception that a validator raised.
WRAPPED = "ValidationError"
VALIDATED = {"Assertion failed": "AssertionError", "Value error": "ValueError"}
#: Kinds of label that name no condition.
REFUSAL, INTERNAL = "refusal", "internal"
SUFFIX = ".index"
#: Other names of exceptions, and the one that Python prints (3.3-3.14 docs, "Built-in Exceptions";
#: 3.10-3.14 for `socket.timeout`).
CANONICAL = {
    "EnvironmentError": "OSError",
    "IOError": "OSError",
    "WindowsError": "OSError",
    "timeout": "TimeoutError",
}

#: What torch before 1.5 printed of an error of CUDA (0.1-1.4 aten/src/THC/THCGeneral.cpp).
FORMER = lazy(
    r"^(?:cuda runtime error \(\d{1,4}\) : )?(?P<what>device-side assert triggered)(?: at \S+)?$"
)


def in_later_words(error: Error) -> Error:
    """An exception as later releases of torch word it, which the index knows."""
    if former := FORMER.search(error.message):
        message = f"CUDA error: {former['what']}"
        return structs.replace(error, type="RuntimeError", message=message)
    return error


def canonical(kind: str) -> str:
    """The name by which the index knows an exception.

    >>> canonical("EnvironmentError"), canonical("ValueError")
    ('OSError', 'ValueError')
    """
    return CANONICAL.get(kind, kind)


def words_of(text: str) -> list[str]:
    """The words of a text, as they are compared.

    >>> words_of("Expected 3 GPUs, got fp16_enabled=2")
    ['expected', 'gpus', 'got', 'fp', '_enabled']
    """
    return [word.lower() for word in WORD.findall(text)[:MOST_WORDS]]


def digest(words: Sequence[str]) -> str:
    """The hash of a chunk of words, in hexadecimal digits."""
    return str(_blake2b()(" ".join(words).encode(), digest_size=DIGEST).hexdigest())


@functools.cache
def _blake2b() -> Any:
    try:  # CPython's own; `hashlib` also loads OpenSSL, which takes as long as reading a log
        from _blake2 import blake2b  # noqa: PLC0415  # see there
    except ImportError:
        from hashlib import blake2b  # noqa: PLC0415  # only without it
    return blake2b


def _load() -> Callable[[Path, str], ErrorIndex]:
    from dsdoctor.logs.error_index import load  # noqa: PLC0415  # few errors are in an index

    return load


def _load_rows() -> Callable[[Path, str, tuple[int, ...]], ErrorIndex]:
    from dsdoctor.logs.error_index import load_rows  # noqa: PLC0415  # few errors are in an index

    return load_rows


def chunks_of(text: str) -> dict[tuple[int, str], list[int]]:
    """All runs of up to CHUNK words of a text, and where they begin."""
    return _runs_of(tuple(words_of(text)))


@functools.lru_cache(maxsize=128)  # all ranks print the same message
def _runs_of(words: tuple[str, ...]) -> dict[tuple[int, str], list[int]]:
    there: dict[tuple[int, str], list[int]] = {}
    for count in range(1, CHUNK + 1):
        for start in range(len(words) - count + 1):
            chunk = (count, digest(words[start : start + count]))
            there.setdefault(chunk, []).append(start)
    return there


@functools.lru_cache(maxsize=4)
def products(folder: Path) -> frozenset[str]:
    """The products of an index.

    Raises:
        OSError: the folder cannot be read.
    """
    return frozenset(path.stem for path in folder.glob(f"*{SUFFIX}"))


@functools.lru_cache(maxsize=32)
def stored_text(folder: Path, product: str) -> str:
    """The stored text of a product's index."""
    return (folder / f"{product}{SUFFIX}").read_text(encoding="utf-8")


@functools.lru_cache(maxsize=32)
def stored_words(folder: Path, product: str) -> frozenset[str]:
    """The words of a stored index, its chunks among them."""
    return frozenset(stored_text(folder, product).split())


def _named_chunks(text: str) -> set[str]:
    """The chunks of a text, as an index stores them."""
    return {f"{count}:{name}" for count, name in chunks_of(text)}


def _raises(folder: Path, product: str, kinds: Iterable[str]) -> bool:
    """Whether an index contains a message of one of these exceptions."""
    stored = stored_text(folder, product)
    return any(f"\n{kind}\t" in stored for kind in kinds)


def _rows_that_fit(folder: Path, product: str, text: str) -> tuple[int, ...]:
    """Where the rows begin in a stored index whose chunks all occur in a text.

    This takes much less time than parsing the index.
    """
    stored, words = stored_text(folder, product), stored_words(folder, product)
    there = _named_chunks(text)
    marked = there | {f"^{chunk}" for chunk in there}
    found: set[int] = set()
    for chunk in marked & words:
        at = stored.find(chunk)
        while at >= 0:
            end = stored.index("\n", at)
            row = stored[stored.rindex("\t", 0, at) + 1 : end]
            if there.issuperset(row.lstrip("^").split()):
                found.add(stored.rindex("\n", 0, at) + 1)
            at = stored.find(chunk, end)
    return tuple(sorted(found))


def _rows_that_begin(folder: Path, product: str, line: str) -> tuple[int, ...]:
    """Where the rows begin whose message has this line as its first, and more after it.

    Of a long line this compares the first chunk; `ErrorIndex.find_begun` compares all.
    """
    words = words_of(line)[:CHUNK]
    first = f"^{len(words)}:{digest(words)}"
    if first not in stored_words(folder, product):
        return ()
    stored = stored_text(folder, product)
    found: list[int] = []
    at = stored.find(f"{first} ")
    while at >= 0:
        found.append(stored.rindex("\n", 0, at) + 1)
        at = stored.find(f"{first} ", at + 1)
    return tuple(found)


def find_native(folder: Path, error: Error) -> Match | None:
    """The message of native code that an exception matches, whoever's frames are above it.

    The frames of a traceback are those of whoever called the native code.
    """
    error = in_later_words(error)
    kinds = {canonical(error.type)}
    named = error_keys.quoted(folder, sorted(products(folder)), _named_chunks(error.message))
    names = (name for name in named if _raises(folder, name, kinds))
    rows = ((name, _rows_that_fit(folder, name, error.message)) for name in names)
    found = (_load_rows()(folder, name, fit).find_native(error) for name, fit in rows if fit)
    return next((match for match in found if match is not None), None)


def find(folder: Path, error: Error) -> Match | None:
    """The message that an exception in a log matches; None if it is not in the index."""
    raiser = raiser_of(error.frames)
    product = package_of(raiser.file) if raiser is not None else ""
    if raiser is not None and error.type != WRAPPED and product not in products(folder):
        return None
    names = [product]
    if product not in products(folder):
        there = _named_chunks(f"{error.message} {error.more}")
        names = error_keys.quoted(folder, sorted(products(folder)), there)
    kinds = {canonical(error.type), *(VALIDATED.values() if error.type == WRAPPED else ())}
    names = [name for name in names if _raises(folder, name, kinds)]
    if len(names) == 1 and not error.message.strip():  # identified by its place alone
        return _load()(folder, names[0]).find(error)
    match = _fitting(folder, names, error)
    if match is None and error.further:
        match = _fitting(folder, names, structs.replace(error, more=error.further))
    if match is None and raiser is not None:
        rows = ((name, _rows_that_begin(folder, name, error.message)) for name in names)
        begun = (_load_rows()(folder, name, fit).find_begun(error) for name, fit in rows if fit)
        match = next((match for match in begun if match is not None), None)
    if match is not None and match.label is None and match.entry.words >= COPIED_WORDS:
        match = structs.replace(match, label=_copied(folder, match.entry))
    return match


def _copied(folder: Path, entry: Entry) -> Label | None:
    """What another product's message with the same words asks, if all of them ask something.

    Products copy code from each other, and a message means the same in the copy; a check of the
    state does not.
    """
    if entry.exception == "AttributeError":  # Python's words, whoever raises it
        return None
    chunks = ("^" if entry.anchored else "") + " ".join(f"{n}:{name}" for n, name in entry.chunks)
    labels = set()
    for product in sorted(products(folder) - {entry.product}):
        stored = stored_text(folder, product)
        at = stored.find(f"\t{chunks}\n")
        while at >= 0:
            index = _load_rows()(folder, product, (stored.rindex("\n", 0, at) + 1,))
            labels |= {
                index.answer(one).label for one in index.entries if one.exception == entry.exception
            }
            at = stored.find(f"\t{chunks}\n", at + 1)
    asked = sorted((label for label in labels if label is not None), key=lambda one: one.text)
    if len(asked) > 1 and any(label.kind != REFUSAL for label in asked):
        return None
    return asked[0] if asked and asked[0].kind != INTERNAL else None


def _fitting(folder: Path, names: Iterable[str], error: Error) -> Match | None:
    """The message whose words are those of an exception and of the lines after it."""
    text = f"{error.message} {error.more}"
    rows = ((name, _rows_that_fit(folder, name, text)) for name in names)
    return _longest(_load_rows()(folder, name, fit).find(error) for name, fit in rows if fit)


def _longest(found: Iterable[Match | None]) -> Match | None:
    """Of the matches in several products, the one with the most literal words.

    Products copy messages; of equal ones it is one that has an answer.
    """
    matches = (match for match in found if match is not None)
    return max(matches, key=lambda one: (one.entry.words, one.label is not None), default=None)
