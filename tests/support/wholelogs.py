"""Whole logs of many ranks with the noise of launchers, each with the answer written beside it.

What ranks and launchers print is put together from the words of their releases (torch 2.4-2.13,
NCCL 2.20-2.27, DeepSpeed 0.14-0.19, Slurm 23.11), in the order in which a job would print them:
the failure of one rank, and what the others and their launchers say when they lose it.

Over 400 lines because it is a table of logs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

SITE = "/opt/env/lib/python3.11/site-packages"
CRASH, USER, CLEAN, UNKNOWN = "native-crash", "user-code", "none", "unrecognised"
KILLED = ("rank-killed", "host-oom-killed")


class Whole(NamedTuple):
    """A log, or several of one job, and the answers that are right."""

    name: str
    right: tuple[str, ...]
    files: dict[str, str]


LOGS: list[Whole] = []


def whole(*right: str) -> Callable[[Callable[[], str | dict[str, str]]], None]:
    """Registers what a function returns under its name."""

    def register(made: Callable[[], str | dict[str, str]]) -> None:
        text = made()
        files = text if isinstance(text, dict) else {"train.log": text}
        LOGS.append(Whole(made.__name__, right, files))

    return register


def mixed(parts: Sequence[str], seed: int = 1) -> str:
    """Lines of several writers in one stream, each writer's in order."""
    draw = random.Random(seed)  # an order, not a secret
    queues = [part.splitlines() for part in parts if part]
    lines = []
    while queues:
        queue = draw.choice(queues)
        lines.append(queue.pop(0))
        queues = [one for one in queues if one]
    return "".join(f"{line}\n" for line in lines)


def tagged(text: str, tag: str) -> str:
    """Each line behind a prefix."""
    return "".join(f"{tag}{line}\n" for line in text.splitlines())


def start(ranks: int, launcher: str = "torchrun", clock: str = "07:00") -> str:
    """What a healthy start prints."""
    lines = []
    if launcher == "torchrun":
        stars = "*" * 41
        head = f"W0506 {clock}:01.123000 140 torch/distributed/run.py:792] "
        lines += [
            head,
            head + stars,
            head
            + "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, please further tune the variable for optimal performance in your application as needed. ",
            head + stars,
        ]
    if launcher == "deepspeed":
        lines += [
            f"[2026-05-06 {clock}:01,101] [WARNING] [runner.py:215:fetch_hostfile] Unable to find hostfile, will proceed with training with local resources only.",
            f"[2026-05-06 {clock}:01,102] [INFO] [runner.py:607:main] cmd = /opt/env/bin/python -u -m deepspeed.launcher.launch --world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgM119 --master_addr=127.0.0.1 --master_port=29500 --enable_each_rank_log=None train.py --deepspeed ds.json",
        ]
    if launcher in {"deepspeed", "pdsh"}:  # the runner's own lines come once, not of each node
        lines += [
            f"[2026-05-06 {clock}:03,201] [INFO] [launch.py:146:main] WORLD INFO DICT: {{'localhost': {list(range(ranks))}}}",
            f"[2026-05-06 {clock}:03,201] [INFO] [launch.py:164:main] dist_world_size={ranks}",
        ]
        lines += [
            f"[2026-05-06 {clock}:03,{210 + n % 700}] [INFO] [launch.py:256:main] process {4000 + n} spawned with command: ['/opt/env/bin/python', '-u', 'train.py', '--local_rank={n}', '--deepspeed', 'ds.json']"
            for n in range(ranks)
        ]
    for n in range(ranks):
        lines += [
            f"[2026-05-06 {clock}:09,{100 + n}] [INFO] [real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cuda (auto detect)",
            f"{SITE}/transformers/utils/hub.py:111: FutureWarning: Using `TRANSFORMERS_CACHE` is deprecated and will be removed in v5 of Transformers. Use `HF_HOME` instead.",
        ]
        if n % 3 == 0:
            lines += [
                f"[W506 {clock}:11.{520345678 + n} socket.cpp:752] [c10d] The client socket cannot be initialized to connect to [gpu-{n // 8}.cluster]:29500 (errno: 97 - Address family not supported by protocol).",
                f"gpu-{n // 8}:{4000 + n}:{4000 + n} [{n % 8}] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
                f"gpu-{n // 8}:{4000 + n}:{5000 + n} [{n % 8}] NCCL INFO Failed to open libibverbs.so[.1]",
                f"gpu-{n // 8}:{4000 + n}:{5000 + n} [{n % 8}] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.{n + 1}<0>",
            ]
    lines += [
        f"[rank0]:[W506 {clock}:15.412345678 ProcessGroupNCCL.cpp:4718] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 as device used by this process is currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect. You can pecify device_id in init_process_group() to force use of a particular device.",
        "Loading checkpoint shards: 100%|##########| 4/4 [00:11<00:00,  2.77s/it]",
        "Some weights of LlamaForSequenceClassification were not initialized from the model checkpoint at /data/model and are newly initialized: ['score.weight']",
        "wandb: WARNING `resume` will be ignored since W&B syncing is set to `offline`. Starting a new run with run id 7x.",
        "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`.",
        "Stage 3 initialize beginning"
        if launcher != "torchrun"
        else "***** Running training *****",
    ]
    return "\n".join(lines) + "\n"


