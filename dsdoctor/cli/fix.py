"""`dsdoctor fix`."""

from __future__ import annotations

import os
import sys

import click

from dsdoctor.cli import loading, options
from dsdoctor.errors import UsageError
from dsdoctor.model.fix_plan import FixRequest, Reach
from dsdoctor.registry import Registry


@click.command("fix")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--install-cuda-toolkit", is_flag=True, help="Same as the fix of that name.")
@click.option(
    "--dry-run", is_flag=True, help="Print the plan as a shell script and change nothing."
)
@click.option("--yes", "-y", is_flag=True, help="Apply without asking.")
@click.option("--undo", is_flag=True, help="Revert the last fix.")
@click.option("--list", "list_all", is_flag=True, help="List the fixes.")
@click.option(
    "--reach",
    type=click.Choice([reach.value for reach in Reach]),
    default=Reach.ENV.value,
    show_default=True,
    help="How far a fix may reach.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Install into the environment itself (conda, or pip with CUDA 13) instead of next to it.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@options.environment_options
def command(
    *,
    names: tuple[str, ...],
    install_cuda_toolkit: bool,
    dry_run: bool,
    yes: bool,
    undo: bool,
    list_all: bool,
    reach: str,
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

    Without NAME, plans every fix that the current findings name.

    Exit status: 0 nothing to do, or applied and verified; 1 not fixed; 4 plan shown, not applied.

    \b
    Examples:
      dsdoctor fix
      dsdoctor fix --install-cuda-toolkit --dry-run
      dsdoctor fix remove-stale-lock --yes
      dsdoctor fix --undo
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    asked = tuple(dict.fromkeys((*names, *(["install-cuda-toolkit"] * install_cuda_toolkit))))
    if list_all and not undo:
        loading.write(listing(loading.load_registry(checks_dir)), None)
        return 0
    from dsdoctor.cli import repair  # noqa: PLC0415  # `--list` needs neither
    from dsdoctor.job_request import run_needs  # noqa: PLC0415

    if undo:
        if asked or dry_run or list_all:
            raise UsageError("`--undo` reverts the last fix; it takes no name and no `--dry-run`")
        return repair.undo_last(form, yes=yes)
    registry = loading.load_registry(checks_dir)
    for name in asked:
        registry.cure(name)
    if dry_run and yes:
        raise UsageError("`--dry-run` and `--yes` are mutually exclusive; pass one of them")
    needs = run_needs(
        gpus=loading.items(gpus),
        expect_gpus=expect_gpus,
        config=config,
        hostfile=hostfile,
        quick=quick,
        deep=deep,
    )
    request = FixRequest(
        reach=Reach(reach),
        in_place=in_place,
        asked=asked,
        python=sys.executable,
        state=str(repair.data_folder()),
        arch_list=os.environ.get("TORCH_CUDA_ARCH_LIST", ""),
    )
    session = repair.Session(
        registry=registry,
        request=request,
        needs=needs,
        python=python,
        timeout=timeout,
        quiet=form == "json",
        checks_dir=checks_dir,
    )
    document = session.plan()
    if dry_run:
        return repair.show(document, form, as_shell=True)
    if yes or (repair.interactive() and form == "text"):
        return session.apply(document, form, ask=not yes)
    status = repair.show(document, form)
    if status == repair.SHOWN:
        click.echo("dsdoctor: nothing was changed; `--yes` applies the plan", err=True)
    return status


def listing(registry: Registry) -> str:
    """All fixes, with what each does and which conditions it fixes."""
    width = max((len(name) for name in registry.cures), default=0)
    return "".join(
        f"{name:<{width}}  {cure.fix.reach.value:<6}  {cure.title}\n"
        for name, cure in sorted(registry.cures.items())
    )
