from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dsdoctor import packs, settings
from dsdoctor.errors import UsageError

GOOD = '''"""The moon is full.

## Why it matters
It is not.

## What to do
Wait.

## References
None.
"""
from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, OsInfo, Scope, check, warn

CONDITION = Condition("moon-full", id="MOON001", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def moon(system: OsInfo) -> Iterator[Finding]:
    yield warn(f"{system.hostname} sees it")
'''


def test_a_file_of_checks_d_is_a_pack(tmp_path: Path) -> None:
    (tmp_path / "moon.py").write_text(GOOD)
    registry = packs.load([str(tmp_path)])
    assert registry.problems == []
    unit = registry.get("moon-full")
    assert unit.title == "The moon is full"
    assert registry.get("moon001") is unit
    assert registry.select(["MOON0"]) == (unit,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "import nothing_of_the_kind\n", "ModuleNotFoundError", id="an import that fails"
        ),
        pytest.param("def (:\n", "SyntaxError", id="a syntax error"),
        pytest.param(
            GOOD.replace('"""', "#", 1).split("from collections")[0]
            and "raise SystemError('boo')\n",
            "boo",
            id="an exception at import",
        ),
        pytest.param(
            GOOD.replace("system: OsInfo", "system"),
            "has no annotation",
            id="an argument without an annotation",
        ),
        pytest.param(
            GOOD + '\nOTHER = Condition("x", id="MOON002", scope=Scope.NODE, since="0.1")\n',
            "2 cond",
            id="two conditions",
        ),
        pytest.param(
            "from dsdoctor.api import *\nC = Condition('a', id='DSD1', scope=Scope.NODE, since='0')\n",
            "no docstring",
            id="no docstring",
        ),
        pytest.param(
            GOOD.replace("moon-full", "driver-too-old"),
            "must be called `moon-…`",
            id="a name of a built-in condition",
        ),
    ],
)
def test_a_broken_pack_is_left_out_and_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "moon_bad.py").write_text(text)
    (tmp_path / "moon_good.py").write_text(
        GOOD.replace("moon-full", "moon-new").replace("001", "007")
    )
    registry = packs.load([str(tmp_path)])
    assert len(registry.problems) == 1
    assert reason in registry.problems[0].message
    assert "moon_bad.py" in registry.problems[0].pack
    assert registry.find("moon-new") is not None
    assert registry.find("driver-too-old") is not None


def test_root_runs_no_file_that_others_can_write(tmp_path: Path) -> None:
    file = tmp_path / "moon.py"
    file.write_text(GOOD)
    file.chmod(0o666)
    registry = packs.load([str(tmp_path)], only_root_owned=True)
    assert "root does not run it" in registry.problems[0].message
    assert registry.find("moon-full") is None


def test_selection_by_family_id_prefix_and_name() -> None:
    registry = packs.load(builtin_only=True)
    names = {unit.condition.name for unit in registry.select(["driver"])}
    assert "driver-too-old" in names
    assert names == {unit.condition.name for unit in registry.select(["DSD1"])}
    assert [u.condition.name for u in registry.select(["driver-too-old"])] == ["driver-too-old"]
    rest = registry.select([], ["driver"])
    assert not names & {unit.condition.name for unit in rest}


def test_a_word_that_selects_nothing_is_told_with_the_nearest() -> None:
    registry = packs.load(builtin_only=True)
    with pytest.raises(UsageError, match="did you mean `driver-too-old`"):
        registry.select(["driver-to-old"])
    with pytest.raises(UsageError, match="no condition is called"):
        registry.get("nonsense")


def test_earlier_names_still_select_and_are_shown() -> None:
    registry = packs.load(builtin_only=True)
    unit = registry.get("permissions")
    assert unit.condition.name == "path-not-writable"
    assert registry.select(["permissions"]) == (unit,)
    assert registry.select(["build"]) == registry.select(["ops"])
    found, warnings = settings.without_leftovers(
        settings.Settings(ignore=["permissions"], limits={"permissions": {"x": 1.0}}), registry
    )
    assert (found.limits, warnings) == ({"path-not-writable": {"x": 1.0}}, ())
    assert registry.former_names("path-not-writable") == ("permissions",)
    assert registry.former_names("disk-full") is msgspec.UNSET


def test_no_earlier_name_is_a_name_of_today() -> None:
    registry = packs.load(builtin_only=True)
    today = {unit.condition.name for unit in registry}
    former = [name for unit in registry for name in unit.condition.formerly]
    assert len(former) == len(set(former))
    assert not today.intersection(former)
