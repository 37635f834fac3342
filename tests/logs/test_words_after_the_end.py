"""What a log says after a program has ended, or although it goes on, and whose configuration it was."""

from __future__ import annotations

import re

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.report.diagnosis import MOST_ATTEMPTS, render

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages"
HEAD = "Traceback (most recent call last):\n"
STEPS = "".join(f"step {n} loss 2.{n}\n" for n in range(5))


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="train.log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = read(text)
    return found.causes[0].condition if found.outcome is Outcome.CAUSE else found.outcome.value


def raised(error: str, *frames: str) -> str:
    """A traceback through places such as `/job/train.py:9 main`."""
    rows = ""
    for frame in frames:
        place, function = frame.rsplit(" ", 1)
        file, line = place.rsplit(":", 1)
        rows += f'  File "{file}", line {line}, in {function}\n    run()\n'
    return f"{HEAD}{rows}{error}\n"


OWN = raised("KeyError: 'text'", "/job/train.py:9 <module>", "/job/data.py:4 load")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(f"{STEPS}{OWN}训练完成！\n日志文件: /job/a.log\n", "user-code", id="uncaught"),
        pytest.param(
            f"{STEPS}Error executing job with overrides: ['a=1']\n"
            + raised("KeyError: 'text'", "/job/train.py:9 main")
            + "训练完成！\n",
            "user-code",
            id="a program of Hydra",
        ),
        pytest.param(f"{STEPS}训练完成，退出码: 1\n", "clean", id="no failure besides the status"),
        pytest.param(
            f"{STEPS}{raised('ValueError: bad row', '/job/data.py:4 load')}训练完成，退出码: 0\n",
            "clean",
            id="an exception that a function caught",
        ),
        pytest.param(
            f"{STEPS}{raised('ValueError: bad row', '/job/data.py:4 load')}训练完成，退出码: 1\n",
            "user-code",
            id="the status of a failure",
        ),
    ],
)
def test_a_script_says_that_training_is_over(text: str, outcome: str) -> None:
    assert said(text) == outcome


def test_tasks_that_nobody_waited_for_end_nothing() -> None:
    task = "Task exception was never retrieved\nfuture: <Task finished name='Task-1'>\n"
    closed = raised("RuntimeError: Event loop is closed", f"{SITE}/anyio/_core/_tasks.py:9 aclose")
    found = read(f"ERROR:asyncio:{task}{closed}" + OWN)
    assert found.outcome is Outcome.USER_CODE
    assert "KeyError" in found.summary
    alone = read(f"ERROR:asyncio:{task}{closed}")
    assert alone.outcome is Outcome.UNRECOGNISED
    assert "Event loop is closed" in alone.summary


def test_a_thread_that_fails_after_the_end_of_training() -> None:
    thread = "Exception in thread Thread-9:\n" + raised(
        "AssertionError: only in dynamic mode",
        "/usr/lib/python3.8/threading.py:932 _bootstrap_inner",
        "/job/data.py:9 __getitem__",
    )
    assert said(f"{STEPS}INFO: End of training.\n{thread}") == "clean"
    assert said(f"{STEPS}INFO: End of training soon\n{thread}") == "user-code"


BUILT = "TypeError: AdamW.__init__() got an unexpected keyword argument 'momentum'"


def test_what_a_configuration_names_is_the_scripts() -> None:
    frames = ("/job/train.py:9 main", f"{SITE}/mmcv/utils/registry.py:72 build_from_cfg")
    assert said(raised(BUILT.replace("AdamW.", "AdamW: AdamW.", 1), *frames)) == "user-code"
    refused = "AssertionError: CosineRestartLrUpdaterHook: periods should have the same length."
    assert said(raised(refused, *frames)) == "user-code"
    # not of a configuration: the call was written for another release
    called = ("/job/train.py:9 main", f"{SITE}/trl/trainer/sft_trainer.py:72 create_optimizer")
    assert said(raised(BUILT, *called)) == "dependency-version-conflict"
    native = "RuntimeError: CUDA error: an illegal memory access was encountered"
    assert said(raised(native, *frames)) == "cuda-kernel-failed"


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types:"
            " Long, Int; but got CUDABFloat16Type instead (while checking arguments for embedding)",
            id="one of several types",
        ),
        pytest.param(
            "Expected tensor for argument #1 'indices' to have scalar type Long; but got"
            " torch.FloatTensor instead (while checking arguments for embedding)",
            id="one type",
        ),
        pytest.param(
            "Input type (float) and bias type (c10::Half) should be the same", id="a convolution"
        ),
    ],
)
def test_tensors_of_a_wrong_type_are_the_scripts(message: str) -> None:
    error = f"RuntimeError: {message}"
    assert said(raised(error, f"{SITE}/torch/nn/functional.py:9 embedding")) == "user-code"


