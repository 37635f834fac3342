"""Facts about memory: what the run needs, and what the host cannot give."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class MemoryDetail(Fact, frozen=True, kw_only=True):
    """Host memory that `MemTotal` counts but a job cannot use, swap, and the contents of /dev/shm.

    Attributes:
        hugepages_bytes: reserved for huge pages; ordinary allocations cannot use it.
        hugepages_free_bytes: of that, not in use.
        swap_total_bytes: swap space.
        swap_free_bytes: of that, not in use.
        shm_files: number of files in /dev/shm.
        shm_left: stale segments and their sizes: created by DeepSpeed, NCCL, torch or a data loader
            and mapped by no process. Empty if that cannot be known: in a container that may share
            /dev/shm with processes outside it, and for segments of other users unless run as root.
        shm_mine: of these, those that this user owns.
        shm_owners: number of each account that owns stale segments, and their size in bytes.
        cgroup: `v1`, `v2`, or None if no controller limits memory.
        commit_left_bytes: how much more programs may reserve; None if the kernel does not count
            (`vm.overcommit_memory` is not 2).
        commit_limit_bytes: what all programs together may reserve; None as above.
    """

    hugepages_bytes: int = 0
    hugepages_free_bytes: int = 0
    swap_total_bytes: int = 0
    swap_free_bytes: int = 0
    shm_files: int = 0
    shm_left: dict[str, int] = msgspec.field(default_factory=dict)
    shm_mine: tuple[str, ...] = ()
    shm_owners: dict[str, int] = msgspec.field(default_factory=dict)
    cgroup: str | None = None
    commit_left_bytes: int | None = None
    commit_limit_bytes: int | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What fits with the config on some number of GPUs of each host.

    Attributes:
        gpus: ranks in all.
        checkpointing: activations are recomputed.
        gpu_bytes: peak on each GPU at the config's micro-batch and the requested sequence length.
        micro_batch: the largest that fits at that sequence, 0 = none.
        sequence: tokens of the longest sequence that fits at that micro-batch, 0 = none.
        host_short: no micro-batch fits, although one fits on the GPUs: the host's memory is too
            small.
    """

    gpus: int
    checkpointing: bool
    gpu_bytes: int
    micro_batch: int
    sequence: int
    host_short: bool = False


class MemoryDemand(Fact, frozen=True, kw_only=True):
    """Memory that the run needs according to the memory model.

    It is that of --plan, of --model with --config, or of the model that the command names.

    Attributes:
        source: `plan`, `model` (of --model) or `command`.
        model: what `--model` takes for this model; "" = the plan describes it.
        what: the configuration in words (`ZeRO-2 with the optimizer offloaded on 4 GPUs`).
        ranks_here: number of ranks on this host.
        on_gpu: the ranks run on GPUs.
        gpu_bytes: peak on each GPU.
        gpu_state_bytes: the part that does not depend on sequence length or activation
            checkpointing: the run cannot start with less.
        gpu_floor_bytes: the least that any training method allowed by the request needs; None =
            the same as gpu_state_bytes. Adapters are allowed unless `--finetune full` was given,
            and the frozen weights below them may be in 4 bits.
        host_bytes: peak on this host, all ranks together.
        host_state_bytes: the part that does not depend on the data.
        host_floor_bytes: the least that any training method needs; None = the same.
        gpu_items: components of the peak on a GPU.
        plain_bytes: peak on each GPU without recomputation of activations; 0 = not computed.
        plain_items: components of that peak.
        host_items: components of the peak on the host.
        fits: what fits with and without recomputation on several numbers of GPUs; empty if the
            memory of the GPUs is not known.
        pinned_rounding_bytes: part of host_bytes lost to torch rounding pinned blocks up to powers
            of two.
        assumed: values that were not given and took their defaults (`sequence of 2048`).
    """

    source: str
    what: str
    model: str = ""
    ranks_here: int = 1
    on_gpu: bool = True
    gpu_bytes: int = 0
    gpu_state_bytes: int = 0
    gpu_floor_bytes: int | None = None
    host_bytes: int = 0
    host_state_bytes: int = 0
    host_floor_bytes: int | None = None
    gpu_items: dict[str, int] = msgspec.field(default_factory=dict)
    plain_bytes: int = 0
    plain_items: dict[str, int] = msgspec.field(default_factory=dict)
    host_items: dict[str, int] = msgspec.field(default_factory=dict)
    fits: tuple[Fit, ...] = ()
    pinned_rounding_bytes: int = 0
    assumed: tuple[str, ...] = ()

    @property
    def gpu_least_bytes(self) -> int:
        """What any training method needs on each GPU."""
        return self.gpu_state_bytes if self.gpu_floor_bytes is None else self.gpu_floor_bytes

    @property
    def host_least_bytes(self) -> int:
        """What any training method needs on this host."""
        return self.host_state_bytes if self.host_floor_bytes is None else self.host_floor_bytes
