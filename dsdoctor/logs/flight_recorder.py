"""Dumps of torch's flight recorder: which ranks are missing from which collective.

torch writes one file per rank (`TORCH_FR_DUMP_TEMP_FILE`, `TORCH_NCCL_DEBUG_INFO_TEMP_FILE`) when
a collective times out: a pickle, or JSON. Both contain plain containers; a pickle that refers to
anything else is not read, so no code from a file ever runs.
Source: torch 2.3-2.13 csrc/distributed/c10d/FlightRecorder.hpp, distributed/flight_recorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.model import decode

#: A larger file is not read: 2,000 entries are kept by default, and take 1 to 2 MiB with stacks.
MOST_BYTES = 64 << 20
HEADS = (b"\x80", b"{")
RANK = lazy(r"(\d{1,6})(?:\.\w{1,8})?$")
#: Frames of torch and DeepSpeed between the collective and the line of the script.
_WITHIN = lazy(r"[/\\](?:torch[/\\]distributed|deepspeed[/\\]comm)[/\\]")
#: Most ranks that are listed.
MOST_NAMED = 8
#: Limits on one value that is shown: characters of a word, members of a list, nested lists, and
#: frames of a stack. A pickle may contain the same list a million times.
_LETTERS, _MEMBERS, _DEPTH, _FRAMES = 300, 16, 3, 64
#: Larger ranks and sequence numbers do not come from torch.
_MOST_RANKS, _LARGEST = 1 << 24, 1 << 63
#: Collectives of one dump that are examined, the last ones: 100 times torch's default.
_MOST_ENTRIES = 200_000


class Collective(NamedTuple):
    """One collective of one process group, as one rank saw it.

    Attributes:
        group: name of the process group.
        number: sequence number within the group.
        operation: such as `nccl:all_reduce`.
        sizes: of the input tensors.
        types: of the input tensors.
        state: `scheduled`, `started` or `completed`.
        called_at: `FILE:LINE FUNCTION` of the script, or of the innermost frame; "" if not known.
    """

    group: str
    number: int
    operation: str
    sizes: str
    types: str
    state: str
    called_at: str


class Dump(NamedTuple):
    """The unfinished collectives of one rank, and the last one of each group."""

    rank: int
    collectives: tuple[Collective, ...]


class Missing(NamedTuple):
    """A collective that some ranks never started while others wait in it."""

    collective: Collective
    waiting: tuple[int, ...]
    missing: tuple[int, ...]

    def __str__(self) -> str:
        """The finding in one sentence.

        >>> one = Collective("default_pg", 7, "nccl:all_reduce", "[[8]]", "['Float']", "", "")
        >>> str(Missing(one, (0, 2), (1,)))
        "rank 1 never started collective 7 of group `default_pg` (nccl:all_reduce, sizes [[8]], \
types ['Float']), while ranks 0, 2 wait in it"
        """
        one = self.collective
        what = f"{one.operation}, sizes {one.sizes}, types {one.types}"
        at = f", called at {one.called_at}" if one.called_at else ""
        return (
            f"{_ranks(self.missing)} never started collective {one.number} of group `{one.group}` "
            f"({what}{at}), while {_ranks(self.waiting)} wait{'s' * (len(self.waiting) == 1)} in it"
        )


def _ranks(ranks: Sequence[int]) -> str:
    more = ", …" if len(ranks) > MOST_NAMED else ""
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{word} {', '.join(map(str, ranks[:MOST_NAMED]))}{more}"


def read(name: str, data: bytes) -> Dump | None:
    """The dump in a file's content; None if the file is something else."""
    if not data.startswith(HEADS) or len(data) > MOST_BYTES:
        return None
    if b"entries" not in data and b"pg_config" not in data:
        return None
    try:
        found = _decoded(data)
    except Exception:  # noqa: BLE001  # a malicious file may raise anything
        return None
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        return None
    rank = found.get("rank")
    in_name = RANK.search(name)
    if not isinstance(rank, int) or not 0 <= rank < _MOST_RANKS:
        rank = int(in_name[1]) if in_name else -1
    last = found["entries"][-_MOST_ENTRIES:]
    entries = (_collective(row) for row in last if isinstance(row, dict))
    return Dump(rank, _relevant(one for one in entries if one is not None))