def train(first: int, last: int, clock: str = "07:0") -> str:
    """Healthy progress: a bar and the lines of a trainer."""
    lines = []
    for n in range(first, last):
        lines.append(
            f"{n * 100 // 5000:3}%|#         | {n}/5000 [0{n // 3600}:{n // 60 % 60:02}:{n % 60:02}<1:20:14,  1.03it/s]"
        )
        if n % 10 == 0:
            lines.append(
                f"{{'loss': {2.5 - n / 4000:.4f}, 'grad_norm': 1.{n % 97}, 'learning_rate': 1.9e-05, 'epoch': {n / 1000:.2f}}}"
            )
    return "\n".join(lines) + "\n"


def traceback(error: str, frames: Iterable[tuple[str, int, str, str]], tag: str = "") -> str:
    """A traceback as Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for file, line, function, source in frames:
        lines += [f'  File "{file}", line {line}, in {function}', f"    {source}"]
    return tagged("\n".join([*lines, error]), tag)


MAIN = ("/home/me/train.py", 212, "<module>", "main()")
LOOP = ("/home/me/train.py", 180, "main", "trainer.train()")
BATCH = ("/home/me/train.py", 96, "collate", 'labels = batch["labels"]')
FORWARD = (
    f"{SITE}/torch/nn/modules/module.py",
    1751,
    "_wrapped_call_impl",
    "return self._call_impl(*args, **kwargs)",
)
ENGINE = (f"{SITE}/deepspeed/runtime/engine.py", 2187, "step", "self._take_model_step(lr_kwargs)")
BARRIER = (
    f"{SITE}/torch/distributed/distributed_c10d.py",
    4635,
    "barrier",
    "work = group.barrier(opts=opts)",
)


def watchdog(rank: int, clock: str = "07:18:09", number: int = 841) -> str:
    """A rank whose peer never came."""
    pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    what = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 60001{rank % 10} milliseconds before timing out."
    return (
        f"[rank{rank}]:[E506 {clock}.512345678 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: {what}\n"
        f"[rank{rank}]:[E506 {clock}.512399678 ProcessGroupNCCL.cpp:2268] {pg}  failure detected by watchdog at work sequence id: {number} PG status: last enqueued work: {number + 2}, last completed work: {number - 1}\n"
        f"[rank{rank}]:[E506 {clock}.513345678 ProcessGroupNCCL.cpp:670] Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.\n"
        f"[rank{rank}]:[E506 {clock}.612345678 ProcessGroupNCCL.cpp:684] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
        f"[rank{rank}]:[E506 {clock}.612355678 ProcessGroupNCCL.cpp:698] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n"
        f"[rank{rank}]:[E506 {clock}.612365678 ProcessGroupNCCL.cpp:1899] {pg} Process group watchdog thread terminated with exception: [Rank {rank}] Watchdog caught collective operation timeout: {what}\n"
        "Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:635 (most recent call first):\n"
        f"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f1 in {SITE}/torch/lib/libc10.so)\n"
        f"frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long, std::ratio<1l, 1000l> > >) + 0x23d (0x7f2 in {SITE}/torch/lib/libtorch_cuda.so)\n"
        "\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {pg} Process group watchdog thread terminated with exception: [Rank {rank}] Watchdog caught collective operation timeout: {what}\n"
    )


def store_gone(rank: int, clock: str = "07:09:11") -> str:
    """A rank that no longer reaches the store of rank 0."""
    return (
        f"[rank{rank}]:[W506 {clock}.112345678 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=68, addr=[gpu-0.cluster]:4020{rank % 10}, remote=[gpu-0.cluster]:29500): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n"
        "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:678 (most recent call first):\n"
        f"frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f1 in {SITE}/torch/lib/libc10.so)\n"
        f'[rank{rank}]:[W506 {clock}.212345678 ProcessGroupNCCL.cpp:1659] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n'
        f"[rank{rank}]:[W506 {clock}.312345678 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=68, addr=[gpu-0.cluster]:4020{rank % 10}, remote=[gpu-0.cluster]:29500): Broken pipe\n"
    )


def remote(rank: int, clock: str = "07:09:10", tag: str | None = None) -> str:
    """A rank whose NCCL lost a peer."""
    tag = f"[rank{rank}]: " if tag is None else tag
    return (
        f"gpu-{rank // 8}:{4000 + rank}:{5000 + rank} [{rank % 8}] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer gpu-0.cluster<41234>\n"
        f"[rank{rank}]:[E506 {clock}.412345678 ProcessGroupNCCL.cpp:2013] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5\n"
    ) + traceback(
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, remote process exited or there was a network error, NCCL version 2.21.5\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        "Last error:\nsocketProgress: Connection closed by remote peer gpu-0.cluster<41234>",
        [MAIN, LOOP, BARRIER], tag,
    )  # fmt: skip


def agent(
    ranks: Sequence[int], first: int, code: int, clock: str = "07:09:12", local: int = 8
) -> str:
    """The end of torchrun."""
    names = {-9: "SIGKILL", -11: "SIGSEGV", -6: "SIGABRT", -7: "SIGBUS", -15: "SIGTERM"}
    lines = [
        f"W0506 {clock}.211000 140 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {4000 + n} closing signal SIGTERM"
        for n in ranks
        if n != first
    ]
    lines += [
        f"E0506 {clock}.353000 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) local_rank: {first % local} (pid: {4000 + first}) of binary: /opt/env/bin/python3.11",
        *traceback(
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            [("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"), (f"{SITE}/torch/distributed/launcher/api.py", 264, "launch_agent", "raise ChildFailedError(")],
        ).splitlines(),
        "=" * 60, "train.py FAILED", "-" * 60, "Failures:",
    ]  # fmt: skip
    for place, n in enumerate([n for n in ranks if n != first][:7], 1):
        lines += [
            f"[{place}]:", f"  time      : 2026-05-06_{clock}", "  host      : gpu-0.cluster",
            f"  rank      : {n} (local_rank: {n % local})", f"  exitcode  : -15 (pid: {4000 + n})",
            "  error_file: <N/A>", f"  traceback : Signal 15 (SIGTERM) received by PID {4000 + n}",
        ]  # fmt: skip
    last = (
        f"Signal {-code} ({names[code]}) received by PID {4000 + first}"
        if code < 0
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    lines += [
        "-" * 60, "Root Cause (first observed failure):", "[0]:", f"  time      : 2026-05-06_{clock}",
        "  host      : gpu-0.cluster", f"  rank      : {first} (local_rank: {first % local})",
        f"  exitcode  : {code} (pid: {4000 + first})", "  error_file: <N/A>",
        f"  traceback : {last}", "=" * 60,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def one_dead(said: Callable[[int], str], ranks: int, dead: int, code: int) -> str:
    """What the other ranks say of one that has ended, and torchrun on its node of eight."""
    first = dead // 8 * 8
    others = [said(rank) for rank in range(ranks) if rank != dead]
    return mixed(others) + agent(range(first, first + 8), dead, code)


def loader_failed(message: str) -> str:
    """Rank 4, whose loader has lost a worker."""
    file = f"{SITE}/torch/utils/data/_utils/signal_handling.py"
    handler = (file, 73, "handler", "_error_if_any_worker_fails()")
    return traceback(message, [MAIN, LOOP, handler], "[rank4]: ")


def ds_end(ranks: int, code: int, clock: str = "07:09:12") -> str:
    """The end of DeepSpeed's launcher."""
    lines = [
        f"[2026-05-06 {clock},{400 + n}] [INFO] [launch.py:319:sigkill_handler] Killing subprocess {4000 + n}"
        for n in range(ranks)
    ]
    lines.append(
        f"[2026-05-06 {clock},900] [ERROR] [launch.py:325:sigkill_handler] ['/opt/env/bin/python', '-u', 'train.py', '--local_rank={ranks - 1}', '--deepspeed', 'ds.json'] exits with return code = {code}"
    )
    return "\n".join(lines) + "\n"


