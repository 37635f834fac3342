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
    ],
)
def test_what_failed_is_known(text: str, condition: str) -> None:
    assert cause(text).condition == condition


def test_an_extension_that_is_not_deepspeeds_is_not_called_so() -> None:
    found = cause(TRACEBACK + "RuntimeError: Error building extension 'voxel_ops'\n")
    assert found.condition == "cpu-adam-unbuilt"
    assert found.message == "The extension `voxel_ops` could not be built"
    assert "DeepSpeed" not in f"{found.message} {found.hint}"
