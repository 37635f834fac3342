"""Finds the lines of a log that matter: literal anchors over bytes first, patterns afterwards.

A block in which no anchor occurs costs a few searches at memory speed. In the others only the
lines with an anchor are decoded. What is kept is bounded, so memory is flat.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dsdoctor.logs import reader
from dsdoctor.model.condition import Signature

#: Lines of context on either side of a hit.
CONTEXT = 12
#: Hits kept of one signature in one log.
KEPT = 4
#: Tracebacks kept of one log.
KEPT_ERRORS = 40
#: Longest piece of a line that patterns see.
LONGEST = 4000
#: Lines that a traceback may run on before it is given up.
LONGEST_TRACEBACK = 600
#: Piece of a line that is kept as context for the next block.
LONGEST_CARRIED = 65536
#: Last lines kept of a log.
TAIL = 40
KEY_LENGTH = 5


class Known(NamedTuple):
    """A signature and the condition that it speaks for."""

    condition: str
    title: str
    hint: str
    fixes: tuple[str, ...]
    signature: Signature


@dataclasses.dataclass(frozen=True)
class Hit:
    """A line that a signature recognises.

    Attributes:
        known: the signature with its condition.
        source: index of the log.
        line: number of the line, from 1.
        text: the line without prefixes.
        rank: the rank, where told.
        groups: named groups of the pattern.
        when: time stamp of the line or of one shortly before it, "" without.
    """

    known: Known
    source: int
    line: int
    text: str
    rank: int | None
    groups: dict[str, str]
    when: str


@dataclasses.dataclass(frozen=True)
class Error:
    """An exception, or a death by other means, seen in the log.

    Attributes:
        source: index of the log.
        line: number of the line that names it.
        rank: the rank, where told.
        type: name of the exception.
        message: its text.
        file: source file of the deepest frame that is not a library's.
        file_line: line in it.
        text: the line.
        when: time stamp, "" without.
        traced: it stood under a traceback.
        library: deepest frame of all.
    """

    source: int
    line: int
    rank: int | None
    type: str
    message: str
    file: str
    file_line: int
    text: str
    when: str
    traced: bool
    library: str = ""


@dataclasses.dataclass
class Scan:
    """What was found in one log.

    Attributes:
        hits: recognised lines, in order, bounded.
        counts: condition to number of recognised lines.
        errors: exceptions, in order, bounded.
        flags: literal texts of `requires` and `unless` that occur.
        marks: signs of the run's course, to the line where first seen.
        tail: the last lines that are not blank, with their numbers.
        lines: number of lines.
    """

    hits: list[Hit] = dataclasses.field(default_factory=list)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    errors: list[Error] = dataclasses.field(default_factory=list)
    flags: set[str] = dataclasses.field(default_factory=set)
    marks: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    tail: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    lines: int = 0


#: Signs of how far a run came: name to (literal, pattern).
MARKS: dict[str, tuple[str, str]] = {
    "spawned": ("spawned with command", r"spawned with command"),
    "world": ("dist_world_size=", r"dist_world_size=(?P<n>\d+)"),
    "finished": ("exits successfully", r"exits successfully"),
    "died": (
        "exits with return code",
        r"exits with return code = (?!0\b)-?\d+",
    ),
    "child-failed": ("ChildFailedError", r"ChildFailedError"),
    "exitcode": ("exitcode", r"exitcode\s*:?\s*(?!0\b)-?\d+"),
    "exit-code": ("Exited with exit code", r"Exited with exit code (?!0\b)\d+"),
    "slurm": ("srun: error", r"srun: error: "),
    "slurm-step": ("slurmstepd", r"slurmstepd.*error"),
    "terminate": ("terminate called", r"terminate called"),
    "segfault": ("egmentation fault", r"[Ss]egmentation fault"),
    "killing": ("Killing subprocess", r"Killing subprocess"),
    "sigterm": ("received SIGTERM", r"received SIGTERM"),
    "zero": ("ZeRO", r"(?i)zero[ _-]?(?:optimization_)?(?:stage[ _:=.]*|-)(?P<n>[0-3])\b"),
    "zero-config": ("zero_optimization_stage", r"zero_optimization_stage[ .]+(?P<n>[0-3])\b"),
    "stage3": ("Stage 3 initialize", r"Stage 3 initialize"),
    "zero3-offload": ("DeepSpeedZeRoOffload initialize", r"DeepSpeedZeRoOffload initialize"),
    "cpu-offload": ("CPU Offload", r"CPU Offload: (?P<v>True|False)"),
    "cpu-adam": ("Adam Optimizer #", r"Adam Optimizer #\d+ is created"),
    "offload-config": (
        "offload_optimizer",
        r"offload_optimizer['\"]?\s*[=:]\s*.{0,60}device['\"]?\s*[=:]\s*['\"<]?\S*?(?P<v>cpu|nvme)",
    ),
    "offload-param": (
        "offload_param",
        r"offload_param['\"]?\s*[=:]\s*.{0,60}device['\"]?\s*[=:]\s*['\"<]?\S*?(?P<v>cpu|nvme)",
    ),
    "bf16": ("bfloat16_enabled", r"(?P<v>bfloat16_enabled) \.+ (?:True|true)"),
    "bf16-optimizer": ("torch.bfloat16 ZeRO", r"torch\.bfloat16 ZeRO"),
    "fp16": ("fp16_enabled", r"(?P<v>fp16_enabled) \.+ (?:True|true)"),
    "fp16-optimizer": ("fp16 ZeRO stage", r"fp16 ZeRO stage"),
    "world-size": ("world_size", r"\bworld_size\s*[.=:]+\s*(?P<n>\d+)"),
    "distributed": ("nranks", r"\bnranks (?P<n>\d+)"),
    "deepspeed-info": ("DeepSpeed info", r"DeepSpeed info: version"),
    "accelerator-cpu": ("Setting accelerator to CPU", r"Setting accelerator to CPU"),
    "ds-accelerator": ("Setting ds_accelerator to", r"Setting ds_accelerator to (?P<v>\w+)"),
}
MARK_PATTERNS = {name: re.compile(pattern) for name, (_, pattern) in MARKS.items()}
MARK_LITERALS: dict[str, list[str]] = {}
for _name, (_literal, _) in MARKS.items():
    MARK_LITERALS.setdefault(_literal, []).append(_name)

TRACEBACK = "Traceback (most recent call last)"
EXCEPTION = re.compile(
    r"^(?:\|?\s*)?(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*"
    r"(?:Error|Exception|Interrupt|Exit|Timeout|Failure|Mismatch\w*|NotFound|Warning))"
    r"(?::\s(?P<message>.*)|:?\s*$)",
)
ANY_EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*)(?::\s(?P<message>.*)|:?\s*$)",
)
FRAME = re.compile(r'^\s*File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9})')
PLAIN_ERRORS = (
    (
        re.compile(r": error: (?P<message>(?:unrecognized|the following) arguments.*|argument .*)"),
        "SystemExit",
    ),
    (re.compile(r"can't open file (?P<message>.*)"), "FileNotFoundError"),
    (re.compile(r"(?P<message>[Ss]egmentation fault.*)"), "SIGSEGV"),
    (re.compile(r"(?P<message>exits with return code = -11\b)"), "SIGSEGV"),
    (re.compile(r"(?P<message>exitcode\s*:?\s*-11\b.*)"), "SIGSEGV"),
    (re.compile(r"(?P<message>.*Assertion `.*` failed.*)"), "DeviceAssert"),
)
PLAIN_LITERALS = (
    "error: unrecognized arguments",
    "error: the following arguments",
    "error: argument ",
    "can't open file",
    "egmentation fault",
    "exits with return code = -11",
    "-11",
    "Assertion `",
)
ERROR_LITERALS = (TRACEBACK, "Error", "Exception", "Interrupt", *PLAIN_LITERALS)
LIBRARY = ("site-packages", "dist-packages", "/lib/python", "<frozen", "\\lib\\", "/lib64/python")
STAMP = re.compile(
    r"(?P<d>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"|\[?[EWIF](?P<m>\d{4}) (?P<u>\d\d:\d\d:\d\d\.\d+)",
)


def stamp(text: str) -> str:
    """A time stamp that sorts, "" without one.

    >>> stamp("[2024-05-06 07:08:09,123] [INFO]"), stamp("[rank0]:[E506 07:08:10.5 Process")
    ('05-06 07:08:09.123', '')
    """
    found = STAMP.search(text[:200])
    if found is None:
        return ""
    if found["m"]:
        return f"{found['m'][:2]}-{found['m'][2:]} {found['u']}"
    return f"{found['d'][5:].replace('/', '-')} {found['t'].replace(',', '.')}"


class Scanner:
    """Signatures made ready for a search; use one for many logs.

    Attributes:
        known: the signatures, by condition.
    """

    def __init__(self, known: Sequence[Known]) -> None:
        self.known = list(known)
        self._patterns = [re.compile(item.signature.pattern) for item in self.known]
        self._by_literal: dict[str, list[int]] = {}
        self._flags: set[str] = set()
        for index, item in enumerate(self.known):
            for anchor in item.signature.anchors:
                self._by_literal.setdefault(anchor, []).append(index)
            self._flags.update(item.signature.requires)
            self._flags.update(item.signature.unless)
        literals = {*self._by_literal, *self._flags, *ERROR_LITERALS, *MARK_LITERALS}
        self._literals = {text: text.encode() for text in literals}
        self._keys = _cover(sorted(self._literals.values()))

    def hot(self, block: bytes) -> dict[int, set[str]]:
        """Start of a line in the block to the literals in that line."""
        found: dict[int, set[str]] = {}
        for key, literals in self._keys.items():
            position = block.find(key)
            while position >= 0:
                start = block.rfind(b"\n", 0, position) + 1
                end = block.find(b"\n", position)
                end = len(block) if end < 0 else end
                line = block[start:end]
                texts = [text.decode() for text in literals if text in line]
                if texts:
                    found.setdefault(start, set()).update(texts)
                position = block.find(key, end)
        return found

    def scan(self, source: reader.Source, index: int = 0) -> Scan:
        """Reads a whole log."""
        state = _State(self, source, index)
        carry = b""
        carry_lines = 0
        fresh = 0
        for block in reader.blocks(source):
            data = carry + block
            first = fresh - carry_lines
            carry, carry_lines = state.feed(data, skip=carry_lines, first_line=first, last=False)
            fresh = state.result.lines
        if carry:
            state.feed(carry, skip=carry_lines, first_line=fresh - carry_lines, last=True)
        state.finish()
        return state.result

    @property
    def patterns(self) -> list[re.Pattern[str]]:
        """Compiled patterns, in the order of `known`."""
        return self._patterns

    @property
    def by_literal(self) -> dict[str, list[int]]:
        """Anchor to the indices of its signatures."""
        return self._by_literal

    @property
    def flags(self) -> set[str]:
        """Literals of `requires` and `unless`."""
        return self._flags


@functools.lru_cache(maxsize=4)
def _cover_cached(literals: tuple[bytes, ...]) -> dict[bytes, tuple[bytes, ...]]:
    """Few short keys such that every literal contains one: greedy cover.

    Keys that are common in the logs of healthy runs cost time, not correctness.
    """
    common = (
        b"[INFO] [WARNING] [logging.py:main] DeepSpeed optimizer loss step rank torch training "
        b"model deepspeed.runtime epoch learning rate: time memory 2024-2025-2026- python "
        b'/site-packages/ lib/python3.1 world_size=  File "line , in return  self. '
        b"INFO - NCCL INFO Channel via P2P/IPC Ring Tree samples/s MA Max_MA CA GB NCCL version "
    )
    left = set(literals)
    keys: dict[bytes, tuple[bytes, ...]] = {}
    where: dict[bytes, set[bytes]] = {}
    for literal in literals:
        size = min(KEY_LENGTH, len(literal))
        for start in range(len(literal) - size + 1):
            part = literal[start : start + size]
            if part not in common or len(literal) <= KEY_LENGTH:
                where.setdefault(part, set()).add(literal)
    for literal in literals:
        if not any(literal[i : i + KEY_LENGTH] in where for i in range(len(literal))):
            where.setdefault(literal, set()).add(literal)
    while left:
        key = max(where, key=lambda part: (len(where[part]), part))
        covered = where.pop(key)
        keys[key] = tuple(text for text in literals if key in text)
        left -= covered
        for part in list(where):
            where[part] -= covered
            if not where[part]:
                del where[part]
    return keys


def _cover(literals: Iterable[bytes]) -> dict[bytes, tuple[bytes, ...]]:
    return _cover_cached(tuple(literals))


@dataclasses.dataclass
class _Trace:
    """A traceback that is being read."""

    indent: int
    file: str = ""
    line: int = 0
    deepest: str = ""
    seen: int = 0


class _State:
    def __init__(self, scanner: Scanner, source: reader.Source, index: int) -> None:
        self.scanner = scanner
        self.source = source
        self.index = index
        self.result = Scan()
        self.open: dict[int | None, _Trace] = {}
        self.per_signature: collections.Counter[int] = collections.Counter()
        self.tail: collections.deque[tuple[int, bytes]] = collections.deque(maxlen=TAIL)
        self.stamp = ""

    def feed(
        self,
        data: bytes,
        *,
        skip: int,
        first_line: int,
        last: bool,
    ) -> tuple[bytes, int]:
        """Works through a block.

        Gives back what to put in front of the next block as context, and how many of its lines
        are done already. The last lines of a block wait for the next one, so that a hit always
        has its context on both sides.
        """
        hot = self.scanner.hot(data)
        trailing = data.endswith(b"\n")
        if not hot and not self.open:
            total = data.count(b"\n") + (0 if trailing else 1)
            cut = len(data)
            for _ in range(2 * CONTEXT + 1):
                place = data.rfind(b"\n", 0, cut)
                if place < 0:
                    cut = -1
                    break
                cut = place
            lines = data[cut + 1 :].split(b"\n")
            if trailing:
                lines.pop()
            before = total - len(lines)
            for offset, line in enumerate(lines, before):
                if offset >= skip:
                    self._note_tail(first_line + offset + 1, line)
            end = total
        else:
            lines = data.split(b"\n")
            if trailing:
                lines.pop()
            end = len(lines) if last else max(skip, len(lines) - CONTEXT)
            before = 0
            position = 0
            for place, line in enumerate(lines):
                literals = hot.get(position)
                position += len(line) + 1
                if skip <= place < end and (literals is not None or self.open):
                    self._line(lines, place, first_line + place + 1, literals or set())
            for place in range(max(skip, end - TAIL), end):
                self._note_tail(first_line + place + 1, lines[place])
        self.result.lines = first_line + end
        begin = max(0, end - before - CONTEXT)
        carried = [line[:LONGEST_CARRIED] for line in lines[begin:]]
        return b"".join(line + b"\n" for line in carried), end - before - begin

    def _note_tail(self, number: int, line: bytes) -> None:
        if line.strip():
            self.tail.append((number, line[:LONGEST]))

    def finish(self) -> None:
        self.result.tail = [
            (number, reader.strip_prefixes(reader.decode(line))[0]) for number, line in self.tail
        ]

    def _line(self, lines: list[bytes], at: int, number: int, literals: set[str]) -> None:
        raw = lines[at]
        segments = [raw]
        if b"\r" in raw:
            segments = [part for part in raw.split(b"\r") if part.strip()]
            if literals:
                wanted = [text.encode() for text in literals]
                segments = [p for p in segments if any(w in p for w in wanted)][:8] or segments[-1:]
            else:
                segments = segments[-1:]
        for segment in segments:
            text, rank = reader.strip_prefixes(_shorten(segment, literals))
            if rank is None:
                rank = self.source.rank
            if literals:
                here = {t for t in literals if t in text} if len(segments) > 1 else literals
                self._marks(text, number, here)
                self._signatures(lines, at, number, text, rank, here)
            self._errors(lines, at, number, text, rank, literals)

    def _marks(self, text: str, number: int, literals: set[str]) -> None:
        for literal in literals:
            if literal in self.scanner.flags:
                self.result.flags.add(literal)
            for name in MARK_LITERALS.get(literal, ()):
                if name not in self.result.marks and MARK_PATTERNS[name].search(text):
                    self.result.marks[name] = (number, text[:LONGEST])

    def _signatures(
        self,
        lines: list[bytes],
        at: int,
        number: int,
        text: str,
        rank: int | None,
        literals: set[str],
    ) -> None:
        around: str | None = None
        for literal in literals:
            for index in self.scanner.by_literal.get(literal, ()):
                known = self.scanner.known[index]
                signature = known.signature
                found = self.scanner.patterns[index].search(text)
                if found is None:
                    continue
                if signature.near or signature.not_near:
                    if around is None:
                        around = self._around(lines, at)
                    if signature.near and not any(t in around for t in signature.near):
                        continue
                    if any(t in around for t in signature.not_near):
                        continue
                self.result.counts[known.condition] += 1
                self.per_signature[index] += 1
                if self.per_signature[index] > KEPT and not signature.final:
                    continue
                hit = Hit(
                    known=known,
                    source=self.index,
                    line=number,
                    text=text,
                    rank=rank,
                    groups={k: v for k, v in found.groupdict().items() if v is not None},
                    when=self._when(lines, at),
                )
                if self.per_signature[index] > KEPT:  # a hang: the last one counts
                    for place in range(len(self.result.hits) - 1, -1, -1):
                        if self.result.hits[place].known is known:
                            self.result.hits[place] = hit
                            break
                else:
                    self.result.hits.append(hit)

    def _around(self, lines: list[bytes], at: int) -> str:
        near = lines[max(0, at - CONTEXT) : at + CONTEXT + 1]
        return "\n".join(reader.decode(line[:LONGEST]) for line in near)

    def _when(self, lines: list[bytes], at: int) -> str:
        for place in range(at, max(-1, at - CONTEXT), -1):
            if found := stamp(reader.decode(lines[place][:200])):
                return found
        return ""

    def _errors(
        self,
        lines: list[bytes],
        at: int,
        number: int,
        text: str,
        rank: int | None,
        literals: set[str],
    ) -> None:
        if TRACEBACK in literals and TRACEBACK in text:
            self.open[rank] = _Trace(indent=len(text) - len(text.lstrip()))
            return
        trace = self.open.get(rank)
        stripped = text.strip()
        if trace is not None:
            trace.seen += 1
            if frame := FRAME.match(text):
                trace.deepest = frame["file"]
                if not any(part in frame["file"] for part in LIBRARY):
                    trace.file, trace.line = frame["file"], int(frame["line"])
                return
            indent = len(text) - len(text.lstrip())
            found = EXCEPTION.match(stripped)
            if found is None and indent <= trace.indent and stripped:
                found = ANY_EXCEPTION.match(stripped)
            if found is not None and indent <= trace.indent + 1:
                del self.open[rank]
                self._add_error(lines, at, number, rank, stripped, found, trace)
                return
            if trace.seen > LONGEST_TRACEBACK:
                del self.open[rank]
            return
        if not literals:
            return
        if found := EXCEPTION.match(stripped):
            if not found["type"].endswith("Warning"):
                self._add_error(lines, at, number, rank, stripped, found, None)
            return
        if any(literal in PLAIN_LITERALS for literal in literals):
            for pattern, name in PLAIN_ERRORS:
                if plain := pattern.search(stripped):
                    self._add_plain(lines, at, number, rank, stripped, name, plain["message"])
                    return

    def _add_plain(
        self,
        lines: list[bytes],
        at: int,
        number: int,
        rank: int | None,
        text: str,
        name: str,
        message: str,
    ) -> None:
        if len(self.result.errors) >= KEPT_ERRORS:
            return
        self.result.errors.append(
            Error(
                source=self.index,
                line=number,
                rank=rank,
                type=name,
                message=message,
                file="",
                file_line=0,
                text=text[:LONGEST],
                when=self._when(lines, at),
                traced=False,
            ),
        )

    def _add_error(
        self,
        lines: list[bytes],
        at: int,
        number: int,
        rank: int | None,
        text: str,
        found: re.Match[str],
        trace: _Trace | None,
    ) -> None:
        if len(self.result.errors) >= KEPT_ERRORS:
            return
        self.result.errors.append(
            Error(
                source=self.index,
                line=number,
                rank=rank,
                type=found["type"].rsplit(".", 1)[-1],
                message=(found["message"] or "")[:LONGEST],
                file=trace.file if trace else "",
                file_line=trace.line if trace else 0,
                text=text[:LONGEST],
                when=self._when(lines, at),
                traced=trace is not None,
                library=trace.deepest if trace else "",
            ),
        )


def _shorten(segment: bytes, literals: Iterable[str]) -> str:
    """At most LONGEST characters, around the first literal."""
    if len(segment) <= LONGEST:
        return reader.decode(segment)
    places = [segment.find(text.encode()) for text in literals]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - LONGEST // 4)
    return reader.decode(segment[start : start + LONGEST])


def scan_all(sources: Iterable[reader.Source], scanner: Scanner) -> Iterator[Scan]:
    """One scan per log, in order."""
    for index, source in enumerate(sources):
        yield scanner.scan(source, index)
