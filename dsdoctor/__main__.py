"""Entry point; answers --version before anything else is imported."""

from __future__ import annotations

import sys

from dsdoctor.version import __version__


def main() -> int:
    """Runs the command line and returns the exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"dsdoctor {__version__}\n")
        return 0
    if sys.argv[1:2] == ["hook"]:
        from dsdoctor.hook import entry  # noqa: PLC0415  # it runs before every job

        return entry.main(sys.argv[2:], _command_line)
    return _command_line()


def _command_line() -> int:
    from dsdoctor.cli.main import run  # noqa: PLC0415  # --version stays fast

    return run()


if __name__ == "__main__":
    sys.exit(main())
