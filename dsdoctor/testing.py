"""Helpers for the tests of a pack: facts in, findings out, without touching a machine.

A check is judged over facts that the test constructs::

    from dsdoctor.testing import assert_fail, judge, missing

    def test_an_old_driver_fails() -> None:
        judged = judge(driver_is_new, nvml=Nvml(driver_version="470.57"), gpus=missing())
        assert_fail(judged, "driver 470.57")

The key of a fact is its class name in snake case (`TorchBuild` is `torch_build`; `dsdoctor facts`
lists them all). A probe is tested on a `FakeHost`, made of dictionaries, or on a recording of a
real machine (`record`, then `replay`). `assert_signature` runs the examples of a signature, and
`assert_pack` loads a whole pack under the rules that dsdoctor applies to it.

Nothing here imports pytest: every helper raises `AssertionError`, or `TypeError` if the test
itself is wrong.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import files, packs
from dsdoctor import judge as judging
from dsdoctor.api import Check, Fact, Finding, Limits, Missing, Probe, Signature, Status, Why
from dsdoctor.fact_source import Facts
from dsdoctor.host.door import DiskUsage, Host, HostError, Stat
from dsdoctor.host.fake import FakeHost
from dsdoctor.host.local import LocalHost
from dsdoctor.host.recording import RecordingHost
from dsdoctor.host.replay import ReplayHost
from dsdoctor.logs.necessary import necessary
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.containment import PackCodeError
from dsdoctor.packs.parts import PackError
from dsdoctor.packs.registry import Need, Pack, Registry, Unit, gives, needs
from dsdoctor.process import Result

__all__ = [
    "DiskUsage",
    "FakeHost",
    "Judged",
    "ReplayHost",
    "Result",
    "Stat",
    "assert_fail",
    "assert_ok",
    "assert_pack",
    "assert_signature",
    "assert_skip",
    "assert_warn",
    "judge",
    "missing",
    "read",
    "record",
    "replay",
    "snapshot",
]


_PLACEHOLDER = re.compile(r"(?<![$\w{])\{[a-z_]+(?:\.[a-z_]+)*\}")


def missing(why: Why | str = Why.ABSENT, detail: str = "not there") -> Missing:
    """The reason why a fact could not be read, in place of that fact.

    Args:
        why: `absent`, `denied`, `not-asked`, `unsupported`, `timeout` or `broken`.
        detail: the reason, as a report would print it.
    """
    return Missing(why=Why(why), detail=detail)


def snapshot(**facts: Fact | Missing) -> Snapshot:
    """A snapshot of these facts, each passed under its key.

    Facts pass through JSON, as those of a real snapshot do.

    Raises:
        TypeError: no fact has that key, or the value is another fact.
    """
    made = Snapshot()
    kinds = _kinds()
    for key, value in facts.items():
        if key not in kinds:
            raise TypeError(f"no fact has the key `{key}`; `dsdoctor facts` lists them all")
        if isinstance(value, Missing):
            made.lack(kinds[key], value)
        elif isinstance(value, Fact) and value.key() == key:
            made.put(value)
        else:
            raise TypeError(f"`{key}` must be a fact `{kinds[key].__name__}`, not {value!r}")
    return made


def _kinds() -> dict[str, type[Fact]]:
    """Every fact class that has been imported, by its key."""
    found: dict[str, type[Fact]] = {}
    pending = [Fact]
    while pending:
        for kind in pending.pop().__subclasses__():
            found[kind.key()] = kind
            pending.append(kind)
    return found


@dataclasses.dataclass(frozen=True)
class Judged:
    """What one check found.

    Attributes:
        findings: in the order in which the check yields them; never empty, because a check that
            yields nothing is `ok`.
    """

    findings: list[Finding]

    @property
    def statuses(self) -> list[str]:
        """The status of each finding, in order."""
        return [finding.status.value for finding in self.findings]

    @property
    def status(self) -> str:
        """The worst status: `ok`, `skip`, `warn`, `unknown` or `fail`, from best to worst."""
        return self.worst.status.value

    @property
    def worst(self) -> Finding:
        """The first of the findings with the worst status."""
        order = list(Status)
        return max(self.findings, key=lambda finding: order.index(finding.status))

    @property
    def bad(self) -> list[Finding]:
        """The warnings and failures."""
        return [one for one in self.findings if one.status in (Status.WARN, Status.FAIL)]


def judge(
    check: Check,
    given: Snapshot | None = None,
    /,
    *,
    limits: Limits | Mapping[str, float] | None = None,
    **facts: Fact | Missing,
) -> Judged:
    """Judges one check over facts, as `dsdoctor check` would.

    A fact that the check takes as `Fact | Missing` and the test does not pass is `not-asked`.
    `run_needs` has a default. Every warning and failure has to follow the form of messages: one
    line without a full stop, an effect, a hint, and evidence for its numbers.

    Args:
        check: what `@check` returned.
        given: a snapshot; facts that it does not contain are `not-asked`.
        limits: thresholds in place of the defaults.
        facts: further facts, by key.

    Raises:
        TypeError: the check needs a fact, and the test passes neither it nor a snapshot; or the
            check does not take a fact that the test passes.
        AssertionError: a message does not follow the form.
        Exception: whatever the check itself raises.
    """
    wanted = {
        need.kind.key(): need for need in needs(check.function) if issubclass(need.kind, Fact)
    }
    for key in facts:
        if key not in wanted:
            expected = ", ".join(f"`{name}`" for name in wanted) or "none"
            raise TypeError(f"the check does not take `{key}`; it takes {expected}")
    facts_of = snapshot(**facts)
    if given is None:
        _require_facts(wanted, facts)
    else:
        rest = (given.facts.keys() | given.missing.keys()) - facts.keys()
        facts_of.facts |= {key: given.facts[key] for key in rest & given.facts.keys()}
        facts_of.missing |= {key: given.missing[key] for key in rest & given.missing.keys()}
    thresholds = msgspec.structs.asdict(limits) if isinstance(limits, Limits) else limits
    watched, raised = _watched(check)
    raised.clear()
    unit = Unit(check.condition, title="", page="", family="", pack="", check=watched)
    policy = judging.Policy(limits={check.condition.name: thresholds or {}})
    findings = judging.unit_findings(unit, Facts(facts_of), policy, Registry())
    if raised:
        raise raised[0]
    judged = Judged(findings)
    for finding in judged.bad:
        _assert_form(finding)
    return judged


def _require_facts(wanted: Mapping[str, Need], facts: Mapping[str, object]) -> None:
    for key, need in wanted.items():
        if key not in facts and not need.may_be_missing and need.kind is not RunNeeds:
            raise TypeError(f"the check needs `{key}`; give the fact, or `{key}=missing()`")


@functools.lru_cache(maxsize=256)
def _watched(check: Check) -> tuple[Check, list[Exception]]:
    """The check, and a list of the exceptions it raises, which the engine turns into findings."""
    raised: list[Exception] = []

    @functools.wraps(check.function)
    def function(**arguments: Any) -> Iterator[Finding]:
        try:
            yield from check.function(**arguments)
        except Exception as error:
            raised.append(error)
            raise

    return msgspec.structs.replace(check, function=function), raised


def _require(fact: object, otherwise: str) -> None:
    """An assertion that `python -O` does not remove."""
    if not fact:
        raise AssertionError(otherwise)


def _assert_form(finding: Finding) -> None:
    message = finding.message
    _require(message, "a warning or failure needs a message")
    _require("\n" not in message, f"the message has several lines: {message!r}")
    _require(not message.endswith("."), f"the message ends in a full stop: {message!r}")
    _require(finding.effect, f"the finding has no effect: {message!r}")
    _require(finding.hint, f"the finding has no hint: {message!r}")
    for text in (message, finding.effect, finding.hint):
        # an f-string without its f
        _require(not _PLACEHOLDER.search(text), f"a placeholder was not filled in: {text!r}")
    if re.search(r"\d", message):
        _require(finding.evidence, f"the number is in no evidence: {message!r}")


def assert_ok(judged: Judged) -> None:
    """Every finding is `ok`."""
    _assert_status(judged, "ok", ())


def assert_skip(judged: Judged, *texts: str) -> None:
    """The worst status is `skip`, and the reason contains the texts."""
    _assert_status(judged, "skip", texts)


def assert_warn(judged: Judged, *texts: str) -> Finding:
    """The worst status is `warn`, and the message contains the texts; returns that finding."""
    return _assert_status(judged, "warn", texts)


def assert_fail(judged: Judged, *texts: str) -> Finding:
    """The worst status is `fail`, and the message contains the texts; returns that finding."""
    return _assert_status(judged, "fail", texts)


def _assert_status(judged: Judged, status: str, texts: Iterable[str]) -> Finding:
    worst = judged.worst
    said = f"the check returned {worst.status.value}: {worst.message!r}"
    _require(worst.status.value == status, f"expected {status}, but {said}")
    for text in texts:
        _require(text in worst.message, f"expected {text!r} in the message, but {said}")
    return worst


def read(probe: Probe, host: Host, **facts: Fact | Missing) -> Any:
    """Runs one probe on a host; returns the fact or why it is missing, a tuple for several.

    Args:
        probe: what `@probe` returned.
        host: a `FakeHost`, or what `replay` returned.
        facts: what else the probe takes, by key.

    Raises:
        TypeError: the probe needs a fact that the test does not pass.
        Exception: whatever the probe raises, except HostError.
    """
    given = snapshot(**facts)
    arguments: dict[str, Any] = {}
    for need in needs(probe.function):
        if not issubclass(need.kind, Fact):
            arguments[need.name] = host
            continue
        value = given.run if need.kind is RunNeeds else given.get(need.kind)
        if isinstance(value, Missing) and not need.may_be_missing:
            raise TypeError(f"the probe needs the fact `{need.kind.key()}`")
        arguments[need.name] = value
    try:
        return probe.function(**arguments)
    except HostError as error:
        count = len(gives(probe.function))
        return error.missing if count == 1 else (error.missing,) * count


def record(
    path: str | Path, probe: Probe, host: Host | None = None, **facts: Fact | Missing
) -> Any:
    """Runs one probe on a real machine and writes what it read, as JSON; returns the fact.

    Look through the file before you commit it: it contains the environment variables of the
    machine and whatever the probe read.

    Args:
        path: file to write.
        probe: what `@probe` returned.
        host: the machine; None = this one.
        facts: what else the probe takes, by key.
    """
    recorder = RecordingHost(host or LocalHost())
    fact = read(probe, recorder, **facts)
    text = json.dumps(recorder.dump(), indent=1, sort_keys=True)
    files.write(path, text + "\n")
    return fact


def replay(recording: str | Path | Mapping[str, Any]) -> ReplayHost:
    """The machine of a recording: a file that `record` wrote, or its content.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(recording, Mapping):
        return ReplayHost(recording)
    return ReplayHost(json.loads(Path(recording).read_text(encoding="utf-8")))


