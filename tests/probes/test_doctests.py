"""The examples in the probes' docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "dsdoctor.model.redact",
    "dsdoctor.model.facts.pci",
    "dsdoctor.probes.command_line",
    "dsdoctor.probes.environment",
    "dsdoctor.probes.kernel_log",
    "dsdoctor.probes.launchers",
    "dsdoctor.probes.machine",
    "dsdoctor.probes.network",
    "dsdoctor.probes.nodes",
    "dsdoctor.probes.nvidia",
    "dsdoctor.probes.pci",
    "dsdoctor.records",
    "dsdoctor.probes.toolchain",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
