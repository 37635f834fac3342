"""What `check --deep` tried out on the GPUs and between ranks."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class TriedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU on which a kernel was run and memory taken.

    Attributes:
        name: what the run calls it: index, UUID or MIG id.
        kernel_ok: a kernel gave the right figures; None = not tried.
        kernel_error: what went wrong: an error, wrong figures, or that it did not end.
        alloc_ok: most of the free memory could be taken, written and read back; None = not tried.
        alloc_error: what went wrong.
        free_bytes: what was free before.
        alloc_bytes: how much of it was taken.
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
        a, b: from, to.
        peer: the driver copies directly, without going through host memory.
        ok: what arrived is what was sent.
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
        ranks: how many took part.
        ok: every rank got the right sums; None = it could not be tried.
        error: what went wrong, of the first rank that told.
        rank: that rank.
        hung: some rank did not end in time.
    """

    backend: str
    ranks: int
    ok: bool | None = None
    error: str | None = None
    rank: int | None = None
    hung: bool = False


class DeepTrial(Fact, frozen=True, kw_only=True):
    """Outcomes of `--deep`.

    Attributes:
        gpus: each chosen GPU.
        pairs: each ordered pair of them.
        pairs_error: why not every pair was tried.
        collective: the all-reduce; None = not tried.
    """

    gpus: tuple[TriedGpu, ...] = ()
    pairs: tuple[TriedPair, ...] = ()
    pairs_error: str | None = None
    collective: TriedCollective | None = None


class ExtensionTrial(Fact, frozen=True, kw_only=True):
    """A trivial C++ extension, built and called in the patient as DeepSpeed builds its ops.

    Attributes:
        ok: it was built, loaded and gave the right figures.
        error: the compiler's or loader's words if not.
        seconds: how long it took.
        stopped_at: `import`, `build` or `call` where the child did not come to its end.
    """

    ok: bool
    error: str | None = None
    seconds: float = 0.0
    stopped_at: str | None = None
