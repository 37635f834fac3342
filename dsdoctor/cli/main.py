"""The lazy command group: a command's module is imported when that command is called."""

from __future__ import annotations

import codecs
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from dsdoctor import guard, process
from dsdoctor.errors import MISUSE, UsageError
from dsdoctor.host import HostError
from dsdoctor.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130

#: Maps a command to its module and one line of help, so --help imports no module.
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("dsdoctor.cli.check", "Check whether a job will start on this machine"),
    "fix": ("dsdoctor.cli.fix", "Fix what the checks found: show a plan, ask, apply, verify"),
    "recommend": ("dsdoctor.cli.recommend", "Compute launch settings for a model"),
    "smoke": ("dsdoctor.cli.smoke", "Prove launch settings with a short real run"),
    "run": ("dsdoctor.cli.run", "Run a job, watch it, and report the cause if it dies"),
    "diagnose": ("dsdoctor.cli.diagnose", "Find out from the logs why a run died"),
    "triage": ("dsdoctor.cli.triage", "Diagnose an issue from the logs in its text"),
    "lint": ("dsdoctor.cli.lint", "Check configs, hostfiles and launch commands in files"),
    "explain": ("dsdoctor.cli.explain", "Explain a condition"),
    "snapshot": ("dsdoctor.cli.snapshot", "Save all facts about this machine to a file"),
    "diff": ("dsdoctor.cli.diff", "Compare two snapshots: verdicts, then facts"),
    "fleet": ("dsdoctor.cli.fleet", "Check many nodes: what is wrong, what differs"),
    "hook": ("dsdoctor.cli.hook", "Gate jobs on Slurm, PBS, LSF, Kubernetes and others"),
    "packs": ("dsdoctor.cli.packs", "List packs of checks, or create one"),
    "facts": ("dsdoctor.cli.facts", "Show the facts that checks can use"),
    "completion": ("dsdoctor.cli.completion", "Print the completion script for a shell"),
}


#: Other names that people type for a command.
ALIASES = {
    "doctor": "check",
    "verify": "check",
    "test": "smoke",
    "repair": "fix",
    "plan": "recommend",
    "tune": "recommend",
    "analyze": "diagnose",
    "logs": "diagnose",
    "watch": "run",
    "validate": "lint",
    "compare": "diff",
    "profile": "check --profile",
    "help": "--help",
}


class _UnreadError(Exception):
    """The reader of the report has closed the pipe (`| head`)."""


@contextlib.contextmanager
def _broken_pipe_as_unread() -> Iterator[None]:
    """Hides a broken pipe from click, which would exit with 1: that status is a verdict."""
    try:
        yield
    except BrokenPipeError as error:
        raise _UnreadError from error


class LazyGroup(click.Group):
    """Imports a command's module when the command is called."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:  # noqa: D102
        with _broken_pipe_as_unread():  # `--help | head`
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: D102
        with _broken_pipe_as_unread():
            return super().invoke(ctx)

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

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib  # noqa: PLC0415  # only for a typing error

            near = difflib.get_close_matches(name, ALIASES, n=1, cutoff=0.8)
            near = near or difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.6)
            meant = f"; did you mean `{ALIASES.get(near[0], near[0])}`?" if near else ""
            raise UsageError(
                f"`{name}` is not a command of dsdoctor{meant} `dsdoctor --help` lists all"
                if meant
                else f"`{name}` is not a command of dsdoctor; `dsdoctor --help` lists all"
            )
        found, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            rest = [*map(_json_format, _before_dashes(rest)), *_from_dashes(rest)]
            _refuse_repeats(command, _before_dashes(rest))
        return found, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes commands with their lines of help, without importing their modules."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # only for a shell's completion

        found = [
            CompletionItem(name, help=text)
            for name, (_, text) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002, D102
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _before_dashes(words: list[str]) -> list[str]:
    return words[: words.index("--")] if "--" in words else words


def _from_dashes(words: list[str]) -> list[str]:
    return words[words.index("--") :] if "--" in words else []


def _json_format(word: str) -> str:
    return "--format=json" if word == "--json" else word


def _refuse_repeats(command: click.Command, words: Sequence[str]) -> None:
    """Rejects an option that takes one value but was passed twice.

    Raises:
        UsageError: an option was passed twice.
    """
    for option in command.params:
        if not isinstance(option, click.Option) or option.multiple or option.is_flag:
            continue
        if option.count or option.nargs != 1:
            continue
        names = [name for name in option.opts if name.startswith("--")]
        given = [word for word in words if word.partition("=")[0] in names]
        if len(given) > 1:
            raise UsageError(f"`{names[0]}` is passed {len(given)} times; pass it once")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 no failure, 1 a failure, 2 misuse, 3 inconclusive, 130 interrupted.",
)
@click.version_option(__version__, "-V", "--version", message="dsdoctor %(version)s")
@click.pass_context
def group(ctx: click.Context) -> int | None:
    """Checks whether a DeepSpeed or PyTorch GPU job will start, proves it with a short run, fixes
    what it can, and finds the cause when a run dies.
    """  # noqa: D205  # one sentence for the reader of --help
    if ctx.invoked_subcommand is not None:
        return None
    from dsdoctor.cli import welcome  # noqa: PLC0415  # reads the machine

    return welcome.show()


def run(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; every error a user can cause ends in one line and status 2."""
    process.become_subreaper()
    _write_anything()
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminate)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # unless `nohup` ignores the signal
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
    except HostError as error:  # the working folder, which every command needs
        return _misuse(error.missing.detail)
    except click.ClickException as error:
        from dsdoctor.cli import misuse  # noqa: PLC0415  # only for a typing error

        return _misuse(misuse.line_of(error))
    except (KeyboardInterrupt, click.Abort):
        process.kill_all()
        click.echo("dsdoctor: interrupted", err=True)
        return INTERRUPTED
    except (_UnreadError, BrokenPipeError):
        guard.give_up_output()
        return guard.UNREAD
    except OSError as error:
        if error.errno == errno.ENOSPC and not _flushes():
            guard.give_up_output()
            return _misuse(f"standard output cannot be written: {error.strerror}")
        return guard.broken(error)
    return status if isinstance(status, int) else 0


def _flushes() -> bool:
    """Whether what is left in the buffer of stdout can be written."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _write_anything() -> None:
    """Makes stdout and stderr accept any character, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            plain = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if plain else None, errors="replace")


def _misuse(message: str) -> int:
    from dsdoctor.model.masking import mask  # noqa: PLC0415  # only where something is wrong

    guard.say(mask(message))  # it may quote a file, or a command line
    return MISUSE


def _terminate(number: int, _frame: object) -> None:
    try:
        process.kill_all()
    finally:  # also if the signal interrupted an import
        os._exit(128 + number)