def test_a_process_group_that_lightning_did_not_make() -> None:
    error = (
        "RuntimeError: Default process group has not been initialized, please make sure to call"
        " init_process_group."
    )
    norm = f"{SITE}/torch/nn/modules/batchnorm.py:735 forward"
    assert said(raised(error, "/job/train.py:9 <module>", norm)) == "launched-without-deepspeed"
    trainer = f"{SITE}/pytorch_lightning/trainer/trainer.py:608 fit"
    assert said(raised(error, "/job/train.py:9 <module>", trainer, norm)) != (
        "launched-without-deepspeed"
    )


def test_workers_that_somebody_terminated_ran_out_of_nothing() -> None:
    killed = "RuntimeError: DataLoader worker (pid 7) is killed by signal: "
    assert said(f"{killed}Killed.\n") == "dataloader-worker-killed"
    assert said(f"{killed}Terminated.\n") == "unrecognised"


def test_infiniband_that_is_not_installed_is_no_failure() -> None:
    lines = (
        "w1:7:7 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]\n"
        "w1:7:7 [0] NCCL INFO Using network Socket\n"
    )
    assert said(lines) == "clean"
    assert said(lines.replace("open libibverbs", "read libibverbs")) != "clean"


def test_a_missing_file_is_named_without_the_end_of_the_sentence() -> None:
    line = (
        "OSError: /data/model does not appear to have a file named config.json. Checkout"
        " 'https://huggingface.co//data/model/tree/None' for available files.\n"
    )
    assert "`config.json`" in read(line).causes[0].message


def test_servers_have_no_master_port() -> None:
    bound = (
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address"
        " already in use\n"
    )
    (cause,) = read(bound).causes
    assert cause.condition == "port-in-use"
    assert "server" in cause.message
    assert "--master_port" not in cause.hint
    (other,) = read("RuntimeError: Address already in use\n").causes
    assert "--master_port" in other.hint


def test_many_starts_are_not_all_listed() -> None:
    job = "nohup: ignoring input\n" + STEPS + OWN
    few, many = (read(job * count) for count in (3, MOST_ATTEMPTS + 5))
    numbers = [
        [int(n) for n in re.findall(r"(?m)^attempt (\d+):", render(one))] for one in (few, many)
    ]
    assert numbers[0] == [1, 2, 3]
    assert len(numbers[1]) == MOST_ATTEMPTS
    assert numbers[1][-1] == MOST_ATTEMPTS + 5


def test_a_launchers_remark_ends_no_start() -> None:
    remark = (
        "Detected VISIBLE_DEVICES=0,1 but ignoring it because one or several of --include/--exclude/"
        "--num_gpus/--num_nodes cl args were used. If you want to use CUDA_VISIBLE_DEVICES don't"
        " pass any of these arguments to deepspeed.\n"
    )
    job = f"nohup: ignoring input\n{remark}{STEPS}{OWN}"
    ends = [attempt.ended_by for attempt in read(job + job).attempts]
    assert all("KeyError" in end for end in ends)


@pytest.mark.parametrize(
    "ends",
    [
        "srun: launch/slurm: _step_signal: Terminating StepId=4.0",
        "srun: Terminating job step 4.0",
    ],
)
def test_a_step_that_ends_because_a_task_failed_was_not_cancelled(ends: str) -> None:
    after = (
        "slurmstepd: error: *** STEP 4.0 ON n3 CANCELLED AT 2021-07-14T08:00:36 ***\n"
        "srun: error: n3: tasks 3,7: Killed\n"
    )
    failed = "srun: error: n3: task 5: Exited with exit code 1\n"
    assert said(f"{STEPS}{failed}{ends}\n{after}") == "unrecognised"
    assert said(f"{STEPS}{after}") == "job-cancelled"


