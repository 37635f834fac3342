from __future__ import annotations

import os
import shutil

import pytest

from dsdoctor.report import wrap


@pytest.mark.parametrize("given", ["", "0", "-3", "x", "64", "²"])
def test_the_columns_are_those_of_shutil(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", given)
    expected = 77 if given == "²" else shutil.get_terminal_size((77, 24)).columns
    assert wrap.terminal_columns(77) == expected


def test_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    size = os.terminal_size((123, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    with open(os.devnull) as output:  # noqa: PTH123
        monkeypatch.setattr("sys.__stdout__", output)
        assert wrap.terminal_columns(77) == 123


def test_without_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", None)
    assert wrap.terminal_columns(77) == 77
