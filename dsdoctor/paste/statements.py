"""Collects the fields of facts that readers state, and makes a partial snapshot from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import MOST_GPUS, Nvml
from dsdoctor.model.facts.machine import Environment, LibCuda, OsInfo
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    DeepSpeedLive,
    Packages,
    Patient,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.toolchain import Compilers, CudaToolkits
from dsdoctor.model.partial import Source
from dsdoctor.model.snapshot import Snapshot, masked
from dsdoctor.paste import disputes
from dsdoctor.paste.lines import Line

#: Facts about what a container brings itself.
_SOFTWARE = frozenset(
    kind.key()
    for kind in (
        Compilers, CudaToolkits, DeepSpeedInstall, DeepSpeedLive, Environment, LibCuda, OsInfo,
        Packages, Patient, TorchBuild, TorchLive,
    )
)  # fmt: skip
#: The host's, also where NVML does not start in the container.
_DRIVER = (Nvml.key(), "driver_version")


class Statements:
    """Collects what a text states.

    Attributes:
        reader: name of the format that is being read.
    """

    def __init__(self) -> None:
        self.reader = ""
        self._found: dict[tuple[str, str], tuple[Any, Source]] = {}
        self._disputed: dict[
            tuple[str, str], tuple[tuple[Any, Source], tuple[Any, Source], int | None]
        ] = {}
        self._readers: dict[str, int] = {}
        self._missing: dict[str, Missing] = {}
        self._run: RunNeeds | None = None
        self._gpus: set[str] = set()
        self._noticed: dict[str, None] = {}

    def _beyond(self, path: str) -> bool:
        """Whether a field belongs to a GPU beyond the number that a snapshot can have."""
        name, _, rest = path.partition(".")
        number = rest.partition(".")[0]
        if name != "gpus" or not number.isdecimal() or number in self._gpus:
            return False
        if len(self._gpus) >= MOST_GPUS:
            return True
        self._gpus.add(number)  # not always an index: a GPU without one has another key
        return False

    def recognized(self) -> None:
        """Records that the text contains output in this reader's format."""
        self._readers.setdefault(self.reader, len(self._readers))

    def recognizes(self, readers: Iterable[str]) -> bool:
        """Whether one of these readers has found output in its format."""
        return any(name in self._readers for name in readers)

    def state(self, kind: type[Fact], path: str, value: Any, line: Line) -> None:
        """States a field.

        Args:
            kind: the fact.
            path: dotted name of the field below it (`gpus.0.name`); `[]` at the end says that the
                list is known to have no further items.
            value: its value, as in JSON.
            line: the line that states it.
        """
        self.recognized()
        if self._beyond(path):
            return
        key = (kind.key(), path)
        source = Source(reader=self.reader, line=line.number, text=_quoted(line))
        known = self._found.get(key)
        if known is None:
            self._found[key] = (value, source)
            return
        agreed = _agreed(known[0], value)
        if agreed is None:
            self._disputed.setdefault(key, (known, (value, source), None))
        else:
            self._found[key] = (agreed[0], known[1])

    def doubt(self, kind: type[Fact], path: str, value: Any, line: Line) -> bool:
        """Records a less reliable statement that contradicts an earlier one, which remains.

        Returns:
            Whether it contradicts one; otherwise the value may be stated.
        """
        known = self._found.get((kind.key(), path))
        if known is None or _agreed(known[0], value) is not None:
            return False
        source = Source(reader=self.reader, line=line.number, text=_quoted(line))
        self._disputed.setdefault((kind.key(), path), (known, (value, source), 0))
        return True

    def override(self, kind: type[Fact], path: str, value: Any, line: Line) -> None:
        """States a field of the job itself, which wins over what another shell answered."""
        key = (kind.key(), path)
        self._found.pop(key, None)
        self._disputed.pop(key, None)
        self.state(kind, path, value, line)

    def whole(self, fact: Fact, line: Line) -> None:
        """States every field of a fact."""
        for name, value in msgspec.to_builtins(fact).items():
            self.state(type(fact), name, value, line)

    def lack(self, kind: type[Fact], detail: str) -> None:
        """Records that the text has several facts of a kind, and that nothing selects one."""
        self._missing[kind.key()] = Missing(why=Why.UNSUPPORTED, detail=detail)

    def notice(self, text: str) -> None:
        """Records what no check judges and the reader should know, as a sentence; once each."""
        self.recognized()
        self._noticed.setdefault(text)

    def request(self, **fields: Any) -> None:
        """Sets fields of the request that the job's command and config make."""
        self._run = msgspec.structs.replace(self._run or RunNeeds(), **fields)

    def withdraw(self, kind: type[Fact], path: str, reader: str) -> None:
        """Drops what a reader concluded, if another tool's statement removes the basis for it."""
        known = self._found.get((kind.key(), path))
        if known is not None and known[1].reader == reader:
            del self._found[kind.key(), path]

    def forget(self, kind: type[Fact]) -> None:
        """Drops all of a fact, if another statement shows that it is not that of the job."""
        for fields in (self._found, self._disputed):
            for key in [key for key in fields if key[0] == kind.key()]:
                del fields[key]

    def states(self, kind: type[Fact], path: str) -> bool:
        """Whether a field was stated already."""
        return (kind.key(), path) in self._found

    def value(self, kind: type[Fact], path: str) -> Any:
        """The stated value of a field; None if it was not stated."""
        found = self._found.get((kind.key(), path))
        return found[0] if found else None

    def add_of_host(self, host: Statements) -> None:
        """Adds what a text states of the host of its container.

        The driver and the GPUs are the host's, if the container's own output does not state them.
        Of what every container brings itself, all or nothing is the host's: nvcc of one and torch
        of the other were never used together.
        """
        known = {key for key, _ in self._found}
        software = known & _SOFTWARE
        place = len(self._readers)
        for key, found in host._found.items():
            own = key[0] in known or (software and key[0] in _SOFTWARE)
            if not own or (key == _DRIVER and key not in self._found):
                self._found[key] = found
        self._disputed |= {
            key: found
            for key, found in host._disputed.items()
            if key in self._found and self._found[key] == host._found.get(key)
        }
        for name in host._readers:
            self._readers.setdefault(name, place + len(self._readers))
        for text in host._noticed:
            self._noticed.setdefault(text)
        dropped = {key for key, _ in host._found} - {
            key for key, _ in self._found if key not in known
        }
        if dropped:
            first = min(found[1].line for key, found in host._found.items() if key[0] in dropped)
            self._noticed.setdefault(
                "the text shows a host and a container; the container is judged, and what the host"
                f" has instead is not used, for example line {first}"
            )

    def snapshot(self) -> Snapshot | None:
        """The partial snapshot, secrets masked; None if nothing was recognized."""
        if not self._readers:
            return None
        snapshot = Snapshot(pasted=True, origin=f"a paste of {_listed(self._readers)}")
        open_ = {key: found for key, found in self._disputed.items() if found[2] is None}
        unknown = disputes.unknown(open_, self._found)
        for key in sorted({key for key, _ in self._found}):
            fields = {
                path: found
                for (fact, path), found in self._found.items()
                if fact == key and (fact, path) not in unknown
            }
            if fields:
                snapshot.facts[key] = _tree(fields)
                snapshot.sources[key] = _sources(fields)
        if self._run is not None:
            snapshot.put(self._run)
        for key, missing in self._missing.items():
            if key not in snapshot.facts:
                snapshot.missing[key] = missing
        for (key, path), (one, other, _) in open_.items():
            lines = f"lines {one[1].line} and {other[1].line}"
            detail = f"the paste states `{path}` differently in {lines}"
            if key not in snapshot.facts:
                snapshot.missing[key] = Missing(why=Why.NOT_ASKED, detail=detail)
        snapshot.noticed = tuple(self._noticed)
        snapshot.contradictions = disputes.contradictions(self._disputed)
        return masked(snapshot)


