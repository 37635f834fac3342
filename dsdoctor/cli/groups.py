"""Commands that have subcommands."""

from __future__ import annotations

import click

from dsdoctor.errors import MISUSE


class Group(click.Group):
    """A group that is misused if it is called without a subcommand.

    click does the same since 8.2; before, it exits with 0.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(MISUSE)
        return super().parse_args(ctx, args)
