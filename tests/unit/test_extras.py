"""A package that a command lacks is added to the environment that dsdoctor runs in."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dsdoctor import extras


def test_the_packages_are_those_of_the_extras() -> None:
    declared = [Requirement(text) for text in metadata.requires("dsdoctor") or ()]
    for extra, package in extras.PACKAGES.items():
        found = {
            one.name.lower()
            for one in declared
            if one.marker is not None and f'extra == "{extra}"' in str(one.marker)
        }
        assert found == {package.lower()}


@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        pytest.param("pipx_metadata.json", "pipx inject dsdoctor jinja2", id="pipx"),
        pytest.param("uv-receipt.toml", "uv tool install --with jinja2 dsdoctor", id="uv"),
    ],
)
def test_tools_with_environments_of_their_own(tmp_path: Path, receipt: str, command: str) -> None:
    assert extras.command_for("html", prefix=str(tmp_path)) != command
    (tmp_path / receipt).touch()
    assert extras.command_for("html", prefix=str(tmp_path)) == command