def test_an_npu_that_waits_too_long() -> None:
    code = "NPUStream.cpp:365] Warning: NPU warning, error code is 107020[Error]: .\n"
    why = (
        "EH9999: Inner Error!\n        rtDeviceSynchronize execute failed, reason=[task timeout]"
        "[FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]\n"
    )
    assert said(f"{STEPS}[W {code}{why}") == "npu-kernel-failed"
    kernel = "[Error]: The aicore execution times out. \n"
    assert "other rank" not in read(f"{STEPS}{kernel}{why}").causes[0].message


def test_a_call_of_the_yaml_of_old() -> None:
    frames = ("/job/train.py:3 <module>", f"{SITE}/old/config.py:7 read")
    error = "TypeError: load() missing 1 required positional argument: 'Loader'"
    found = read(raised(error, *frames))
    assert found.causes[0].condition == "dependency-version-conflict"
    assert "pyyaml<6" in found.causes[0].hint


def test_rays_own_killer() -> None:
    line = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    (cause,) = read(f"{line}\n").causes
    assert cause.condition == "host-oom-killed"
    assert "Ray" in cause.message


def test_a_store_that_nobody_writes_to() -> None:
    socket = "SocketImpl(fd=4, addr=[::ffff:10.0.0.3]:38584, remote=[::ffff:10.0.0.3]:39283)"
    polled = f"[W319 11:31:42.9 socket.cpp:462] [c10d] waitForInput: poll for socket {socket} returned 0, likely a timeout\n"
    waited = f"[W319 11:31:42.9 socket.cpp:487] [c10d] waitForInput: socket {socket} timed out after 600000ms\n"
    assert said(f"{STEPS}{polled}{waited}") == "nccl-timeout-watchdog"
    other = raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert said(f"{STEPS}{polled}{waited}{other}") == "gpu-oom"


def test_the_drivers_assertion_about_a_lost_gpu() -> None:
    line = (
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: {words} [{name}] (0x0000000F) returned from"
        " rmStatus @ kernel_ce_gv100.c:106\n"
    )
    lost = line.format(words="GPU lost from the bus", name="NV_ERR_GPU_IS_LOST")
    other = line.format(words="Requested object not found", name="NV_ERR_OBJECT_NOT_FOUND")
    assert said(lost) == "gpu-hardware-fault"
    assert said(other) == "clean"


@pytest.mark.parametrize(
    ("wanted", "unused", "pieces"),
    [
        ("512.00 MiB", "6.77 GiB", True),
        ("2.00 GiB", "5.01 GiB", True),
        ("2.00 GiB", "1.01 GiB", False),
        ("7.34 GiB", "6.77 GiB", False),
        ("64.00 MiB", "705.47 MiB", False),
    ],
)
def test_memory_that_is_there_but_in_pieces(wanted: str, unused: str, pieces: bool) -> None:
    error = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted}. GPU 0 has a total"
        " capacity of 23.69 GiB of which 5.25 MiB is free. Including non-PyTorch memory, this"
        " process has 18.43 GiB memory in use. Of the allocated memory 11.14 GiB is allocated by"
        f" PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but"
        " unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        " to avoid fragmentation."
    )
    (cause,) = read(raised(error, "/job/train.py:9 main", f"{SITE}/torch/x.py:1 run")).causes
    assert cause.condition == "gpu-oom"
    assert ("expandable_segments" in cause.hint) == pieces


def test_a_worker_that_ended_by_itself_needs_no_memory() -> None:
    worker = "RuntimeError: DataLoader worker (pid 7) exited unexpectedly"
    (cause,) = read(f"{worker} with exit code 1. Details are lost\n").causes
    assert "exit code 1" in cause.message
    assert "memory" not in cause.hint
    (cause,) = read(f"{worker}\n").causes
    assert "memory" in cause.hint


def test_what_eval_generates_is_no_place() -> None:
    places = (f"{SITE}/x.py:3 read", "<string>:1 <lambda>")
    found = read(f"{STEPS}{raised('KeyboardInterrupt', *places)}").first_error
    assert found is not None
    assert found.file == "train.log"
    found = read(f"{STEPS}{raised('KeyError: 1', '/job/train.py:9 main', *places)}").first_error
    assert found is not None
    assert (found.file, found.line) == ("/job/train.py", 9)
