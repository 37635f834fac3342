"""Commands that return before the job has ended, or send its output elsewhere.

`dsdoctor run` would watch the submission, report success, and never see the job.
Sources: manuals of Slurm 25.05, OpenPBS 23, LSF 10.1, kubectl, Ray 2.55 (`ray job submit`), tmux,
screen, coreutils (nohup), util-linux (setsid) and systemd (systemd-run), read 2026-11.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from dsdoctor.probes.command_line import parse_command

#: Batch systems, with the options that make them wait and forward the output.
_BATCH: dict[str, tuple[str, ...]] = {
    "sbatch": (),
    "qsub": ("-I",),
    "bsub": ("-I", "-K"),
}
_KUBECTL = frozenset({"apply", "create", "replace", "run"})
_ATTACHED = ("-i", "-t", "--stdin", "--tty", "--attach")
_SCOPES = ("--scope", "--wait", "--pty", "-t", "--pipe", "-P")


def refusal(command: Sequence[str], *, terminal: bool) -> str:
    """Why a command cannot be watched, and what to start instead; "" = it can be watched.

    Args:
        command: the words after `dsdoctor run --`.
        terminal: standard output is a terminal.

    >>> refusal(["sbatch", "job.sh"], terminal=False)
    '`sbatch` returns while the job waits in the queue: put `dsdoctor run --` before the launch \
command in `job.sh`'
    >>> refusal(["torchrun", "train.py"], terminal=False)
    ''
    """
    program = parse_command(tuple(command)).program
    place = command.index(program) if program in command else 0
    return (
        _of_wrappers(command[:place], terminal=terminal)
        or _of_schedulers(posixpath.basename(program), command[place + 1 :])
        or _of_services(posixpath.basename(program), command[place + 1 :])
    )


def _has_option(words: Sequence[str], options: Sequence[str]) -> bool:
    """Whether one of these options is present, also as `-it` or `--wait=true`."""
    for word in words:
        if word == "--":
            return False
        for option in options:
            short = len(option) == 2  # noqa: PLR2004  # `-i`
            if word.partition("=")[0] == option or (short and word.startswith(option)):
                return True
            if short and word[:1] == "-" and word[1:2] != "-" and option[1] in word[1:4]:
                return True
    return False


def _of_wrappers(words: Sequence[str], *, terminal: bool) -> str:
    """Refusal for the wrappers before the program."""
    names = {posixpath.basename(word) for word in words}
    if "setsid" in names and not _has_option(words, ("-w", "--wait")):
        return (
            "`setsid` returns while the job continues: put it in front, as in "
            "`setsid dsdoctor run -- CMD`"
        )
    if "nohup" in names and terminal:
        return (
            "`nohup` writes the job's output to `nohup.out`, where it is not read: put it in "
            "front, as in `nohup dsdoctor run -- CMD`"
        )
    return ""


def _of_schedulers(name: str, words: Sequence[str]) -> str:
    if name in _BATCH and not _has_option(words, _BATCH[name]):
        scripts = [word for word in words if not word.startswith("-") and "." in word]
        place = f"in `{scripts[-1]}`" if scripts else "in the batch script"
        if any(word.partition("=")[0] == "--wrap" for word in words):
            place = "inside `--wrap`"
        return (
            f"`{name}` returns while the job waits in the queue: put `dsdoctor run --` before the "
            f"launch command {place}"
        )
    verb = next((word for word in words if not word.startswith("-")), "")
    if (
        name == "kubectl"
        and verb in _KUBECTL
        and not (verb == "run" and _has_option(words, _ATTACHED))
    ):
        return (
            f"`kubectl {verb}` returns while the pod starts: put `dsdoctor run --` before the "
            "command in the pod's spec"
        )
    if (
        name == "ray"
        and list(words[:2]) == ["job", "submit"]
        and _has_option(words, ("--no-wait",))
    ):
        return (
            "`ray job submit --no-wait` returns while the job continues: omit `--no-wait`, or put "
            "`dsdoctor run --` before the job's own command"
        )
    return ""


def _of_services(name: str, words: Sequence[str]) -> str:
    if name in ("tmux", "screen"):
        return (
            f"`{name}` runs the job in a separate session, out of reach: start `dsdoctor run` "
            f"inside {name}"
        )
    if name == "systemd-run" and not _has_option(words, _SCOPES):
        return "`systemd-run` returns while the job continues: pass `--scope`"
    return ""