#: Most characters of a line that a finding quotes.
LONGEST = 200


def _quoted(line: Line) -> str:
    text = line.text
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


#: Tools print sizes in GB or MiB, with one digit or none.
ROUNDING = 0.02
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[+.\w-]*)")


def _agreed(one: Any, other: Any) -> tuple[Any] | None:
    """The more complete of two values of one field; None if they contradict each other."""
    if one == other:
        return (one,)
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        both = {key: _agreed(value, other[key]) for key, value in one.items()}
        fuller = {key: value[0] for key, value in both.items() if value is not None}
        return (fuller,) if len(fuller) == len(both) else None
    if not isinstance(one, str) or not isinstance(other, str):
        return (one,) if _near(one, other) else None
    short, long = sorted((one.removeprefix("NVIDIA "), other.removeprefix("NVIDIA ")), key=len)
    if short == long:
        return (max(one, other, key=len),)
    part = long.startswith(short) and not long[len(short)].isdigit()
    return (max(one, other, key=len),) if part and _VERSION.fullmatch(long) else None


def _near(one: Any, other: Any) -> bool:
    """Whether two sizes in bytes may be the same size, rounded by two tools."""
    if type(one) is not int or type(other) is not int or min(one, other) < 1 << 20:
        return False
    return abs(one - other) <= ROUNDING * max(one, other)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _tree(fields: dict[str, tuple[Any, Source]]) -> dict[str, Any]:
    """Fields by dotted name as the JSON of the fact; items of lists in order of their number."""
    root: dict[str, Any] = {}
    for path, (value, _) in fields.items():
        if path.endswith("[]"):
            continue
        parts = _parts(path)
        place = root
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = value
    for path in fields:
        if path.endswith("[]"):
            root.setdefault(path[:-2], {})
    for name in LISTS & root.keys():
        if isinstance(root[name], dict):
            root[name] = [root[name][number] for number in sorted(root[name], key=int)]
    return root


#: Fields whose parts are numbered, and mappings, whose keys may contain dots.
LISTS = {"gpus", "pairs", "pci", "found", "devices", "nodes", "places"}
MAPPINGS = {"packages", "variables"}


def _parts(path: str) -> list[str]:
    head, _, rest = path.partition(".")
    return [head, rest] if head in MAPPINGS else path.split(".")


def _sources(fields: dict[str, tuple[Any, Source]]) -> dict[str, Source]:
    """Places of the fields, numbers of items counted from 0 as in the list."""
    numbers: dict[str, list[str]] = {}
    for path in fields:
        head, _, rest = path.partition(".")
        if head in LISTS and rest:
            number = rest.partition(".")[0]
            if number not in numbers.setdefault(head, []):
                numbers[head].append(number)
    ranks = {head: sorted(found, key=int) for head, found in numbers.items()}
    places: dict[str, Source] = {}
    for path, (_, source) in fields.items():
        head, _, rest = path.partition(".")
        if path.endswith("[]"):
            places[path[:-2]] = source
        elif head in ranks:
            number, _, field = rest.partition(".")
            places[f"{head}.{ranks[head].index(number)}.{field}"] = source
        else:
            places[path] = source
    return places
