"""Facts about memory: what the run will take, and what of the host's is spoken for."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class MemoryDetail(Fact, frozen=True, kw_only=True):
    """Host memory that `MemTotal` counts and a job cannot have, swap, and what fills /dev/shm.

    Attributes:
        hugepages_bytes: reserved for huge pages, which ordinary memory never comes from.
        hugepages_free_bytes: of these, not in use.
        swap_total_bytes: swap space.
        swap_free_bytes: of that, not in use.
        shm_files: how many files lie in /dev/shm.
        shm_left: stale segments there and their sizes: made by DeepSpeed, NCCL, torch or a data
            loader, and mapped by no process. Empty where that cannot be known: in a container that
            may share /dev/shm with processes outside it, and for segments of other users unless
            root asks.
        shm_mine: of these, the ones that this user owns.
        cgroup: `v1`, `v2` or None where no controller limits memory.
    """

    hugepages_bytes: int = 0
    hugepages_free_bytes: int = 0
    swap_total_bytes: int = 0
    swap_free_bytes: int = 0
    shm_files: int = 0
    shm_left: dict[str, int] = msgspec.field(default_factory=dict)
    shm_mine: tuple[str, ...] = ()
    cgroup: str | None = None


class MemoryDemand(Fact, frozen=True, kw_only=True):
    """What the run will take by the memory model, from --plan or from --model and --config.

    Attributes:
        source: `plan` or `model`.
        what: the setting in words (`ZeRO-2 with the optimizer offloaded on 4 GPUs`).
        ranks_here: ranks on this host.
        on_gpu: they run on GPUs.
        gpu_bytes: peak on each GPU.
        gpu_state_bytes: of that, what does not depend on the length of a sequence or on how
            activations are kept: the run cannot start with less.
        gpu_floor_bytes: of that, what no way of training that the request leaves open goes below;
            None = the same. Adapters are open unless `--finetune full` was said, and the frozen
            weights below them may be held in 4 bits.
        host_bytes: peak on this host, all its ranks together.
        host_state_bytes: of that, what has to be there whatever the data look like.
        host_floor_bytes: of that, what no way of training goes below; None = the same.
        gpu_items: what the peak on a GPU is made of.
        host_items: what the peak on the host is made of.
        pinned_rounding_bytes: of host_bytes, what torch loses by rounding pinned blocks up to
            powers of two.
        assumed: what nobody said and was taken as usual (`sequence of 2048`).
    """

    source: str
    what: str
    ranks_here: int = 1
    on_gpu: bool = True
    gpu_bytes: int = 0
    gpu_state_bytes: int = 0
    gpu_floor_bytes: int | None = None
    host_bytes: int = 0
    host_state_bytes: int = 0
    host_floor_bytes: int | None = None
    gpu_items: dict[str, int] = msgspec.field(default_factory=dict)
    host_items: dict[str, int] = msgspec.field(default_factory=dict)
    pinned_rounding_bytes: int = 0
    assumed: tuple[str, ...] = ()
