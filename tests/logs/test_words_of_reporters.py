"""What people write around an error is not taken for an error of its own."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))

BATON = (
    "Traceback (most recent call last):\n"
    '  File "/v/site-packages/torch/utils/cpp_extension.py", line 806, in _jit_compile\n'
    "    if baton.try_acquire():\n"
    '  File "/v/site-packages/torch/utils/file_baton.py", line 36, in try_acquire\n'
    "    self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)\n"
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "I went back with `pip install deepspeed==0.8.3`. Now:\n"
            "Exception: >- DeepSpeed Op Builder: Installed CUDA version 9.1 does not match the version "
            "torch was compiled with 11.8, unable to compile cuda/cpp extensions\n",
            "cuda-toolkit-mismatch",
            id="a release that was installed is there",
        ),
        pytest.param(
            "ImportError: DeepSpeed is not there, run `pip install deepspeed`\n",
            "deepspeed-missing",
            id="a program asks for DeepSpeed",
        ),
        pytest.param(
            f"{BATON}PermissionError: [Errno 13] Permission denied: '/tmp/torch_extensions/op/lock'\n",
            "path-not-writable",
            id="a lock that may not be created is not waited for",
        ),
        pytest.param(
            BATON.replace("try_acquire", "wait") + "KeyboardInterrupt\n",
            "jit-build-stale-lock",
            id="a lock that is waited for",
        ),
    ],
)
def test_the_first_cause(text: str, condition: str) -> None:
    found = diagnose([Source("log", data=text.encode())], KNOWN)
    assert found.causes[0].condition == condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "This GPU requires a reset before it remaps the row:\n\n    Remapped Rows\n"
            "        Pending                           : Yes\n",
            "row-remap-pending",
            id="a sentence above what the tool prints",
        ),
        pytest.param(
            "Unable to determine the device handle for GPU 0000:1B:00.0: GPU requires reset\n",
            "gpu-hardware-fault",
            id="the tool's own words",
        ),
        pytest.param(
            "NVML said that the GPU will require a reset\n", "gpu-hardware-fault", id="nothing else"
        ),
    ],
)
def test_what_a_tool_prints_weighs_more_than_a_sentence_about_it(text: str, condition: str) -> None:
    found = diagnose([Source("log", data=text.encode())], KNOWN)
    assert found.causes[0].condition == condition
