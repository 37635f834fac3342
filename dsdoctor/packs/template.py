"""The files that `dsdoctor packs new NAME` writes: a small pack that passes its own tests.

It has a condition with a check and a signature, a fact with its probe, a fix, and their tests. Each
text is a complete file except for words between `@`: the prefix of the pack, its package, and the
prefixes of its fact classes, ids and fact keys.
"""

from __future__ import annotations

from dsdoctor.packs.naming import class_prefix_of, letters_of

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "@NAME@-dsdoctor"
version = "0.1.0"
description = "Checks of @NAME@ for dsdoctor"
requires-python = ">=3.10"
dependencies = ["dsdoctor"]

[project.optional-dependencies]
dev = ["pytest>=8.2", "ruff>=0.9"]

[project.entry-points."dsdoctor.packs"]
@NAME@ = "@PACKAGE@"

[tool.hatch.build.targets.wheel]
packages = ["@PACKAGE@"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["--import-mode=importlib"]

[tool.ruff]
line-length = 100
"""

README = """\
# @NAME@-dsdoctor

Checks of @NAME@ for [dsdoctor](https://pypi.org/project/dsdoctor/).

```sh
pip install -e '.[dev]'
pytest
dsdoctor packs
dsdoctor check --select @NAME@-scratch-missing
```

Every condition and fix is called `@NAME@-…`, every id begins with `@LETTERS@`, and every class of
a fact begins with `@CLASS@`: dsdoctor refuses a pack whose names may clash with those of another.
"""

INIT = '''\
"""Checks of @NAME@ for dsdoctor."""
'''

PROBE = '''\
"""The scratch folder of the site, as this machine sees it."""

from __future__ import annotations

from dsdoctor.api import Fact, Host, HostError, Why, probe

VARIABLE = "@LETTERS@_SCRATCH"
DEFAULT = "/scratch"


class @CLASS@Scratch(Fact, frozen=True, kw_only=True):
    """The folder for checkpoints.

    Attributes:
        path: of the folder.
        exists: whether it exists.
        free_bytes: free space, in bytes; None if the folder does not exist.
    """

    path: str
    exists: bool
    free_bytes: int | None = None


@probe
def scratch(host: Host) -> @CLASS@Scratch:
    """Looks for the folder and reads its free space; changes nothing."""
    path = host.env.get(VARIABLE, DEFAULT)
    try:
        host.stat(path)
    except HostError as error:
        if error.missing.why is not Why.ABSENT:
            raise
        return @CLASS@Scratch(path=path, exists=False)
    return @CLASS@Scratch(path=path, exists=True, free_bytes=host.disk(path).free)
'''

CONDITION = '''\
"""The scratch folder is missing or full.

## Why it matters
Checkpoints go there, and the run ends at the first one.

## What to do
Create the folder, or set `@LETTERS@_SCRATCH` to one with room.

## References
The handbook of the site.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Level, Limits, Scope, Signature, check, fail, warn

from @PACKAGE@.scratch import @CLASS@Scratch

CONDITION = Condition(
    "@NAME@-scratch-missing",
    id="@LETTERS@001",
    scope=Scope.JOB,
    since="0.1",
    fixes=("@NAME@-create-scratch",),
)
HINT = "create the scratch folder, or set `@LETTERS@_SCRATCH` to one with room"


class ScratchLimits(Limits, frozen=True, kw_only=True):
    """Thresholds; the table `[limits.@NAME@-scratch-missing]` of config.toml overrides them."""

    min_gib: float = 20.0


@check(CONDITION)
def scratch_has_room(scratch: @CLASS@Scratch, limits: ScratchLimits) -> Iterator[Finding]:
    """Yields nothing if the folder exists and has room: that is `ok`."""
    if not scratch.exists:
        yield fail(
            f"the scratch folder `{scratch.path}` does not exist",
            effect="the run ends when it saves its first checkpoint",
            hint=HINT,
            path=scratch.path,
        )
        return
    free_gib = (scratch.free_bytes or 0) / 2**30
    if free_gib < limits.min_gib:
        yield warn(
            f"`{scratch.path}` has {free_gib:.1f} GiB free, expected {limits.min_gib:g} GiB",
            effect="checkpoints may be cut off",
            hint="remove old checkpoints",
            path=scratch.path,
            free_gib=round(free_gib, 1),
            min_gib=limits.min_gib,
        )


SIGNATURES = (
    Signature(
        pattern=r"scratch quota of (?P<user>\\w+) exceeded",
        source="the file server of the site",
        level=Level.CERTAIN,
        message="the scratch quota of {user} is used up",
        examples=("OSError: [Errno 122] scratch quota of alice exceeded",),
        not_examples=("scratch quota of 10 % of the disk",),
    ),
)
'''

FIX = '''\
"""Creates the scratch folder.

## What it does
Runs `mkdir -p` for the folder that the check reports.

## Undo
Removes the folder.
"""

from __future__ import annotations

from dsdoctor.api import Plan, Reach, Run, fix

from @PACKAGE@.scratch import @CLASS@Scratch


@fix("@NAME@-create-scratch", reach=Reach.HOME)
def create_scratch(scratch: @CLASS@Scratch) -> Plan | None:
    """One step if the folder does not exist; None if there is nothing to do."""
    if scratch.exists:
        return None
    step = Run(
        argv=("mkdir", "-p", scratch.path),
        creates=scratch.path,
        reach=Reach.HOME,
        why="checkpoints are saved there",
    )
    return Plan(
        name="@NAME@-create-scratch",
        title=f"create the scratch folder {scratch.path}",
        steps=(step,),
        proves=("@NAME@-scratch-missing",),
        undo="`dsdoctor fix --undo` removes the folder",
    )
'''

TEST = '''\
from __future__ import annotations

import pytest
from dsdoctor.api import Plan, Signature
from dsdoctor.testing import (
    DiskUsage,
    FakeHost,
    assert_fail,
    assert_ok,
    assert_pack,
    assert_signature,
    assert_skip,
    assert_warn,
    judge,
    missing,
    read,
)

from @PACKAGE@ import create_scratch, scratch, scratch_missing

GIB = 1 << 30


def folder(free_gib: float | None) -> scratch.@CLASS@Scratch:
    """A scratch folder with this much free space; None for a folder that does not exist."""
    free = None if free_gib is None else int(free_gib * GIB)
    return scratch.@CLASS@Scratch(path="/scratch", exists=free is not None, free_bytes=free)


def test_the_pack_loads_whole() -> None:
    pack = assert_pack("@PACKAGE@", name="@NAME@")
    assert [unit.condition.name for unit in pack.units] == ["@NAME@-scratch-missing"]


def test_a_folder_with_room_is_ok() -> None:
    assert_ok(judge(scratch_missing.scratch_has_room, @KEY@_scratch=folder(50)))


def test_a_folder_that_does_not_exist_fails() -> None:
    judged = judge(scratch_missing.scratch_has_room, @KEY@_scratch=folder(None))
    assert_fail(judged, "`/scratch` does not exist")


@pytest.mark.parametrize(
    ("least", "status"),
    [
        pytest.param(5, "warn", id="less room than the threshold warns"),
        pytest.param(4, "ok", id="as much room as the threshold is enough"),
    ],
)
def test_the_threshold_decides(least: float, status: str) -> None:
    limits = scratch_missing.ScratchLimits(min_gib=least)
    judged = judge(scratch_missing.scratch_has_room, @KEY@_scratch=folder(4), limits=limits)
    assert judged.status == status
    if status == "warn":
        assert_warn(judged, "4.0 GiB free")


def test_a_folder_that_nobody_could_look_at_is_not_judged() -> None:
    assert_skip(judge(scratch_missing.scratch_has_room, @KEY@_scratch=missing("denied")))


def test_the_probe_reads_the_variable_and_the_disk() -> None:
    host = FakeHost(
        env={scratch.VARIABLE: "/fast"},
        files={"/fast/run/model.pt": "x"},
        disks={"/fast": DiskUsage(total=100 * GIB, free=7 * GIB)},
    )
    fact = read(scratch.scratch, host)
    assert fact == scratch.@CLASS@Scratch(path="/fast", exists=True, free_bytes=7 * GIB)


def test_the_probe_sees_that_nothing_is_there() -> None:
    assert read(scratch.scratch, FakeHost()) == folder(None)


@pytest.mark.parametrize("signature", scratch_missing.SIGNATURES, ids=lambda one: one.source)
def test_the_signatures_match_their_examples(signature: Signature) -> None:
    assert_signature(signature)


def test_the_fix_creates_what_is_missing_and_nothing_else() -> None:
    plan = create_scratch.create_scratch.function(folder(None))
    assert isinstance(plan, Plan)
    assert plan.proves == ("@NAME@-scratch-missing",)
    assert create_scratch.create_scratch.function(folder(50)) is None
'''


def files(name: str) -> dict[str, str]:
    """The files of the pack: path relative to its folder, and content.

    Args:
        name: prefix of the pack, which `prefix_problem` has accepted.
    """
    package = f"{name.replace('-', '_')}_checks"
    words = {
        "@NAME@": name,
        "@PACKAGE@": package,
        "@CLASS@": class_prefix_of(name),
        "@LETTERS@": letters_of(name),
        "@KEY@": name.replace("-", "_"),
    }
    made = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        f"{package}/__init__.py": INIT,
        f"{package}/scratch.py": PROBE,
        f"{package}/scratch_missing.py": CONDITION,
        f"{package}/create_scratch.py": FIX,
        "tests/test_scratch.py": TEST,
    }
    for path, text in made.items():
        for word, meaning in words.items():
            text = text.replace(word, meaning)  # noqa: PLW2901  # step by step
        made[path] = text
    return made
