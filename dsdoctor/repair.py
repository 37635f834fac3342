"""Runs a fix from end to end: plan, ask, apply, prove, undo.

The caller provides the `Dialogue` that asks and reports; this module does not depend on a command
line or on the format in which a plan is shown.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec
import platformdirs

from dsdoctor import process, settings
from dsdoctor.collect import Progress
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_machine, read_more
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes import planner
from dsdoctor.fixes.apply import Applier, StepError, done_already
from dsdoctor.fixes.undo import UndoError, undo
from dsdoctor.judge import Policy, judge
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.fix_plan import Findings, FixRequest, Plan, PlanDocument, Reach
from dsdoctor.model.masking import mask_tree
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.registry import Registry

#: Limit for reading the facts that only fixes need, in seconds (a resolver queries an index).
FACTS_SECONDS = 180.0


class Ending(enum.Enum):
    """How a fix, or an undo, ended; a later member outweighs an earlier one."""

    DONE = "done"
    SHOWN = "shown"
    NOT_REPAIRED = "not-repaired"


class Dialogue(Protocol):
    """How a fix reports and asks."""

    def say(self, text: str) -> None:
        """Reports progress, one line at a time."""
        ...

    def show(self, plan: Plan, heading: str = "") -> None:
        """Shows a plan before asking about it."""
        ...

    def show_rest(self, document: PlanDocument) -> None:
        """Reports which requested fixes have no plan, and why."""
        ...

    def can_ask(self) -> bool:
        """Whether a person can answer."""
        ...

    def confirm(self, question: str) -> bool:
        """Asks; no is the default."""
        ...

    def waiting(self) -> AbstractContextManager[Progress | None]:
        """Shows progress while the machine is read."""
        ...


def request_of(asked: tuple[str, ...], reach: Reach | None, *, in_place: bool) -> FixRequest:
    """What a fix may do, for this interpreter and this account.

    Args:
        asked: names of fixes; empty = those of the findings.
        reach: how far a fix may go; None = as far as nobody is surprised: a fix that was asked for
            by its name may change the files of this user that it is for.
        in_place: install into the environment itself.
    """
    if reach is None:
        reach = Reach.HOME if asked else Reach.ENV
    return FixRequest(
        reach=reach,
        in_place=in_place,
        asked=asked,
        python=sys.executable,
        # where a fix of reach `home` installs (`XDG_DATA_HOME`)
        state=str(Path(platformdirs.user_data_dir("dsdoctor"))),
        arch_list=os.environ.get("TORCH_CUDA_ARCH_LIST", ""),
    )


class Session:
    """One request to fix an environment.

    Attributes:
        dialogue: how it reports and asks.
        registry: packs.
        request: which fixes, and how far they may go.
        needs: what the job needs.
        python: the interpreter; as the user passed it until the machine has been read.
        timeout: seconds for reading the machine; None = 180.
        checks_dir: folders of further checks, for the re-check.
        prefix: folder of the environment, unless it is the system's own.
        bad: conditions that warned or failed when the plan was made.
    """

    def __init__(
        self,
        dialogue: Dialogue,
        *,
        registry: Registry,
        request: FixRequest,
        needs: RunNeeds,
        python: str | None,
        timeout: float | None,
        checks_dir: tuple[str, ...],
    ) -> None:
        self.dialogue = dialogue
        self.registry = registry
        self.request = request
        self.needs = needs
        self.timeout = timeout
        self.checks_dir = checks_dir
        self.python = python
        self.prefix: Path | None = None
        self.bad: frozenset[str] = frozenset()

    def check_options(self, changed: Mapping[str, str] | None = None) -> list[str]:
        """Options for the re-check: those of this request, except what a plan changes."""
        changed = changed or {}
        found: list[str] = []
        pairs = [
            ("--python", self.python),
            ("--gpus", ",".join(self.needs.gpus) or None),
            ("--expect-gpus", self.needs.expect_gpus),
            ("--config", changed.get("config", self.needs.config_path)),
            ("--hostfile", changed.get("hostfile", self.needs.hostfile)),
        ]
        for option, value in pairs:
            if value is not None:
                found += [option, str(value)]
        for folder in self.checks_dir:
            found += ["--checks-dir", folder]
        found += ["--quick"] if self.needs.quick else []
        return [*found, *(["--", *self.needs.command] if self.needs.command else [])]

    def _facts(self) -> tuple[Snapshot, Findings]:
        """The snapshot and the findings that `check` would produce."""
        units = list(self.registry)
        if self.request.asked:
            wanted = set(self.request.asked)
            units = [unit for unit in units if wanted & set(unit.condition.fixes)]
        with self.dialogue.waiting() as progress:
            snapshot = read_machine(
                Request(
                    run=self.needs, python=self.python, timeout=self.timeout, progress=progress
                ),
                self.registry,
                units,
            )
        choice = snapshot.get(PatientChoice)
        if isinstance(choice, PatientChoice):
            self.python = choice.executable
        found = snapshot.get(Patient)
        if isinstance(found, Patient) and found.kind != "system":
            self.prefix = Path(found.prefix)
        configured, warnings = settings.without_leftovers(settings.load(), self.registry)
        for warning in warnings:
            self.dialogue.say(f"dsdoctor: {warning}")
        result = judge(snapshot, units, self.registry, Policy(limits=configured.limits))
        self.bad = frozenset(f.condition for f in result.findings if f.status in planner.BAD)
        return snapshot, Findings(findings=tuple(result.findings))

    def plan(self) -> PlanDocument:
        """Facts, findings, plans; plans that would change nothing are left out.

        Raises:
            UsageError: no interpreter was found, or a fix does not exist.
        """
        snapshot, findings = self._facts()
        names = self.request.asked or tuple(
            name
            for first, others in planner.named_by(findings.findings, self.registry).items()
            for name in (first, *others)
        )
        self._more_facts(snapshot, planner.facts_of(self.registry.fix(n) for n in names))
        document = planner.plan(snapshot, self.registry, findings, self.request)
        for plan in [plan for plan in document.plans if done_already(plan)]:
            document.plans.remove(plan)
            document.nothing_to_do.append(plan.name)
            if plan.activate:
                self.dialogue.say(
                    f"`{plan.name}` is already applied; to use it, run: {plan.activate}"
                )
        return document

    def _more_facts(self, snapshot: Snapshot, wanted: set[type[Fact]]) -> None:
        """Adds the facts that only fixes need."""
        from dsdoctor.fixes.probes import probes  # noqa: PLC0415  # no other command needs them

        request = Request(
            run=self.needs,
            python=self.python,
            timeout=self.timeout or FACTS_SECONDS,
            given=(self.request,),
            probes=probes(),
        )
        read_more(snapshot, wanted, request, self.registry)

    def apply(self, document: PlanDocument, *, ask: bool) -> Ending:
        """Shows, asks about, applies and proves each plan; the document records the outcomes.

        Raises:
            UsageError: another fix is running, or the last one was interrupted.
        """
        endings = [Ending.NOT_REPAIRED] if document.impossible else []
        with journals.only_one(also=self.prefix):
            left = journals.unfinished()
            if left is not None:
                raise UsageError(
                    f"the last fix was interrupted (`{left.path.name}`); "
                    "run `dsdoctor fix --undo` first"
                )
            for plan in document.plans:
                if plan.alternative:
                    self.dialogue.say(f"alternative: `dsdoctor fix {plan.name}` ({plan.title})")
                    continue
                self.dialogue.show(plan)
                endings.append(self.one(plan, document, ask=ask))
        self.dialogue.show_rest(document)
        return max(endings, default=Ending.DONE, key=list(Ending).index)

    def one(self, plan: Plan, document: PlanDocument, *, ask: bool) -> Ending:
        """Asks for one plan that was shown, applies and proves it."""
        if plan.only_shown:
            document.outcomes[plan.name] = "told"
            self.dialogue.say("do this yourself, then run `dsdoctor check` again")
            return Ending.SHOWN
        if ask and not self.dialogue.confirm("apply this plan?"):
            document.outcomes[plan.name] = "shown"
            self.dialogue.say("")
            return Ending.SHOWN
        book = journals.Journal.begin(
            plan.name,
            {"plan": mask_tree(msgspec.to_builtins(plan)), "python": self.python},
            prefix=self.prefix,
        )
        applier = Applier(plan, book, os.environ, self.dialogue.say)
        try:
            applier.carry_out()
            broken = applier.prove()
            wrong = [broken] if broken else self._recheck(applier)
        except StepError as error:
            document.error = f"{plan.name}: {error}"
            document.outcomes[plan.name] = "failed"
            _roll_back(self.dialogue, book, str(error))
            return Ending.NOT_REPAIRED
        except KeyboardInterrupt:
            process.kill_all()
            _roll_back(self.dialogue, book, "interrupted")
            raise
        book.end("applied")
        if wrong:
            document.error = f"{plan.name}: {'; '.join(wrong)}"
            document.outcomes[plan.name] = "not-proven"
            if broken and plan.otherwise:
                _roll_back(self.dialogue, book, broken)
                return self._try_alternative(plan, document, ask=ask)
            self.dialogue.say(
                f"dsdoctor: `{plan.name}` is applied, but not proven: {'; '.join(wrong)}"
            )
            self.dialogue.say(f"log: {book.log}; `dsdoctor fix --undo` restores everything")
            return Ending.NOT_REPAIRED
        document.outcomes[plan.name] = "applied"
        self.dialogue.say(f"{plan.name}: applied and proven")
        self.dialogue.say(f"log: {book.log}")
        for option, value in plan.recheck.items():
            self.dialogue.say(f"start the job with `{value}` in place of the {option} it had")
        if plan.activate:
            self.dialogue.say(f"in the shell that starts the job: {plan.activate}")
        self.dialogue.say("")
        return Ending.DONE

    def _recheck(self, applier: Applier) -> list[str]:
        return applier.recheck(self.check_options(applier.plan.recheck), self.bad)

    def _try_alternative(self, plan: Plan, document: PlanDocument, *, ask: bool) -> Ending:
        """Plans a fix again, in the environment itself, after a separate folder did not suffice.

        That never happens without asking, or without `--yes` for the alternative.
        """
        again = Session(
            self.dialogue,
            registry=self.registry,
            request=msgspec.structs.replace(self.request, in_place=True, asked=(plan.name,)),
            needs=self.needs,
            python=self.python,
            timeout=self.timeout,
            checks_dir=self.checks_dir,
        )
        found = again.plan()
        document.impossible += found.impossible
        for other in found.plans:
            document.plans.append(msgspec.structs.replace(other, alternative=True))
            self.dialogue.show(other, f"alternative, with `{plan.otherwise}`:")
            if not ask:
                self.dialogue.say(
                    f"dsdoctor: the alternative was not applied; `dsdoctor fix {plan.name} "
                    f"{plan.otherwise} --yes` applies it"
                )
            elif again.one(other, document, ask=True) is Ending.DONE:
                document.error = ""
                return Ending.DONE
        return Ending.NOT_REPAIRED


def _roll_back(dialogue: Dialogue, book: journals.Journal, why: str) -> None:
    """Restores what the steps before the failure have changed."""
    dialogue.say(f"dsdoctor: not fixed: {why}")
    try:
        undo(book, os.environ, dialogue.say)
    except UndoError as error:
        dialogue.say(
            f"dsdoctor: not everything could be restored: {error}; run `dsdoctor fix --undo` again"
        )
    else:
        dialogue.say(f"everything was restored; log: {book.log}")


def shown(document: PlanDocument) -> Ending:
    """Records in the document that its plans were shown and not applied; returns the ending."""
    plans = [plan for plan in document.plans if not plan.alternative]
    document.outcomes.update({plan.name: "shown" for plan in plans})
    if plans:
        return Ending.SHOWN
    return Ending.NOT_REPAIRED if document.impossible else Ending.DONE


def undo_last(dialogue: Dialogue, *, ask: bool) -> tuple[Ending, PlanDocument | None]:
    """Reverts the last fix.

    Returns:
        How it ended, and what was done; None if the fix was not undone.

    Raises:
        UsageError: another fix is running.
    """
    with journals.only_one():
        found = journals.open_journals()
        if not found:
            dialogue.say("nothing to undo")
            return Ending.DONE, PlanDocument()
        book = found[0]
        try:
            book.verify()
        except journals.JournalError as error:
            dialogue.say(f"dsdoctor: nothing was undone: {error}; the journal is `{book.path}`")
            return Ending.NOT_REPAIRED, None
        head = next(iter(book.records()), {})
        name = str(head.get("fix", "?"))
        dialogue.say(f"undoing `{name}` of {head.get('begun', '?')}")
        if ask and not dialogue.can_ask():
            dialogue.say("dsdoctor: nothing was undone; `--yes` undoes it without a terminal")
            return Ending.SHOWN, None
        if ask and not dialogue.confirm("continue?"):
            return Ending.SHOWN, None
        try:
            undo(book, os.environ, dialogue.say)
        except UndoError as error:
            dialogue.say(f"dsdoctor: not everything could be restored: {error}; the journal stays")
            return Ending.NOT_REPAIRED, None
        dialogue.say(f"`{name}` was undone")
        return Ending.DONE, PlanDocument(outcomes={name: "undone"})
