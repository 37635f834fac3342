"""Ranks that end without a message, runs that end well, and what comes after a training."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
BAR = "Epoch 0:  24%|##4       | 12/50 [00:00<00:01, 22.10it/s]\n"
GONE = (
    "RuntimeError: [/x/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error "
    "[127.0.0.1]:22215: Connection reset by peer."
)
OWN = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n    f()\n'
)


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


def lightning(world: int, *reporting: int) -> str:
    """Lightning's DDP on one node, as its ranks print into one terminal."""
    text = "".join(
        f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/{world}\n"
        for rank in range(world)
    )
    for rank in reporting:
        text += BAR + "".join(f"[rank{rank}]: {line}\n" for line in (OWN + GONE).splitlines())
    return text


@pytest.mark.parametrize(
    ("world", "reporting", "gone"),
    [
        pytest.param(2, (0,), 1, id="the second of two"),
        pytest.param(2, (1,), 0, id="the first of two"),
        pytest.param(4, (0, 1, 3), 2, id="one of four"),
    ],
)
def test_a_rank_that_all_others_miss_has_vanished(
    world: int, reporting: tuple[int, ...], gone: int
) -> None:
    found = read(lightning(world, *reporting))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith(f"rank {gone} ended without a message, ")
    assert not found.causes


def test_a_lost_peer_is_named_where_several_may_be_gone_or_print_elsewhere() -> None:
    assert said(lightning(4, 0)) == "peer-connection-lost"
    first_only = lightning(2, 0).replace("GLOBAL_RANK: 1", "global rank 1")
    assert said(first_only) == "peer-connection-lost"


DEATH = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. "
    "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits.\n"
)
SUMMARY = (
    "ray.train.WorkerGroupError: Training failed due to worker errors:\n[Rank 0 Error Snippet]:\n"
    + OWN
    + GONE
    + "\n\n[Rank 1 Error Snippet]:\nA worker health check failed.\nWorker info: Worker(\n"
    "  distributed_context=DistributedContext(world_rank=1, world_size=2, local_rank=1),\n)\n"
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n"
)
TRAINER = OWN + '  File "/x/site-packages/ray/train/trainer.py", line 191, in fit\n    raise e\n'


@pytest.mark.parametrize("head", [DEATH, ""], ids=["with the raylet's line", "its summary alone"])
def test_a_worker_of_ray_that_died_is_not_explained_by_its_peers(head: str) -> None:
    found = read(head + TRAINER + SUMMARY)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith("rank 1, a worker of Ray, died (SYSTEM_ERROR), ")


def test_what_a_worker_of_ray_raised_is_the_reason_for_the_failed_group() -> None:
    raised = SUMMARY.replace(GONE, "KeyError: 'label'")
    assert said(TRAINER + raised.partition("[Rank 1")[0]) == "user-code"


def test_a_limit_of_ray_get_is_explained_by_what_ray_waited_for() -> None:
    pending = (
        "(autoscaler +70s) Warning: The following resource request cannot be scheduled right now: "
        "{'GPU': 8.0}.\n"
    )
    limit = OWN + "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.\n"
    assert said(pending + limit) == "ray-resources-missing"
    assert said(limit) == "unrecognised"


def unknown(*frames: tuple[str, str]) -> str:
    calls = "".join(f'  File "{file}", line 3, in {name}\n    x()\n' for file, name in frames)
    return OWN + calls + "RuntimeError: CUDA error: unknown error\n"


def test_an_error_that_cuda_does_not_explain_is_the_drivers_only_at_its_first_call() -> None:
    forward = unknown(("/home/me/model.py", "forward"))
    assert read(forward).causes[0].message == (
        "CUDA failed with an error that it does not explain (unknown error)"
    )
    assert read(forward).causes[0].condition == "cuda-kernel-failed"
    first = ("/x/site-packages/torch/cuda/__init__.py", "_lazy_init")
    assert said(unknown(first)) == "cuda-init-driver-state"
    assert said("step 1\nNVRM: rm_init failed\n" + forward) == "cuda-init-driver-state"


STEPS = "".join(f"{{'loss': {2 - n / 50:.3f}, 'epoch': {n / 20:.2f}}}\n" for n in range(20))
TRAINED = STEPS + "{'train_runtime': 120.1, 'train_loss': 1.7, 'epoch': 1.0}\n"
THREAD = (
    'Exception in thread Thread-7:\nTraceback (most recent call last):\n  File "/x/lib/python3.11/'
    'threading.py", line 1045, in _bootstrap_inner\n    self.run()\n  File "/x/site-packages/logger/'
    'writer.py", line 33, in run\n    self.queue.put(row)\nConnectionResetError: [Errno 104] '
    "Connection reset by peer\n"
)


