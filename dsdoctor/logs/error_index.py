"""The error index: identifies a product's message in a log, and has an answer for it.

A product's message is a template with fields for names and numbers. The index keeps the literal
words between those fields, as hashes of a few words each (*chunks*), so it contains no sentence of
a product. A message in a log matches an entry when it contains the entry's chunks in order.

`tools/harvest_messages.py` makes the entries; the answers (*labels*) are written by hand in
`*.labels`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.error_lookup import (
    VALIDATED,
    WRAPPED,
    canonical,
    chunks_of,
    digest,
    stored_text,
)  # fmt: skip
from dsdoctor.logs.errors import Error
from dsdoctor.logs.plain_errors import ASSERTION, DEVICE_ASSERT
from dsdoctor.logs.products import indexed_path, package_of, raiser_of
from dsdoctor.logs.same_words import (
    ENOUGH_WORDS,
    begins_with,
    in_order,
    is_identified,
    is_native_message,
    may_speak,
)

#: What pydantic prints around the message of an exception that a validator raised.
VALIDATION = lazy(r"\b(?P<kind>Assertion failed|Value error), (?P<message>.+?)(?: \[type=|$)")
LABELS = ".labels"
#: What a label has between its sentence and its hint.
HINT = " => "
#: How an entry is rated that the same function of the same file raises; another of the file: 1.
SAME = 2


class Entry(msgspec.Struct, frozen=True):
    """A message that a product can raise.

    Attributes:
        product: the package.
        exception: name of the exception, as Python prints it; `log.error` or `log.critical` for a
            logger's line.
        file: source file, within the package.
        function: the function that raises it.
        releases: the harvested releases that contain it, the oldest first.
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
    def is_native(self) -> bool:
        """Whether C++ says it, of which tracebacks have no frames."""
        return not self.file.endswith(".py")

    @property
    def mark(self) -> str:
        """The chunk by which the product is found, whatever raised a message.

        It is the first of the longest chunks, which a message of many lines has in the first of
        them; "" if only the place identifies the message (`same_words.is_identified`).
        """
        if not self.chunks or not (self.is_native or self.words >= ENOUGH_WORDS):
            return ""
        longest = max(count for count, _ in self.chunks)
        return next(f"{count}:{name}" for count, name in self.chunks if count == longest)

    @property
    def key(self) -> str:
        """The key under which its label is stored; it survives a move to another file.

        The key of a message with few words includes the place that raises it.
        """
        what = [self.product, self.exception, *(text for _, text in self.chunks)]
        if self.words < ENOUGH_WORDS:
            what += [self.file, self.function]
        return digest(what)


class Label(msgspec.Struct, frozen=True):
    """The answer to an entry.

    Attributes:
        kind: name of a condition, `refusal` or `internal`.
        text: one sentence in dsdoctor's own words: for a refusal what the user has to change, for
            a condition what this message means if that is more than its title.
        hint: for a condition, what to do where its own hint does not fit this message.
    """

    kind: str
    text: str = ""
    hint: str = ""


class Match(msgspec.Struct, frozen=True):
    """The entry that a message matches, and its label; None if it has none yet."""

    entry: Entry
    label: Label | None


class Header(msgspec.Struct, frozen=True):
    """What the entries of a product were made from: its releases, and the day of the harvest."""

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
        ValueError: it does not have the format that the harvest writes.
    """
    rows = text.splitlines()
    head = _header(rows)
    entries: list[Entry] = []
    file = ""
    for row in rows:
        if row.startswith(">"):
            file = row[1:]
        elif row and not row.startswith("#"):
            entries.append(_entry(row, file, head))
    return head, entries


def _header(rows: Iterable[str]) -> Header:
    head: dict[str, str] = {}
    for row in rows:
        if not row.startswith("#"):
            break
        name, _, value = row[1:].partition(" ")
        head[name] = value
    return Header(head["product"], head["made"], tuple(head["releases"].split()))


def _entry(row: str, file: str, head: Header) -> Entry:
    kind, function, spans, chunks = row.split("\t")
    pairs = (chunk.split(":") for chunk in chunks.lstrip("^").split())
    return Entry(
        head.product,
        kind,
        file,
        function,
        _spans(spans, head.releases),
        tuple((int(count), text) for count, text in pairs),
        chunks.startswith("^"),
    )


def parse_labels(text: str) -> dict[str, Label]:
    """Reads labels: a row of each (`_label`), then an indented row for each of its entries.

    An indented row contains the key of an entry and, for human readers, the place that raises it.

    Raises:
        ValueError: a key has two labels.
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
            label = _label(row)
    return found


def _label(row: str) -> Label:
    """The label of a row: kind, sentence, and behind an arrow the hint.

    >>> _label("ds-config-wrong-type `x` must be even => round it up")
    Label(kind='ds-config-wrong-type', text='`x` must be even', hint='round it up')
    """
    kind, _, rest = row.partition(" ")
    sentence, _, hint = rest.partition(HINT)
    return Label(kind, sentence, hint)


