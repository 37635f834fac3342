"""Messages that are raised for several reasons: what else they say tells which."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
OWN = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    "    loss = run(batch)\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(
            "RuntimeError: mat2 must be a matrix, got 1-D tensor",
            "user-code",
            id="a vector in place of a matrix",
        ),
        pytest.param(
            "RuntimeError: \"_amp_foreach_x_cuda\" not implemented for 'BFloat16'",
            "user-code",
            id="an operation without bfloat16",
        ),
        pytest.param(
            (
                "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for head.weight: "
                "copying a param with shape torch.Size([7, 64]) from checkpoint, the shape in current "
                "model is torch.Size([5, 64])."
            ),
            "checkpoint-mismatch",
            id="weights of another shape",
        ),
        pytest.param(
            "RuntimeError: Parent directory /out/run3 does not exist.",
            "path-missing",
            id="a folder that does not exist",
        ),
    ],
)
def test_messages_with_several_causes(words: str, wanted: str) -> None:
    assert said(f"{OWN}{words}\n") == wanted


_RAISED = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 12, in <module>\n'
    "    dist.all_reduce(x)\n"
)
_USAGE = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
    "NCCLUtils.cpp:94, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.5\n"
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
)
_OLD_USAGE = (
    "RuntimeError: NCCL error in: /opt/pytorch/torch/lib/c10d/ProcessGroupNCCL.cpp:911, invalid "
    "usage, NCCL version 2.7.8\nncclInvalidUsage: This usually reflects invalid usage of NCCL "
    "library (such as too many async ops, too many collectives at once, mixing streams in a group, "
    "etc).\n"
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(_RAISED + _USAGE, "", id="one process"),
        pytest.param(_RAISED + _OLD_USAGE, "", id="an older release, which has no last error"),
        pytest.param(
            "".join(f"[rank{r}]: {line}\n" for r in (0, 1) for line in (_RAISED + _USAGE).split("\n")),
            "", id="two ranks",
        ),
        pytest.param(
            _RAISED + _USAGE + "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000\n",
            "nccl-duplicate-gpu", id="NCCL says which GPU",
        ),
    ],
)  # fmt: skip
def test_invalid_usage_of_nccl_is_not_a_gpu_that_two_ranks_share(text: str, condition: str) -> None:
    """It has many causes; which one, only NCCL's own words say."""
    causes = [cause.condition for cause in read(text).causes]
    assert causes[:1] == ([condition] if condition else []), causes
