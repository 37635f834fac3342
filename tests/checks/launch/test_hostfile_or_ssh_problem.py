"""Rows of `hostfile-or-ssh-problem`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Hostfile, OsInfo
from dsdoctor.probes.launch import parse_hostfile
from dsdoctor_checks.launch import hostfile_or_ssh_problem as unit
from tests.checks.launch.rows import ABSENT, command, gpus, statuses


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("# nodes\nnode-a slots=4\n\nnode-b slots=4 # spare\n", "ok", ""),
        ("node-a slots=2\nnode-b 8 gpus\n", "fail", "line 2"),
        ("node-a slots=2\nnode-a slots=2\n", "fail", "stands on line 1"),
        ("node-a slots=two\n", "fail", "HOST slots=N"),
        ("\n# nodes come here\n", "fail", "names no host"),
        ("localhost slots=8\n", "fail ok", "8 slots"),
        ("me slots=4\n", "ok", ""),
    ],
)
def test_hostfile(text: str, status: str, words: str) -> None:
    os = OsInfo(system="Linux", release="6", machine="x86_64", hostname="me.cluster")
    check = unit.hostfile_is_sound.function
    found = list(check(parse_hostfile(text, "hosts"), ABSENT, gpus(4), os))
    assert statuses(found) == status
    assert words in found[0].message


def test_hostfile_that_is_not_there_is_told_where_the_launcher_only_warns() -> None:
    check = unit.hostfile_is_sound.function
    (found,) = check(Hostfile(path="hostfle", exists=False), ABSENT, ABSENT, ABSENT)
    assert "`hostfle` does not exist" in found.message


def test_default_hostfile_is_not_torchruns() -> None:
    broken = parse_hostfile("x\n", "/job/hostfile", asked=False)
    check = unit.hostfile_is_sound.function
    assert not list(check(broken, command("torchrun t.py"), ABSENT, ABSENT))
    assert statuses(check(broken, command("deepspeed t.py"), ABSENT, ABSENT)) == "fail"
