"""The first cause by what happened: other ranks' echoes, time, launchers, retries, restarts.

Over 400 lines because each rule of the first cause has a log of its own here.
"""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.progress import step_of
from dsdoctor.model.diagnosis import Attempt, Diagnosis, Outcome
from dsdoctor.report import diagnosis as report

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(*texts: str) -> Diagnosis:
    sources = [Source(name=f"{n}.log", data=text.encode(), rank=n) for n, text in enumerate(texts)]
    return diagnose(sources if len(texts) > 1 else [Source("log", data=texts[0].encode())], KNOWN)


def said(*texts: str) -> str:
    found = read(*texts)
    return found.causes[0].condition if found.causes else found.outcome.value


def steps(first: int, last: int) -> str:
    return "".join(f"step {n} loss 2.{n % 10}\n" for n in range(first, last))


def key_error(rank: int) -> str:
    tag = f"[rank{rank}]: "
    return (
        f"{tag}Traceback (most recent call last):\n"
        f'{tag}  File "/home/me/train.py", line 30, in main\n{tag}    batch["labels"]\n'
        f"{tag}KeyError: 'labels'\n"
    )


def watchdog(rank: int, clock: str = "07:18:09.5") -> str:
    return (
        f"[rank{rank}]:[E506 {clock} ProcessGroupNCCL.cpp:633] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=1, "
        "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )


REMOTE = (
    "[rank4]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, remote process "
    "exited or there was a network error, NCCL version 2.20.5\n"
    "[rank4]: ncclRemoteError: A call failed possibly due to a network error or a remote process "
    "exiting prematurely.\n"
)
SEGV = "!!!!!!! Segfault encountered !!!!!!!\nFatal Python error: Segmentation fault\n"
REPORT = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
train.py FAILED
Failures:
[1]:
  time      : 2024-05-06_07:08:20
  host      : n1
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 11)
Root Cause (first observed failure):
[0]:
  time      : 2024-05-06_07:08:09
  host      : n1
  rank      : {rank} (local_rank: 1)
  exitcode  : {code} (pid: 12)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
