"""What `dsdoctor fix` does behind its command line: plan, show, ask, apply, undo."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import msgspec
import platformdirs

from dsdoctor import process
from dsdoctor.cli import common, loading
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_more
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes import planner
from dsdoctor.fixes.apply import Applier, StepError, done_already
from dsdoctor.fixes.undo import UndoError, undo
from dsdoctor.judge import judge
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.python import Patient, PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.fix_plan import Findings, FixRequest, Plan, PlanDocument
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.registry import Registry
from dsdoctor.report import fix_plan as report

SHOWN = 4
NOT_REPAIRED = 1
#: What reading the facts that only fixes need may take, in seconds (a resolver asks an index).
FACTS_SECONDS = 180.0


def data_folder() -> Path:
    """Where a fix of reach `home` installs (`XDG_DATA_HOME`)."""
    return Path(platformdirs.user_data_dir("dsdoctor"))


def interactive() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def say(text: str) -> None:
    """One line of progress, on stderr."""
    click.echo(text, err=True)


class Session:
    """One call of `dsdoctor fix`."""

    def __init__(
        self,
        *,
        registry: Registry,
        request: FixRequest,
        needs: RunNeeds,
        python: str | None,
        timeout: float | None,
        quiet: bool,
        checks_dir: tuple[str, ...],
    ) -> None:
        self.registry = registry
        self.request = request
        self.needs = needs
        self.timeout = timeout
        self.quiet = quiet
        self.checks_dir = checks_dir
        self.python = python
        self.prefix: Path | None = None
        self.bad: frozenset[str] = frozenset()

    def check_options(self, changed: Mapping[str, str] | None = None) -> list[str]:
        """Options for the re-check: the same machine, the same request but for what a plan says."""
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
        return [*found, *(["--quick"] if self.needs.quick else [])]

    def _facts(self) -> tuple[Snapshot, Findings]:
        """The snapshot that a check would take, and what it would say."""
        units = list(self.registry)
        if self.request.asked:
            wanted = set(self.request.asked)
            units = [unit for unit in units if wanted & set(unit.condition.fixes)]
        snapshot = common.live_snapshot(
            self.needs,
            self.python,
            self.registry,
            units,
            self.timeout,
            show_progress=not self.quiet,
        )
        choice = snapshot.get(PatientChoice)
        if isinstance(choice, PatientChoice):
            self.python = choice.executable
        found = snapshot.get(Patient)
        if isinstance(found, Patient) and found.kind != "system":
            self.prefix = Path(found.prefix)
        policy = common.policy(common.load_settings(self.registry), ())
        result = judge(snapshot, units, self.registry, policy)
        self.bad = frozenset(f.condition for f in result.findings if f.status in planner.BAD)
        return snapshot, Findings(findings=tuple(result.findings))

    def plan(self) -> PlanDocument:
        """Facts, findings, plans; plans that would change nothing are left out."""
        snapshot, findings = self._facts()
        names = self.request.asked or tuple(
            name
            for first, others in planner.named_by(findings.findings, self.registry).items()
            for name in (first, *others)
        )
        self._more_facts(snapshot, planner.facts_of(self.registry.cure(n) for n in names))
        document = planner.plan(snapshot, self.registry, findings, self.request)
        for plan in [plan for plan in document.plans if done_already(plan)]:
            document.plans.remove(plan)
            document.nothing_to_do.append(plan.name)
            if plan.activate:
                say(f"`{plan.name}` is done already; use it with: {plan.activate}")
        return document

    def _more_facts(self, snapshot: Snapshot, wanted: set[type[Fact]]) -> None:
        """Adds the facts that only fixes ask for."""
        from dsdoctor.fixes.probes import probes  # noqa: PLC0415  # no other command needs them

        request = Request(
            run=self.needs,
            python=self.python,
            timeout=self.timeout or FACTS_SECONDS,
            given=(self.request,),
            probes=probes(),
        )
        read_more(snapshot, wanted, request, self.registry)

    # ---- applying --------------------------------------------------------------------------

    def apply(self, document: PlanDocument, form: str, *, ask: bool) -> int:
        """Shows each plan, asks, applies and proves it."""
        statuses: list[int] = [NOT_REPAIRED] if document.impossible else []
        with journals.only_one(also=self.prefix):
            left = journals.unfinished()
            if left is not None:
                raise UsageError(
                    f"the last fix was cut off (`{left.path.name}`); "
                    "run `dsdoctor fix --undo` first"
                )
            for plan in document.plans:
                if plan.alternative:
                    say(f"instead of it: `dsdoctor fix {plan.name}` ({plan.title})")
                    continue
                if form == "text":
                    click.echo(report.render(plan))
                statuses.append(self.one(plan, document, form, ask=ask))
        _say_rest(document)
        if form == "json":
            loading.write(report.as_json(document), None)
        return max(statuses, default=0, key=(0, SHOWN, NOT_REPAIRED).index)

    def one(self, plan: Plan, document: PlanDocument, form: str, *, ask: bool) -> int:
        """Asks for one plan that was shown, applies and proves it."""
        if plan.only_told:
            document.outcomes[plan.name] = "told"
            say("this is yours to do; then run `dsdoctor check` again")
            return SHOWN
        if ask and not click.confirm("apply this plan?", default=False, err=True):
            document.outcomes[plan.name] = "shown"
            say("")
            return SHOWN
        book = journals.Journal.begin(
            plan.name,
            {"plan": msgspec.to_builtins(plan), "python": self.python},
            prefix=self.prefix,
        )
        applier = Applier(plan, book, os.environ, say)
        try:
            applier.carry_out()
            broken = applier.prove()
            wrong = [broken] if broken else self._recheck(applier)
        except StepError as error:
            document.error = f"{plan.name}: {error}"
            document.outcomes[plan.name] = "failed"
            _roll_back(book, str(error))
            return NOT_REPAIRED
        except KeyboardInterrupt:
            process.kill_all()
            _roll_back(book, "interrupted")
            raise
        book.end("applied")
        if wrong:
            document.error = f"{plan.name}: {'; '.join(wrong)}"
            document.outcomes[plan.name] = "not-proven"
            if broken and plan.otherwise:
                _roll_back(book, broken)
                return self._instead(plan, document, form, ask=ask)
            say(f"dsdoctor: `{plan.name}` is applied, but not proven: {'; '.join(wrong)}")
            say(f"log: {book.log}; `dsdoctor fix --undo` puts everything back")
            return NOT_REPAIRED
        document.outcomes[plan.name] = "applied"
        say(f"{plan.name}: applied and proven")
        say(f"log: {book.log}")
        if plan.activate:
            say(f"in the shell that starts the job: {plan.activate}")
        say("")
        return 0

    def _recheck(self, applier: Applier) -> list[str]:
        return applier.recheck(self.check_options(applier.plan.recheck), self.bad)

    def _instead(self, plan: Plan, document: PlanDocument, form: str, *, ask: bool) -> int:
        """What a folder of its own could not do: planned anew with its option, never silently."""
        again = Session(
            registry=self.registry,
            request=msgspec.structs.replace(self.request, in_place=True, asked=(plan.name,)),
            needs=self.needs,
            python=self.python,
            timeout=self.timeout,
            quiet=self.quiet,
            checks_dir=self.checks_dir,
        )
        found = again.plan()
        document.impossible += found.impossible
        for other in found.plans:
            document.plans.append(msgspec.structs.replace(other, alternative=True))
            if form == "text":
                click.echo(f"or, instead, with `{plan.otherwise}`:\n\n{report.render(other)}")
            if not ask:
                say(
                    f"dsdoctor: that was not asked for; `dsdoctor fix {plan.name} "
                    f"{plan.otherwise} --yes` applies it"
                )
            elif again.one(other, document, form, ask=True) == 0:
                document.error = ""
                return 0
        return NOT_REPAIRED


def _roll_back(book: journals.Journal, why: str) -> None:
    """Puts back what the steps before the failure have changed."""
    say(f"dsdoctor: not repaired: {why}")
    try:
        undo(book, os.environ, say)
    except UndoError as error:
        say(f"dsdoctor: not everything could be put back: {error}; run `dsdoctor fix --undo` again")
    else:
        say(f"everything was put back; log: {book.log}")


def _say_rest(document: PlanDocument) -> None:
    for lacking in document.impossible:
        say(f"dsdoctor: `{lacking.name}` is not possible here: {lacking.why}")
    for name in document.nothing_to_do:
        say(f"`{name}`: nothing to do")
    if not (document.plans or document.impossible or document.nothing_to_do):
        say("nothing to do")


def show(document: PlanDocument, form: str, *, as_shell: bool = False) -> int:
    """Prints the plans; the status is that of a plan which was not applied."""
    plans = [plan for plan in document.plans if not plan.alternative]
    if form == "json":
        document.outcomes.update({plan.name: "shown" for plan in plans})
        loading.write(report.as_json(document), None)
    elif as_shell:
        loading.write(report.shell(document.plans), None)
    else:
        for plan in document.plans:
            if plan.alternative:
                click.echo("or, instead:\n")
            click.echo(report.render(plan))
    _say_rest(document)
    if as_shell:
        return 0
    return NOT_REPAIRED if document.impossible and not plans else SHOWN if plans else 0


def undo_last(form: str, *, yes: bool) -> int:
    """Reverts the last fix."""
    confirm: Callable[[str], bool] = lambda text: click.confirm(text, default=False, err=True)  # noqa: E731
    with journals.only_one():
        found = journals.open_journals()
        if not found:
            say("nothing to undo")
            if form == "json":
                loading.write(report.as_json(PlanDocument()), None)
            return 0
        book = found[0]
        try:
            book.verify()
        except journals.JournalError as error:
            say(f"dsdoctor: nothing was undone: {error}; the journal is `{book.path}`")
            return NOT_REPAIRED
        head = next(iter(book.records()), {})
        name = head.get("fix", "?")
        say(f"undoing `{name}` of {head.get('begun', '?')}")
        if not yes and not interactive():
            say("dsdoctor: nothing was undone; `--yes` undoes it without a terminal")
            return SHOWN
        if not yes and not confirm("go on?"):
            return SHOWN
        try:
            undo(book, os.environ, say)
        except UndoError as error:
            say(f"dsdoctor: not everything could be put back: {error}; the journal stays")
            return NOT_REPAIRED
        if form == "json":
            document = PlanDocument(outcomes={str(name): "undone"})
            loading.write(report.as_json(document), None)
        say(f"`{name}` is undone")
        return 0
