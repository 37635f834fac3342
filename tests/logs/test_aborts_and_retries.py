"""What a process prints as it aborts ends it, whatever follows; what is tried again ends nothing."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
STEPS = "".join(f"step: {number} loss: 2.{number}\n" for number in range(5))
DUMP = "".join(f"queue <0x55{number:02}>: packet with index {number}\n" for number in range(60))


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def answer(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param("Fatal Python error: Aborted", "native-crash", id="python"),
        pytest.param("free(): invalid pointer", "native-crash", id="free"),
        pytest.param("python: double free or corruption (out)", "native-crash", id="double free"),
        pytest.param("malloc(): invalid size (unsorted)", "native-crash", id="malloc"),
        pytest.param("corrupted size vs. prev_size", "native-crash", id="size"),
        pytest.param("*** stack smashing detected ***: terminated", "native-crash", id="stack"),
        pytest.param(
            "*** SIGSEGV (@0x0) received by PID 12 (TID 0x7f) from PID 0; stack trace: ***",
            "native-crash",
            id="glog",
        ),
        pytest.param(
            "*** SIGABRT received at time=1734086759 on cpu 3 ***", "native-crash", id="absl"
        ),
        pytest.param(
            "Memory access fault by GPU node-1 (Agent handle: 0x5) on address 0x70.",
            "hip-runtime-error",
            id="fault",
        ),
        pytest.param(
            "HW Exception by GPU node-2 (Agent handle: 0x55) reason :GPU Hang",
            "hip-runtime-error",
            id="hang",
        ),
        pytest.param(
            "Callback: Queue 0x7f Aborting with error : HSA_STATUS_ERROR_EXCEPTION",
            "hip-runtime-error",
            id="queue",
        ),
    ],
)
def test_a_dump_below_what_aborted_a_process(line: str, condition: str) -> None:
    assert answer(f"{STEPS}{line}\n{DUMP}") == condition


@pytest.mark.parametrize(
    "line",
    ["a GPU may report HSA_STATUS_ERROR_EXCEPTION here", "malloc() trims at step 3"],
    ids=["a remark", "another word"],
)
def test_words_of_it_in_other_lines(line: str) -> None:
    assert answer(f"{STEPS}{line}\n{DUMP}") == "clean"


GATEWAY = (
    "HTTP Error 502 thrown while requesting HEAD https://huggingface.co/m/resolve/main/g.json\n"
)
RETRY = "Retrying in 1s [Retry 1/5].\n"


@pytest.mark.parametrize("twice", [False, True], ids=["once", "by two loggers"])
def test_a_request_that_is_tried_again_while_training(*, twice: bool) -> None:
    """The last line of a log that was cut off there."""
    warned = (
        f"{GATEWAY}WARNING:hub:{GATEWAY}{RETRY}WARNING:hub:{RETRY}" if twice else GATEWAY + RETRY
    )
    assert answer(f"{STEPS}{warned}saved the model's config\n") == "clean"


def test_a_request_that_is_not_tried_again() -> None:
    assert answer(f"{STEPS}{GATEWAY}") == "hub-unreachable"
    before = "loading the model\n"
    assert answer(f"{before}{GATEWAY}{RETRY}") == "hub-unreachable"  # it may have stopped there


RAS = (
    "n1:32:33 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use\n"
)


def test_the_service_for_ncclras_is_not_needed() -> None:
    assert answer(f"{STEPS}{RAS}saved\n") == "clean"
    assert answer(f"{STEPS}{RAS.replace('ras/client_support', 'misc/socket')}") == (
        "nccl-ib-or-socket-interface"
    )


CANCELLED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-06T12:03:05 ***\n"


@pytest.mark.parametrize("suffix", ["sh", "py", "bash", "slurm"])
def test_a_script_that_a_batch_script_could_not_execute(suffix: str) -> None:
    refused = f"/var/spool/slurmd/job7/slurm_script: line 21: ./hosts.{suffix}: Permission denied\n"
    assert answer(f"{refused}{DUMP}{CANCELLED}") == "job-cancelled"
    assert answer(refused) == "launch-file-missing"


@pytest.mark.parametrize(
    ("last", "condition"),
    [
        ("", "nccl-duplicate-gpu"),
        ("Last error:\nrank 1 has checked in twice\n", "unrecognised"),
    ],
    ids=["unsaid", "said"],
)
def test_an_invalid_usage_of_nccl(last: str, condition: str) -> None:
    """Old releases do not say what is invalid; new ones do, and then that counts."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 3, in <module>\n    model = DDP(model)\n'
        '  File "/opt/lib/python3.8/site-packages/torch/distributed/utils.py", line 8, in'
        " _verify_param_shape_across_processes\n"
        "RuntimeError: NCCL error in: /src/ProcessGroupNCCL.cpp:1191, invalid usage, NCCL version"
        f" 2.10.3\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n{last}"
    )
    assert answer(text) == condition


def test_submitit_ends_its_log_with_what_happened() -> None:
    last = "submitit ERROR (2026-01-04 09:18:19,138) - Submitted job triggered an exception\n"
    assert read(f"{STEPS}{last}").outcome is Outcome.UNRECOGNISED