"""
OOM = "[rank{}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(key_error(13) + watchdog(5) + REMOTE, "user-code", id="an exception"),
        pytest.param(watchdog(5) + key_error(13), "user-code", id="... below what follows from it"),
        pytest.param(SEGV + REMOTE + watchdog(2), "native-crash", id="a signal"),
        pytest.param(
            watchdog(2) + REMOTE + "train.py exits with return code = -11\n", "native-crash",
            id="an exit code",
        ),
        pytest.param(
            "slurmstepd: error: *** JOB 4 ON n1 CANCELLED AT 2024-05-06T07:08:09 DUE TO PREEMPTION "
            "***\n" + REMOTE + "srun: error: n2: task 1: Killed\n", "job-preempted",
            id="the scheduler",
        ),
        pytest.param("^CTraceback (most recent call last):\nKeyboardInterrupt\n" + REMOTE,
                     "interrupted-by-user", id="the user"),
        pytest.param(watchdog(0) + watchdog(1), "nccl-timeout-watchdog", id="nothing but echoes"),
    ],
)  # fmt: skip
def test_what_happened_explains_what_the_other_ranks_print(text: str, wanted: str) -> None:
    assert said(steps(1, 40) + text) == wanted


def test_the_first_by_time_where_ranks_have_files_of_their_own() -> None:
    late = "2024-05-06 07:09:30 [INFO] x\n" + OOM.format(0)
    early = "2024-05-06 07:08:00 [INFO] x\nOSError: [Errno 28] No space left on device: 'a.pt'\n"
    found = read(late, early)
    assert found.causes[0].condition == "disk-full"
    assert found.decided_by == "by time: after 05-06 07:08:00, gpu-oom after 05-06 07:09:30"


FALLEN = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'x'\n"
RANK_1 = "[rank1]:[E506 07:09:30.1 ProcessGroupNCCL.cpp:1] ncclRemoteError: a peer has exited\n"


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        pytest.param(
            "2024-05-06 07:08:00 [INFO] step 5\n" + FALLEN, False, id="a time of the line above"
        ),
        pytest.param("2024-05-06 07:08:00 [ERROR] " + FALLEN, True, id="a time of its own"),
    ],
)
def test_a_traceback_has_no_time_but_its_own(text: str, claimed: bool) -> None:
    found = read(text + RANK_1)
    assert found.outcome.value == "user-code"
    assert ("failed at" in found.decided_by) is claimed
    assert "follows from the death of a rank" in found.decided_by or claimed


def test_torchrun_says_which_rank_failed_first() -> None:
    both = OOM.format(0) + "[rank1]: OSError: [Errno 28] No space left on device: 'a.pt'\n"
    for rank, wanted in ((0, "gpu-oom"), (1, "disk-full")):
        found = read(both + REPORT.format(rank=rank, code=1))
        assert found.causes[0].condition == wanted
        assert f"rank {rank}" in found.decided_by


def test_an_exit_code_in_the_report_is_enough() -> None:
    assert said(steps(1, 9) + REPORT.format(rank=1, code=-11)) == "native-crash"


RETRY = (
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): "
    "Max retries exceeded with url: /api/models/x\n"
)


def test_what_healed_is_no_cause_though_the_run_fails_later() -> None:
    assert said(RETRY) == "hub-unreachable"
    assert said(RETRY + steps(1, 40) + key_error(0)) == "user-code"
    assert said(steps(1, 9) + watchdog(1) + steps(9, 40) + key_error(0)) == "user-code"


def test_a_step_that_other_ranks_still_finish_heals_nothing() -> None:
    assert said(steps(1, 30) + OOM.format(1) + steps(30, 31)) == "gpu-oom"


def test_a_bar_that_is_drawn_again_at_the_end_is_no_step() -> None:
    bar = " 12%|# | 120/1000 [00:40<04:53,  3.00it/s]"
    assert said(f"{bar}\n{OOM.format(0)}{bar}\n") == "gpu-oom"


def test_a_traceback_behind_an_unfinished_line_of_another_rank_keeps_its_frames() -> None:
    found = read(
        "steps: 3 loss: 0.6667\n"
        "steps: 4 loss: 0.5000[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/home/user/train.py", line 11, in <module>\n'
        '[rank1]:     {}["missing"]\n'
        "[rank1]: KeyError: 'missing'\n"
    )
    assert found.first_error is not None
    assert (found.first_error.rank, found.first_error.line) == (1, 11)
    assert found.first_error.file == "/home/user/train.py"


def test_text_behind_a_bar_is_a_line_of_its_own() -> None:
    assert said("Loading:   0%|          | 0/4 [00:00<?, ?it/s]Killed\n") == "host-oom-killed"


AGAIN = (
    "E0506 07:08:10 torch/distributed/elastic/agent/server/api.py:899] [default] Worker group FAILED. "
    "1/2 attempts left; will restart worker group\n"
)


def test_attempts_are_told_apart() -> None:
    found = read(steps(1, 9) + OOM.format(1) + AGAIN + steps(1, 40) + key_error(1))
    assert found.outcome is Outcome.USER_CODE
    assert [attempt.number for attempt in found.attempts] == [1, 2]
    assert "memory" in found.attempts[0].ended_by
    assert found.attempts[1].ended_by == "KeyError: 'labels'"


RAY = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly. There are some potential root "
    "causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray "
    "stop --force is called.\n"
)


def test_what_a_product_explains_is_no_evidence() -> None:
    assert said(RAY) == "unrecognised"
    assert said(RAY + key_error(0)) == "user-code"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param("RuntimeError: CUDA error: unknown reason\n", id="an unknown error of CUDA"),
        pytest.param(
            "torch.AcceleratorError: CUDA error: something odd\n",
            id="an unknown error of an accelerator",
        ),
        pytest.param(
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://x.org\n",
            id="a login that was rejected",
        ),
        pytest.param("OSError: [Errno 71] Protocol error: '/data/x'\n", id="a protocol error"),
    ],
)
def test_what_is_not_the_scripts_is_not_called_so(error: str) -> None:
    head = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n'
    assert read(head + error).outcome is not Outcome.USER_CODE


def test_a_refusal_of_deepspeed_is_not_the_scripts() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n'
        '  File "/x/site-packages/deepspeed/runtime/engine.py", line 7, in step\n'
        "AssertionError: must call backward first\n"
    )
    found = read(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.product == "deepspeed"


def test_a_bar_that_prints_the_step_of_the_failure_has_not_outlived_it() -> None:
    bars = "".join(f" 1%|# | {n}/1000 [00:40<04:53,  3.00it/s]\n" for n in range(30, 41))
    text = (
        steps(30, 41) + key_error(3) + bars + "[rank0]: RuntimeError: Connection closed by peer\n"
    )
    assert said(bars.replace("40/", "39/") + text) == "user-code"


def test_a_rank_that_ends_first_and_says_nothing_is_not_explained_by_what_others_say() -> None:
    lost = (
        "[rank0]: RuntimeError: gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]\n"
    )
    found = read(steps(1, 40) + lost + REPORT.format(rank=1, code=3))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith("rank 1 ended first, with exit status 3")


DEEPSPEED = (
    "[2026-05-06 07:08:09,046] [INFO] [launch.py:169:main] dist_world_size={world}\n"
    "{said}"
    "[2026-05-06 07:08:24,198] [INFO] [launch.py:253:sigkill_handler] Killing subprocess 27362\n"
    "[2026-05-06 07:08:24,260] [ERROR] [launch.py:259:sigkill_handler] ['python3', '-u', "
    "'train.py', '--local_rank=1'] exits with return code = {code}\n"
)
LOST = (
    "[rank{rank}]: Traceback (most recent call last):\n"
    '[rank{rank}]:   File "/home/me/train.py", line 12, in train\n'
    "[rank{rank}]: RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection "
    "closed by peer [127.0.0.1]:18618\n"
)


@pytest.mark.parametrize(
    ("world", "code", "summary"),
    [
        (2, 3, "rank 0 ended first, with exit status 3, "),
        (3, 3, "a process ended first, with exit status 3, "),
    ],
)
def test_of_a_process_that_chose_its_status_deepspeeds_launcher_tells_no_more(
    world: int, code: int, summary: str
) -> None:
    text = DEEPSPEED.format(world=world, said=LOST.format(rank=1), code=code)
    found = read(steps(1, 40) + text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith(summary)
    assert found.first_error is None


@pytest.mark.parametrize("code", [1, 137])
def test_an_exception_and_a_signal_choose_no_status(code: int) -> None:
    text = DEEPSPEED.format(world=2, said=LOST.format(rank=1), code=code)
    found = read(steps(1, 40) + text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith("rank 0 ended without a message, ")


def test_an_exception_of_its_own_is_the_reason_of_any_status() -> None:
    text = DEEPSPEED.format(world=2, said=key_error(0) + LOST.format(rank=1), code=3)
    assert said(steps(1, 40) + text) == "user-code"


def test_a_run_that_trains_below_the_death_of_another_is_healthy() -> None:
    died = steps(1, 30) + key_error(1) + REPORT.format(rank=1, code=1)
    assert said(died + steps(1, 90)) == "clean"
    assert said(steps(1, 90) + died) == "user-code"


@pytest.mark.parametrize(
    ("before", "wanted"),
    [("", "native-crash"), ("RuntimeError: DataLoader worker (pid 8)\n", "shm-too-small")],
)
def test_a_bus_error_is_one_of_shared_memory_where_the_log_shows_its_use(
    before: str, wanted: str
) -> None:
    assert said(before + "  exitcode  : -7 (pid: 22)\n") == wanted


OPENING = """\
Loading the tokenizer of model seven
Found 120 files in the data folder
Building the optimizer with 4 groups
Compiling the model for this device
Starting to train
"""
MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
FULL = "OSError: [Errno 28] No space left on device: '/data/out/x.pt'\n"


def test_the_last_of_several_runs_in_one_log_counts() -> None:
    text = OPENING + MEMORY + OPENING.replace("120", "135") + FULL
    found = read(text)
    assert said(text) == "disk-full"
    assert found.attempts[0].ended_by.startswith("The GPU ran out of memory")
    assert said(OPENING + FULL + OPENING + MEMORY) == "gpu-oom"


def test_nohup_and_launchers_begin_a_run() -> None:
    assert (
        said("nohup: ignoring input\n" + MEMORY + "nohup: ignoring input\n" + FULL) == "disk-full"
    )
    once = "[INFO] [runner.py:568:main] cmd = /usr/bin/python3 -u -m deepspeed.launcher.launch\n"
    assert said(once + MEMORY + once + FULL) == "disk-full"


def test_a_run_that_had_hardly_begun_leaves_the_one_before_it() -> None:
    assert said(OPENING + MEMORY + OPENING) == "gpu-oom"
    assert said(OPENING + MEMORY + OPENING + steps(1, 60)) == "clean"


def test_lines_that_recur_within_a_run_begin_none() -> None:
    block = "".join(f"{word} of this step is 0.5\n" for word in "abcdef")
    assert said(block * 3 + MEMORY + block + FULL) == "gpu-oom"


def test_a_healthy_run_after_one_that_died_is_clean() -> None:
    died = "ERROR: failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: python\n"
    assert said(steps(1, 9) + died + steps(1, 60)) == "clean"


def test_an_exception_that_python_ignores_is_not_the_cause() -> None:
    text = (
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n"
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/torch/utils/data/dataloader.py", line 9, in __del__\n'
        "    self._shutdown_workers()\n"
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Aborted.\n"
    )
    assert said(text + key_error(0)) == "user-code"
    assert said(text) == said(text.split("\n", 1)[1]) == "dataloader-worker-killed"


IGNORED_AT_EXIT = (
    "Exception ignored in atexit callback: <function matmul_ext_update_autotune_table at 0x7f>\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/env/lib/python3.11/site-packages/deepspeed/ops/transformer/inference/triton/'
    'matmul_ext.py", line 105, in put\n'
    '    os.replace(self.file_path + ".tmp", self.file_path)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: "
    "'/home/user/.triton/autotune/Fp16Matmul_2d_kernel.pickle.tmp' -> "
    "'/home/user/.triton/autotune/Fp16Matmul_2d_kernel.pickle'\n"
)


def test_an_exception_that_python_ignores_at_the_end_of_a_good_run_is_no_failure() -> None:
    assert said(steps(1, 40) + IGNORED_AT_EXIT) == "clean"
    died = steps(1, 40) + IGNORED_AT_EXIT + "train.py exits with return code = -11\n"
    assert said(died) != "clean"


def test_an_ignored_exception_that_two_ranks_write_into_each_other_is_no_cause() -> None:
    head, trace, *frames, end = IGNORED_AT_EXIT.splitlines(keepends=True)
    both = [head, trace, frames[0], head, trace, *frames[1:], end, *frames, end]
    written = "".join(f"1: {line}" for line in both)
    failed = "".join(f"0: {line}" for line in key_error(0).splitlines(keepends=True))
    assert said(steps(1, 40) + written + failed) == "user-code"


def test_a_wrong_call_of_the_logger_ends_no_run() -> None:
    site = '  File "/opt/env/lib/python3.11/logging/__init__.py", line '
    text = (
        "--- Logging error ---\nTraceback (most recent call last):\n"
        f"{site}1110, in emit\n    msg = self.format(record)\n"
        f"{site}377, in getMessage\n    msg = msg % self.args\n"
        "TypeError: not all arguments converted during string formatting\n"
        'Call stack:\n  File "/home/user/train.py", line 9, in <module>\n    main()\n'
        "Message: 'loss'\nArguments: (3,)\n"
    )
    assert said(steps(1, 3) + text + steps(4, 9)) == said(steps(1, 9) + text) == "clean"
    assert said(steps(1, 3) + text.split("\n", 1)[1]) != "clean"


def test_a_helper_process_that_outlives_its_rank_is_not_the_cause() -> None:
    helper = (
        "Uncaught exception in compile_worker subprocess\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/torch/_inductor/compile_worker/__main__.py", '
        "line 38, in main\n"
        "OSError: [Errno 107] Transport endpoint is not connected\n"
    )
    assert said(key_error(0) + helper) == "user-code"


def test_source_text_of_a_traceback_is_no_evidence() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 30, in main\n'
        "    raise RuntimeError('No space left on device' if full else 'wrong key')\n"
        "RuntimeError: wrong key\n"
    )
    assert said(text) == "user-code"


def test_what_a_script_passes_to_thin_functions_of_torch_is_its_own() -> None:
    head = 'Traceback (most recent call last):\n  File "{}", line 30, in main\n    f(x)\n'
    inner = '  File "/x/site-packages/torch/functional.py", line 9, in norm\n    return g(x)\n'
    words = "RuntimeError: norm(): Expected a floating point tensor as input. Got Long\n"
    assert said(head.format("/home/me/train.py") + inner + words) == "user-code"
    library = head.format("/x/site-packages/transformers/trainer.py")
    assert said(library + inner + words) == "unrecognised"


def test_a_refused_option_is_not_the_cause_of_a_later_start() -> None:
    usage = "usage: t.py [--a A]\nt.py: error: argument --a: expected one argument\n"
    later = 'Traceback (most recent call last):\n  File "/home/me/t.py", line 3, in <module>\n'
    assert said(usage + later + "    import x\nKeyboardInterrupt\n") == "interrupted-by-user"
    assert said(usage) == "script-option-refused"


def test_the_traceback_behind_a_colon_is_the_reason() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/ray/_private/function_manager.py", line 608, in method\n'
        "RuntimeError: The actor failed to import on the worker:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/flash_attn/__init__.py", line 3, in <module>\n'
        "ImportError: /x/flash_attn_2_cuda.so: undefined symbol: _ZNK3c1011StorageImpl27throwEv\n"
    )
    assert said(text) == "cxx-abi-undefined-symbol"


def test_a_message_long_before_the_end_of_a_log_without_a_death_is_a_warning() -> None:
    warned = "WARNING: bf16 is not supported on this device\n"
    assert said(warned) == "bf16-unsupported"
    assert said(warned + "".join(f"part {n} is done\n" for n in range(60))) == "clean"


def test_a_log_that_ends_with_a_native_failure_is_not_clean() -> None:
    words = "n1:1:2 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 has checked in twice\n"
    assert said("Loading\n" + words) == "unrecognised"
    assert said(words + "Loading\nSaving\n" * 8) == "clean"


def test_a_line_of_another_count_is_not_progress() -> None:
    log = "[INFO] [logging.py:68:log_dist] [Rank 0] step=80000, skipped=0, lr=[0.0003]\n"
    bus = "[n1:1:0:2] Caught signal 7 (Bus error: nonexistent physical address)\n"
    bar = "Epoch 10/50 loss : 1.086 [INFO] [launch.py:286:sigkill_handler] Killing subprocess 2\n"
    assert said(log + bus + bar) == "shm-too-small"


def test_a_restart_of_which_the_agent_says_nothing_is_seen_by_the_steps_below_it() -> None:
    failed = "E1122 09:50:03.1 17 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)\n"
    found = read(steps(1, 40) + key_error(2) + failed + steps(1, 60) + OOM.format(3))
    assert [attempt.ended_by for attempt in found.attempts] == [
        "KeyError: 'labels'",
        "The GPU ran out of memory",
    ]
    assert found.causes[0].condition == "gpu-oom"


def test_a_failure_of_all_ranks_is_one_failure_though_its_lines_are_kept_of_a_few() -> None:
    text = "".join(
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/venv/lib/python3.11/site-packages/torch/serialization.py", line 834, in __exit__\n'
        f"[rank{rank}]: RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos {rank} vs 0\n"
        + "[rank0]: more\n"
        * 20
        for rank in range(12)
    )
    assert said(text) == "disk-full"


LIMIT = (
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-06-25T00:45:57 DUE TO TIME LIMIT ***\n"
)


def test_what_a_run_outlived_by_a_thousand_lines_did_not_end_it() -> None:
    calm = "".join(f"answered request {n} in 8 s\n" for n in range(1200))
    assert said(MEMORY + calm + LIMIT) == "job-time-limit"
    assert said(MEMORY + calm[:900] + LIMIT) == "gpu-oom"
    assert said(key_error(0) + calm + FULL) == "disk-full"
    # the ranks that wait give up one by one, long before the end
    late = "".join(watchdog(rank) + "[rank0]: stack\n" * 60 for rank in range(1, 9))
    assert said(key_error(0) + calm + late) == "user-code"


def test_a_run_that_only_waited_has_not_outlived_what_its_end_follows_from() -> None:
    denied = "node-c: Permission denied (publickey).\n"
    waits = "".join(f"node-b: waiting for the other ranks ({n} s)\n" for n in range(1200))
    late = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 24/32 clients joined.\n"
    assert said(denied + waits + late) == "hostfile-or-ssh-problem"
    # it trained meanwhile
    steps = "".join(f"step: {n} loss: 2.31\n" for n in range(1200))
    assert said(denied + steps + late) == "rendezvous-timeout"
    # a file that is missing explains no rank that is missing
    assert said(FULL + waits + late) == "rendezvous-timeout"
    # what no condition knows does not follow from it
    assert said(denied + waits + late + waits[:900] + key_error(0)) != "hostfile-or-ssh-problem"


def test_a_child_whose_parent_died_while_it_was_started_is_an_echo() -> None:
    child = (
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
        '  File "/x/lib/python3.10/multiprocessing/spawn.py", line 116, in spawn_main\n'
        '  File "/x/lib/python3.10/multiprocessing/spawn.py", line 126, in _main\n'
        "    self = reduction.pickle.load(from_parent)\n"
        "_pickle.UnpicklingError: pickle data was truncated\n"
    )
    assert said(child + key_error(0)) == "user-code"
    assert said(child) == "unrecognised"


def test_what_a_library_of_the_script_refuses_is_its_own() -> None:
    head = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    inner = '  File "/x/site-packages/{}/read.py", line 9, in read\n    raise error\n'
    words = "OSError: clip.mp4 has a duration of 70 seconds, expected more\n"
    assert said(head + inner.format("moviepy") + words) == "user-code"
    assert said(head + inner.format("transformers") + words) == "unrecognised"
    io = "OSError: [Errno 5] Input/output error: 'clip.mp4'\n"
    assert said(head + inner.format("moviepy") + io) != "user-code"


def test_one_bar_behind_a_failure_is_no_progress() -> None:
    scale = "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n"
    end = "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 7\n"
    bar = "  4%|# | 17/387 [05:25<1:57:56, 19.13s/it]\n"
    assert said(scale + bar + end) == "training-diverged"
    bars = "".join(f"  4%|# | {n}/387 [05:25<1:57:56, 19.13s/it]\n" for n in range(17, 22))
    assert said(scale + bars) == "clean"


def test_words_at_the_end_of_a_bar_that_never_ended() -> None:
    bars = "".join(f"Map:   0%|  | {n}/19996 [00:00<01:18, 254 examples/s]" for n in range(90))
    assert said(bars + "Terminated\n") == "unrecognised"
    assert said(bars + "\n") == "clean"


def test_starts_of_which_nothing_is_known_are_one_line() -> None:
    ends = ("", "", "The GPU ran out of memory", "", "KeyError: 'x'")
    found = Diagnosis(
        outcome=Outcome.UNRECOGNISED,
        summary="no cause is known",
        attempts=tuple(
            Attempt(number=number, ended_by=words) for number, words in enumerate(ends, 1)
        ),
    )
    told = [line for line in report.render(found).splitlines() if line.startswith("attempt")]
    assert told == [
        "attempts 1 to 2: the log does not show what ended them",
        "attempt 3: The GPU ran out of memory",
        "attempt 4: the log does not show what ended it",
        "attempt 5: KeyError: 'x'",
    ]


def test_a_rank_that_the_agent_kills_after_the_first_failure_is_no_cause() -> None:
    killed = (
        "  exitcode  : -9 (pid: 31)\n  traceback : Signal 9 (SIGKILL) received by PID 31\n"
        "Root Cause (first observed failure):\n"
    )
    text = REPORT.replace("Root Cause (first observed failure):\n", killed)
    assert killed in text
    assert said(steps(1, 9) + text.format(rank=1, code=1)) == "unrecognised"
    assert said(steps(1, 9) + text.format(rank=1, code=-9)) == "host-oom-killed"


def test_a_rank_that_sigkill_ended_comes_before_the_transfers_that_its_peers_lost() -> None:
    transfer = (
        "worker-0: ncclRemoteError: A call failed possibly due to a network error or a remote "
        "process exiting prematurely.\nworker-0: Last error:\nworker-0: NET/IB: Got completion "
        "from peer 10.1.0.3 with status=12 opcode=0 len=0 vendor err 129 (Recv)\n"
    )
    ended = (
        "worker-{}: [ERROR] [launch.py:325:sigkill_handler] ['t.py'] exits with return code = {}\n"
    )
    own, lost = ended.format(2, -9), ended.format(0, -6)
    assert said(steps(1, 9) + transfer + own + lost) == "host-oom-killed"
    assert said(steps(1, 9) + transfer + lost) == "nccl-ib-or-socket-interface"


def test_a_key_that_a_container_does_not_have_was_asked_for_by_its_caller() -> None:
    head = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    inner = '  File "/x/site-packages/datasets/dataset_dict.py", line 75, in {}\n'
    assert said(head + inner.format("__getitem__") + "KeyError: 'test'\n") == "user-code"
    assert said(head + inner.format("map") + "KeyError: 'test'\n") == "unrecognised"


def test_what_fails_while_a_package_is_imported_is_not_the_scripts() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\n'
        '  File "/x/site-packages/referencing/typing.py", line 22, in {}\n'
        "TypeError: type 'Any' is not an acceptable base type\n"
    )
    assert said(text.format("<module>")) == "unrecognised"
    assert said(text.format("resolve")) == "user-code"


def test_the_store_of_ranks_that_have_ended_is_not_missed() -> None:
    closed = (
        "W0212 13:45:53.870000 1584 site-packages/torch/distributed/elastic/rendezvous/"
        "dynamic_rendezvous.py:1282] The node 'n3_1584_0' has failed to shutdown the rendezvous "
        "'955' due to an error of type RendezvousConnectionError.\n"
    )
    ended = (
        "[rank3]:[W212 13:45:51.138217909 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process "
        "group has NOT been destroyed before we destruct ProcessGroupNCCL.\n"
    )
    assert said(steps(1, 60) + ended + closed) == "clean"
    assert said("starting workers for entrypoint: python\n" + closed) == "rendezvous-timeout"


def test_a_step_whose_task_aborts_is_not_cancelled_by_anybody() -> None:
    ends = (
        "slurmstepd: error: *** STEP 42.0 ON n17 CANCELLED AT 2020-01-31T15:03:43 ***\n"
        "srun: error: n17: task 1: Killed\n"
    )
    abort = "[n17:53890] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"
    image = "FATAL:   container creation failed: mount hook function failure: mount /scratch\n"
    told = "srun: forcing job termination\n"
    assert said(steps(1, 9) + ends) == "job-cancelled"
    assert said(abort + ends) == "unrecognised"
    assert said(image + told + ends) == "container-not-started"


def test_a_job_that_srun_queues_begins_a_run() -> None:
    queued = "srun: job {} queued and waiting for resources\n"
    assert said(queued.format(1714) + MEMORY + queued.format(1720) + FULL) == "disk-full"


NCCL_CUDA = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/home/me/train.py", line 30, in main\n[rank0]:     dist.new_group(ranks)\n'
    '[rank0]:   File "/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",'
    " line 5276, in new_group\n[rank0]:     return _new_group_with_tag(\n"
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:230, unhandled cuda "
    "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n"
    "[rank0]: ncclUnhandledCudaError: Call to CUDA function failed.\n"
)
ENDED = "n{}: [2026-01-02 03:04:0{},547] [ERROR] [launch.py:341:sigkill_handler] ['python', 'train.py'] exits with return code = {}\n"


def test_a_signal_that_a_launcher_reports_after_an_exit_is_no_cause() -> None:
    assert said(NCCL_CUDA + ENDED.format(1, 2, 1) + ENDED.format(2, 3, -11)) == (
        "nccl-unhandled-cuda-error"
    )


def test_a_rank_that_raises_may_crash_while_it_ends() -> None:
    """Only an exception that follows from the death of another rank leaves the crash first."""
    crashed = ENDED.format(1, 2, -11) + ENDED.format(2, 3, 1)
    assert said(NCCL_CUDA + crashed) == "nccl-unhandled-cuda-error"
    assert said(LOST.format(rank=1) + crashed) == "native-crash"
    gone = '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/t.py", line 3, in f\n'
    gone += "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:230, remote "
    gone += "process exited or there was a network error, NCCL version 2.27.5\n"
    assert said(gone + crashed) == "native-crash"


def test_a_bar_on_the_line_of_the_schedulers_word_stands_in_front_of_it() -> None:
    bars = "".join(f"\r 60%|███| {n}/3750 [3:53:13<2:41:48,  6.43s/it]" for n in range(2200, 2307))
    word = "slurmstepd-n1: error: *** JOB 231 ON n1 CANCELLED AT 2024-06-02T18:42:45 ***\n"
    late = "\r 62%|███| 2307/3750 [4:00:13<2:26:35,  6.10s/it]\n"
    assert said(bars + word + late) == "job-cancelled"


def test_a_step_that_srun_ends_itself_is_not_cancelled_by_anybody() -> None:
    over = "slurmstepd: error: *** STEP 418.0 ON n1 CANCELLED AT 2026-01-29T13:55:18 ***\n"
    ends = "srun: Terminating StepId=418.0\n"
    assert said("srun: error: n1: task 3: Exited with exit code 1\n" + ends + over) == (
        "unrecognised"
    )
    assert said(over + ends) == "job-cancelled"
    assert said("0: [n1:43722] Signal: Aborted (6)\n" + ends + over) == "native-crash"


def test_what_the_hub_asks_of_a_name_is_said() -> None:
    hub = "/opt/env/lib/python3.11/site-packages/huggingface_hub/utils/_validators.py"
    text = (
        "Traceback (most recent call last):\n"
        f'  File "{hub}", line 160, in validate_repo_id\n    raise HFValidationError(\n'
        "huggingface_hub.errors.HFValidationError: Repo id must use alphanumeric chars or '-', '_', "
        "'.', '--' and '..' are forbidden, '-' and '.' cannot start or end the name, max length is "
        "96: 'a_long_name'.\n"
    )
    found = read(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.explained is not None
    assert "Check the name of the repository" in found.explained.text


def test_the_kernels_word_before_the_failure_of_a_rank_comes_first() -> None:
    kernel = (
        "May  6 07:08:02 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )
    error = "[2026-05-06 07:08:09,001] [INFO] step\n" + NCCL_CUDA
    sources = [
        Source(name="journal.log", data=kernel.encode()),
        Source(name="train.log", data=(error + REPORT.format(rank=0, code=1)).encode()),
    ]
    found = diagnose(sources, KNOWN)
    assert found.causes[0].condition == "gpu-hardware-fault"


def test_the_kernels_word_in_the_jobs_own_log_comes_before_the_failure_of_a_rank() -> None:
    kernel = "[ 812.4] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"
    failed = (
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/home/me/train.py", line 30\n'
        "[rank1]: RuntimeError: CUDA error: unspecified launch failure\n"
    )
    report = REPORT.format(rank=1, code=1)
    assert said(steps(1, 40) + failed + report) == "cuda-kernel-failed"
    assert said(steps(1, 40) + kernel + failed + report) == "gpu-hardware-fault"
    # as it is added to a report: what the hardware did, the program saw as a failed kernel
    assert said(steps(1, 40) + failed + report + kernel) == "gpu-hardware-fault"


def test_what_the_kernel_said_at_an_unknown_time_explains_no_exception_of_the_script() -> None:
    kernel = "[81231.1] NVRM: Xid (PCI:0000:4b:00): 63, Row Remapper: New row marked\n"
    for failed, expected in ((key_error(1), "user-code"), (NCCL_CUDA, "gpu-hardware-fault")):
        sources = [Source("train.log", data=(steps(1, 40) + failed).encode())]
        found = diagnose([*sources, Source("dmesg.txt", data=kernel.encode())], KNOWN)
        named = found.causes[0].condition if found.causes else found.outcome.value
        assert named == expected


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        pytest.param("Tue May  5 21:08:09", "gpu-hardware-fault", id="in another time zone"),
        pytest.param("Sun Apr  5 04:11:12", "user-code", id="a month before"),
    ],
)
def test_what_the_kernel_said_days_before_a_run_ended_nothing_in_it(
    date: str, expected: str
) -> None:
    kernel = f"[{date} 2026] NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus.\n"
    run = "".join(f"[2026-05-06 07:0{n}:01,001] step {n} loss 2.1\n" for n in range(8))
    sources = [Source("train.log", data=(run + key_error(0)).encode())]
    found = diagnose([*sources, Source("dmesg.txt", data=kernel.encode())], KNOWN)
    assert (found.causes[0].condition if found.causes else found.outcome.value) == expected


def test_a_page_fault_that_a_program_caused_is_no_fault_of_the_hardware() -> None:
    kernel = "NVRM: Xid (PCI:0000:4b:00): {}, pid=991, name=python, Ch 00000008\n"
    assert said(kernel.format(31) + key_error(0)) == "user-code"
    assert said(kernel.format(48) + key_error(0)) == "gpu-hardware-fault"


def test_what_nccl_says_of_its_peers_behind_the_summary_of_a_run_is_no_failure() -> None:
    peers = "n1:71:99 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<4>\n"
    summary = "{'train_runtime': 1201.2, 'train_loss': 1.01, 'epoch': 3.0}\n"
    assert said(steps(1, 90) + peers) != "clean"
    assert said(steps(1, 90) + summary + peers) == "clean"


def test_a_pod_that_waited_for_gpus_and_got_them_has_not_failed_by_it() -> None:
    waiting = "6h  Warning  FailedScheduling  pod/w-0  0/9 nodes are available: 9 Insufficient nvidia.com/gpu.\n"
    assigned = "5h  Normal  Scheduled  pod/w-0  Successfully assigned train/w-0 to gpu-3\n"
    assert said(waiting) == "container-not-started"
    assert said(waiting + assigned) == "clean"


def test_a_line_that_counts_its_iterations_of_nan_is_progress_while_there_are_none() -> None:
    def iteration(n: int, nans: int) -> str:
        return (
            f" [2026-05-06 07:08:02.1] iteration {n:8d}/ 500000 | lm loss: 2.1{n % 10} | loss scale: "
            f"1.0 | number of skipped iterations:   0 | number of nan iterations: {nans:3d} |\n"
        )

    assert said(key_error(2) + "".join(iteration(n, 0) for n in range(40, 90))) == "clean"
    assert step_of(iteration(7, 0)) == (0, "s", 7.0)
    assert step_of(iteration(7, 1)) is None


def test_a_message_of_startup_fits_no_failure_below_steps() -> None:
    error = "RuntimeError: cuda runtime error (30) : unknown error at THCGeneral.cpp:50\n"
    assert said(error) == "cuda-init-driver-state"
    assert said(steps(1, 90) + error) == "unrecognised"


def test_a_node_whose_ssh_connection_is_closed_below_steps_was_reached() -> None:
    status = "pdsh@head: n2: ssh exited with exit code 255\n"
    closed = "n2: Connection to n2 closed by remote host.\n" + status
    assert said(status) == "hostfile-or-ssh-problem"
    assert said(steps(1, 90) + closed) == "peer-connection-lost"


def test_an_agent_that_loses_a_rendezvous_it_had_joined_has_lost_its_peer() -> None:
    error = (
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the"
        " C10d store has failed. See inner exception for details.\n"
    )
    heartbeat = (
        "W0506 07:08:09.331000 71 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1254]"
        " The node 'gpu-b_71_0' has failed to send a keep-alive heartbeat to the rendezvous '77'"
        " due to an error of type RendezvousConnectionError.\n"
    )
    assert said(error) == "rendezvous-timeout"
    assert said(steps(1, 90) + heartbeat + error) == "peer-connection-lost"


def test_text_that_goes_on_far_below_its_exception_between_the_lines_of_many_ranks() -> None:
    head = "{0:2}: Traceback (most recent call last):\n{0:2}: RuntimeError: Error(s) in loading state_dict for Net:\n"
    rest = "{:2}: \tsize mismatch for w: copying a param with shape torch.Size([4]) from checkpoint, the shape in current model is torch.Size([0]).\n"
    text = "".join(map(head.format, range(16))) + "".join(map(rest.format, range(16)))
    assert said(text) == "zero3-empty-weights"


def test_a_job_that_waits_for_a_host_that_refused_is_not_taken_for_one_that_goes_on() -> None:
    start = "[2026-05-06 07:00:03,210] [INFO] [launch.py:256:main] process 4 spawned with command: ['python']\n"
    refused = "n2: ssh: connect to host n2 port 22: Connection refused\n"
    loading = "".join(f"n1: Loading checkpoint shards: {n} done\n" for n in range(60))
    bar = "n1: Loading checkpoint shards: 100%|####| 4/4 [00:11<00:00,  2.77s/it]\n"
    assert said(start + refused + loading + bar) == "hostfile-or-ssh-problem"


def test_the_number_of_a_node_in_front_of_a_line_is_not_a_rank() -> None:
    text = (
        "1: [2026-05-06 07:08:01,001] [WARNING] [engine.py:4437:load_checkpoint] Unable to find "
        "latest file at ckpt/latest, if trying to load latest checkpoint please ensure this file "
        "exists or pass an explicit checkpoint tag when loading a checkpoint.\n"
        + "".join(f"1: {line}\n" for line in key_error(9).splitlines())
    )
    assert said(text.replace("1: ", "")) == "checkpoint-mismatch"
    assert said(text) == "checkpoint-mismatch"


def test_memory_that_could_not_be_allocated_is_not_called_a_kill() -> None:
    error = "MemoryError: Unable to allocate 212. GiB for an array with shape (8000, 2048, 32000)\n"
    found = read("Traceback (most recent call last):\n" + error)
    assert found.causes[0].condition == "host-oom-killed"
    assert found.summary == "Host memory ran out: an allocation failed"
    assert (
        "SIGKILL, which the kernel" in read(steps(1, 9) + "train.sh: line 3: 12 Killed\n").summary
    )


MPIRUN = "mpirun noticed that process rank 1 with PID 4711 on node n1 exited on signal {}.\n"


def test_mpirun_reports_a_crash_of_a_rank() -> None:
    assert said(steps(1, 9) + MPIRUN.format("11 (Segmentation fault)")) == "native-crash"
    assert said(steps(1, 9) + MPIRUN.format("4 (Illegal instruction: 4)")) == "native-crash"
    assert said(steps(1, 9) + MPIRUN.format("15 (Terminated)")) == "unrecognised"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "mpirun detected that one or more processes exited with non-zero status, thus causing",
            id="Open MPI",
        ),
        pytest.param("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", id="MPICH"),
        pytest.param(
            "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
            id="Ray",
        ),
    ],
)
def test_a_job_that_mpi_or_ray_calls_dead_is_not_called_sound(line: str) -> None:
    assert said(steps(1, 9) + line + "\n") == "unrecognised"
    assert said(steps(1, 9) + line + "\n" + steps(9, 60)) == "clean"  # it went on


def test_a_time_limit_does_not_explain_an_exception_just_above_it() -> None:
    limit = "slurmstepd: error: *** JOB 412 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***"
    assert said(key_error(0) + limit + "\n") == "user-code"
    assert said(steps(1, 9) + limit + "\n") == "job-time-limit"


def test_what_a_server_answers_is_not_the_scripts() -> None:
    call = (
        'Traceback (most recent call last):\n  File "/home/me/ask.py", line 9, in <module>\n'
        '    answer = client.create()\n  File "/x/site-packages/openai/_base_client.py", line 7, in'
        " request\n    raise error from None\nopenai.APIStatusError: Error code: {} - {{'x': 1}}\n"
    )
    assert said(call.format(402)) == said(call.format(503)) == "unrecognised"
    assert said(call.format(422)) == "user-code"


def test_a_worker_that_a_closed_terminal_ended() -> None:
    assert (
        said(
            'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
            "    step()\nRuntimeError: DataLoader worker (pid 25432) is killed by signal: Hangup. \n"
        )
        == "terminal-closed"
    )


def test_what_is_raised_while_an_interrupt_is_handled_follows_from_it() -> None:
    """Also in the last of many processes, of whose interrupts only the first are kept."""
    frames = '  File "/t.py", line 3, in f\n    f()\n' * 30
    stopped = f"Traceback (most recent call last):\n{frames}KeyboardInterrupt\n\n"
    handling = "During handling of the above exception, another exception occurred:\n\n"
    lock = stopped.replace("KeyboardInterrupt", "RuntimeError: release unlocked lock")
    assert said(steps(1, 9) + stopped * 7 + handling + lock) == "interrupted-by-user"


def test_a_second_signal_only_ends_the_shutdown_that_the_first_began() -> None:
    """A terminal that is closed while torchrun ends its ranks is not what ended the run."""
    api = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 44 got signal"
    ended = (
        "Traceback (most recent call last):\n"
        '  File "/x/torch/distributed/elastic/agent/server/api.py", line 881, in _invoke_run\n'
        f"    time.sleep(monitor_interval)\n{api}: "
    )
    handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = read(steps(1, 9) + f"{ended}15\n{handling}{ended}1\n")
    assert [cause.condition for cause in found.causes] == ["launcher-killed"]
    assert "SIGTERM" in found.summary
    assert said(steps(1, 9) + f"{ended}1\n{handling}{ended}15\n") == "terminal-closed"
    assert said(steps(1, 9) + f"{ended}1\n") == "terminal-closed"


def test_a_bar_that_begins_again_below_a_failure_shows_that_the_run_went_on() -> None:
    """Even if it ends where it had ended before; what is drawn again at the end is no new bar."""
    stop = 'Traceback (most recent call last):\n  File "/t.py", line 3, in f\nKeyboardInterrupt\n'

    def bars(first: int, last: int) -> str:
        return "".join(f"\r 1%|# | {n}/42 [00:40<04:53,  3.00it/s]" for n in range(first, last))

    assert said(f"{bars(0, 43)}\n{stop}{bars(0, 43)}\nsaved\n") == "clean"
    assert said(f"{bars(0, 43)}\n{stop}") == "interrupted-by-user"
    assert said(f"{bars(0, 21)}\n{stop}{bars(20, 21) * 5}\n") == "interrupted-by-user"
    loading = bars(0, 43).replace(" 1%", "Loading checkpoint shards: 1%")
    assert said(f"{loading}\n{stop}{loading}\n") == "interrupted-by-user"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(
            '```\n[rank6]:   File "/x/site-packages/transformers/trainer.py", line 2245, in train\n'
            "[rank6]:     return inner_training_loop(\n```\nThe path is right, as inference works.\n",
            id="a quoted block",
        ),
        pytest.param(
            "WorkerProc initialization failed\nTraceback (most recent call last):\n"
            '  File "/usr/local/bin/vllm",\n',
            id="within a frame",
        ),
    ],
)
def test_a_traceback_without_its_exception_is_not_clean(end: str) -> None:
    found = read(steps(1, 4) + end)
    assert found.outcome is Outcome.UNRECOGNISED
    assert "middle of a traceback" in found.summary


def test_a_bare_exception_above_a_cut_off_traceback_is_not_the_scripts() -> None:
    end = "Exception: WorkerProc initialization failed\nTraceback (most recent call last):\n"
    found = read(steps(1, 4) + end + '  File "/usr/local/bin/vllm",\n')
    assert found.outcome is Outcome.UNRECOGNISED
    assert "WorkerProc initialization failed" in found.summary


def test_a_quoted_block_that_shows_its_exception_is_not_cut_off() -> None:
    block = '```\n  File "/x/trainer.py", line 2245, in train\n    go()\nUserWarning: slow\n```\n'
    assert said(steps(1, 4) + block + "It trains well.\n") == "clean"


def test_a_log_that_ends_in_the_stack_of_a_native_exception_is_not_clean() -> None:
    frame = "frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 (0x7f6a in /x/libtorch_cuda.so)\n"
    assert said(f"step 1\nstep 2\n{frame}") == "unrecognised"
    assert said(f"{frame}{steps(1, 40)}") == "clean"


def test_a_log_that_ends_with_an_error_of_cann_is_not_clean() -> None:
    code = "EZ9999: Inner Error!\nEZ9999  Kernel task happen error, retCode=0x26\n"
    assert said(steps(1, 4) + code) == "unrecognised"


def test_a_gpu_that_torch_only_warns_about_does_not_explain_an_import_error() -> None:
    warned = (
        "/opt/x/site-packages/torch/cuda/__init__.py:143: UserWarning: \n"
        "A40 with CUDA capability sm_86 is not compatible with the current PyTorch installation.\n"
    )
    died = 'Traceback (most recent call last):\n  File "main.py", line 5, in <module>\n'
    lost = "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file\n"
    kernel = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert said(warned + died + lost) == "cxx-abi-undefined-symbol"
    assert said(warned + died + kernel) == "gpu-arch-unsupported"
    assert said(warned) == "gpu-arch-unsupported"


def test_a_server_of_the_script_is_not_the_hub() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/job/go.py", line 91, in <module>\n'
        '  File "/env/lib/python3.8/site-packages/gprofiler/gprofiler.py", line 100, in profile\n'
        '  File "/env/lib/python3.8/site-packages/requests/api.py", line 115, in post\n'
        "requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(48)')\n"
    )
    assert said(text) == "unrecognised"
    assert (
        said(text.replace("gprofiler/gprofiler", "huggingface_hub/utils/_http"))
        == "hub-unreachable"
    )
