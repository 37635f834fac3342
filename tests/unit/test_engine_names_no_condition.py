"""The engine knows how to examine, not what illnesses exist: packs bring those."""

from __future__ import annotations

import ast
from pathlib import Path

from dsdoctor import packs
from dsdoctor.model.observation import Observation

ENGINE = Path(__file__).parent.parent.parent / "dsdoctor"
NAMES = frozenset(unit.condition.name for unit in packs.load(builtin_only=True))
#: What dsdoctor sees has names of its own, and one condition has the same.
OBSERVATIONS = "model/observation.py"


def test_no_condition_is_named_under_dsdoctor() -> None:
    found = [
        f"{path.relative_to(ENGINE)}:{node.lineno} names `{node.value}`"
        for path in sorted(ENGINE.rglob("*.py"))
        if path.relative_to(ENGINE).as_posix() != OBSERVATIONS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]
    assert found == []


def test_the_builtin_pack_names_every_observation_once() -> None:
    named = [seen for unit in packs.load(builtin_only=True) for seen in unit.condition.names]
    assert sorted(named, key=lambda seen: seen.value) == sorted(
        Observation, key=lambda seen: seen.value
    )
