"""`dsdoctor fix`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from dsdoctor.cli import loading, options
from dsdoctor.errors import UsageError
from dsdoctor.model.fix_plan import Plan, PlanDocument, Reach
from dsdoctor.model.plain import printable
from dsdoctor.packs.registry import Registry

if TYPE_CHECKING:
    from dsdoctor.collect import Progress
    from dsdoctor.repair import Ending


#: Where the command line of the job is kept while click reads the other words.
JOB = "dsdoctor.cli.fix.job"


class Terminal:
    """Reports on stderr, shows plans on stdout, and asks on the terminal (`repair.Dialogue`).

    Attributes:
        form: `text`, or `json`: then the document alone goes to stdout, at the end.
    """

    def __init__(self, form: str) -> None:
        self.form = form

    def say(self, text: str) -> None:
        """Prints lines of progress on stderr, masked: file and package names come from others."""
        from dsdoctor.model.masking import mask  # noqa: PLC0415  # `--list` needs none

        lines = mask(text).split("\n")
        click.echo("\n".join(printable(line.replace("\t", " ")) for line in lines), err=True)

    def show(self, plan: Plan, heading: str = "") -> None:
        """Prints a plan as text; JSON contains it at the end."""
        if self.form == "text":
            from dsdoctor.report import fix_plan as report  # noqa: PLC0415  # `--list` needs none

            if heading:
                click.echo(f"{heading}\n")
            click.echo(report.render(plan))

    def show_rest(self, document: PlanDocument) -> None:
        """Prints the fixes without a plan, and why."""
        for lacking in document.impossible:
            self.say(f"dsdoctor: fix `{lacking.name}` is not possible here: {lacking.why}")
        for name in document.nothing_to_do:
            self.say(f"`{name}`: nothing to do")
        if not (document.plans or document.impossible or document.nothing_to_do):
            self.say("nothing to do: no finding has a fix")

    def can_ask(self) -> bool:
        """Whether a user can read the question and type an answer."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def confirm(self, question: str) -> bool:
        """Asks on stderr; no is the default."""
        return click.confirm(question, default=False, err=True)

    @contextmanager
    def waiting(self) -> Iterator[Progress | None]:
        """The status line of a terminal; None with JSON."""
        from dsdoctor.cli.progress import Progress as StatusLine  # noqa: PLC0415  # `--list` needs none

        with StatusLine(enabled=self.form == "text" and sys.stderr.isatty()) as line:
            yield line.update


