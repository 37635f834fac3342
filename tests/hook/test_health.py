"""What the health hook of Slurm does with a node that it, or someone else, drained."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.hook import health, job_end
from dsdoctor.hook.decide import Decision
from tests.hook.test_decide import FAULTY, HEALTHY, UNKNOWN

STAMP = {"time": 1000.0, "reason": "dsdoctor: DSD601 …"}


def local(seconds: float) -> str:
    """A time as `scontrol` prints it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


SINCE = local(1010)


@pytest.mark.parametrize(
    ("state", "reason", "decision", "stamp", "expected"),
    [
        pytest.param("IDLE", "", FAULTY, None, "drain", id="a faulty idle node is drained"),
        pytest.param("ALLOCATED", "", FAULTY, None, "drain", id="a faulty busy node is drained"),
        pytest.param(
            "IDLE+DRAIN",
            "Prolog error",
            FAULTY,
            STAMP,
            "reason",
            id="faulty: a prolog error that our gate caused gets its reason",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Prolog error",
            FAULTY,
            None,
            None,
            id="faulty: a prolog error of someone else stays",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Epilog error",
            FAULTY,
            STAMP,
            "reason",
            id="faulty: an epilog error that our gate caused gets its reason",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Epilog error",
            FAULTY,
            None,
            None,
            id="faulty: an epilog error of someone else stays",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Epilog error",
            HEALTHY,
            STAMP,
            "reason",
            id="healthy: an epilog error that our gate caused gets its reason",
        ),
        pytest.param(
            "IDLE+DRAIN", "dsdoctor: x", FAULTY, STAMP, None, id="faulty: a drain of our own stays"
        ),
        pytest.param(
            "IDLE+DRAIN",
            "disk swap",
            FAULTY,
            STAMP,
            None,
            id="faulty: a drain for other reasons stays",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "dsdoctor: x",
            HEALTHY,
            None,
            "resume",
            id="healthy: a drain of our own ends",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Prolog error",
            HEALTHY,
            STAMP,
            "reason",
            id="healthy: a prolog error that our gate caused gets its reason",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "Prolog error",
            HEALTHY,
            None,
            None,
            id="healthy: a prolog error of someone else stays",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "disk swap",
            HEALTHY,
            STAMP,
            None,
            id="healthy: a drain for other reasons stays",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "not dsdoctor: x",
            HEALTHY,
            STAMP,
            None,
            id="healthy: a reason that only mentions us stays",
        ),
        pytest.param(
            "IDLE",
            "dsdoctor: x",
            HEALTHY,
            None,
            None,
            id="healthy: a node that is not drained is left alone",
        ),
        pytest.param(
            "IDLE+DRAIN",
            "dsdoctor: x",
            UNKNOWN,
            STAMP,
            None,
            id="inconclusive: a drain of our own stays",
        ),
        pytest.param("IDLE", "", UNKNOWN, None, None, id="inconclusive: no drain"),
    ],
)
def test_health_only_undoes_its_own(
    state: str, reason: str, decision: Decision, stamp: Any, expected: str | None
) -> None:
    found = health.plan(frozenset(state.split("+")), reason, SINCE, decision, stamp)
    assert [what for what, _ in found] == ([expected] if expected else [])
    assert all(text.startswith("dsdoctor:") for what, text in found if what != "resume")


def test_a_prolog_error_of_another_time_is_not_ours() -> None:
    late = local(9000)
    state = frozenset({"IDLE", "DRAIN"})
    assert health.plan(state, "Prolog error", late, HEALTHY, STAMP) == []
    assert health.plan(state, "Prolog error", "rubbish", HEALTHY, STAMP) == []


def test_nothing_is_resumed_while_a_process_that_the_epilog_found_runs() -> None:
    state = frozenset({"IDLE", "DRAIN"})
    assert health.plan(state, "dsdoctor: x", SINCE, HEALTHY, STAMP, held=True) == []
    ((what, _),) = health.plan(state, "Epilog error", SINCE, HEALTHY, STAMP, held=True)
    assert what == "reason"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_is_known_by_its_number_and_start_time() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        stamp = {"left": [[child.pid, started], [child.pid, started + 1]]}
        assert job_end.left_behind(stamp) == [child.pid]
        child.kill()
        child.wait()
        assert job_end.left_behind(stamp) == []
    assert job_end.left_behind(None) == []


def test_scontrol_lines_are_read() -> None:
    line = (
        "NodeName=n1 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 "
        "Reason=Prolog error [root@2026-11-21T07:00:01]"
    )
    state, reason, since = health.parse_node(line)
    assert state == {"IDLE", "DRAIN"}
    assert (reason, since) == ("Prolog error", "2026-11-21T07:00:01")
    assert health.parse_node("NodeName=n1 State=IDLE* Arch=x") == (frozenset({"IDLE"}), "", "")
    assert health.parse_node("") == (frozenset(), "", "")