def oom(rank: int) -> str:
    tag = f"[rank{rank}]: "
    return traceback(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU {rank % 8} has a total capacity of 79.10 GiB of which 1.04 GiB is free. Process 81 has 78.05 GiB memory in use. Of the allocated memory 74.11 GiB is allocated by PyTorch, and 2.02 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
        [MAIN, LOOP, FORWARD, (f"{SITE}/transformers/models/llama/modeling_llama.py", 161, "forward", "down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))")], tag,
    )  # fmt: skip


def key_error(rank: int, tag: str | None = None) -> str:
    return traceback(
        "KeyError: 'labels'", [MAIN, LOOP, BATCH], f"[rank{rank}]: " if tag is None else tag
    )


def node(name: str, text: str) -> str:
    return tagged(text, f"{name}: ")


@whole(USER)
def keyerror_rank13_then_watchdogs_of_32() -> str:
    return start(32) + train(1, 300) + key_error(13) + one_dead(watchdog, 32, 13, 1)


@whole(USER)
def keyerror_on_node1_in_a_log_joined_by_node() -> str:
    node0 = (
        start(8)
        + train(1, 200)
        + mixed([watchdog(n) for n in range(8)])
        + agent(range(8), 3, -6, "07:18:12")
    )
    node1 = (
        start(8)
        + "[2026-05-06 07:08:09,001] [INFO] saving nothing\n"
        + key_error(13)
        + agent(range(8, 16), 13, 1, "07:08:12")
    )
    return node("gpu-0", node0) + node("gpu-1", node1)


@whole(USER)
def keyerror_on_node1_in_files_of_nodes() -> dict[str, str]:
    node0 = (
        start(8)
        + train(1, 200)
        + mixed([watchdog(n) for n in range(8)])
        + agent(range(8), 3, -6, "07:18:12")
    )
    node1 = (
        start(8)
        + "[2026-05-06 07:08:09,001] [INFO] epoch 1\n"
        + key_error(13)
        + agent(range(8, 16), 13, 1, "07:08:12")
    )
    return {"gpu-0.log": node0, "gpu-1.log": node1}


@whole(CRASH)
def segfault_rank6_then_nccl_errors() -> str:
    segv = f'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1 (most recent call first):\n  File "{SITE}/tokenizers/__init__.py", line 88 in encode\n  File "/home/me/train.py", line 71 in __getitem__\n'
    return start(16) + train(1, 120) + segv + one_dead(remote, 16, 6, -11)


@whole(CRASH)
def segfault_of_which_only_the_agent_knows() -> str:
    return (
        start(8)
        + train(1, 50)
        + mixed([remote(n) + store_gone(n) for n in range(8) if n != 2])
        + agent(range(8), 2, -11)
    )