class _WithJob(click.Command):
    """A command whose names end at `--`: what follows is the command line of the job."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[JOB] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD ARGS…]"]


@click.command("fix", cls=_WithJob)
@click.argument(
    "names",
    nargs=-1,
    metavar="[NAME]...",
    shell_complete=lambda _context, _option, begun: sorted(
        name for name in loading.load_registry().fixes if name.startswith(begun)
    ),
)
@click.option(
    "--install-cuda-toolkit", is_flag=True, help="Same as the name `install-cuda-toolkit`."
)
@click.option(
    "--dry-run", is_flag=True, help="Print the plan as a shell script and change nothing."
)
@click.option("--yes", "-y", is_flag=True, help="Apply without asking.")
@click.option("--undo", is_flag=True, help="Revert the last fix.")
@click.option("--list", "list_all", is_flag=True, help="List the fixes.")
@click.option(
    "--reach",
    type=click.Choice([reach.value for reach in Reach]),
    help="What a fix may change.",
    show_default="env; home for a fix that you name",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Install into the environment itself (conda, or pip with CUDA 13) instead of next to it.",
)
@options.text_or_json
@options.environment_options
def command(
    *,
    names: tuple[str, ...],
    install_cuda_toolkit: bool,
    dry_run: bool,
    yes: bool,
    undo: bool,
    list_all: bool,
    reach: str | None,
    in_place: bool,
    form: str,
    python: str | None,
    gpus: str | None,
    expect_gpus: int | None,
    config: str | None,
    hostfile: str | None,
    quick: bool,
    deep: bool,
    timeout: float | None,
    checks_dir: tuple[str, ...],
) -> int:
    """Fix what the checks found: show the plan, ask, apply, verify.

    Without NAME, plans every fix that the current findings suggest. NAME is a fix, or a condition
    that has one. With `-- CMD ARGS…`, fixes what `check -- CMD ARGS…` finds.

    When root runs this command, it switches to the account that owns the environment, or to
    `--as-user ACCOUNT`; with `--reach system`, it stays root.

    Exit status: 0 nothing to do, or applied and verified; 1 not fixed; 4 plan shown, not applied
    (0 with `--dry-run`).

    \b
    Examples:
      dsdoctor fix
      dsdoctor fix --install-cuda-toolkit --dry-run
      dsdoctor fix remove-stale-lock --yes
      dsdoctor fix repair-ds-config -- deepspeed train.py --deepspeed ds.json
      dsdoctor fix --undo
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    asked = tuple(dict.fromkeys((*names, *(["install-cuda-toolkit"] * install_cuda_toolkit))))
    if list_all and not undo:
        if asked or form == "json":
            raise UsageError("`--list` lists all fixes as text; it takes no name and no `--format`")
        loading.write(listing(loading.load_registry(checks_dir)), None)
        return 0
    from dsdoctor import interpreter, repair  # noqa: PLC0415  # `--list` needs neither
    from dsdoctor.host import LocalHost, account  # noqa: PLC0415
    from dsdoctor.job.request import run_needs  # noqa: PLC0415

    if reach != Reach.SYSTEM.value:  # files, journal and programs as the environment's owner
        account.become_owner(interpreter.choose(LocalHost(), python).executable)
    dialogue = Terminal(form)
    if undo:
        if asked or dry_run or list_all:
            raise UsageError(
                "`--undo` reverts the last fix; it takes no name, `--dry-run` or `--list`"
            )
        ending, undone = repair.undo_last(dialogue, ask=not yes)
        if form == "json" and undone is not None:
            write_json(undone)
        return status_of(ending)
    registry = loading.load_registry(checks_dir)
    asked = tuple(dict.fromkeys(registry.fix_named(name) for name in asked))
    if dry_run and yes:
        raise UsageError("`--dry-run` and `--yes` are mutually exclusive; pass one of them")
    needs = run_needs(
        gpus=loading.items(gpus),
        expect_gpus=expect_gpus,
        config=config,
        hostfile=hostfile,
        quick=quick,
        deep=deep,
        command=click.get_current_context().meta.get(JOB, ()),
    )
    session = repair.Session(
        dialogue,
        registry=registry,
        request=repair.request_of(asked, Reach(reach) if reach else None, in_place=in_place),
        needs=needs,
        python=python,
        timeout=timeout,
        checks_dir=checks_dir,
    )
    document = session.plan()
    if not dry_run and (yes or (form == "text" and dialogue.can_ask())):
        ending = session.apply(document, ask=not yes)
        if form == "json":
            write_json(document)
        return status_of(ending)
    ending = repair.shown(document)
    show(document, dialogue, as_shell=dry_run)
    if dry_run:
        # showing the plan is what `--dry-run` requests
        return 0 if ending is repair.Ending.SHOWN else status_of(ending)
    if ending is repair.Ending.SHOWN:
        click.echo("dsdoctor: nothing was changed; `--yes` applies the plan", err=True)
    return status_of(ending)


def status_of(ending: Ending) -> int:
    """The exit status that the help states."""
    return {"done": 0, "not-repaired": 1, "shown": 4}[ending.value]


def write_json(document: PlanDocument) -> None:
    """The document on stdout."""
    from dsdoctor.report import fix_plan as report  # noqa: PLC0415  # `--list` needs none

    loading.write(report.as_json(document), None)


def show(document: PlanDocument, dialogue: Terminal, *, as_shell: bool) -> None:
    """Prints plans that are not applied: as JSON, as a shell script, or for a reader."""
    from dsdoctor.report import fix_plan as report  # noqa: PLC0415  # `--list` needs none

    if dialogue.form == "json":
        write_json(document)
    elif as_shell:
        loading.write(report.shell(document.plans), None)
    else:
        for plan in document.plans:
            dialogue.show(plan, "alternative:" if plan.alternative else "")
    dialogue.show_rest(document)


def listing(registry: Registry) -> str:
    """All fixes, with what each does and which conditions it fixes."""
    from dsdoctor.report.wrap import listed  # noqa: PLC0415  # only for a list

    width = max((len(name) for name in registry.fixes), default=0)
    rows = (
        (f"{name:<{width}}  {unit.fix.reach.value:<6}  ", unit.title)
        for name, unit in sorted(registry.fixes.items())
    )
    return listed(rows, 60)