def assert_pack(package: str, *, name: str) -> Pack:
    """A package loads as a pack, and clashes with nothing in dsdoctor itself.

    Args:
        package: the entry point's value.
        name: the entry point's name, which is the prefix of all names of the pack.

    Raises:
        AssertionError: a rule is broken; the text says which, and where.
        Exception: whatever a module raises when it is imported.
    """
    registry = packs.load(builtin_only=True)
    try:
        pack = packs.load_package(name, package, package)
    except (PackError, PackCodeError) as error:
        raise AssertionError(str(error)) from None
    registry.add(pack)
    _require(not registry.problems, "; ".join(one.message for one in registry.problems))
    return pack


def assert_signature(signature: Signature) -> None:
    """Every example matches and no near-miss does, as `dsdoctor diagnose` would match them.

    A near-miss has to contain one of the literals that are derived from the pattern, because only
    lines with such a literal are tried: any other line cannot fail. If the literal alone matches,
    there can be no near-miss.
    """
    literals = necessary(signature.pattern)
    _require(literals, f"no literal text can be derived from the pattern: {signature.pattern!r}")
    _require(signature.examples, "a signature needs an example")
    alone = all(_matches(signature, literal) for literal in literals)
    _require(signature.not_examples or alone, "a signature needs a near-miss")
    for example in signature.examples:
        _require(_matches(signature, example), f"the example does not match: {example!r}")
    for other in signature.not_examples:
        _require(not _matches(signature, other), f"the near-miss matches: {other!r}")
        reached = any(literal in other for literal in literals)
        wanted = " or ".join(map(repr, literals))
        _require(reached, f"the near-miss does not contain {wanted}, so it cannot fail: {other!r}")


def _matches(signature: Signature, text: str) -> bool:
    search: Callable[[str], Any] = re.compile(signature.pattern).search
    literals = necessary(signature.pattern)
    return any(
        any(literal in line for literal in literals) and search(line) for line in text.splitlines()
    )