@whole(CRASH)
def segfault_under_the_deepspeed_launcher() -> str:
    return (
        start(8, "deepspeed") + train(1, 50) + mixed([remote(n) for n in range(7)]) + ds_end(8, -11)
    )


@whole("gpu-oom")
def oom_rank3_then_broken_pipes() -> str:
    return start(8) + train(1, 30) + oom(3) + one_dead(store_gone, 8, 3, 1)


@whole("gpu-oom")
def oom_rank3_under_deepspeed_and_sigabrt() -> str:
    ends = "terminate called after throwing an instance of 'c10::Error'\n  what():  NCCL communicator was aborted on rank 5.\n"
    return (
        start(8, "deepspeed")
        + train(1, 30)
        + mixed([oom(3), *(remote(n) for n in range(8) if n != 3)])
        + ends
        + ds_end(8, 1)
        + tagged(ds_end(8, -6, "07:09:14"), "gpu-1: ")
    )


@whole(*KILLED)
def killed_by_the_kernel_torchrun() -> str:
    return start(8) + train(1, 90) + one_dead(remote, 8, 5, -9)


@whole("host-oom-killed")
def killed_by_the_kernel_with_dmesg_beside() -> dict[str, str]:
    dmesg = (
        "[81234.123456] python3.11 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0\n"
        "[81234.223456] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user.slice,task=python3.11,pid=4005,uid=1000\n"
        "[81234.323456] Out of memory: Killed process 4005 (python3.11) total-vm:812345678kB, anon-rss:498765432kB, file-rss:0kB, shmem-rss:1234kB, UID:1000 pgtables:1234567kB oom_score_adj:0\n"
    )
    return {"dmesg.log": dmesg, "train.log": start(8, "deepspeed") + train(1, 90) + ds_end(8, -9)}


@whole(*KILLED)
def killed_while_loading_srun() -> str:
    text = start(16)
    return (
        tagged(text, "0: ")
        + "srun: error: gpu-1: task 9: Killed\nsrun: Terminating StepId=4711.0\nslurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 ***\nsrun: error: gpu-0: tasks 0-7: Terminated\nsrun: error: gpu-1: tasks 8,10-15: Terminated\nsrun: Force Terminated StepId=4711.0\n"
    )


@whole("disk-full")
def disk_full_in_a_checkpoint() -> str:
    disk = traceback(
        "OSError: [Errno 28] No space left on device",
        [MAIN, LOOP, (f"{SITE}/torch/serialization.py", 966, "save", "_save("), (f"{SITE}/torch/serialization.py", 1268, "_save", "zip_file.write_record(name, storage, num_bytes)")],
        "[rank0]: ",
    ) + "[rank0]: \n[rank0]: During handling of the above exception, another exception occurred:\n[rank0]: \n" + traceback(
        "RuntimeError: [enforce fail at inline_container.cc:626] . unexpected pos 1280 vs 1174",
        [MAIN, LOOP, (f"{SITE}/torch/serialization.py", 965, "save", "with _open_zipfile_writer(f) as opened_zipfile:"), (f"{SITE}/torch/serialization.py", 798, "__exit__", "self.file_like.write_end_of_file()")],
        "[rank0]: ",
    )  # fmt: skip
    return (
        start(8)
        + train(1, 500)
        + disk
        + mixed(
            [watchdog(n) for n in range(1, 8)] + [store_gone(n, "07:18:10") for n in range(1, 8)]
        )
        + agent(range(8), 0, 1)
    )


@whole(USER)
def net_plugin_warnings_then_own_valueerror() -> str:
    plugin = "".join(
        f"gpu-{n // 8}:{4000 + n}:{4000 + n} [{n % 8}] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.\ngpu-{n // 8}:{4000 + n}:{4000 + n} [{n % 8}] NCCL INFO NET/Plugin: Loaded net plugin NCCL RDMA Plugin v7 (v7)\ngpu-{n // 8}:{4000 + n}:{4000 + n} [{n % 8}] NCCL INFO NET/IB : No device found.\n"
        for n in range(16)
    )
    own = traceback(
        "ValueError: too many values to unpack (expected 2)",
        [MAIN, ("/home/me/train.py", 77, "main", "a, b = batch")],
        "[rank11]: ",
    )
    return start(16) + plugin + train(1, 40) + own + one_dead(remote, 16, 11, 1)


@whole("gpu-oom")
def retries_that_healed_then_oom() -> str:
    retry = (
        "'(ReadTimeoutError(\"HTTPSConnectionPool(host='cdn-lfs.huggingface.co', port=443): Read timed out. (read timeout=10)\"), '(Request ID: 7)')' thrown while requesting GET https://huggingface.co/org/model/resolve/main/model-00001.safetensors\n"
        "Retrying in 1s [Retry 1/5].\n"
        "wandb: Network error (ConnectionError), entering retry loop.\n"
        "wandb: Network error resolved after 0:00:21, resuming normal operation.\n"
    )
    return (
        start(8)
        + retry
        + train(1, 700)
        + oom(1)
        + mixed([store_gone(n) for n in (0, 2, 3, 4, 5, 6, 7)])
        + agent(range(8), 1, 1)
    )


