"""Facts about the trials of `check --deep` on GPUs and between ranks."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class TriedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU on which a kernel was run and memory allocated.

    Attributes:
        name: how the run names it: index, UUID or MIG id.
        kernel_ok: a kernel returned the right values; None = not tried.
        kernel_error: what went wrong: an error, wrong values, or a hang.
        alloc_ok: most of the free memory was allocated, written and read back; None = not tried.
        alloc_error: what went wrong.
        free_bytes: free memory before the trial.
        alloc_bytes: how much of it was allocated.
        hung: the child had to be killed.
    """

    name: str
    kernel_ok: bool | None = None
    kernel_error: str | None = None
    alloc_ok: bool | None = None
    alloc_error: str | None = None
    free_bytes: int | None = None
    alloc_bytes: int | None = None
    hung: bool = False


class TriedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A copy from one GPU to another, compared with what was sent.

    Attributes:
        a: source GPU.
        b: destination GPU.
        peer: the driver copies directly, not through host memory.
        ok: the data arrived unchanged.
        error: what went wrong.
    """

    a: str
    b: str
    peer: bool | None = None
    ok: bool = True
    error: str | None = None


class TriedCollective(msgspec.Struct, frozen=True, kw_only=True):
    """An all-reduce among ranks of this host, with its sums checked.

    Attributes:
        backend: `nccl` or `gloo`.
        ranks: number of ranks that took part.
        ok: every rank received the right sums; None = it could not be tried.
        error: the error of the first rank that reported one.
        rank: that rank.
        hung: a rank did not finish in time.
    """

    backend: str
    ranks: int
    ok: bool | None = None
    error: str | None = None
    rank: int | None = None
    hung: bool = False


class DeepTrial(Fact, frozen=True, kw_only=True):
    """Results of `check --deep`.

    Attributes:
        gpus: each selected GPU.
        pairs: each ordered pair of them.
        pairs_error: why some pairs were not tried.
        collective: the all-reduce; None = not tried.
    """

    gpus: tuple[TriedGpu, ...] = ()
    pairs: tuple[TriedPair, ...] = ()
    pairs_error: str | None = None
    collective: TriedCollective | None = None


class ExtensionTrial(Fact, frozen=True, kw_only=True):
    """A trivial C++ extension, built and called in the environment as DeepSpeed builds its ops.

    Attributes:
        ok: it was built, loaded and returned the right values.
        error: the compiler's or loader's message otherwise.
        seconds: duration.
        stopped_at: `import`, `build` or `call` if the child did not finish.
    """

    ok: bool
    error: str | None = None
    seconds: float = 0.0
    stopped_at: str | None = None
