"""NCCL ignores a configuration file, or lines of it.

## Why it matters
NCCL reads `NCCL_CONF_FILE`, or else `~/.nccl.conf`, and then `/etc/nccl.conf`. It does not report a
missing file, a line without `=`, or a name followed by a space. Each looks like a setting and has no
effect. Environment variables always take precedence.

## What to do
Write `NAME=VALUE` without spaces, one per line. Put comments on their own lines, starting with `#`.

## References
- NCCL 2.30.7 src/misc/param.cc (`setEnvFile`, `initEnvFunc`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Missing,
    NcclFile,
    NcclFiles,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import listed, variable

CONDITION = Condition("nccl-conf-file-ignored", id="DSD805", scope=Scope.JOB, since="0.1")

_EFFECT = "NCCL uses its defaults instead"


@check(CONDITION)
def files_are_read(files: NcclFiles, env: Environment | Missing) -> Iterator[Finding]:
    """Warns about files and lines that have no effect."""
    if not files.named_exists:
        also = f", and `{files.home_hidden}` is not read because of it" if files.home_hidden else ""
        yield warn(
            f"`NCCL_CONF_FILE` is `{files.named}`, but that file does not exist{also}",
            effect=_EFFECT,
            hint="correct the path, or run `unset NCCL_CONF_FILE`",
            path=files.named,
            hidden=files.home_hidden,
        )
    for file in files.files:
        yield from _lines(file, env)
    yield ok(files=[file.path for file in files.files], hidden=files.home_hidden)


def _lines(file: NcclFile, env: Environment | Missing) -> Iterator[Finding]:
    if file.ignored:
        plural = "s" if len(file.ignored) > 1 else ""
        yield warn(
            f"line{plural} {listed(file.ignored)} of `{file.path}` "
            f"{'have' if plural else 'has'} no `=`, but NCCL reads only `NAME=VALUE` lines",
            effect=_EFFECT,
            hint=f"correct line{plural} {listed(file.ignored)}, or put `#` in front of it",
            path=file.path,
            lines=list(file.ignored),
        )
    for setting in file.settings:
        if setting.name != setting.name.strip():
            yield warn(
                f"line {setting.line} of `{file.path}` sets `{setting.name}` with a space in the "
                f"name, but NCCL reads `{setting.name.strip()}`",
                effect=_EFFECT,
                hint=f"write `{setting.name.strip()}={setting.value.strip()}`",
                path=file.path,
                line=setting.line,
            )
            continue
        over = variable(env, setting.name)
        if over is not None and over != setting.value:
            yield ok(
                f"`{setting.name}` in line {setting.line} of `{file.path}` is overridden by"
                f" `{over}` in the environment",
                path=file.path,
                line=setting.line,
            )
