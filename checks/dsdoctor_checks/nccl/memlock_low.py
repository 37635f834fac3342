"""The locked-memory limit is too low for this job.

## Why it matters
InfiniBand registers buffers by locking them, and so does DeepSpeed's native pin_memory. With a low
`ulimit -l`, NCCL fails with `Call to ibv_reg_mr failed`, and offload cannot pin its buffers.

## What to do
Set memlock to unlimited: `--ulimit memlock=-1` for a container, `LimitMEMLOCK=infinity` for slurmd,
/etc/security/limits.conf for logins.

## References
- NCCL docs: troubleshooting.rst
- DeepSpeed utils/pin_memory.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Limits,
    Missing,
    Network,
    Resources,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import node_count

CONDITION = Condition(
    "memlock-low", id="DSD801", scope=Scope.NODE, since="0.1", fixes=("raise-limits",)
)
MIB = 1 << 20


class MemlockLimits(Limits, frozen=True, kw_only=True):
    """Memory that one process may lock.

    Attributes:
        min_mib: below this, InfiniBand buffers are unlikely to fit.
        fatal_mib: up to this, they certainly do not.
    """

    min_mib: float = 65536
    fatal_mib: float = 64


def _locker(
    env: Environment,
    network: Network | Missing,
    hostfile: Hostfile | Missing,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
) -> str | None:
    """Why this job locks memory; None if nothing says that it does."""
    if (env.get("DS_PIN_MEMORY_BACKEND") or "").lower() == "native":
        return "`DS_PIN_MEMORY_BACKEND=native` locks DeepSpeed's buffers"
    if env.get("NCCL_IB_DISABLE") == "1":
        return None
    if env.get("NCCL_IB_HCA") is not None:
        return "`NCCL_IB_HCA` selects InfiniBand, which locks its buffers"
    active = isinstance(network, Network) and any(port.active for port in network.rdma)
    if active and node_count(env, hostfile, command) > 1:
        return "InfiniBand locks its buffers"
    several = isinstance(gpus, Gpus) and len(gpus.gpus) > 1
    direct = env.get("NCCL_P2P_DISABLE") != "1" or env.get("NCCL_SHM_DISABLE") != "1"
    if active and several and not direct and (env.get("NCCL_NET") or "").lower() != "socket":
        return (
            "InfiniBand, the only transport left between the GPUs of this node, locks its buffers"
        )
    return None


@check(CONDITION)
def memory_can_be_locked(
    resources: Resources,
    env: Environment,
    network: Network | Missing,
    hostfile: Hostfile | Missing,
    command: LaunchCommand | Missing,
    gpus: Gpus | Missing,
    limits: MemlockLimits,
) -> Iterator[Finding]:
    """Judges RLIMIT_MEMLOCK if something says that the job locks memory."""
    reason = _locker(env, network, hostfile, command, gpus)
    if reason is None:
        yield skip("nothing says that this job uses InfiniBand or DeepSpeed's native pin_memory")
        return
    limit = resources.limit_memlock
    if limit is None or limit >= limits.min_mib * MIB:
        yield ok(memlock_mib="unlimited" if limit is None else limit // MIB)
        return
    yield (fail if limit <= limits.fatal_mib * MIB else warn)(
        f"a process may lock {limit / MIB:g} MiB of memory, but the job needs an unlimited memlock: {reason}",
        effect="memory registration fails (`Call to ibv_reg_mr failed`, or an `mlock` error)",
        hint="start the container with `--ulimit memlock=-1`, or set memlock to unlimited in "
        "`/etc/security/limits.conf` or in the scheduler's service",
        memlock_mib=limit / MIB,
        reason=reason,
    )


HINT = (
    "set memlock to unlimited where the job starts (`--ulimit memlock=-1` for a container, "
    "`LimitMEMLOCK=infinity` for slurmd and sshd, `/etc/security/limits.conf` for logins), and compare "
    "`ulimit -l` within the job"
)

_VICTIMS = (
    "nccl-ib-or-socket-interface",
    "nccl-timeout-watchdog",
    "nccl-unhandled-cuda-error",
    "rendezvous-timeout",
)

SIGNATURES = (
    Signature(
        # ENOMEM: the kernel's ib_umem_get refuses what exceeds RLIMIT_MEMLOCK
        pattern=r"ibv_(?:exp_)?reg_mr\w{0,12}(?:\([^()]{0,160}\))? failed(?: with error|:) Cannot allocate memory",
        source="nccl 2.4-2.32 src/misc/ibvwrap.cc; openucx 1.5-1.19 src/uct/ib/base/ib_md.c",
        examples=(
            "g1:41:43 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
            "g1:41:43 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
            "ib_md.c:325  UCX  ERROR ibv_exp_reg_mr(address=0x7f10, length=8392704, access=0xf) failed: Cannot allocate memory",
        ),
        not_examples=(
            "g1:41:43 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"Please set max locked memory \(ulimit -l\) to 'unlimited'",
        source="openucx 1.5-1.19 src/uct/ib/base/ib_md.c, ib_iface.c",
        examples=(
            "UCX  ERROR mlx5_1: ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 8192 kbytes)",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        # FI_EFA_ERR_INTERNAL_RX_BUF_POST: a limit of 64 MiB is too small for its buffers
        # (awslabs/awsome-distributed-ai#647)
        pattern="Failure to post internal receive buffers",
        source="libfabric 1.18-2.1 prov/efa/src/efa_errno.h",
        message="the EFA provider could not allocate its receive buffers in locked memory",
        examples=(
            "EFA internal error: (4112) Failure to post internal receive buffers",
            "libfabric:41:1700:efa:ep_ctrl:efa_rdm_ep_bulk_post_internal_rx_pkts():93<warn> Failure to post internal receive buffers",
            "Libfabric error: (-12) Cannot allocate memory; Failure to post internal receive buffers",
        ),
        level=Level.LIKELY,
        masks=_VICTIMS,
    ),
)
