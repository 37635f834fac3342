"""One node of a fleet: its snapshot is read lazily, judged, and reduced to what merging needs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.fleet.replay import FleetNode
from dsdoctor.fleet.traits import traits_of
from dsdoctor.fleet.verdict_cache import UNLIKE, Values, VerdictCache
from dsdoctor.judge import JUDGE_SECONDS, Policy, not_judged
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Finding
from dsdoctor.model.snapshot import SCHEMA, VERSION
from dsdoctor.model.vital import VITAL
from dsdoctor.packs.registry import Registry, Unit
from dsdoctor.precedence import without_wider

F = TypeVar("F", bound=Fact)
_REMEMBERED = 4096


class NodeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding to report.

    Attributes:
        status: `fail`, `warn`, `unknown` or `crash`.
        id, condition, message, hint: as in a report of one node.
    """

    status: str
    id: str
    condition: str
    message: str
    hint: str = ""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a node.

    Attributes:
        name: as the user or the engine wrote it.
        error: why there is no snapshot; None if there is one.
        verdict: `healthy`, `faulty`, `unknown` or `silent`.
        traits: what should be the same everywhere.
        findings: problems of the node itself.
        gpus: how many GPUs NVML lists, None if it does not report them.
        node: data for the comparison between nodes.
    """

    name: str
    error: str | None = None
    verdict: str = "silent"
    traits: dict[str, str] = {}
    findings: tuple[NodeFinding, ...] = ()
    gpus: int | None = None
    node: FleetNode = msgspec.field(default_factory=FleetNode)


class RawSnapshot(msgspec.Struct, kw_only=True):
    """A snapshot whose facts are decoded only when they are requested.

    Attributes:
        schema, version, facts, missing: as in a snapshot.
    """

    schema: str = ""
    version: int = 0
    facts: dict[str, msgspec.Raw] = {}
    missing: dict[str, Missing] = {}


_DECODER = msgspec.json.Decoder(RawSnapshot)


class _Source:
    """Facts of a raw snapshot; facts that many nodes share are decoded once."""

    def __init__(self, raw: RawSnapshot, decoders: Decoders) -> None:
        self.raw = raw
        self.decoders = decoders
        self._digests: dict[type, bytes] = {}

    @property
    def run(self) -> RunNeeds:
        run = self.get(RunNeeds)
        return RunNeeds() if isinstance(run, Missing) else run

    def get(self, kind: type[F]) -> F | Missing:
        key = kind.key()
        data = self.raw.facts.get(key)
        if data is not None:
            return self.decoders.decode(kind, data, None if kind in UNLIKE else self.digest(kind))
        missing = self.raw.missing.get(key)
        return missing or Missing(why=Why.NOT_ASKED, detail=f"`{key}` was not collected")

    def digest(self, kind: type[Fact]) -> bytes:
        """A hash of a fact's JSON, or of the reason why it is missing."""
        made = self._digests.get(kind)
        if made is None:
            key = kind.key()
            data: Any = self.raw.facts.get(key)
            if data is None:
                data = repr(self.raw.missing.get(key)).encode()
            made = self._digests[kind] = hashlib.blake2b(data, digest_size=16).digest()
        return made


class Decoders:
    """Typed decoders, and a cache of decoded facts."""

    def __init__(self) -> None:
        self._decoders: dict[type, msgspec.json.Decoder[Any]] = {}
        self._made: dict[tuple[type, bytes], Any] = {}

    def decode(self, kind: type[F], data: msgspec.Raw, digest: bytes | None) -> F | Missing:
        """The fact that the JSON encodes; without a digest it is not cached."""
        if digest is not None and (kind, digest) in self._made:
            found: F | Missing = self._made[kind, digest]
            return found
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = self._decoders[kind] = msgspec.json.Decoder(kind, strict=False)
        value: F | Missing
        try:
            value = decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            detail = f"`{kind.key()}` of the snapshot is broken: {error}"
            value = Missing(why=Why.BROKEN, detail=detail)
        if digest is not None:
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[kind, digest] = value
        return value


class Judge:
    """Judges snapshots of many nodes; judgments of equal facts are reused.

    Args:
        registry: packs.
        units: conditions to judge.
        policy: scopes and thresholds.
    """

    def __init__(self, registry: Registry, units: Iterable[Unit], policy: Policy) -> None:
        self.registry = registry
        self.caches = [
            VerdictCache(unit, policy, registry)
            for unit in units
            if unit.check is not None
            and (not policy.scopes or unit.condition.scope in policy.scopes)
        ]
        self.decoders = Decoders()

    def _findings(self, values: Values) -> list[Finding]:
        """The findings; a report that is slow to judge delays other nodes for a limited time."""
        deadline = time.monotonic() + JUDGE_SECONDS
        found: list[Finding] = []
        for cache in self.caches:
            if time.monotonic() > deadline:
                found.append(not_judged(cache.unit))
            else:
                found += cache.findings(values)
        return found

    def report(self, name: str, data: bytes, origin: str | None = None) -> NodeReport:
        """Judges one snapshot.

        Args:
            name: of the node.
            data: the snapshot.
            origin: where it comes from, for errors; None = the node's name.

        Raises:
            UsageError: it is not a snapshot, or has a newer version.
        """
        try:
            raw = _DECODER.decode(data)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise UsageError(
                f"`{origin or name}` is not a report ({error}); expected what `--save` or "
                "`dsdoctor snapshot -o` writes, or what a collector prints"
            ) from None
        if raw.schema != SCHEMA or not 0 < raw.version <= VERSION:
            raise UsageError(
                f"`{origin or name}` is of schema `{raw.schema[:80]}`, version {raw.version}; "
                f"expected `{SCHEMA}`, up to version {VERSION}"
            )
        source = _Source(raw, self.decoders)
        values = Values(source)
        bad = self._findings(values)
        bad = without_wider(bad, self.registry)
        facts = values.facts
        gpus, node = facts.get(Gpus), facts.get(FleetNode)
        findings = [
            NodeFinding(
                status=finding.status.value,
                id=finding.id,
                condition=finding.condition,
                message=finding.message,
                hint=finding.hint,
            )
            for finding in bad
        ]
        if self.caches and all(isinstance(facts.get(kind), Missing) for kind in VITAL):
            findings.append(_NOTHING)
        return NodeReport(
            name=name,
            verdict=_verdict({finding.status for finding in findings}),
            traits=traits_of(facts),
            findings=tuple(findings),
            gpus=(gpus.count if gpus.count is not None else len(gpus.gpus))
            if isinstance(gpus, Gpus)
            else None,
            node=node if isinstance(node, FleetNode) else FleetNode(),
        )


#: Like the report of a node that could read nothing, which is also `unknown`.
_NOTHING = NodeFinding(
    status="unknown",
    id="",
    condition="fleet-report-empty",
    message="the report contains neither the driver nor torch nor DeepSpeed",
    hint="collect again with `dsdoctor fleet check` or `fleet bundle`",
)


def _verdict(statuses: set[str]) -> str:
    if "fail" in statuses:
        return "faulty"
    return "unknown" if statuses & {"unknown", "crash"} else "healthy"


def silent(name: str, error: str) -> NodeReport:
    """A node that did not answer, or whose answer is not a snapshot."""
    return NodeReport(name=name, error=error)