@whole(USER)
def elastic_restart_that_came_up_then_own_error() -> str:
    again = "W0506 07:09:12.900000 140 torch/distributed/elastic/agent/server/api.py:919] [default] Worker group FAILED. 1/3 attempts left; will restart worker group\n"
    own = traceback(
        "ZeroDivisionError: float division by zero",
        [MAIN, ("/home/me/train.py", 140, "main", "mean = total / seen")],
        "[rank2]: ",
    )
    first = "\n".join(agent(range(8), 6, -11).splitlines()[:8]) + "\n"
    return (
        start(8)
        + train(1, 200)
        + mixed([remote(n) for n in range(8) if n != 6])
        + first
        + again
        + start(8)
        + train(150, 900)
        + own
        + mixed([remote(n, "08:12:01") for n in range(8) if n != 2])
        + agent(range(8), 2, 1, "08:12:03")
    )


@whole(CLEAN)
def connection_timeouts_that_healed_then_a_good_end() -> str:
    slow = "".join(
        f"[W506 07:00:{n + 12}.812345678 socket.cpp:697] [c10d] The client socket has failed to connect to [gpu-0.cluster]:29500 (errno: 110 - Connection timed out).\n"
        for n in range(8)
    )
    end = "{'train_runtime': 7213.1, 'train_samples_per_second': 91.2, 'train_steps_per_second': 0.7, 'train_loss': 1.31, 'epoch': 3.0}\n[rank0]:[W506 09:12:03.412345678 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())\n"
    return slow + start(8) + train(1, 600) + end


@whole("interrupted-by-user")
def ctrl_c_of_deepspeed() -> str:
    kb = mixed([traceback("KeyboardInterrupt", [MAIN, LOOP, FORWARD]) for _ in range(4)])
    end = (
        "[2026-05-06 07:09:12,401] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4000\n[2026-05-06 07:09:12,402] [INFO] [launch.py:323:sigkill_handler] Main process received SIGINT, exiting\n"
        + traceback(
            "KeyboardInterrupt",
            [
                ("/opt/env/bin/deepspeed", 6, "<module>", "main()"),
                (f"{SITE}/deepspeed/launcher/runner.py", 621, "main", "result.wait()"),
            ],
        )
    )
    leak = "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear to be %d '\n"
    return start(4, "deepspeed") + train(1, 80) + "^C" + kb + leak + end


@whole("interrupted-by-user")
def ctrl_c_of_torchrun_while_loaders_work() -> str:
    death = (
        "W0506 07:09:12.211000 140 torch/distributed/elastic/agent/server/api.py:719] Received 2 death signal, shutting down workers\n"
        + "".join(
            f"W0506 07:09:12.21{n}000 140 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {4000 + n} closing signal SIGINT\n"
            for n in range(8)
        )
    )
    ranks = mixed(
        [
            tagged(
                traceback(
                    "KeyboardInterrupt",
                    [
                        MAIN,
                        LOOP,
                        (
                            f"{SITE}/torch/utils/data/dataloader.py",
                            1275,
                            "_get_data",
                            "success, data = self._try_get_data()",
                        ),
                    ],
                ),
                f"[rank{n}]: ",
            )
            for n in range(8)
        ]
    )
    loader = traceback(
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        [
            ("/usr/lib/python3.11/threading.py", 1045, "_bootstrap_inner", "self.run()"),
            (
                f"{SITE}/torch/utils/data/_utils/pin_memory.py",
                54,
                "_pin_memory_loop",
                "do_one_step()",
            ),
            (
                "/usr/lib/python3.11/multiprocessing/connection.py",
                399,
                "_recv",
                "chunk = read(handle, remaining)",
            ),
        ],
    )
    end = traceback(
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 140 got signal: 2",
        [
            ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
            (
                f"{SITE}/torch/distributed/elastic/multiprocessing/api.py",
                84,
                "_terminate_process_handler",
                'raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
            ),
        ],
    )
    return (
        start(8)
        + train(1, 80)
        + death
        + ranks
        + "Exception in thread Thread-3 (_pin_memory_loop):\n"
        + loader
        + end
    )


def terminated() -> str:
    return (
        "W0506 07:09:12.211000 140 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers\n"
        + "".join(
            f"W0506 07:09:12.21{n}000 140 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {4000 + n} closing signal SIGTERM\n"
            for n in range(8)
        )
        + traceback(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 140 got signal: 15",
            [
                ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
                (
                    f"{SITE}/torch/distributed/elastic/multiprocessing/api.py",
                    84,
                    "_terminate_process_handler",
                    'raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
                ),
            ],
        )
    )


def slurm_end(why: str, what: str = "JOB 4711") -> str:
    return (
        f"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12{why} ***\n"
        + tagged(terminated(), "0: ")
        + tagged(terminated(), "1: ")
        + f"slurmstepd: error: *** {what} ON gpu-0 CANCELLED AT 2026-05-06T07:09:12{why} ***\nsrun: error: gpu-0: task 0: Exited with exit code 1\nsrun: error: gpu-1: task 1: Exited with exit code 1\n"
    )


def labelled(text: str) -> str:
    return mixed([tagged(text, "0: "), tagged(start(8), "1: ")])


@whole("job-cancelled")
def scancel_of_two_nodes() -> str:
    return labelled(start(8) + train(1, 300)) + slurm_end("")


@whole("job-time-limit")
def time_limit_of_two_nodes() -> str:
    return labelled(start(8) + train(1, 300)) + slurm_end(" DUE TO TIME LIMIT")


