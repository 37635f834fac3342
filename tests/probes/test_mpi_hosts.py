"""Slots of the hosts of mpirun, from its options and its hostfile."""

from __future__ import annotations

import pytest

from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import launch_command
from dsdoctor.probes.mpi_hosts import slots_of
from dsdoctor.testing import FakeHost


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        pytest.param("a slots=8\nb slots=4\n", (8, 4), id="a hostfile of Open MPI"),
        pytest.param("# spare\na slots=8 max_slots=8\n\nb slots = 8", (8, 8), id="with limits"),
        pytest.param("a:8\nb:8\n", (8, 8), id="a machinefile of MPICH"),
        pytest.param("a:2\nb:2\na:2", (4, 2), id="a host twice"),
        pytest.param("a\nb slots=8", (), id="one without a number"),
        pytest.param("a slots=x", (), id="not a number"),
        pytest.param("", (), id="an empty file"),
    ],
)
def test_slots_of_hosts(text: str, slots: tuple[int, ...]) -> None:
    assert slots_of(text) == slots


@pytest.mark.parametrize(
    ("line", "slots"),
    [
        pytest.param("mpirun -np 16 -H a:8,b:8 python t.py", (8, 8), id="on the line"),
        pytest.param("mpirun --host a,b python t.py", (), id="hosts alone"),
        pytest.param("mpirun --hostfile hosts python t.py", (8, 8), id="in a file"),
        pytest.param("mpirun --hostfile gone python t.py", (), id="a file that does not exist"),
        pytest.param("deepspeed --hostfile hosts t.py", (), id="of another launcher"),
    ],
)
def test_slots_of_a_command(line: str, slots: tuple[int, ...]) -> None:
    host = FakeHost(files={"/home/me/hosts": "node-a slots=8\nnode-b slots=8\n"})
    run = RunNeeds(command=tuple(line.split()), cwd="/home/me")
    assert launch_command.function(host, run).mpi_slots == slots
