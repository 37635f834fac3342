"""Tables of facts: each has a day and a life, and agrees with what is installed."""

from __future__ import annotations

import datetime as dt
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import dsdoctor_checks
from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.registry import Registry

ROOT = Path(__file__).parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("facts_refresh", ROOT / "tools/facts/refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


REFRESH = load()
TABLES = REFRESH.tables()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["file"])
def test_no_table_is_older_than_its_life(table: dict[str, str]) -> None:
    today = dt.datetime.now(dt.timezone.utc).date()
    assert not REFRESH.expired(table, today), (
        "compare it with its authority (tools/facts/refresh.py), then enter the day in tables.json"
    )


def test_a_table_expires_the_day_after_its_life() -> None:
    table = {"read": "2026-01-01", "life_days": 30}
    assert not REFRESH.expired(table, dt.date(2026, 1, 31))
    assert REFRESH.expired(table, dt.date(2026, 2, 1))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["file"])
def test_a_table_names_its_day(table: dict[str, str]) -> None:
    assert table["read"] in (ROOT / table["file"]).read_text(encoding="utf-8")


def test_every_module_of_tables_is_listed() -> None:
    listed = {table["file"] for table in TABLES}
    found = (ROOT / "checks/dsdoctor_checks").glob("*/_tables.py")
    assert {path.relative_to(ROOT).as_posix() for path in found} <= listed


def test_the_pack_states_the_oldest_day() -> None:
    assert min(table["read"] for table in TABLES) == dsdoctor_checks.FACTS_AS_OF


def test_a_report_states_the_oldest_day_of_the_packs() -> None:
    registry = packs.load(builtin_only=True)
    assert judge(Snapshot(), list(registry), registry).facts_as_of == dsdoctor_checks.FACTS_AS_OF
    registry.packs.append(msgspec.structs.replace(registry.packs[0], facts_as_of="2026-01-02"))
    assert judge(Snapshot(), [], registry).facts_as_of == "2026-01-02"
    assert judge(Snapshot(), [], Registry()).facts_as_of is msgspec.UNSET


@pytest.mark.train  # the authorities are torch's and DeepSpeed's own files
@pytest.mark.parametrize("name", sorted(REFRESH.OFFLINE))
def test_a_table_agrees_with_what_is_installed(name: str) -> None:
    assert list(REFRESH.OFFLINE[name]()) == []


@pytest.mark.train
def test_a_difference_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REFRESH, "SAME_FAMILY", {12: ("12.0",)})
    monkeypatch.setattr(REFRESH, "STANDARDS", (("2.0", "C++17", 4),))
    monkeypatch.setattr(REFRESH, "OLDEST_PYTHON", (("deepspeed", "0.1", (3, 5)),))
    monkeypatch.setattr(REFRESH, "archs", lambda *_: ("sm_10",))
    for compare in REFRESH.OFFLINE.values():
        assert list(compare()) != []


LISTED = """\
| Product                                  | PCI ID         |
| NVIDIA GeForce RTX 5090 Laptop GPU       | 2C58           |
| NVIDIA RTX PRO 2000 Blackwell            | 2D30 1028 2054 |
| Tesla T4                                 | 1EB8           |
| Matrox D-Series D2450                    | 1FB2 102B 1489 |
"""


def test_products_are_compared_with_the_list_of_nvidia() -> None:
    assert list(REFRESH.products(LISTED)) == []
    assert list(REFRESH.products(LISTED.replace("5090", "9090"))) == [
        "NVIDIA GeForce RTX 9090 Laptop GPU: its chip has (12, 0), the table says None"
    ]
    assert list(REFRESH.products(LISTED.replace("1EB8", "20B8"))) == [
        "Tesla T4: its chip has (8, 0), the table says (7, 5)"
    ]
    assert list(REFRESH.products(LISTED.replace("1EB8", "4AB8"))) == [
        "Tesla T4: no chip is known for device ids 4Axx"
    ]
    assert list(REFRESH.products("no table")) == ["the file lists no product"]
