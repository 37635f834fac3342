"""Stacks that a paste cuts off, and services that say that another part of them has failed."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
VLLM = "/env/lib/python3.10/site-packages/vllm/v1/engine"
FOLLOW_UP = f"""(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File "{VLLM}/utils.py", line 785, in wait_for_engine_startup
(APIServer pid=7)     raise RuntimeError("Engine core initialization failed. "
(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. \
Failed core proc(s): {{}}
"""
LOGGED = "(EngineCore_DP0 pid=9) ERROR 07-31 15:52:26 [core.py:708] "


def diagnosed(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def root(words: str) -> str:
    lines = [
        "Traceback (most recent call last):",
        f'  File "{VLLM}/core.py", line 9, in init',
        words,
    ]
    return "".join(f"{LOGGED}{line}\n" for line in lines)


def test_the_cause_above_a_failed_start_of_vllms_engine_is_named() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    found = diagnosed(root(oom) + FOLLOW_UP)
    assert [cause.condition for cause in found.causes] == ["gpu-oom"]


@pytest.mark.parametrize("first", [True, False], ids=["above", "below"])
def test_an_unknown_cause_beside_it_is_told_in_its_place(first: bool) -> None:
    cause = root("ValueError: the rotation of this layer is odd")
    found = diagnosed(cause + FOLLOW_UP if first else FOLLOW_UP + cause)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.first_error is not None
    assert found.first_error.message == "the rotation of this layer is odd"
    assert found.raised_by is not None
    assert found.raised_by.product == "vllm"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FOLLOW_UP, id="the traceback of vLLM's API server"),
        pytest.param(
            "RuntimeError: Engine core initialization failed. See root cause above.\n",
            id="vLLM's engine",
        ),
        pytest.param(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See above.\n",
            id="vLLM's dead engine",
        ),
    ],
)
def test_it_is_no_cause_itself(text: str) -> None:
    assert diagnosed(text).outcome is Outcome.UNRECOGNISED


CUT = """The run ends like this:
```
Traceback (most recent call last):
  File "/home/lab/train.py", line 31, in main
    model.cuda()
```
Before: it worked with the release of last month.
"""


def test_a_quoted_traceback_without_its_exception_is_not_known() -> None:
    found = diagnosed(CUT)
    assert found.outcome is Outcome.UNRECOGNISED
    assert "traceback" in found.summary
    assert found.first_error is None


def test_what_stands_below_a_quoted_traceback_is_still_read() -> None:
    text = f"{CUT}\nRuntimeError: CUDA error: no kernel image is available for execution\n"
    assert [cause.condition for cause in diagnosed(text).causes] == ["gpu-arch-unsupported"]


def test_a_notebooks_stack_that_breaks_off_is_not_clean() -> None:
    text = """IndexError                      Traceback (most recent call last)
[/usr/local/lib/python3.12/dist-packages/demo/rl.py](https://localhost:8080/#) in patch(f, name)
    852     # count the lines
    853     last = lines[-1]
--> 854     before = lines[-2]
    855
"""
    assert diagnosed(text).outcome is Outcome.UNRECOGNISED


def test_a_call_below_its_exception_says_who_raised_it() -> None:
    error = "[TP1] Scheduler hit an exception:\nIndexError: list index out of range\n"
    place = 'File "/home/me/sglang/python/sglang/srt/managers/scheduler.py", line 7, in move\n'
    assert diagnosed(error + place).outcome is Outcome.UNRECOGNISED
    assert diagnosed(error + 'File "/home/lab/serve.py", line 7, in move\n').outcome is (
        Outcome.USER_CODE
    )


def test_a_tasks_exception_that_ray_wraps_is_a_failure() -> None:
    text = "ray.exceptions.RayTaskError(KeyError): ray::RayWorker.execute_method\n"
    assert diagnosed(text).outcome is Outcome.UNRECOGNISED


def test_a_server_that_closes_a_clients_connection_is_not_a_hub_out_of_reach() -> None:
    text = "httpcore.RemoteProtocolError: peer closed connection without sending a whole body\n"
    assert diagnosed(text).causes == ()


def test_a_refusal_without_a_stack_is_not_called_the_scripts() -> None:
    assert diagnosed("ValueError: this model is not served for now\n").outcome is (
        Outcome.UNRECOGNISED
    )
    own = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x8)"
    for line in ("KeyError: 'question'", own):
        assert diagnosed(f"{line}\n").outcome is Outcome.USER_CODE


def test_what_nccl_goes_on_without_is_a_cause_in_wsl_only() -> None:
    line = "n1:7:7 [3] misc/cudawrap.cc:90 NCCL WARN Failed to find CUDA library in (null)\n"
    assert diagnosed(f"{line}n1:7:7 [3] NCCL INFO Using network Socket\n").causes == ()
    there = diagnosed(f"Linux pc 5.15.90.1-microsoft-standard-WSL2\n{line}")
    assert [cause.condition for cause in there.causes] == ["wsl-driver-unavailable"]


def test_nccl_is_not_at_fault_for_a_kernel_that_found_an_index_out_of_range() -> None:
    line = "n1:9:9 [1] init.cc:924 NCCL WARN Cuda failure 'device-side assert triggered'\n"
    error = "RuntimeError: NCCL error in: x.cpp:136, unhandled cuda error, NCCL version 2.7.8\n"
    assert diagnosed(line + error).causes == ()
    assert [cause.condition for cause in diagnosed(error).causes] == ["nccl-unhandled-cuda-error"]


TITLE = "# [Bug] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def test_the_title_of_a_report_says_what_happened() -> None:
    found = diagnosed(f"{TITLE}\nI run the example on one GPU.\n")
    assert [cause.condition for cause in found.causes] == ["gpu-oom"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"step 1 loss 2.0\n{TITLE}", id="a heading further down"),
        pytest.param("# CUDA out of memory\n\nUse a smaller batch.\n", id="a document's subject"),
        pytest.param("## RuntimeError: CUDA error: out of memory\n", id="a section of a document"),
    ],
)
def test_other_headings_are_about_errors_in_general(text: str) -> None:
    assert not diagnosed(text).causes


TOLD = "With a larger batch we are mainly in the CUDA out of memory, so I lowered it."
SHOWN = """\
```
Traceback (most recent call last):
  File "/home/lin/train.py", line 12, in <module>
    import flash_attn
ModuleNotFoundError: No module named 'flash_attn'
```
"""


def _of_report(text: str) -> list[str]:
    found = diagnose([Source("issue.md", data=text.encode())], KNOWN)
    return [cause.condition for cause in found.causes[:1]]


def test_the_exception_that_a_report_shows_counts_before_those_that_it_tells_of() -> None:
    assert _of_report(f"### Bug\n\n{TOLD}\n\n{SHOWN}") == ["script-module-missing"]
    shown_too = SHOWN.replace("```\nTrace", "```\ntorch.cuda.OutOfMemoryError: CUDA out of memory. "
                              "Tried to allocate 2.00 GiB.\nTrace", 1)  # fmt: skip
    assert _of_report(f"### Bug\n\nThe job stopped.\n\n{shown_too}") == ["gpu-oom"]
