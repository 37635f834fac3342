"""Collectives that do not end, or end on one side only."""

from __future__ import annotations

from ._bench import Bench, scenario
from ._scripts import config, gloo, train

WATCHDOG = "nccl-timeout-watchdog"
ARGS = ("--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario(WATCHDOG, r"Timed out waiting \d+ms")
def comm_gloo_timeout(bench: Bench) -> int:
    """One rank sleeps (slow preprocessing); the other's collective times out after 10 s (gloo)."""
    return bench.torchrun(gloo("if rank == 1 and step == 1:\n    time.sleep(60)"), deadline=60)


@scenario(WATCHDOG, r"(?i)monitoredBarrier")
def comm_monitored_barrier(bench: Bench) -> int:
    """monitored_barrier names the rank that did not come."""
    step = "if rank == 1 and step == 1:\n    time.sleep(60)\ndist.monitored_barrier(timeout=datetime.timedelta(seconds=8))"
    return bench.torchrun(gloo(step), deadline=60)


@scenario(WATCHDOG, r"(?i)timeout|timed out|wait")
def comm_store_timeout(bench: Bench) -> int:
    """A rank waits in the store for a key that a dead peer never writes."""
    step = "if rank == 1 and step == 1:\n    time.sleep(60)\nif rank == 0 and step == 1:\n    dist.distributed_c10d._get_default_store().get('ready')"
    return bench.torchrun(gloo(step), deadline=60)


@scenario(
    "collective-mismatch",
    r"(?i)op\.preamble|preamble|mismatch|nbytes",
    also_ok=("user-code", "none"),
)
def comm_tensor_sizes_differ(bench: Bench) -> int:
    """Two ranks reduce tensors of different size."""
    return bench.torchrun(gloo("dist.all_reduce(torch.ones(4 + 60 * rank))"), deadline=60)


@scenario("user-code", r"KeyError: 'labels'[\s\S]*ChildFailedError|ChildFailedError[\s\S]*KeyError")
def comm_peer_raises_torchrun(bench: Bench) -> int:
    """Rank 0 raises KeyError; torchrun's summary names it without the traceback."""
    return bench.torchrun(
        gloo("if rank == 0 and step == 1:\n    raise KeyError('labels')"), deadline=60
    )


@scenario("host-oom-killed", r"SIGKILL", note="kill -9 by hand.")
def comm_peer_killed_torchrun(bench: Bench) -> int:
    """Rank 1 gets SIGKILL; rank 0 sees its connection closed."""
    return bench.torchrun(
        gloo(
            "if rank == 1 and step == 1:\n    import signal\n    os.kill(os.getpid(), signal.SIGKILL)"
        ),
        deadline=60,
    )


@scenario(
    "unrecognised",
    r"step 0",
    note="A silent hang of one rank under the DeepSpeed launcher, killed after 30 s; the log only stops.",
    also_ok=(
        "nccl-timeout-watchdog",
        "none",
    ),
)
def comm_hang_silent(bench: Bench) -> int:
    """One rank sleeps for ever; no time-out is reached."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}))
    return bench.deepspeed(
        train(step="if rank == 1 and step == 1:\n    import time\n    time.sleep(600)"),
        *ARGS,
        deadline=30,
    )