def test_a_thread_that_fails_after_the_training_does_not_end_it() -> None:
    found = read(TRAINED + THREAD)
    assert found.outcome is Outcome.CLEAN
    assert found.summary == "the training has finished; a background thread failed afterwards"
    assert said(STEPS + THREAD) == "unrecognised"
    assert said(TRAINED + OWN + THREAD.splitlines()[-1] + "\n") == "unrecognised"


def bar(name: str, done: int) -> str:
    """A progress bar of 400 steps."""
    return f"{name}: {done // 4}%|###   | {done}/400 [02:47<04:46,  3.16it/s]\n"


def test_a_training_without_metrics_has_finished_if_its_bar_is_full() -> None:
    assert said(bar("gen", 390) + bar("gen", 400) + "saved gen.pth\n" + THREAD) == "clean"
    assert said(bar("gen", 390) + bar("gen", 399) + "saved gen.pth\n" + THREAD) == "unrecognised"
    assert said(bar("Loading checkpoint shards", 400) + THREAD) == "unrecognised"


def test_an_exception_of_the_script_is_not_hidden_by_an_ignored_one_with_the_same_words() -> None:
    lost = "ConnectionResetError: Connection lost\n"
    error = OWN + '  File "/x/site-packages/wandb/run.py", line 3, in log\n    send()\n' + lost
    ignored = (
        "Exception ignored in atexit callback: <function teardown at 0x7f>\nTraceback (most recent "
        'call last):\n  File "/x/site-packages/wandb/run.py", line 8, in teardown\n    send()\n'
    )
    assert said(TRAINED + error + ignored + lost) == "unrecognised"
    assert said(TRAINED + ignored + lost) == "clean"


LAUNCHED = (
    "[2026-05-06 07:08:09,046] [INFO] [launch.py:256:main] process {pid} spawned with command: "
    "['python', '-u', 'train.py', '--local_rank=0']\n"
)
FAILED = (
    LAUNCHED.format(pid=41)
    + OWN
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    "[2026-05-06 07:08:24,260] [ERROR] [launch.py:325:sigkill_handler] ['python', '-u', "
    "'train.py', '--local_rank=0'] exits with return code = 1\n"
)


def test_a_launch_of_which_all_processes_ended_well_is_judged_alone() -> None:
    well = (
        "[2026-05-06 07:18:24,260] [INFO] [launch.py:351:main] Process {pid} exits successfully.\n"
    )
    both = LAUNCHED.format(pid=51) + LAUNCHED.format(pid=52)
    assert said(FAILED + both + "saved\n" + well.format(pid=51) + well.format(pid=52)) == "clean"
    assert said(FAILED + both + "saved\n" + well.format(pid=51)) == "gpu-oom"
    assert said(LAUNCHED.format(pid=9) + well.format(pid=9) + FAILED) == "gpu-oom"


TALK = (
    "My training died with CUDA out of memory",
    "A process that says `Killed` was ended by the kernel's OOM killer",
    "Segmentation fault (core dumped) is what the shell prints",
    "RuntimeError: No space left on device",
)


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param("User: {0}\nAssistant: {1}\n", id="roles"),
        pytest.param("User: {0}\n{1}\nAssistant: {1}\n", id="a turn of several lines"),
        pytest.param("Prompt: '{0}', Generated text: '{1}'\n", id="vLLM's example"),
        pytest.param("[prompt] {0}\n[response] {1}\n[score] 0.0\n", id="verl's reward manager"),
        pytest.param("<s>[INST] {0} [/INST] {1}</s>\n", id="a template"),
    ],
)
def test_a_conversation_at_the_end_of_a_log_names_nothing(turn: str) -> None:
    text = "".join(turn.format(one, other) for one in TALK for other in TALK)
    assert not read("$ python chat.py\n" + text).causes
    assert said(TRAINED + text) == "clean"
    failed = OWN + "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert said(TRAINED + text + failed) == "cuda-kernel-failed"


def test_a_pattern_that_needs_other_words_does_not_hide_the_answer_of_the_index() -> None:
    """A signature for Apple's MPS fits this line too, but only in the log of such a machine."""
    text = (
        OWN
        + '  File "/x/site-packages/accelerate/accelerator.py", line 573, in __init__\n    raise\n'
        "ValueError: fp16 mixed precision requires a device in ('xpu', 'cuda', 'npu', 'mps') (not 'xla').\n"
    )
    told = read(text).explained
    assert told is not None
    assert told.text.startswith("Set `mixed_precision` to `bf16` or `no`")