def _relevant(entries: Iterable[Collective]) -> tuple[Collective, ...]:
    """What `missing` needs of one rank: unfinished collectives, and the last of each group."""
    latest = {(one.group, one.number): one for one in entries}
    furthest: dict[str, int] = {}
    for group, number in latest:
        furthest[group] = max(number, furthest.get(group, 0))
    return tuple(
        one
        for (group, number), one in latest.items()
        if one.state != "completed" or number == furthest[group]
    )


def _decoded(data: bytes) -> Any:
    from dsdoctor.logs import plain_pickle  # noqa: PLC0415  # dumps are rare

    if not data.startswith(b"{"):
        return plain_pickle.loads(data)
    if sum(map(data.count, (b",", b"[", b"{"))) > plain_pickle.MOST_ITEMS:
        return None
    return decode.json(data, size=MOST_BYTES)


def _collective(row: dict[str, Any]) -> Collective | None:
    number = row.get("collective_seq_id")
    if not isinstance(number, int) or not 0 <= number < _LARGEST or row.get("is_p2p") is True:
        return None
    group = row.get("process_group")
    return Collective(
        _word(group[0] if isinstance(group, (list, tuple)) and group else group),
        number,
        _word(row.get("profiling_name", "?")),
        _as_python(row.get("input_sizes", "?")),
        _as_python(row.get("input_dtypes", "?")),
        # Gloo's state remains `scheduled`; a finished collective is retired (2.13)
        "completed" if row.get("retired") is True else _word(row.get("state", "?")),
        _called_at(row.get("frames")),
    )


def _word(value: object) -> str:
    """A word or number, truncated; any other value is not shown."""
    if isinstance(value, str):
        return value[:_LETTERS]
    return str(value) if isinstance(value, int) and abs(value) < _LARGEST else "?"


def _as_python(value: object, depth: int = _DEPTH) -> str:
    """Lists of words and numbers in Python's syntax, truncated."""
    if isinstance(value, (list, tuple)):
        inner = [_as_python(one, depth - 1) for one in value[:_MEMBERS]] if depth else []
        return f"[{', '.join([*inner, '…'] if len(inner) < len(value) else inner)}]"
    return repr(_word(value)) if isinstance(value, str) and depth < _DEPTH else _word(value)


def _called_at(frames: object) -> str:
    """The innermost frame outside torch and DeepSpeed, else the innermost of all."""
    found = ""
    for frame in frames[:_FRAMES] if isinstance(frames, list) else ():
        if isinstance(frame, dict):
            place = f"{_word(frame.get('filename', '?'))}:{_word(frame.get('line', 0))}"
            found = found or f"{place} {_word(frame.get('name', ''))}".strip()
            if not _WITHIN.search(place):
                return f"{place} {_word(frame.get('name', ''))}".strip()
    return found


def missing(dumps: Sequence[Dump]) -> Missing | None:
    """The first unfinished collective that not every rank has started.

    Ranks without a dump are not judged. A rank does not belong to groups that it never used.
    """
    by_group: dict[str, dict[int, dict[int, Collective]]] = {}
    for dump in dumps:
        for one in dump.collectives:
            by_group.setdefault(one.group, {}).setdefault(dump.rank, {})[one.number] = one
    found: list[Missing] = []
    for ranks in by_group.values():
        furthest = {rank: max(rows) for rank, rows in ranks.items()}
        last = min(furthest.values())
        waiting = sorted(
            (number, rank)
            for rank, rows in ranks.items()
            for number, one in rows.items()
            if one.state != "completed"
        )
        number, rank = next(((n, r) for n, r in waiting if n > last), (-1, -1))
        if number > last:
            late = tuple(sorted(r for r, reached in furthest.items() if reached < number))
            here = tuple(sorted(r for n, r in waiting if n == number))
            found.append(Missing(ranks[rank][number], here, late))
    return min(found, key=lambda one: one.collective.number, default=None)
