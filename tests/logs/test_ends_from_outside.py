"""What ended a job from outside: a scheduler, a signal to its launcher, or Ctrl-C."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
STEPS = "".join(f"epoch 2 step {n} loss 1.{n}\n" for n in range(40))
SITE = "/opt/env/lib/python3.11/site-packages/"
#: How LSF ends the output of a job.
LSF = "\n{0}\n{1}\n\nResource usage summary:\n\n    CPU time :   11.00 sec.\n"
ENDED = "Exited with exit code 130."
STEP = (
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
    "slurmstepd: error: *** STEP 88.0 ON n7 CANCELLED AT 2024-03-04T05:06:07 ***\n"
    "srun: error: n7: task 0: Killed\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("reason", "condition"),
    [
        pytest.param("TERM_OWNER: job killed by owner.", "job-cancelled", id="its owner"),
        pytest.param(
            "TERM_ADMIN: job killed by root or an administrator.", "job-cancelled", id="root"
        ),
        pytest.param(
            "TERM_FORCE_OWNER: job killed by owner without time for cleanup.",
            "job-cancelled",
            id="its owner, at once",
        ),
        pytest.param(
            "TERM_PREEMPT: job killed after preemption.", "job-preempted", id="another job"
        ),
        pytest.param(
            "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit.",
            "job-time-limit",
            id="processor time",
        ),
        pytest.param(
            "TERM_SWAP: job killed after reaching LSF swap usage limit.",
            "host-oom-killed",
            id="swap",
        ),
        pytest.param(
            "TERM_THREADLIMIT: job killed after reaching LSF thread limit.",
            "process-limit",
            id="threads",
        ),
        pytest.param(
            "TERM_EXTERNAL_SIGNAL: job killed by a signal external to LSF.",
            "unrecognised",
            id="a signal from elsewhere",
        ),
    ],
)
def test_lsf_says_why_it_ended_a_job(reason: str, condition: str) -> None:
    assert said(STEPS + LSF.format(reason, ENDED)) == condition
    # Python handles the signal that LSF sends first
    stopped = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in main\nKeyboardInterrupt\n'
    )
    if condition != "unrecognised":
        assert said(STEPS + stopped + LSF.format(reason, ENDED)) == condition


def test_a_job_of_lsf_that_ended_well_is_clean() -> None:
    assert said(STEPS + LSF.format("", "Successfully completed.")) == "clean"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Exited with signal termination: Killed.", id="LSF: a signal"),
        pytest.param(
            "TERM_EXTERNAL_SIGNAL: job killed by a signal external to LSF.", id="LSF: a reason"
        ),
        pytest.param("=>> PBS: job killed: ncpus 9.1 exceeded limit 4 (sum)", id="PBS: processors"),
    ],
)
def test_the_report_of_a_scheduler_without_a_known_cause_is_quoted(line: str) -> None:
    found = read(f"{STEPS}\n{line}\n")
    assert found.outcome is Outcome.UNRECOGNISED
    assert line in found.summary


@pytest.mark.parametrize(
    ("limit", "condition"),
    [
        pytest.param("cput 14420 exceeded limit 14400", "job-time-limit", id="processor time"),
        pytest.param("vmem 4296912896 exceeded limit 4294967296", "host-oom-killed", id="vmem"),
        pytest.param("mem job total 209715 kb exceeded limit 1048 kb", "host-oom-killed", id="mem"),
    ],
)
def test_pbs_says_which_limit_a_job_exceeded(limit: str, condition: str) -> None:
    assert said(f"{STEPS}=>> PBS: job killed: {limit}\n") == condition


def test_srun_says_that_it_was_told_to_end() -> None:
    told = "srun: forcing job termination\n"
    found = read(STEPS + told + STEP)
    assert [one.condition for one in found.causes] == ["launcher-killed"]
    assert "SIGHUP" in found.causes[0].message
    revoked = "salloc: Job 88 has exceeded its time limit and its allocation has been revoked.\n"
    assert said(STEPS + revoked + told + STEP) == "job-time-limit"
    job = "slurmstepd: error: *** JOB 88 ON n7 CANCELLED AT 2024-03-04T05:06:07 ***\n"
    assert said(STEPS + told + job + STEP) == "job-cancelled"


def test_srun_says_that_it_passes_ctrl_c_on() -> None:
    assert said(f"{STEPS}^Csrun: sending Ctrl-C to StepId=88.0\n{STEP}") == "interrupted-by-user"


def stopped(*frames: str, last: str = "KeyboardInterrupt") -> str:
    told = "".join(f'  File "{file}", line 7, in go\n    x = y\n' for file in frames)
    return f"{STEPS}Traceback (most recent call last):\n{told}{last}\n"


@pytest.mark.parametrize(
    "module",
    ["tarfile.py", "json/decoder.py", "subprocess.py", "socket.py", "urllib/request.py", "ssl.py"],
)
def test_ctrl_c_may_come_in_any_module_of_python(module: str) -> None:
    assert said(stopped("/home/me/data.py", f"/usr/lib/python3.11/{module}")) == (
        "interrupted-by-user"
    )


def test_ctrl_c_may_come_in_a_request_of_the_script() -> None:
    assert said(stopped("/home/me/data.py", f"{SITE}requests/api.py")) == "interrupted-by-user"


def test_ipython_prints_a_colon_below_ctrl_c() -> None:
    broken = stopped(
        "/usr/lib/python3.6/multiprocessing/queues.py",
        last="BrokenPipeError: [Errno 32] Broken pipe",
    )
    cell = (
        "-----------------------\nKeyboardInterrupt                Traceback (most recent call last)\n"
        "<ipython-input-4-7f> in <module>\n     55 \n---> 57     total += loss.item()\n     58 \n\n"
        "KeyboardInterrupt: \n"
    )
    assert said(broken + cell) == "interrupted-by-user"
    assert said(STEPS + cell) == "interrupted-by-user"


def test_ctrl_c_reaches_pdsh_which_starts_the_ranks_of_other_nodes() -> None:
    steps = "".join(f"n3:  iteration {n}/ 200000 | lm loss: 9.9\n" for n in range(9))
    end = (
        "pdsh@n5: interrupt (one more within 1 sec to abort)\n"
        "pdsh@n5:  (^Z within 1 sec to cancel pending threads)\npdsh@n5: n7: command in progress\n"
        "sending SIGTERM to ssh n7\nsending signal 15 to n7 [ssh] pid 52543\n"
    )
    assert said(steps + end + "pdsh@n5: interrupt, aborting.\n") == "interrupted-by-user"
    assert said(steps + "pdsh@n5: n7: ssh exited with exit code 1\n") != "interrupted-by-user"
