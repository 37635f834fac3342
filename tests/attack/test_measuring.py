"""A config that `recommend --measure` passes to transformers."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.any_user


def test_a_config_cannot_take_the_memory_of_the_machine() -> None:
    """`num_labels` of a billion is a list of a billion names: 20 GB."""
    code = (
        "from dsdoctor.probes.children import measure_model\n"
        "measure_model.bound_memory(200 << 20)\n"
        "try:\n    print(len(bytearray(1 << 30)))\n"
        "except MemoryError as error:\n    print(measure_model.brief(error)['message'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "too much memory" in done.stdout, done
