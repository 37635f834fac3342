"""`dsdoctor completion`."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from dsdoctor.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> int:
    """Print the completion script for a shell.

    \b
    Examples:
      source <(dsdoctor completion bash)
      dsdoctor completion zsh > "${fpath[1]}/_dsdoctor"
      dsdoctor completion fish > ~/.config/fish/completions/dsdoctor.fish
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    from dsdoctor.cli.main import group  # noqa: PLC0415  # the group imports this module

    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"there is no completion for {shell}; expected one of {', '.join(SHELLS)}")
    # click's own `source` starts bash to learn its version, and bash runs the file of BASH_ENV
    click.echo(ShellComplete.source(found(group, {}, "dsdoctor", "_DSDOCTOR_COMPLETE")))
    return 0
