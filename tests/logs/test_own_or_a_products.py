"""Whose error it is: of a script that starts itself again, of C++ code, of a package being built."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.scan import Scanner
from dsdoctor.model.diagnosis import Diagnosis, Outcome

SIGNATURES = signatures_of(packs.load(builtin_only=True))
HEAD = "Traceback (most recent call last):\n"
CALLED = '  File "/home/me/export.py", line 9, in <module>\n    net = convert(net)\n'
#: What a process of a loader prints that imports the script, and what its parent prints then.
STARTED_AGAIN = (
    HEAD
    + '  File "<string>", line 1, in <module>\n'
    + '  File "C:\\Python311\\Lib\\multiprocessing\\spawn.py", line 122, in spawn_main\n'
    + '    exitcode = _main(fd, parent_sentinel)\n  File "C:\\work\\train.py", line 30, in <module>\n'
    + "    for batch in loader:\n"
    + '  File "C:\\Python311\\Lib\\multiprocessing\\spawn.py", line 140, in _check\n'
    + "    raise RuntimeError('''\nRuntimeError: \n"
    + "        An attempt has been made to start a new process before the\n"
    + "        current process has finished its bootstrapping phase.\n\n"
    + "        This probably means that you are not using fork to start your\n"
    + "        child processes and you have forgotten to use the proper idiom\n"
    + "        in the main module:\n\n            if __name__ == '__main__':\n"
)
PARENT = (
    HEAD
    + '  File "C:\\work\\train.py", line 30, in <module>\n    for batch in loader:\n'
    + '  File "C:\\e\\Lib\\site-packages\\torch\\utils\\data\\dataloader.py", line 1251, in _try\n'
    + "    raise RuntimeError(f'x') from e\n"
    + "RuntimeError: DataLoader worker (pid(s) 811) exited unexpectedly\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="a.log", data=text.encode())], SIGNATURES)


@pytest.mark.parametrize(
    "text",
    [pytest.param(STARTED_AGAIN, id="alone"), pytest.param(STARTED_AGAIN + PARENT, id="two")],
)
def test_a_script_that_starts_itself_again_is_told_what_it_lacks(text: str) -> None:
    found = read(text)
    assert found.outcome is Outcome.USER_CODE
    assert found.explained is not None
    assert '`if __name__ == "__main__":`' in found.explained.text


@pytest.mark.parametrize(
    "raised",
    [
        pytest.param(
            '  File "/e/lib/python3.10/site-packages/onnxsim/simplifier.py", line 199, in simplify\n'
            "    C.simplify(net)\n"
            "RuntimeError: /w/onnx/common/ir.h:274: find: Assertion `it != end()` failed: no 'value'\n",
            id="ONNX",
        ),
        pytest.param(
            '  File "/e/lib/python3.10/site-packages/dgl/_ffi/base.py", line 62, in check_call\n'
            "    raise DGLError(text)\n"
            "DGLError: [19:15:55] /opt/dgl/src/graph/./unit_graph.h:61: Not for this graph.\n",
            id="dmlc",
        ),
    ],
)
def test_a_failed_check_of_c_code_is_not_the_scripts_own(raised: str) -> None:
    assert read(HEAD + CALLED + raised).outcome is Outcome.UNRECOGNISED


def test_a_failed_assertion_of_a_kernel_is_about_the_scripts_data() -> None:
    said = "/pytorch/aten/src/THC/Indexing.cu:361: block: [3,0,0], thread: [9,0,0] Assertion `i < n` failed.\n"
    assert read(
        said + HEAD + CALLED + "RuntimeError: CUDA error: device-side assert triggered\n"
    ).causes


@pytest.mark.parametrize("folder", ["horovod", "flash-attn_0123456789abcdef0123456789abcdef"])
def test_what_pip_builds_is_not_the_script(folder: str) -> None:
    place = f'  File "/tmp/pip-install-c74kecsx/{folder}/setup.py", line 72, in check\n'
    found = read(HEAD + place + "    import tensorflow\nKeyError: 'cuda'\n")
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.product == folder.partition("_")[0].replace("-", "_")


def test_slurm_ends_a_step_whose_cgroup_it_could_not_leave() -> None:
    left = (
        "slurmstepd: error: common_file_write_uint32s: write pid 47 to /sys/fs/cgroup/cgroup.procs"
        " failed: Device or resource busy\n"
        "slurmstepd: error: Unable to move pid 47 to init root cgroup /sys/fs/cgroup\n"
        "slurmstepd: error: error unlocking cgroup '/sys/fs/cgroup/x' : Bad file descriptor\n"
    )
    assert read("step 1 loss 3.1\nexact match 31.4\n" + left).outcome is Outcome.CLEAN
    other = "slurmstepd: error: task 0 could not be started\n"
    assert read("step 1 loss 3.1\n" + other).outcome is Outcome.UNRECOGNISED


def test_a_switch_of_the_jvm_is_no_lack_of_memory() -> None:
    started = "[INFO ][node] JVM arguments [-Xmx1g, -XX:+HeapDumpOnOutOfMemoryError]\n"
    assert read(started + "step 1\n").outcome is Outcome.CLEAN
    assert read(started + "torch.OutOfMemoryError: CUDA out of memory. Tried\n").causes


@pytest.mark.parametrize("more", [0, 60, 140])
def test_a_long_traceback_at_the_end_keeps_where_it_began(more: int) -> None:
    """The last lines of a log wait for more; the frames above them are still seen."""
    deep = '  File "/e/lib/python3.10/site-packages/torch/nn/modules/module.py", line 9, in call\n'
    text = HEAD + CALLED + f"{deep}    return f(x)\n" * more + "KeyError: 'rate'\n"
    (error,) = Scanner(()).scan(Source(name="a.log", data=text.encode())).errors
    assert error.frames[0].file == "/home/me/export.py"


def test_a_client_that_hands_out_requests_does_not_show_that_its_engine_lives() -> None:
    died = "RuntimeError: CUDA error: device-side assert triggered\n"
    bars = "".join(
        f"Adding requests:  {n}%|##  | {n}/100 [00:0{n // 10}<00:03, 94.40it/s]\n"
        for n in range(10, 90, 10)
    )
    end = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
    assert [one.condition for one in read(died + bars + end).causes] == ["cuda-kernel-failed"]
    other = bars.replace("Adding requests", "Training")
    assert read(died + other + end).outcome is not Outcome.CAUSE


def test_windows_words_below_those_of_bitsandbytes_are_about_its_library() -> None:
    said = (
        "CUDA SETUP: Loading binary d:\\e\\Lib\\site-packages\\bitsandbytes\\libbitsandbytes_cuda118.so\n"
        "[WinError 193] %1 is not a valid Win32 application\n"
        "CUDA SETUP: Problem: The main issue seems to be that the main CUDA runtime library was not"
        " detected.\n"
    )
    assert [one.condition for one in read(said).causes] == ["bitsandbytes-cuda-setup"]
    alone = "OSError: [WinError 193] %1 is not a valid Win32 application\n"
    assert [one.condition for one in read(alone).causes] == ["unsupported-on-windows"]


def test_a_traceback_whose_first_lines_were_joined_is_read() -> None:
    joined = HEAD.rstrip("\n") + CALLED + CALLED + "KeyError: 'rate'\n"
    assert read(joined).outcome is Outcome.USER_CODE


def test_what_numpy_prints_of_its_abi_explains_no_crash_after_another_failure() -> None:
    """And a script's row of keys does not end the stack that NumPy prints."""
    numpy = (
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.2 as it may crash.\n"
        'Traceback (most recent call last):  File "/home/me/ddp.py", line 4, in <module>\n'
        "    import torch\n"
        "Host: n1, Rank: 2, Local Rank: 2, GPUs: 4\n"
    )
    watchdog = (
        "[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=1296, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, Timeout(ms)=1800000) ran"
        " for 1800149 milliseconds before timing out.\n"
    )
    crash = "failed (exitcode: -11) local_rank: 1 (pid: 24) of binary: /usr/bin/python\n"
    between = "a line of the script\n" * 60
    assert [one.condition for one in read(numpy + between + watchdog + crash).causes][:1] != [
        "numpy-abi-2"
    ]
    assert [one.condition for one in read(numpy + crash).causes][:1] == ["numpy-abi-2"]


