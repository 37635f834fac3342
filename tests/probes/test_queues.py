"""Jobs that are handed to the queues of PBS, Grid Engine, LSF and OAR are followed."""

from __future__ import annotations

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import FakeHost

SCRIPT = """#!/bin/bash
#PBS -l select=1:ngpus=4
cd $PBS_O_WORKDIR
deepspeed --num_gpus 4 train.py --deepspeed ds.json
"""
FILES = {"/w/job.pbs": SCRIPT, "/w/train.py": "", "/w/ds.json": "{}"}
LAUNCH = "deepspeed --num_gpus 4 train.py --deepspeed ds.json"


def resolved(*words: str) -> RunNeeds:
    return resolve(RunNeeds(command=words, cwd="/w"), FakeHost(files=FILES))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("qsub", "job.pbs"), id="pbs"),
        pytest.param(("qsub", "-V", "-l", "select=1", "-lplace=x", "job.pbs"), id="pbs-options"),
        pytest.param(("qsub", "-cwd", "-pe", "smp", "4", "-N", "a", "job.pbs"), id="grid-engine"),
        pytest.param(("/opt/pbs/bin/qsub", "-koe", "-joe", "job.pbs"), id="values-without-a-space"),
        pytest.param(("qsub", "-hold_jid", "7", "-b", "n", "job.pbs"), id="names-that-are-words"),
        pytest.param(("bsub -n 4 -gpu num=4 < job.pbs",), id="lsf-reads-it"),
        pytest.param(("bsub", "-Is", "-n", "4", "bash", "job.pbs"), id="lsf-starts-a-shell"),
        pytest.param(("oarsub", "-l", "gpu=4", "-S", "job.pbs"), id="oar"),
    ],
)
def test_the_script_of_a_job_is_followed(words: tuple[str, ...]) -> None:
    found = resolved(*words)
    assert (found.followed, found.not_followed) == ("line 4 of `job.pbs`", "")
    assert parse_command(found.command).num_gpus == 4
    assert found.config_path == "ds.json"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("qsub", "-l", "ngpus=4", "--", *LAUNCH.split()), id="pbs"),
        pytest.param(("qsub", "-b", "y", "-cwd", *LAUNCH.split()), id="grid-engine"),
        pytest.param(("bsub", "-K", "-R", "a", *LAUNCH.split()), id="lsf"),
        pytest.param(("bsub", "-x", f"{LAUNCH} > log"), id="lsf-one-string"),
        pytest.param(("env", "A=1", "bsub", "-q", "gpu", *LAUNCH.split()), id="a-variable-first"),
        pytest.param(("oarsub", "-l", "gpu=4", LAUNCH), id="oar"),
    ],
)
def test_the_command_of_a_job_is_followed(words: tuple[str, ...]) -> None:
    found = resolved(*words)
    assert parse_command(found.command).launcher == "deepspeed"
    assert found.followed  # so that it is not judged as a job of this node
    assert found.config_path == "ds.json"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("bsub", "-n", "4"), id="reads-what-is-typed"),
        pytest.param(("qsub", "-I", "-l", "ngpus=4"), id="interactive"),
        pytest.param(("qsub",), id="nothing"),
        pytest.param(("qsub", "absent.pbs"), id="no-such-script"),
    ],
)
def test_a_job_that_is_not_known_has_a_reason(words: tuple[str, ...]) -> None:
    assert resolved(*words).not_followed


@pytest.mark.parametrize("words", [("qstat",), ("sh", "-c", "qsub < $A"), ("echo", "bsub", "x")])
def test_other_commands_stay_as_they_are(words: tuple[str, ...]) -> None:
    assert resolved(*words).command == words
