"""Every option that `--help` lists says what it does."""

from __future__ import annotations

from collections.abc import Iterator

import click

from dsdoctor.cli.main import group


def without_help(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help:
            yield f"{context.command_path} {parameter.opts[0]}"
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            if inner is not None and not inner.hidden:
                yield from without_help(inner, click.Context(inner, context, word))


def test_every_option_is_explained() -> None:
    assert list(without_help(group, click.Context(group, info_name="dsdoctor"))) == []