class ErrorIndex:
    """The messages that a product can raise, found by their words.

    Attributes:
        header: what the entries were made from.
        entries: all entries.
        labels: labels by the key of their entry.
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
        """An entry with its label."""
        return Match(entry, self.labels.get(entry.key))

    def find(self, error: Error) -> Match | None:
        """The entry of an exception in a log; None if it is not in the index, or several match."""
        raiser = raiser_of(error.frames)
        product = package_of(raiser.file) if raiser is not None else ""
        if raiser is not None and not product:
            return None
        place = (indexed_path(raiser.file), raiser.function) if raiser is not None else ("", "")
        kind, message = canonical(error.type), error.message
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
            [
                (rate, entry)
                for rate, entry in rated
                if is_identified(entry, place, bool(product), message)
                and (product or may_speak(self.answer(entry), error, message))
            ]
        )

    def find_begun(self, error: Error) -> Match | None:
        """The entry that the place that raised an exception chooses of those with its first line.

        The index must have been loaded with these only (`error_lookup.find`).
        """
        raiser = raiser_of(error.frames)
        if raiser is None:
            return None
        return self._best(
            [
                ((0, 2), entry)  # what comes after that line does not choose
                for entry in self.entries
                if entry.exception == canonical(error.type)
                and begins_with(entry, error.message)
                and (entry.file, entry.function) == (indexed_path(raiser.file), raiser.function)
            ]
        )

    def find_native(self, error: Error) -> Match | None:
        """The entry of native code for an exception, whoever's frames are above it."""
        message = error.message
        if error.type == DEVICE_ASSERT:  # the line names file, block and thread before it
            message = message[max(0, message.rfind(ASSERTION)) :]
        return self._best(
            [
                (self._rate(entry, ("", "")), entry)
                for entry in self._matches(message)
                if entry.is_native
                and entry.exception == canonical(error.type)
                and is_native_message(entry, message)
                and may_speak(self.answer(entry), error, message)
            ]
        )

    @staticmethod
    def _rate(entry: Entry, place: tuple[str, str]) -> tuple[int, int]:
        same_file = entry.file == place[0]
        return (entry.words, SAME if same_file and entry.function == place[1] else int(same_file))

    def _best(self, rated: Sequence[tuple[tuple[int, int], Entry]]) -> Match | None:
        """The best entry; without a label if equally good entries have different ones.

        A function that puts a message together from several sentences has an entry for each: one
        without a label gives way to the others of that function.
        """
        if not rated:
            return None
        best = self._top(rated)
        if best[0].label is None and (
            labeled := [one for one in rated if one[0][1] == SAME and self.answer(one[1]).label]
        ):
            best = self._top(labeled)
        labels = {match.label for match in best}
        return best[0] if len(labels) == 1 else Match(best[0].entry, None)

    def _top(self, rated: Sequence[tuple[tuple[int, int], Entry]]) -> list[Match]:
        top = max(rate for rate, _ in rated)
        return [self.answer(entry) for rate, entry in rated if rate == top]

    def _matches(self, text: str) -> Iterator[Entry]:
        there = chunks_of(text)
        for chunk in there:
            for entry in self._by_chunk.get(chunk, ()):
                if in_order(entry, there):
                    yield entry


@functools.lru_cache(maxsize=32)
def load(folder: Path, product: str) -> ErrorIndex:
    """The index of one product, from the files of a folder.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file does not have the format that the harvest writes.
    """
    header, entries = parse(stored_text(folder, product))
    return ErrorIndex(header, entries, parse_labels(_stored_labels(folder, product)))


@functools.lru_cache(maxsize=256)  # all ranks print the same message
def load_rows(folder: Path, product: str, rows: tuple[int, ...]) -> ErrorIndex:
    """An index of only some entries, with their labels.

    Args:
        folder: folder of the index.
        product: the product.
        rows: where the row of each entry begins in the stored text.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file does not have the format that the harvest writes.
    """
    stored = stored_text(folder, product)
    head = _header(stored[: stored.index("\n>")].split("\n"))
    entries: list[Entry] = []
    for start in rows:
        named = stored.rindex("\n>", 0, start) + 2
        file = stored[named : stored.index("\n", named)]
        entries.append(_entry(stored[start : stored.index("\n", start)], file, head))
    answers = _stored_labels(folder, product)
    labels = {entry.key: _label_of(entry.key, answers) for entry in entries}
    return ErrorIndex(head, entries, {key: one for key, one in labels.items() if one is not None})


@functools.lru_cache(maxsize=32)
def _stored_labels(folder: Path, product: str) -> str:
    path = folder / f"{product}{LABELS}"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _label_of(key: str, answers: str) -> Label | None:
    """The label of a key: the last row before it that is not indented."""
    at = answers.find(f"\n\t{key}")
    while at >= 0:
        start = answers.rfind("\n", 0, at) + 1
        if not answers.startswith(("\t", "#", "\n"), start):
            return _label(answers[start:at])
        at = start - 1
    return None
