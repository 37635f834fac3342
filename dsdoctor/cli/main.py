"""The lazy command group: a command's module is imported when that command is called."""

from __future__ import annotations

import codecs
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

import click

from dsdoctor import guard, process
from dsdoctor.errors import UsageError
from dsdoctor.host import HostError
from dsdoctor.version import __version__

MISUSE = 2
INTERRUPTED = 130

#: Command to module and one line of help, so that --help imports none of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("dsdoctor.cli.check", "Say whether a job will start on this machine"),
    "fix": ("dsdoctor.cli.fix", "Repair what the checks found: plan, show, ask, apply, prove"),
    "recommend": ("dsdoctor.cli.recommend", "Compute launch settings for a model"),
    "smoke": ("dsdoctor.cli.smoke", "Prove launch settings by a short real run"),
    "diagnose": ("dsdoctor.cli.diagnose", "Name the cause of a dead run from its logs"),
    "lint": ("dsdoctor.cli.lint", "Check configs, hostfiles and launch lines without a machine"),
    "run": ("dsdoctor.cli.run", "Start a job under watch, and name the cause when it dies"),
    "explain": ("dsdoctor.cli.explain", "Tell all about a condition"),
    "snapshot": ("dsdoctor.cli.snapshot", "Save everything that was read of this machine"),
    "diff": ("dsdoctor.cli.diff", "Compare two snapshots: facts, then verdicts"),
    "facts": ("dsdoctor.cli.facts", "Show what a fact contains, or list the facts"),
    "packs": ("dsdoctor.cli.packs", "List the packs of checks"),
    "fleet": ("dsdoctor.cli.fleet", "Examine many nodes: what is wrong, what differs"),
    "hook": ("dsdoctor.cli.hook", "Decide before a job, for Slurm, Kubernetes, Nagios"),
}


class LazyGroup(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002, D102
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002, D102
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = importlib.import_module(entry[0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry[0]}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002, D102
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 nothing failed, 1 a failure, 2 misuse, 3 cannot tell, 130 interrupted.",
)
@click.version_option(__version__, "-V", "--version", message="dsdoctor %(version)s")
def group() -> None:
    """Says whether a DeepSpeed / PyTorch GPU job will start, before it starts."""


def run(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; every error a user can cause ends in one line and status 2."""
    process.become_subreaper()
    _write_anything()
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminate)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # not where `nohup` has it ignored
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _terminate)
    try:
        status = group.main(
            args=None if argv is None else list(argv),
            prog_name="dsdoctor",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except UsageError as error:
        return _misuse(str(error))
    except HostError as error:  # of what a command line itself needs: the working folder
        return _misuse(error.missing.detail)
    except click.ClickException as error:
        return _misuse(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        process.kill_all()
        click.echo("dsdoctor: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has gone (`| head`): nobody is left to be told
        guard.give_up_output()
        return 0
    except OSError as error:
        if error.errno == errno.ENOSPC:  # what is left in the buffer would fail once more
            guard.give_up_output()
        return guard.broken(error)
    return status if isinstance(status, int) else 0


def _write_anything() -> None:
    """Makes sure that no locale keeps a report from being written."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            plain = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if plain else None, errors="replace")


def _misuse(message: str) -> int:
    guard.say(message)
    return MISUSE


def _terminate(number: int, _frame: object) -> None:
    process.kill_all()
    os._exit(128 + number)
