r"""Ask a launcher's own parser whether it takes a command line; nothing is started.

    python parse_launch.py deepspeed|torchrun|accelerate ARGS…

Prints \x1edsdoctor:{"accepted": true} or {"accepted": false, "error": text}, or {"absent": text}
where the launcher cannot be imported. Standard library and the launcher, Python 3.8 and later.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

SENTINEL = "\x1edsdoctor:"


def parser_of(launcher: str) -> Any:
    """The function that takes a list of words."""
    if launcher == "deepspeed":
        from deepspeed.launcher import runner

        return runner.parse_args
    if launcher == "torchrun":
        return torchrun
    from accelerate.commands.launch import launch_command_parser

    return launch_command_parser().parse_args


def torchrun(arguments: list[str]) -> None:
    """Also makes the settings of a run, as torchrun does before it starts the first process."""
    from torch.distributed import run

    asked = run.parse_args(arguments)
    if str(asked.nproc_per_node) in ("auto", "gpu", "xpu", "cpu"):
        asked.nproc_per_node = "1"  # which the machine decides, and this may be another one
    config = run.config_from_args(asked)[0]
    if config.nproc_per_node < 1:  # WorkerSpec asserts it (elastic/agent/server/api.py)
        raise ValueError("nproc_per_node must be > 0, got %d" % config.nproc_per_node)


def say(**record: Any) -> None:
    sys.stdout.write(SENTINEL + json.dumps(record) + "\n")
    sys.stdout.flush()


def main() -> None:
    launcher, arguments = sys.argv[1], sys.argv[2:]
    heard = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parse = parser_of(launcher)
    except Exception as error:
        say(absent="%s: %s" % (type(error).__name__, str(error)[:300]))
        return
    try:
        with contextlib.redirect_stderr(heard), contextlib.redirect_stdout(io.StringIO()):
            parse(arguments)
    except SystemExit as end:
        if end.code not in (0, None):
            lines = heard.getvalue().strip().splitlines()
            last = lines[-1] if lines else str(end.code)
            say(accepted=False, error=last.partition("error: ")[2] or last)
            return
    except Exception as error:
        say(accepted=False, error="%s: %s" % (type(error).__name__, str(error)[:300]))
        return
    say(accepted=True)


if __name__ == "__main__":
    main()