@pytest.mark.parametrize(
    ("raised", "condition"),
    [
        pytest.param("RuntimeError: Non-finite loss", "training-diverged", id="non-finite"),
        pytest.param("ValueError: Loss is nan, stopping training", "training-diverged", id="nan"),
        pytest.param("AssertionError: infinite loss at step 7", "training-diverged", id="infinite"),
        pytest.param("KeyError: 'nan_loss'", None, id="a key"),
        pytest.param("ValueError: unknown loss 'nanny', expected mse", None, id="a name"),
    ],
)
def test_a_script_that_stops_itself_for_its_loss(raised: str, condition: str | None) -> None:
    found = read("step 1 loss 3.1\n" + HEAD + CALLED + raised + "\n")
    assert next((one.condition for one in found.causes), None) == condition


def test_long_rows_of_dashes_divide_a_report_and_underline_no_heading() -> None:
    report = (
        "Model 0 trained for an epoch of the data in about nine minutes as before\n"
        "Model 0 validation run time : 852.529s, which is the time of the whole epoch\n"
        f"{'-' * 80}\n"
    )
    end = "slurmstepd: error: *** STEP 6.0 ON n1 CANCELLED AT 2026-06-20T19:13:47 DUE TO TIME LIMIT ***\n"
    assert [one.condition for one in read(report * 70 + end).causes] == ["job-time-limit"]


def test_the_build_of_an_image_that_ends_in_pip_has_failed() -> None:
    pip = "Processing /workspace/apex\n  Getting requirements to build wheel: started\n"
    assert read(
        pip + "  Getting requirements to build wheel: finished with status 'done'\n"
    ).outcome is (Outcome.CLEAN)
    failed = read(pip + "  Getting requirements to build wheel: finished with status 'error'\n")
    assert failed.outcome is Outcome.UNRECOGNISED


@pytest.mark.parametrize(
    ("raised", "own"),
    [
        pytest.param("ValueError: expected 3 channels, got 4", True, id="an argument"),
        pytest.param("ImageFileError: Cannot read /data/a.nii", True, id="a file"),
        pytest.param(
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
            True,
            id="sizes",
        ),
        pytest.param("NotImplementedError: no such basis", False, id="not implemented"),
        pytest.param(
            "AttributeError: 'Mesh' object has no attribute 'dim'", False, id="its object"
        ),
        pytest.param("RuntimeError: the solver did not converge", False, id="its own failure"),
        pytest.param("MeshError: groups overlap", False, id="its own class"),
    ],
)
def test_what_a_library_outside_the_stack_raises(raised: str, *, own: bool) -> None:
    """A fault of the script only where the words are about what it passed."""
    frame = '  File "/e/lib/python3.10/site-packages/meshmode/mesh.py", line 7, in make\n    go()\n'
    found = read(HEAD + CALLED + frame + raised + "\n")
    assert found.outcome is (Outcome.USER_CODE if own else Outcome.UNRECOGNISED)
    assert own or (found.raised_by is not None and found.raised_by.product == "meshmode")