@whole("job-preempted")
def preempted() -> str:
    return labelled(start(8) + train(1, 300)) + slurm_end(" DUE TO PREEMPTION")


@whole("node-failed")
def node_failure() -> str:
    return (
        labelled(start(8) + train(1, 300))
        + "srun: error: Node failure on gpu-1\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
        + tagged(mixed([remote(n) for n in range(8)]), "0: ")
    )


@whole("training-diverged")
def loss_scale_at_its_floor() -> str:
    over = "".join(
        f"[2026-05-06 07:0{n % 10}:12,401] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 ** (16 - n)}, reducing to {2 ** (15 - n)}\n"
        for n in range(16)
    )
    frames = [
        MAIN,
        LOOP,
        ENGINE,
        (f"{SITE}/deepspeed/runtime/fp16/loss_scaler.py", 175, "update_scale", "raise Exception("),
    ]
    ranks = mixed(
        [
            traceback(
                "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
                frames,
                f"[rank{n}]: ",
            )
            for n in range(8)
        ]
    )
    return start(8, "deepspeed") + train(1, 200) + over + ranks + ds_end(8, 1)


@whole("dataloader-worker-killed", "shm-too-small", "host-oom-killed")
def loader_worker_killed() -> str:
    dead = loader_failed("RuntimeError: DataLoader worker (pid 9123) is killed by signal: Killed. ")
    return start(8) + train(1, 400) + dead + one_dead(watchdog, 8, 4, 1)


@whole(USER)
def assertion_of_the_script_on_rank2_of_64() -> str:
    own = traceback(
        "AssertionError: sequence length 4097 > 4096",
        [
            MAIN,
            (
                "/home/me/data.py",
                44,
                "pack",
                'assert len(ids) <= limit, f"sequence length {len(ids)} > {limit}"',
            ),
        ],
        "[rank2]: ",
    )
    return (
        start(64)
        + train(1, 60)
        + mixed([own, *(remote(n) for n in range(64) if n != 2)], 4)
        + mixed([store_gone(n) for n in range(8, 64)])
        + agent(range(8), 2, 1)
    )


@whole("cuda-kernel-failed")
def device_assert_on_rank1() -> str:
    kernel = "".join(
        f"../aten/src/ATen/native/cuda/Indexing.cu:1289: indexSelectLargeIndex: block: [{n},0,0], thread: [{n},0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
        for n in range(20)
    )
    error = traceback(
        "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
        [MAIN, LOOP, FORWARD],
        "[rank1]: ",
    )
    dog = "[rank1]:[E506 07:09:10.412345678 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: CUDA error: device-side assert triggered\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
    return start(8) + train(1, 30) + kernel + error + dog + one_dead(remote, 8, 1, -6)


@whole("gpu-hardware-fault", "ecc-uncorrectable")
def uncorrectable_memory_error() -> str:
    error = traceback(
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        [MAIN, LOOP, FORWARD],
        "[rank5]: ",
    )
    return (
        start(16)
        + train(1, 999)
        + "gpu-0:4005:5005 [5] enqueue.cc:1204 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'\n"
        + error
        + one_dead(watchdog, 16, 5, 1)
    )


@whole("gpu-lost", "gpu-hardware-fault")
def gpu_fell_off_the_bus() -> dict[str, str]:
    kernel = "May  6 07:08:02 gpu-0 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\nMay  6 07:08:02 gpu-0 kernel: NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
    error = traceback(
        "RuntimeError: CUDA error: unknown error\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        [MAIN, LOOP, FORWARD],
        "[rank2]: ",
    )
    return {
        "journal.log": kernel,
        "train.log": start(8)
        + train(1, 99)
        + "[2026-05-06 07:08:03,001] [INFO] step\n"
        + error
        + one_dead(watchdog, 8, 2, 1),
    }


@whole("checkpoint-mismatch", USER)
def checkpoint_of_another_shape_on_16_ranks() -> str:
    frames = [
        MAIN,
        ("/home/me/train.py", 120, "main", "model.load_state_dict(state)"),
        (f"{SITE}/torch/nn/modules/module.py", 2584, "load_state_dict", "raise RuntimeError("),
    ]
    error = "RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM:\n\tsize mismatch for model.embed_tokens.weight: copying a param with shape torch.Size([32000, 4096]) from checkpoint, the shape in current model is torch.Size([32001, 4096])."
    ranks = mixed([traceback(error, frames, f"{n:2}: ") for n in range(16)])
    return (
        tagged(start(16), " 0: ")
        + ranks
        + "srun: error: gpu-0: tasks 0-7: Exited with exit code 1\nsrun: Terminating StepId=4711.0\nslurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 ***\nsrun: error: gpu-1: tasks 8-15: Exited with exit code 1\n"
    )


@whole("port-in-use")
def port_in_use_of_two_nodes() -> str:
    bind = "[W506 07:00:11.520345678 socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n[E506 07:00:11.520445678 socket.cpp:500] [c10d] The server socket has failed to listen on any local network address.\n"
    error = traceback(
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        [
            ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
            (
                f"{SITE}/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py",
                66,
                "next_rendezvous",
                "self._store = TCPStore(",
            ),
        ],
    )
    wait = (
        "[W506 07:05:11.520345678 socket.cpp:697] [c10d] The client socket has failed to connect to [gpu-0.cluster]:29500 (errno: 111 - Connection refused).\n"
        * 5
        + traceback(
            "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (gpu-0.cluster, 29500).",
            [
                ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
                (
                    f"{SITE}/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py",
                    66,
                    "next_rendezvous",
                    "self._store = TCPStore(",
                ),
            ],
        )
    )
    return node("gpu-0", bind + error) + node("gpu-1", wait)


