"""The error index: which message of which product an exception is, and what it asks of the reader.

A product's message is a text with places for names and numbers. The index keeps the literal words
between those places, as hashes of a few words each (*chunks*), so it contains no sentence of a
product. A message of a log matches an entry when the entry's chunks are in it, in order.

`tools/harvest_messages.py` makes the entries; the answers are written by hand (`*.labels`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import PYTHONS_WORDS, Error
from dsdoctor.logs.products import inner_path, package_of, raiser_of

#: Words that one chunk covers at most.
CHUNK = 6
#: Bytes of a chunk's hash: two different texts of a million agree by chance once in a million.
DIGEST = 5
#: Literal words without which a message is only known together with the place that raised it.
ENOUGH_WORDS = 4
#: Share of a message's words that a text must have where it is looked up without a log.
ALMOST = 0.6
#: Exceptions that Python raises in the same words, so that only the place distinguishes them.
PYTHONS_OWN = frozenset({"AttributeError", "IndexError", "KeyError", "NameError", "StopIteration"})
#: Words of a text that are looked at.
MOST_WORDS = 600
WORD = lazy(r"[A-Za-z_]+")
#: What pydantic prints around the message of an exception that a validator raised.
VALIDATION = lazy(r"\b(?P<kind>Assertion failed|Value error), (?P<message>.+?)(?: \[type=|$)")
WRAPPED = "ValidationError"
VALIDATED = {"Assertion failed": "AssertionError", "Value error": "ValueError"}
#: Kinds of answer that name no condition.
REFUSAL, INTERNAL = "refusal", "internal"
SUFFIX, LABELS = ".index", ".labels"


def words_of(text: str) -> list[str]:
    """The words of a text, as they are compared.

    >>> words_of("Expected 3 GPUs, got fp16_enabled=2")
    ['expected', 'gpus', 'got', 'fp', '_enabled']
    """
    return [word.lower() for word in WORD.findall(text)[:MOST_WORDS]]


def digest(words: Sequence[str]) -> str:
    """The hash of a chunk of words, in hexadecimal digits."""
    from hashlib import blake2b  # noqa: PLC0415  # most errors are not looked up

    return blake2b(" ".join(words).encode(), digest_size=DIGEST).hexdigest()


class Entry(msgspec.Struct, frozen=True):
    """A message that a product can raise.

    Attributes:
        product: the package.
        exception: name of the exception, or `log.error` and `log.critical` for a logger's line.
        file: source file, within the package.
        function: that raises it.
        releases: those of the harvested releases that have it, the oldest first.
        chunks: number of words and hash of each chunk, in order; empty for an exception without
            words of its own.
        anchored: the message begins with the first chunk.
    """

    product: str
    exception: str
    file: str
    function: str
    releases: tuple[str, ...]
    chunks: tuple[tuple[int, str], ...]
    anchored: bool

    @property
    def words(self) -> int:
        """Number of literal words."""
        return sum(count for count, _ in self.chunks)

    @property
    def key(self) -> str:
        """The name under which an answer is filed: it survives a move to another file.

        A message of few words is known only with the place that raises it.
        """
        what = [self.product, self.exception, *(text for _, text in self.chunks)]
        if self.words < ENOUGH_WORDS:
            what += [self.file, self.function]
        return digest(what)


class Label(msgspec.Struct, frozen=True):
    """What an entry asks of the reader.

    Attributes:
        kind: name of a condition, `refusal` or `internal`.
        text: for a refusal, one sentence of ours.
    """

    kind: str
    text: str = ""


class Match(msgspec.Struct, frozen=True):
    """The entry that a message is, and the answer to it, None where there is none yet."""

    entry: Entry
    label: Label | None


class Header(msgspec.Struct, frozen=True):
    """Where the entries of a product come from: its releases, and the day of the harvest."""

    product: str
    made: str
    releases: tuple[str, ...]


def _spans(text: str, releases: Sequence[str]) -> tuple[str, ...]:
    """Releases by their numbers, such as `0-3,5`."""
    found: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += releases[int(first) : int(last or first) + 1]
    return tuple(found)


def parse(text: str) -> tuple[Header, list[Entry]]:
    """Reads a generated index.

    Raises:
        ValueError: it is not of the form that the harvest writes.
    """
    head: dict[str, str] = {}
    entries: list[Entry] = []
    file = ""
    for row in text.splitlines():
        if row.startswith("#"):
            name, _, value = row[1:].partition(" ")
            head[name] = value
        elif row.startswith(">"):
            file = row[1:]
        elif row:
            kind, function, spans, chunks = row.split("\t")
            pairs = (chunk.split(":") for chunk in chunks.lstrip("^").split())
            entries.append(
                Entry(
                    head["product"],
                    kind,
                    file,
                    function,
                    _spans(spans, head["releases"].split()),
                    tuple((int(count), text) for count, text in pairs),
                    chunks.startswith("^"),
                )
            )
    return Header(head["product"], head["made"], tuple(head["releases"].split())), entries


def parse_labels(text: str) -> dict[str, Label]:
    """Reads the answers: a row of kind and sentence, then indented rows of the entries it is for.

    Such a row has the key of an entry and, for the human reader, the place that raises it.

    Raises:
        ValueError: a key is there twice.
    """
    found: dict[str, Label] = {}
    label = Label("")
    for row in text.splitlines():
        if row.startswith("\t"):
            key = row.split()[0]
            if key in found:
                raise ValueError(f"`{key}`: two answers")
            found[key] = label
        elif row and not row.startswith("#"):
            kind, _, sentence = row.partition(" ")
            label = Label(kind, sentence)
    return found


class ErrorIndex:
    """The messages that a product can raise, found by their words.

    Attributes:
        header: what the entries were made from.
        entries: all of them.
        labels: answers by the key of their entry.
    """

    def __init__(
        self, header: Header, entries: Iterable[Entry], labels: Mapping[str, Label]
    ) -> None:
        self.header = header
        self.entries = tuple(entries)
        self.labels = dict(labels)
        self._by_chunk: dict[tuple[int, str], list[Entry]] = {}
        self._wordless: dict[tuple[str, str, str], Entry] = {}
        for entry in self.entries:
            if entry.chunks:
                self._by_chunk.setdefault(max(entry.chunks), []).append(entry)
            else:
                self._wordless[entry.exception, entry.file, entry.function] = entry

    def answer(self, entry: Entry) -> Match:
        """An entry with its answer."""
        return Match(entry, self.labels.get(entry.key))

    def find(self, error: Error) -> Match | None:
        """The entry of an exception in a log; None if it is not in the index, or several match."""
        raiser = raiser_of(error.frames)
        product = package_of(raiser.file) if raiser is not None else ""
        if raiser is not None and not product:
            return None
        place = (inner_path(raiser.file), raiser.function) if raiser is not None else ("", "")
        kind, message = error.type, error.message
        text = f"{message} {error.more}"
        if kind == WRAPPED and (inner := VALIDATION.search(text)):
            kind, message = VALIDATED[inner["kind"]], inner["message"]
            text, product, place = message, "", ("", "")
        if not message.strip() and (bare := self._wordless.get((kind, *place))):
            return self.answer(bare)
        rated = [
            (self._rate(entry, place), entry)
            for entry in self._matches(text)
            if entry.exception == kind and product in {"", entry.product}
        ]
        return self._best(
            [(rate, entry) for rate, entry in rated if _known(entry, place, bool(product), message)]
        )

    def search(self, text: str) -> Match | None:
        """The entry whose words a text contains, or most of them; for `explain`."""
        there = _chunks_of(text)
        rated = [
            ((sum(count for count, digest in entry.chunks if (count, digest) in there), 0), entry)
            for chunk in there
            for entry in self._by_chunk.get(chunk, ())
        ]
        return self._best(
            [
                (rate, entry)
                for rate, entry in rated
                if rate[0] >= max(ENOUGH_WORDS, ALMOST * entry.words)
            ]
        )

    @staticmethod
    def _rate(entry: Entry, place: tuple[str, str]) -> tuple[int, int]:
        same_file = entry.file == place[0]
        return (entry.words, same_file + (same_file and entry.function == place[1]))

    def _best(self, rated: Sequence[tuple[tuple[int, int], Entry]]) -> Match | None:
        """The best entry, if those that are as good have the same answer."""
        if not rated:
            return None
        top = max(rate for rate, _ in rated)
        best = [self.answer(entry) for rate, entry in rated if rate == top]
        labels = {match.label for match in best}
        return best[0] if len(labels) == 1 else Match(best[0].entry, None)

    def _matches(self, text: str) -> Iterator[Entry]:
        there = _chunks_of(text)
        for chunk in there:
            for entry in self._by_chunk.get(chunk, ()):
                if _in_order(entry, there):
                    yield entry


def _chunks_of(text: str) -> dict[tuple[int, str], list[int]]:
    """All runs of up to CHUNK words of a text, and where they begin."""
    return _runs_of(tuple(words_of(text)))


@functools.lru_cache(maxsize=128)  # all ranks say the same words
def _runs_of(words: tuple[str, ...]) -> dict[tuple[int, str], list[int]]:
    there: dict[tuple[int, str], list[int]] = {}
    for count in range(1, CHUNK + 1):
        for start in range(len(words) - count + 1):
            chunk = (count, digest(words[start : start + count]))
            there.setdefault(chunk, []).append(start)
    return there


def _known(entry: Entry, place: tuple[str, str], placed: bool, message: str) -> bool:
    """Whether the place that raised agrees, as far as the words alone do not decide."""
    own = entry.exception in PYTHONS_OWN or PYTHONS_WORDS.search(message)
    if entry.words >= ENOUGH_WORDS and not own:
        return placed or _says_most(entry, message)
    return placed and (entry.file, entry.function) == place


def _says_most(entry: Entry, message: str) -> bool:
    """Whether the words of an entry identify a message of which no place is known.

    `{} is not divisible by {}` is in sentences of many programs. Fields are filled in with numbers
    and names, so a message mostly consists of the entry's own words, or has a long run of them.
    """
    longest = max((count for count, _ in entry.chunks), default=0)
    return longest >= CHUNK or 2 * entry.words >= len(words_of(message))


def _in_order(entry: Entry, there: Mapping[tuple[int, str], Sequence[int]]) -> bool:
    """Whether all chunks of an entry are there, one behind the other."""
    at = 0
    for place, chunk in enumerate(entry.chunks):
        starts = there.get(chunk, ())
        if place == 0 and entry.anchored:
            starts = starts[:1] if starts and starts[0] == 0 else ()
        start = next((one for one in starts if one >= at), None)
        if start is None:
            return False
        at = start + chunk[0]
    return True


@functools.lru_cache(maxsize=4)
def products(folder: Path) -> frozenset[str]:
    """The products of an index.

    Raises:
        OSError: the folder cannot be read.
    """
    return frozenset(path.stem for path in folder.glob(f"*{SUFFIX}"))


@functools.lru_cache(maxsize=32)
def _text(folder: Path, product: str) -> tuple[str, frozenset[str]]:
    """The index of a product as it is stored, and its words: the chunks among them."""
    text = (folder / f"{product}{SUFFIX}").read_text(encoding="utf-8")
    return text, frozenset(text.split())


def _may_know(folder: Path, product: str, text: str) -> bool:
    """Whether an index has a message all of whose chunks a text has.

    It takes much less time than to parse the index, which few errors need.
    """
    stored, words = _text(folder, product)
    there = {f"{count}:{name}" for count, name in _chunks_of(text)}
    marked = there | {f"^{chunk}" for chunk in there}
    return any(
        there.issuperset(row.lstrip("^").split())
        for chunk in marked & words
        for row in _rows_with(stored, chunk)
    )


def _rows_with(stored: str, chunk: str) -> Iterator[str]:
    """The chunks of each message of a stored index that has one of them."""
    at = stored.find(chunk)
    while at >= 0:
        end = stored.index("\n", at)
        yield stored[stored.rindex("\t", 0, at) + 1 : end]
        at = stored.find(chunk, end)


@functools.lru_cache(maxsize=32)
def load(folder: Path, product: str) -> ErrorIndex:
    """The index of one product, from the files of a folder.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not of the form that the harvest writes.
    """
    header, entries = parse(_text(folder, product)[0])
    labels = folder / f"{product}{LABELS}"
    known = parse_labels(labels.read_text(encoding="utf-8")) if labels.is_file() else {}
    return ErrorIndex(header, entries, known)


def find(folder: Path, error: Error) -> Match | None:
    """The message that an exception of a log is; None if it is not in the index."""
    raiser = raiser_of(error.frames)
    product = package_of(raiser.file) if raiser is not None else ""
    if raiser is not None and error.type != WRAPPED and product not in products(folder):
        return None
    names = [product] if product in products(folder) else sorted(products(folder))
    if len(names) > 1 or error.message.strip():
        text = f"{error.message} {error.more}"
        names = [name for name in names if _may_know(folder, name, text)]
    found = (load(folder, name).find(error) for name in names)
    return next((match for match in found if match is not None), None)


def search(folder: Path, text: str) -> Match | None:
    """The message whose words a text contains, whatever stands around them."""
    found = [load(folder, name).search(text) for name in sorted(products(folder))]
    matches = [match for match in found if match is not None]
    return max(matches, key=lambda match: match.entry.words, default=None)
