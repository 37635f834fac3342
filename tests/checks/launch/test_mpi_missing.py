"""Rows of `mpi-missing`: ranks that DeepSpeed learns from mpi4py."""

from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.launch import mpi_missing
from tests.checks.launch.rows import command
from tests.checks.python.support import packages


@pytest.mark.parametrize(
    ("line", "framework", "installed", "expected"),
    [
        pytest.param("mpirun -np 8 python t.py --deepspeed", "", {}, "warn", id="mpirun"),
        pytest.param("mpirun -np 8 python t.py --deepspeed", "hf", {}, "skip", id="transformers"),
        pytest.param(
            "mpirun -np 8 python t.py --deepspeed", "", {"mpi4py": "4.0.0"}, "ok", id="installed"
        ),
        pytest.param("mpirun -np 8 python t.py", "", {}, "skip", id="no option of DeepSpeed"),
        pytest.param("deepspeed t.py --deepspeed", "", {}, "skip", id="another launcher"),
    ],
)
def test_rows(line: str, framework: str, installed: dict[str, str], expected: str) -> None:
    judged = judge(
        mpi_missing.ranks_of_mpi_are_known,
        launch_command=command(line),
        packages=packages(deepspeed="0.16.4", **installed),
        run_needs=RunNeeds(framework=framework),
    )
    assert judged.status == expected