@whole("gpu-oom")
def accelerate_oom_rank7() -> str:
    called = traceback(
        "subprocess.CalledProcessError: Command '['/opt/env/bin/python', 'train.py']' returned non-zero exit status 1.",
        [
            ("/opt/env/bin/accelerate", 8, "<module>", "sys.exit(main())"),
            (
                f"{SITE}/accelerate/commands/launch.py",
                763,
                "simple_launcher",
                "raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)",
            ),
        ],
    )
    return (
        start(8)
        + train(1, 12)
        + oom(7)
        + mixed([remote(n) for n in range(7)])
        + agent(range(8), 7, 1)
        + called
    )


@whole("nccl-timeout-watchdog")
def nothing_but_watchdogs_of_32() -> str:
    return (
        start(32)
        + train(1, 300)
        + mixed([watchdog(n) for n in range(1, 32)])
        + agent(range(8, 16), 9, -6, "07:18:12")
    )


@whole("shm-too-small")
def shared_memory_full() -> str:
    bus = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    dead = loader_failed(
        "RuntimeError: DataLoader worker (pid 9123) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
    )
    return start(8) + train(1, 9) + bus * 3 + dead + one_dead(remote, 8, 4, 1)


@whole("nccl-ib-or-socket-interface", "rdma-port-down")
def infiniband_retries_exceeded() -> str:
    warn = "".join(
        f"gpu-1:{4000 + n}:{5000 + n} [{n % 8}] NCCL WARN NET/IB : Got completion from peer 10.0.0.3<33000> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::1 remoteGidsfe80::2 hca mlx5_2\n"
        for n in range(8, 12)
    )
    error = mixed(
        [
            traceback(
                "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, remote process exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\nNET/IB : Got completion from peer 10.0.0.3<33000> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
                [MAIN, LOOP, BARRIER],
                f"[rank{n}]: ",
            )
            for n in range(8, 12)
        ]
    )
    return (
        start(16)
        + train(1, 300)
        + warn
        + error
        + mixed([watchdog(n) for n in range(8)])
        + agent(range(8, 16), 9, 1)
    )


@whole(USER)
def files_of_ranks_keyerror_13() -> dict[str, str]:
    files = {
        f"{n}/stderr.log": (f"[2026-05-06 07:08:0{n % 10},001] [INFO] step 7\n" + watchdog(n))
        for n in range(16)
        if n != 13
    }
    files["13/stderr.log"] = "[2026-05-06 07:08:09,001] [INFO] step 7\n" + key_error(13)
    return {f"attempt_0/{name}": text for name, text in files.items()}


@whole("cxx-abi-undefined-symbol", "torch-extension-mismatch")
def undefined_symbol_on_8_unlabelled_ranks() -> str:
    frames = [
        ("/home/me/train.py", 3, "<module>", "import flash_attn"),
        (
            f"{SITE}/flash_attn/flash_attn_interface.py",
            15,
            "<module>",
            "import flash_attn_2_cuda as flash_attn_gpu",
        ),
    ]
    return (
        start(8)
        + "".join(
            traceback(
                f"ImportError: {SITE}/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                frames,
            )
            for _ in range(8)
        )
        + agent(range(8), 0, 1)
    )


@whole("hub-access-denied")
def gated_repository_on_8_ranks() -> str:
    frames = [
        MAIN,
        (f"{SITE}/transformers/utils/hub.py", 421, "cached_file", "raise EnvironmentError("),
    ]
    first = traceback(
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/meta-llama/Llama-2-7b-hf/resolve/main/config.json",
        [
            (
                f"{SITE}/huggingface_hub/utils/_http.py",
                409,
                "hf_raise_for_status",
                "response.raise_for_status()",
            )
        ],
    )
    text = (
        first
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + traceback(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-2-7b-hf.\n401 Client Error. (Request ID: Root=1-7)",
            frames,
        )
    )
    return (
        start(8) + mixed([tagged(text, f"[rank{n}]: ") for n in range(8)]) + agent(range(8), 2, 1)
    )


@whole("driver-too-old")
def old_driver_on_one_node_of_pdsh() -> str:
    old = "".join(
        traceback(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.",
            [MAIN, (f"{SITE}/torch/cuda/__init__.py", 412, "_lazy_init", "torch._C._cuda_init()")],
        )
        for _ in range(4)
    )
    late = mixed(
        [
            traceback(
                "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 12/16 clients joined.",
                [
                    MAIN,
                    (
                        f"{SITE}/torch/distributed/rendezvous.py",
                        189,
                        "_create_c10d_store",
                        "return TCPStore(",
                    ),
                ],
            )
        ]
    )
    return (
        node("gpu-0", start(8, "pdsh"))
        + node("gpu-1", old + ds_end(4, 1))
        + node("gpu-0", late + ds_end(8, 1, "07:19:12"))
    )


