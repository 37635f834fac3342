"""Dumps of torch's flight recorder: which ranks are missing from which collective.

torch writes one file per rank (`TORCH_FR_DUMP_TEMP_FILE`, `TORCH_NCCL_DEBUG_INFO_TEMP_FILE`) when
a collective times out: a pickle, or JSON. Both hold plain containers; a pickle that asks for
anything else is not read, so that no code of a file ever runs.
Source: torch 2.3-2.13 csrc/distributed/c10d/FlightRecorder.hpp, distributed/flight_recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dsdoctor.lazy_regex import lazy

#: A larger file is not a dump: 2,000 entries are kept by default, with their stacks.
MOST_BYTES = 256 << 20
HEADS = (b"\x80", b"{")
RANK = lazy(r"(\d{1,6})(?:\.\w{1,8})?$")
#: Frames of the product itself, between the collective and the line of the script.
_WITHIN = lazy(r"[/\\](?:torch[/\\]distributed|deepspeed[/\\]comm)[/\\]")
#: Ranks that are named.
MOST_NAMED = 8


class Collective(NamedTuple):
    """One collective of one process group, as one rank saw it.

    Attributes:
        group: name of the process group.
        number: sequence number within the group.
        operation: such as `nccl:all_reduce`.
        sizes: of the input tensors.
        types: of the input tensors.
        state: `scheduled`, `started` or `completed`.
        frames: `FILE:LINE FUNCTION`, the innermost first.
    """

    group: str
    number: int
    operation: str
    sizes: str
    types: str
    state: str
    frames: tuple[str, ...]


class Dump(NamedTuple):
    """The collectives of one rank, in order."""

    rank: int
    collectives: tuple[Collective, ...]


class Missing(NamedTuple):
    """A collective that some ranks never started while others wait in it."""

    collective: Collective
    waiting: tuple[int, ...]
    missing: tuple[int, ...]

    def __str__(self) -> str:
        """The finding in one sentence.

        >>> one = Collective("default_pg", 7, "nccl:all_reduce", "[[8]]", "['Float']", "", ())
        >>> str(Missing(one, (0, 2), (1,)))
        "rank 1 never started collective 7 of group `default_pg` (nccl:all_reduce, sizes [[8]], \
types ['Float']), while ranks 0, 2 wait in it"
        """
        one = self.collective
        what = f"{one.operation}, sizes {one.sizes}, types {one.types}"
        calls = [frame for frame in one.frames if not _WITHIN.search(frame)] or one.frames
        at = f", called at {calls[0]}" if calls else ""
        return (
            f"{_ranks(self.missing)} never started collective {one.number} of group `{one.group}` "
            f"({what}{at}), while {_ranks(self.waiting)} wait{'s' * (len(self.waiting) == 1)} in it"
        )


def _ranks(ranks: Sequence[int]) -> str:
    more = ", …" if len(ranks) > MOST_NAMED else ""
    word = "rank" if len(ranks) == 1 else "ranks"
    return f"{word} {', '.join(map(str, ranks[:MOST_NAMED]))}{more}"


def read(name: str, data: bytes) -> Dump | None:
    """The dump in a file's content; None where the file is something else."""
    if not data.startswith(HEADS) or len(data) > MOST_BYTES:
        return None
    if b"entries" not in data and b"pg_config" not in data:
        return None
    try:
        if data.startswith(b"{"):
            found = msgspec.json.decode(data)
        else:
            from dsdoctor.logs.plain_pickle import loads  # noqa: PLC0415  # dumps are rare

            found = loads(data)
    except Exception:  # noqa: BLE001  # a file that means harm may raise anything
        return None
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        return None
    rank = found.get("rank")
    told = RANK.search(name)
    if not isinstance(rank, int):
        rank = int(told[1]) if told else -1
    entries = (_collective(row) for row in found["entries"] if isinstance(row, dict))
    return Dump(rank, tuple(one for one in entries if one is not None))


def _collective(row: dict[str, Any]) -> Collective | None:
    number = row.get("collective_seq_id")
    if not isinstance(number, int) or row.get("is_p2p") is True:
        return None
    group = row.get("process_group")
    name = group[0] if isinstance(group, (list, tuple)) and group else group
    frames = row.get("frames")
    calls = [
        f"{one.get('filename', '?')}:{one.get('line', 0)} {one.get('name', '')}".strip()
        for one in (frames if isinstance(frames, list) else [])
        if isinstance(one, dict)
    ]
    return Collective(
        str(name),
        number,
        str(row.get("profiling_name", "?")),
        str(row.get("input_sizes", "?")),
        str(row.get("input_dtypes", "?")),
        # Gloo's state stays at `scheduled`; what is over is retired (2.13)
        "completed" if row.get("retired") is True else str(row.get("state", "?")),
        tuple(calls),
    )


def missing(dumps: Sequence[Dump]) -> Missing | None:
    """The first collective that is not over and that not every rank has started.

    Ranks without a dump are not judged. Groups that a rank never used are not its groups.
    """
    by_group: dict[str, dict[int, dict[int, Collective]]] = {}
    for dump in dumps:
        for one in dump.collectives:
            by_group.setdefault(one.group, {}).setdefault(dump.rank, {})[one.number] = one
    found: list[Missing] = []
    for ranks in by_group.values():
        furthest = {rank: max(rows) for rank, rows in ranks.items()}
        waiting = sorted(
            (number, rank)
            for rank, rows in ranks.items()
            for number, one in rows.items()
            if one.state != "completed"
        )
        for number, rank in waiting:
            late = tuple(sorted(r for r, last in furthest.items() if last < number))
            if late:
                here = tuple(sorted(r for n, r in waiting if n == number))
                found.append(Missing(ranks[rank][number], here, late))
                break
    return min(found, key=lambda one: one.collective.number, default=None)
