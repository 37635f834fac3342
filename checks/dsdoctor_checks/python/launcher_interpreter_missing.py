"""The interpreter that a launcher starts does not exist.

## Why it matters
`deepspeed`, `torchrun`, `accelerate` and `pip` are scripts, or small programs on Windows, that contain the
full path of one interpreter. When an environment is moved, renamed or copied, or its Python is removed,
they still start the old path. On Windows a path with spaces can have the same effect.

## What to do
Start the launcher as a module of the interpreter that exists: `python -m torch.distributed.run`,
`python -m deepspeed.launcher.runner`, `python -m pip`. Then create the environment again where it
is now, or reinstall the package with `python -m pip install --force-reinstall --no-deps`.

## References
- setuptools launcher.c; distlib, PC/launcher.c
- https://docs.python.org/3/library/venv.html (environments are not portable)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Launchers,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import listed

from .launcher_of_other_env import BY_SHELL, MODULES, has, started

CONDITION = Condition(
    "launcher-interpreter-missing", id="DSD953", scope=Scope.USER_ENV, since="0.1"
)


@check(CONDITION)
def interpreters_of_launchers_exist(
    launchers: Launchers,
    patient: Patient,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Looks for the interpreter in the first line of each launcher.

    A launcher counts if the command starts it; without a command, if the environment has its
    package.
    """
    starts = None if isinstance(command, Missing) else started(command)
    dead = [
        launcher
        for launcher in launchers.launchers
        if launcher.interpreter_exists is False
        and launcher.name in MODULES
        and (
            launcher.name in starts
            if starts is not None
            else has(packages, MODULES[launcher.name].partition(".")[0])
        )
    ]
    for interpreter in dict.fromkeys(launcher.interpreter for launcher in dead):
        names = [one.name for one in dead if one.interpreter == interpreter]
        many = len(names) > 1
        meant = starts is not None or (patient.chosen_by in BY_SHELL and "deepspeed" in names)
        modules = listed(f"`{MODULES[name]}`" for name in names)
        yield (fail if meant else warn)(
            f"{listed(f'`{name}`' for name in names)} on PATH {'start' if many else 'starts'}"
            f" `{interpreter}`, which does not exist",
            effect="the command fails at once with `bad interpreter`, or `cannot execute`",
            hint=f"start it as a module: `{patient.executable} -m "
            + (f"MODULE`, where MODULE is {modules}" if many else f"{MODULES[names[0]]}`")
            + "; an environment that was moved, copied or renamed has to be created again",
            launchers=[one.path for one in dead if one.interpreter == interpreter],
            interpreter=interpreter,
        )
    here = [one.path for one in launchers.launchers if one.interpreter_exists]
    if here:
        yield ok(launchers=here)


HINT = "start the launcher as a module (`python -m torch.distributed.run`, `python -m pip`), then create the environment again where it is now"

SIGNATURES = (
    Signature(
        pattern=r"^failed to create process\.$",
        source="setuptools 0.7-80 launcher.c, which conda's entry points use too (Windows)",
        message="the launcher could not start the interpreter in the first line of its script",
        hint="start the launcher as a module (`python -m torch.distributed.run`), and create the environment again if it was moved or renamed, in a path without spaces",
        examples=("failed to create process.",),
        not_examples=("the tool failed to create process.",),
        level=Level.LIKELY,
    ),
    Signature(
        pattern=r"Unable to create process using ['\"]{1,2}(?P<interpreter>[^'\"]{3,300})['\"]",
        source="distlib 0.1-0.4 PC/launcher.c, in pip 1.5-26; CPython 3.3-3.14 PC/launcher.c (Windows)",
        message="the launcher could not start `{interpreter}`",
        examples=(
            'Fatal error in launcher: Unable to create process using \'"C:\\old\\python.exe"  "C:\\new\\Scripts\\pip.exe" install x\': The system cannot find the file specified.',
            "Unable to create process using 'C:\\old\\python.exe train.py'",
        ),
        not_examples=("Unable to create process using a thread",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^No Python at ['\"]{1,2}(?P<interpreter>[^'\"]{3,300})",
        source="CPython 3.7-3.14 PC/launcher.c: the redirector of a virtual environment (Windows)",
        message="the virtual environment was made for `{interpreter}`, which does not exist",
        examples=("No Python at 'C:\\Python310\\python.exe'",),
        not_examples=("No Python at 'x",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?P<interpreter>/[^:\s]{0,300}(?:python|pypy)[\w.]{0,12}): bad interpreter: ",
        source="bash 3.2-5.3 execute_cmd.c; the words are glibc's",
        message="the first line of the script names `{interpreter}`, which does not exist",
        examples=(
            "bash: /data/new/bin/torchrun: /data/old/bin/python3.10: bad interpreter: No such file or directory",
            "-bash: /data/new/bin/pip: /data/old/bin/pypy3: bad interpreter: No such file or directory",
        ),
        not_examples=("-bash: ./x.sh: /bin/bash^M: bad interpreter: No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^zsh: \S{1,300}: bad interpreter: (?P<interpreter>/[^:\s]{0,300}(?:python|pypy)[\w.]{0,12}): ",
        source="zsh 5.0-5.9 Src/exec.c",
        message="the first line of the script names `{interpreter}`, which does not exist",
        examples=(
            "zsh: /data/new/bin/torchrun: bad interpreter: /data/old/bin/python3: no such file or directory",
            "zsh: /data/new/bin/pip: bad interpreter: /data/old/bin/pypy3: no such file or directory",
        ),
        not_examples=("zsh: ./x.sh: bad interpreter: /bin/foo: no such file or directory",),
        level=Level.STRONG,
    ),
)