@whole(USER, "path-missing")
def data_file_missing_on_one_node() -> str:
    error = traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/data/part-9.jsonl'",
        [MAIN, ("/home/me/data.py", 12, "load", "with open(path) as file:")],
        "[rank9]: ",
    )
    return (
        start(16)
        + error
        + mixed([watchdog(n, number=1) for n in range(16) if n != 9])
        + agent(range(8, 16), 9, 1, "07:00:40")
    )


@whole(*KILLED)
def killed_rank_under_the_deepspeed_launcher() -> str:
    return start(8, "deepspeed") + train(1, 250) + ds_end(8, -9)


@whole(USER)
def rendezvous_lost_on_the_other_node() -> dict[str, str]:
    own = traceback(
        "TypeError: forward() got an unexpected keyword argument 'labels_mask'",
        [MAIN, ("/home/me/train.py", 77, "main", "out = model(**batch)")],
        "[rank0]: ",
    )
    lost = (
        "W0506 07:09:20.211000 140 torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1292] The node 'gpu-1_140_0' has failed to shutdown the rendezvous '7' due to an error of type RendezvousConnectionError.\n"
        + traceback(
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
            [
                ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
                (
                    f"{SITE}/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py",
                    117,
                    "_call_store",
                    "raise RendezvousConnectionError(",
                ),
            ],
        )
    )
    return {
        "gpu-0.log": start(8)
        + "[2026-05-06 07:09:01,001] [INFO] step\n"
        + own
        + agent(range(8), 0, 1),
        "gpu-1.log": start(8) + mixed([remote(n, "07:09:14") for n in range(8, 16)]) + lost,
    }


@whole("pod-evicted", "host-oom-killed")
def pod_evicted() -> dict[str, str]:
    events = "LAST SEEN   TYPE      REASON      OBJECT           MESSAGE\n2m          Warning   Evicted     pod/worker-1     The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. Container train was using 498Gi, request is 256Gi, has larger consumption of memory.\n"
    return {
        "events.txt": events,
        "worker-0.log": start(8)
        + train(1, 90)
        + mixed([remote(n) for n in range(8)])
        + agent(range(8), 3, 1),
    }


@whole(CLEAN)
def healthy_with_frightening_noise() -> str:
    noise = (
        "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f1>\n"
        + traceback(
            "AssertionError: can only test a child process",
            [
                (
                    f"{SITE}/torch/utils/data/dataloader.py",
                    1604,
                    "__del__",
                    "self._shutdown_workers()",
                ),
                (
                    "/usr/lib/python3.11/multiprocessing/process.py",
                    160,
                    "is_alive",
                    "assert self._parent_pid == os.getpid(), 'can only test a child process'",
                ),
            ],
        )
    )
    end = "{'train_runtime': 7213.1, 'train_samples_per_second': 91.2, 'train_steps_per_second': 0.7, 'train_loss': 1.31, 'epoch': 3.0}\n[2026-05-06 09:12:04,001] [INFO] [launch.py:351:main] Process 4003 exits successfully.\n"
    return start(8, "deepspeed") + train(1, 300) + noise + train(300, 400) + end


@whole(USER)
def own_error_in_evaluation_after_a_false_alarm() -> str:
    alarm = "[rank3]:[W506 07:05:10.412345678 ProcessGroupNCCL.cpp:1554] [PG ID 0 PG GUID 0(default_pg) Rank 3] Could not acquire GIL within 300 ms on exit, possible GIL induced hang\n[2026-05-06 07:06:12,401] [WARNING] [stage3.py:2114:step] 3 pytorch allocator cache flushes since last step. this happens when there is high memory pressure and is detrimental to performance.\n"
    own = mixed(
        [
            traceback(
                "IndexError: list index out of range",
                [MAIN, ("/home/me/evaluate.py", 31, "score", "return refs[n]")],
                f"[rank{n}]: ",
            )
            for n in range(8)
        ]
    )
    return start(8, "deepspeed") + train(1, 100) + alarm + train(100, 400) + own + ds_end(8, 1)


@whole("interrupted-by-user")
def interrupted_while_waiting_in_a_hang() -> str:
    ranks = mixed(
        [traceback("KeyboardInterrupt", [MAIN, LOOP, BARRIER], f"[rank{n}]: ") for n in range(8)]
    )
    return (
        start(8)
        + train(1, 30)
        + "^CW0506 08:09:12.211000 140 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGINT death signal, shutting down workers\n"
        + ranks
        + traceback(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 140 got signal: 2",
            [("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())")],
        )
    )


@whole("ds-config-batch-mismatch")
def batch_triangle_on_16_ranks_of_pdsh() -> str:
    frames = [
        MAIN,
        (
            f"{SITE}/deepspeed/__init__.py",
            179,
            "initialize",
            "config_class = DeepSpeedConfig(config, mpu)",
        ),
        (
            f"{SITE}/deepspeed/runtime/config.py",
            902,
            "_batch_assertion",
            "assert train_batch == micro_batch * grad_acc * self.world_size, (",
        ),
    ]
    error = "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 256 != 8 * 1 * 16"
    return "".join(
        node(
            f"gpu-{k}",
            start(8, "pdsh")
            + mixed([traceback(error, frames, f"[rank{8 * k + n}]: ") for n in range(8)])
            + ds_end(8, 1),
        )
        for k in range(2)
    )


@whole(UNKNOWN, "peer-connection-lost")
def nothing_but_what_survivors_say() -> str:
    return start(8) + train(1, 90) + mixed([remote(n) for n in range(8)]) + ds_end(8, 1)
