"""The snapshot: everything that was read of a machine, as one versioned JSON document."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.model import decode, partial
from dsdoctor.model.contradiction import Contradiction
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.partial import Source
from dsdoctor.model.redact import mask_tree, redact

SCHEMA = "dsdoctor/snapshot"
VERSION = 1

#: Why a fact is missing of a machine that is known from pasted text.
NOT_REPORTED = "the paste does not report it"

F = TypeVar("F", bound=Fact)


class Snapshot(msgspec.Struct, kw_only=True):
    """Facts and the reasons for those that are missing.

    Attributes:
        schema: SCHEMA.
        version: of this format.
        dsdoctor: version of the tool that wrote it.
        created: when, ISO 8601 in UTC.
        facts: fact key to its fields.
        missing: fact key to why it could not be read.
        seconds: probe name to wall time.
        partial: the collection was interrupted.
        redacted: users, hosts and paths were removed.
        origin: what it was made of, if that is not one machine that was read: the formats of a
            paste, or whose facts were composed. "" = one machine.
        pasted: it was read from text that people pasted; `sources` says what that states.
        sources: fact key to the dotted fields that a text states, each with its place. A fact that
            is here states nothing else.
        contradictions: what two parts of a pasted text state differently.
        assumed: what was not read from this machine and is assumed, as clauses.
        noticed: what a text states and no check judges, because it held for a moment only, or
            there is no condition for it; as sentences.
    """

    schema: str = SCHEMA
    version: int = VERSION
    dsdoctor: str = ""
    created: str = ""
    facts: dict[str, Any] = {}
    missing: dict[str, Missing] = {}
    seconds: dict[str, float] = {}
    partial: bool = False
    redacted: bool = False
    origin: str = ""
    pasted: bool = False
    sources: dict[str, dict[str, Source]] = {}
    contradictions: tuple[Contradiction, ...] = ()
    assumed: tuple[str, ...] = ()
    noticed: tuple[str, ...] = ()

    def get(self, kind: type[F]) -> F | Missing:
        """The fact of a type, or why it is missing."""
        key = kind.key()
        if key in self.facts:
            stated = self.sources.get(key)
            try:
                if stated is not None:
                    return typing.cast("F", partial.build(kind, self.facts[key], stated, key))
                return decode.convert(self.facts[key], kind, strict=False)
            except decode.DecodeError as error:
                return Missing(why=Why.BROKEN, detail=f"`{key}` of the snapshot is broken: {error}")
        if key in self.missing:
            return self.missing[key]
        if self.pasted:
            return Missing(why=Why.NOT_ASKED, detail=NOT_REPORTED)
        return Missing(why=Why.NOT_ASKED, detail=f"`{key}` was not collected")

    def put(self, fact: Fact) -> None:
        """Stores a fact, replacing what was known of it."""
        # through JSON, so that a live snapshot equals the one that is read back
        try:
            data = msgspec.json.encode(fact)
        except UnicodeEncodeError:  # a file name or an argument whose bytes are not UTF-8
            data = msgspec.json.encode(_writable(msgspec.to_builtins(fact)))
        self.facts[fact.key()] = msgspec.json.decode(data)
        self.missing.pop(fact.key(), None)

    def lack(self, kind: type[Fact], missing: Missing) -> None:
        """Stores why a fact is missing."""
        if kind.key() not in self.facts:
            self.missing[kind.key()] = missing

    @property
    def run(self) -> RunNeeds:
        """The request; its defaults if the snapshot contains none."""
        run = self.get(RunNeeds)
        return RunNeeds() if isinstance(run, Missing) else run

    def to_json(self) -> bytes:
        """The document, indented, every secret masked."""
        tree = masked(self)
        return msgspec.json.format(msgspec.json.encode(tree, order="deterministic"), indent=1)


def from_json(data: bytes, origin: str) -> Snapshot:
    """Reads a snapshot of this or an older version.

    Raises:
        UsageError: it is not a snapshot, is cut off, or is of a newer version.
    """
    try:
        head = decode.json(data)
    except decode.DecodeError as error:
        raise UsageError(
            f"`{origin}` is not a snapshot: {error}; expected what `dsdoctor snapshot -o` writes"
        ) from None
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise UsageError(
            f"`{origin}` is not a snapshot: its `schema` is not `{SCHEMA}`; "
            "expected what `dsdoctor snapshot -o` writes"
        )
    version = head.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise UsageError(
            f"`{origin}` is a snapshot of version {version}, but this dsdoctor reads up to version "
            f"{VERSION}; upgrade dsdoctor"
        )
    try:
        return decode.convert(head, Snapshot)
    except decode.DecodeError as error:
        raise UsageError(
            f"`{origin}` is a broken snapshot: {error}; create it again with `dsdoctor snapshot -o`"
        ) from None


def _writable(value: Any) -> Any:
    """The same value with what UTF-8 cannot hold replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_writable(name): _writable(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value


def of(facts: Iterable[Fact], missing: Mapping[Any, Missing] | None = None) -> Snapshot:
    """A snapshot made of given facts; for tests and for hypothetical machines."""
    snapshot = Snapshot()
    for fact in facts:
        snapshot.put(fact)
    for kind, why in (missing or {}).items():
        snapshot.lack(kind, why)
    return snapshot


def differences(before: Snapshot, after: Snapshot) -> list[tuple[str, Any, Any]]:
    """Facts that differ: dotted name, value before, value after; sorted by name.

    A value that only one of them has is paired with None.
    """
    left, right = _flattened(before), _flattened(after)
    return [
        (name, left.get(name), right.get(name))
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


def redacted(snapshot: Snapshot) -> Snapshot:
    """The same snapshot without names of users, hosts and folders of users (`--redact`)."""
    variables = _inner(_inner(snapshot.facts, "environment"), "variables")
    users = {str(variables[name]) for name in ("USER", "LOGNAME") if variables.get(name)}
    home = str(variables.get("HOME", ""))
    if home.count("/") > 1:
        users.add(home.rstrip("/").rpartition("/")[2])
    system = _inner(snapshot.facts, "os_info")
    hosts = {str(system["hostname"])} if system.get("hostname") else set()
    tree = redact(msgspec.to_builtins(snapshot), users=users, hosts=hosts)
    return msgspec.convert({**tree, "redacted": True}, Snapshot)


def _inner(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping within a tree that came from a file; {} if it is anything else."""
    value = tree.get(name)
    return value if isinstance(value, Mapping) else {}


def masked(snapshot: Snapshot, keep: Iterable[str] = ()) -> Snapshot:
    """The same snapshot without secrets.

    Args:
        snapshot: what was read.
        keep: keys of facts that stay as they are (`Fact.verbatim`).
    """
    tree = msgspec.to_builtins(snapshot)
    kept = {key: tree["facts"].pop(key) for key in keep if key in tree["facts"]}
    tree = mask_tree(tree)
    tree["facts"].update(kept)
    return msgspec.convert(tree, Snapshot)


def _flattened(snapshot: Snapshot) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}", inner)
        elif isinstance(value, list) and value:
            for number, inner in enumerate(value):
                walk(f"{prefix}[{number}]", inner)
        else:
            found[prefix] = value

    for key, value in snapshot.facts.items():
        walk(key, value)
    for key, missing in snapshot.missing.items():
        found[key] = f"not read ({missing.why.value}): {missing.detail}"
    return found
