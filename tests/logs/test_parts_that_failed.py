"""Parts of a run that failed, in the words of the product that reports it."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Cause, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
TRACEBACK = 'Traceback (most recent call last):\n  File "/w/fit.py", line 3, in <module>\n    f()\n'


def cause(text: str) -> Cause:
    """The cause of a failure."""
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert found.outcome is Outcome.CAUSE, found.summary
    return found.causes[0]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            TRACEBACK + "RuntimeError: create_config:build/CMakeFiles/torch_npu.dir/x.ts:152 HCCL "
            "function error: hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, "
            "&(comm->hcclComm_)), error code is 4\n",
            "hccl-error",
            id="HCCL's functions in lower case",
        ),
        pytest.param(
            "+ python fit.py\nepoch 1\n./fit.sh: line 41: 20177 Segmentation fault      "
            "OMP_NUM_THREADS=8 python fit.py --lr 1e-4\n+ cleanup\n",
            "native-crash",
            id="bash, without a core",
        ),
        pytest.param(
            "I0519 00:39:21.480532  4952 process_group_nccl.cc:129] ProcessGroupNCCL pg_timeout_ 9\n"
            "ERROR: Unexpected segmentation fault encountered in DataLoader workers.\n",
            "native-crash",
            id="Paddle's workers",
        ),
        pytest.param(
            TRACEBACK + "RuntimeError: Error building extension 'voxel_ops': [1/3] "
            ":/usr/local/cuda-11.8/bin/nvcc -DTORCH_EXTENSION_NAME=voxel_ops -c /w/voxel.cu\n",
            "cuda-home-invalid",
            id="ninja's command with a list as CUDA_HOME",
        ),
        pytest.param(
            "[2025-02-11 16:30:34] Ep. 1 : Up. 900 : Sen. 77,303 : Cost 1.41 : Time 370.55s\n"
            "[2025-02-11 16:30:37] Error: CUDA error 716 'misaligned address' - "
            "/x/tensors/gpu/algorithm.cu:54: cudaStreamSynchronize(0)\n",
            "cuda-kernel-failed",
            id="Marian's words",
        ),
        pytest.param(
            "[02-11 14:27:08] Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
            "[02-11 14:27:10] Exit code: -9\n",
            "host-oom-killed",
            id="sglang's scheduler",
        ),
        pytest.param(
            "step 9\nslurmstepd-xgpg0: error: *** JOB 906 ON xgpg0 CANCELLED AT "
            "2025-02-16T02:25:58 DUE TO TIME LIMIT ***\n",
            "job-time-limit",
            id="a host whose name begins with x, which is no arrow of a diagram",
        ),
    ],
)
def test_what_failed_is_known(text: str, condition: str) -> None:
    assert cause(text).condition == condition


def test_an_extension_that_is_not_deepspeeds_is_not_called_so() -> None:
    found = cause(TRACEBACK + "RuntimeError: Error building extension 'voxel_ops'\n")
    assert found.condition == "cpu-adam-unbuilt"
    assert found.message == "The extension `voxel_ops` could not be built"
    assert "DeepSpeed" not in f"{found.message} {found.hint}"


def test_a_name_before_the_time_in_brackets_is_a_prefix_too() -> None:
    """Otherwise a log that ends with an error would be called clean."""
    text = "".join(
        f"[task 2025-02-11T16:30:3{second}.188Z] [2025-02-11 16:30:3{second}] {words}\n"
        for second, words in enumerate(("Ep. 1 : Up. 900 : Cost 1.4", "Error: nobody knows it"))
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert found.outcome is Outcome.UNRECOGNISED
    assert "Error: nobody knows it" in found.summary


def test_a_gpu_that_is_gone_is_said_to_be_gone() -> None:
    gone = "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.\n"
    double = "NVRM: Xid (PCI:0000:06:00): 48, pid=9, name=python, DBE\n"
    assert cause(gone).message.startswith("A GPU has fallen off the bus")
    assert cause(double).message == "A GPU reports a hardware fault"
