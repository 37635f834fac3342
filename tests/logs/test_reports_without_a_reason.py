"""Lines that report the end of a process without its reason, and warnings that came to nothing."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
RANK = (
    "E0512 17:04:53.622000 12 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] "
    "failed (exitcode: 1) local_rank: 6 (pid: 12) of binary: /usr/bin/python3\n"
)
CHILD = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3/dist-packages/torch/distributed/launcher/api.py", line 269, in f\n'
    "    raise ChildFailedError(\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    "============================================================\n"
    "/home/me/train.py FAILED\n"
)
PADDLE = (
    "----------------------\nError Message Summary:\n----------------------\n"
    "FatalError: `Termination signal` is detected by the operating system.\n"
    "  [SignalInfo: *** SIGTERM (@0x1157b0) received by PID 7 (TID 0x7f84) from PID 4 ***]\n"
)
NOT_THERE = (
    "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching /x...\n"
)
NCCL = (
    "host3:140:140 [0] misc/socket.cc:512 NCCL WARN Call to bind failed{} Address already in use\n"
)


def diagnosed(*texts: str) -> Diagnosis:
    sources = [Source(name=f"log{at}", data=text.encode()) for at, text in enumerate(texts)]
    return diagnose(sources, KNOWN)


@pytest.mark.parametrize("text", [RANK + CHILD, CHILD], ids=["with the rank", "alone"])
def test_the_launchers_own_exception_is_no_reason(text: str) -> None:
    found = diagnosed(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary == "the run died and the log does not show why"
    assert found.raised_by is None
    assert found.first_error is None


def test_paddles_report_of_sigterm_tells_of_another_process() -> None:
    said = "SIGTERM from outside ended a rank, but the log does not show who sent it"
    assert diagnosed(PADDLE).summary == said
    own = 'Traceback (most recent call last):\n  File "/home/me/t.py", line 3, in f\nKeyError: 2\n'
    assert "KeyError: 2" in diagnosed(PADDLE, own).summary


@pytest.mark.parametrize(
    ("more", "conditions"),
    [
        pytest.param("", ["bitsandbytes-cuda-setup"], id="not found"),
        pytest.param(
            "CUDA SETUP: CUDA runtime path found: /x/libcudart.so\n", [], id="found elsewhere"
        ),
    ],
)
def test_a_library_that_is_found_in_the_end_is_not_missing(
    more: str, conditions: list[str]
) -> None:
    found = diagnosed(NOT_THERE + more + "[INFO] Setting ds_accelerator to cuda (auto detect)\n")
    assert [cause.condition for cause in found.causes] == conditions


@pytest.mark.parametrize("colon", [" :", ":"], ids=["nccl 2.4", "nccl 2.19"])
def test_ports_of_nccl_are_not_the_master_port(colon: str) -> None:
    (cause,) = diagnosed(NCCL.format(colon)).causes
    assert cause.condition == "nccl-ib-or-socket-interface"
    assert "ip_local_port_range" in cause.hint


@pytest.mark.parametrize("library", ["libnccl.so", "libcudnn.so"])
def test_a_library_that_paddle_lacks_is_no_fault_of_torch(library: str) -> None:
    (cause,) = diagnosed(
        f"RuntimeError: (PreconditionNotMet) The third-party dynamic library ({library}) that "
        f"Paddle depends on is not configured correctly. (error code is {library}: cannot open "
        "shared object file: No such file or directory)\n"
    ).causes
    assert cause.condition == "cuda-runtime-lib-mismatch"
    assert cause.message == f"PaddlePaddle does not find the library `{library}`"


def test_what_a_logger_said_above_a_traceback_that_breaks_off_is_quoted() -> None:
    found = diagnosed(
        "2025-05-22 03:33:36 - [ERROR] - An error occurred: 2 ranks are not divisible by 3\n"
        "2025-05-22 03:33:36 - [ERROR] - Traceback (most recent call last):\n"
        '  File "/home/me/t.py", line 3, in main\n    trainer = Trainer(args)\n'
        '  File "/home/me/trainer.py", line 35, in __init__\n    super().__init__(args)\n'
    )
    assert "2 ranks are not divisible by 3" in found.summary


def test_a_quota_that_is_spelled_with_a_small_letter() -> None:
    line = "tensorflow.python.framework.errors_impl.ResourceExhaustedError: disk quota exceeded\n"
    assert [cause.condition for cause in diagnosed(line).causes] == ["disk-full"]
