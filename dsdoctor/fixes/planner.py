"""Which fixes are needed, and their plans. Pure: the same facts give the same plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.fix_plan import (
    Env,
    Findings,
    FixRequest,
    Impossible,
    Plan,
    PlanDocument,
    Run,
    Step,
    reach_of,
)
from dsdoctor.model.plain import printable
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs import containment
from dsdoctor.packs.registry import FixUnit, Registry, needs

BAD = (Status.WARN, Status.FAIL)


def named_by(findings: Iterable[Finding], registry: Registry) -> dict[str, tuple[str, ...]]:
    """Fixes that findings list: each with the alternatives, better ones first."""
    wanted: dict[str, tuple[str, ...]] = {}
    for finding in findings:
        known = [name for name in finding.fixes if name in registry.fixes]
        if finding.status in BAD and known:
            wanted.setdefault(known[0], ())
            wanted[known[0]] = tuple(dict.fromkeys((*wanted[known[0]], *known[1:])))
    return wanted


def facts_of(fixes: Iterable[FixUnit]) -> set[type[Fact]]:
    """Facts that some fixes need."""
    return {
        need.kind
        for unit in fixes
        for need in needs(unit.fix.function)
        if issubclass(need.kind, Fact)
    }


def plan_one(
    unit: FixUnit, snapshot: Snapshot, findings: Findings, request: FixRequest
) -> Plan | Impossible | None:
    """The plan of a fix for these facts, or why there is none; None = nothing to do."""
    name = unit.fix.name
    arguments: dict[str, Any] = {}
    for need in needs(unit.fix.function):
        value: Fact | Missing
        if issubclass(need.kind, FixRequest):
            value = request
        elif issubclass(need.kind, Findings):
            value = findings
        elif issubclass(need.kind, Fact):
            value = snapshot.get(need.kind)
        else:
            return Impossible(name=name, why=f"its parameter `{need.name}` is not a fact")
        if isinstance(value, Missing) and not need.may_be_missing:
            return Impossible(name=name, why=value.detail)
        arguments[need.name] = value
    try:
        with containment.contained(containment.pack_of(unit.fix.function)):
            made = unit.fix.function(**arguments)
        if made is None:
            return None
        wrong = containment.plan_problem(made)
    except Exception as error:  # noqa: BLE001  # a fix of a pack may raise anything
        return Impossible(name=name, why=f"it crashed: {containment.said(error)}")
    if wrong:
        return Impossible(name=name, why=f"it returned no plan: {wrong}")
    if isinstance(made, Impossible):
        return msgspec.structs.replace(made, name=name)
    if steering := _steering_word(made):
        return Impossible(
            name=name,
            why=f"`{printable(steering)}` has control characters or is not UTF-8, so no command "
            "that can be read and pasted is made of it; rename it",
        )
    # a step that reaches farther overrides the declared reach of the fix
    reach = max(made.reach, reach_of(made.steps), key=lambda reach: reach.order)
    # a step that is only shown changes nothing, however far it would reach
    if not made.only_shown and not request.allows(reach):
        return Impossible(
            name=name,
            why=f"it needs `--reach {reach.value}` ({made.title})",
        )
    return msgspec.structs.replace(made, reach=reach)


def _words(step: Step) -> Iterator[str]:
    """The words of a step that reach a shell or a terminal unchanged."""
    if isinstance(step, Run):
        yield from step.argv
        yield step.creates
    if isinstance(step, (Run, Env)):
        yield from (word for pair in step.env.items() for word in pair)
    for name in ("write", "link", "target", "source", "remove", "fetch", "sha256", "into"):
        yield getattr(step, name, "")


def _steering_word(made: Plan) -> str:
    """A word of a plan with control characters, including newlines; "" if there is none."""
    words = [word for step in made.steps for word in _words(step)]
    words += [word for proof in made.proof for word in proof.argv]
    return next((word for word in (*words, *made.creates) if not word.isprintable()), "")


def plan(
    snapshot: Snapshot, registry: Registry, findings: Findings, request: FixRequest
) -> PlanDocument:
    """Plans of the requested fixes, or else of those that the findings list.

    Raises:
        UsageError: a fix does not exist.
    """
    document = PlanDocument()
    wanted = (
        dict.fromkeys(request.asked, ()) if request.asked else named_by(findings.findings, registry)
    )
    done: set[str] = set()
    for first, others in wanted.items():
        main: Plan | Impossible | None = None
        for name in (first, *others):
            if name in done:
                continue
            made = plan_one(registry.fix(name), snapshot, findings, request)
            done.add(name)
            if made is None:
                if name == first:
                    document.nothing_to_do.append(name)
            elif isinstance(made, Impossible):
                document.impossible.append(made)
            elif isinstance(main, Plan):
                document.plans.append(msgspec.structs.replace(made, alternative=True))
            else:
                main = made
                document.plans.append(made)
    return document
