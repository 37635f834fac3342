"""Which weights ZeRO-3 has gathered at a time: a replay of DeepSpeed's coordinator.

`runtime/zero/partitioned_param_coordinator.py` of DeepSpeed 0.19.8 follows the trace of the step
before. For each module it

1. gathers what of it is missing, all of its tensors, whatever the limit (`_fetch_sub_module_impl`);
2. gathers tensors that come next, one by one, until they are `stage3_prefetch_bucket_size` elements
   or `stage3_max_live_parameters` are there: the last one can exceed both;
3. after the module has run, releases its tensors, except those that are used again within
   `stage3_max_reuse_distance` elements, and those whose next use the prefetch has already passed
   (`__params_to_release`).

Compared with what a real engine has gathered (docs/recommend.md).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools

from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: Passes until the limits have settled: the first one begins with nothing gathered.
STEPS = 2
#: Smaller tensors are never partitioned (`stage3_param_persistence_threshold`).
PERSISTS = 100_000

Modules = tuple[tuple[int, ...], ...]
#: A module, and an earlier one whose tensors are its own.
Shared = tuple[tuple[int, int], ...]
_Tensor = tuple[int, int]
#: How much of the backward pass is over, and the most elements gathered in the next module's.
Levels = tuple[tuple[float, int], ...]


@functools.lru_cache(maxsize=256)  # a plan asks again for each setting that it tries
def replay(
    modules: Modules,
    live: int,
    ahead: int,
    reuse: int,
    kept: frozenset[int] = frozenset(),
    shared: Shared = (),
    frozen: frozenset[int] = frozenset(),
    *,
    reuses: bool = False,
) -> tuple[int, Levels, int]:
    """Elements that are gathered: at the loss, in the backward pass, the most in the forward pass.

    Args:
        modules: elements of the tensors of each module, in the order of the forward pass.
        live: `stage3_max_live_parameters`.
        ahead: `stage3_prefetch_bucket_size`.
        reuse: `stage3_max_reuse_distance`.
        kept: modules whose gathered tensors autograd keeps until their backward pass.
        shared: modules with the tensors of an earlier one (a tied output layer).
        frozen: modules that have no backward pass.
        reuses: what autograd keeps is not allocated a second time when it is gathered again.

    >>> replay(((6,), (2,), (2,), (6,)), 10, 3, 10)
    (10, ((0.0, 10), (0.375, 10), (0.5, 8), (0.625, 6)), 10)
    """
    passes = _Passes(modules, shared, kept, frozen, _Limits(live, ahead, reuse), reuses=reuses)
    for _ in range(STEPS):
        loss, levels = passes.once()
    return loss, levels, passes.forward


@dataclasses.dataclass(frozen=True)
class _Limits:
    """The three settings of DeepSpeed, under the names of `replay`."""

    live: int
    ahead: int
    reuse: int


@dataclasses.dataclass
class _Buffer:
    """Tensors that one all-gather brings (`AllGatherCoalescedHandle`)."""

    size: int
    left: int
    copied: bool = False


class _Passes:
    """Forward and backward passes over the modules, and what is gathered meanwhile.

    Attributes:
        gathered: tensors that are gathered now, `total` elements.
        views: tensors whose gathered memory autograd keeps, also after their release.
        stale: those of them that are released. Gathering one again allocates it a second time.
        released: elements of `stale`, still allocated.
        queue: uses of tensors that the prefetch has not passed, in the order of the trace.
        fetched_for: the last use of each tensor that the prefetch has passed.
        waiting: tensors that came with others in one buffer, and wait for their module.
        buffers: buffers whose tensors are copied out of them, `buffered` elements.
        forward: the most elements in the forward pass.
    """

    def __init__(
        self,
        modules: Modules,
        shared: Shared,
        kept: frozenset[int],
        frozen: frozenset[int],
        limits: _Limits,
        *,
        reuses: bool,
    ) -> None:
        self.count, self.kept, self.limits = len(modules), kept, limits
        self.reuses = reuses
        later = [m for m in reversed(range(self.count)) if m not in frozen]
        self.trace = [*range(self.count), *later]
        self.sizes = {(m, at): size for m, row in enumerate(modules) for at, size in enumerate(row)}
        self.whole = [sum(row) for row in modules]
        first = dict(shared)
        self.tensors = [
            [(first.get(m, m), at) for at in range(len(row))] for m, row in enumerate(modules)
        ]
        self.next_uses = _next_uses(self.trace, self.tensors)
        self.before = [0, *itertools.accumulate(self.whole[m] for m in self.trace)]
        self.gathered: set[_Tensor] = set()
        self.views: set[_Tensor] = set()
        self.stale: set[_Tensor] = set()
        self.total = self.released = 0
        self.queue: collections.deque[tuple[_Tensor, int]] = collections.deque()
        self.fetched_for: dict[_Tensor, int] = {}
        self.waiting: dict[_Tensor, _Buffer] = {}
        self.buffered = self.forward = 0

    def once(self) -> tuple[int, Levels]:
        """One forward and one backward pass: elements at the loss, and in the backward pass."""
        self.queue.clear()
        self.queue.extend((t, step) for step, m in enumerate(self.trace) for t in self.tensors[m])
        self.fetched_for.clear()
        levels: list[tuple[float, int]] = []
        loss = done = highest = ahead = 0
        for step, m in enumerate(self.trace):
            backward = step >= self.count
            self._gather_own(step)
            self._prefetch()
            highest = max(highest, self.total + self.released)
            ahead = max(ahead, self.total + self.released + self.buffered)
            self._run(m, backward=backward)
            self._release(step)
            if step == self.count - 1:
                self.forward = ahead
                loss, highest = self.total + self.released, 0
            if backward:
                levels.append((done / max(1, self.before[self.count]), highest))
                done += self.whole[m]
                highest = 0
        return loss, tuple(levels)

    def _gather_own(self, step: int) -> None:
        """Rule 1: all tensors of the module; the prefetch continues after them."""
        own = self.tensors[self.trace[step]]
        for tensor in own:
            self._gather(tensor)
            self._copy_out(tensor)
        missing = {tensor for tensor in own if self.fetched_for.get(tensor, -1) < step}
        while self.queue and missing:
            tensor, later = self.queue.popleft()
            self.fetched_for[tensor] = later
            missing.discard(tensor)

    def _prefetch(self) -> None:
        """Rule 2: what comes next, until one of the limits is reached."""
        taken, allowed = 0, min(self.limits.live - self.total, self.limits.ahead)
        together: list[_Tensor] = []
        while self.queue and taken < allowed:
            tensor, later = self.queue.popleft()
            self.fetched_for[tensor] = max(self.fetched_for.get(tensor, -1), later)
            more = self._gather(tensor)
            taken += more
            together += [tensor] if more >= PERSISTS else []
        if len(together) > 1:  # a single one is its own buffer
            self.waiting.update(
                dict.fromkeys(
                    together, _Buffer(sum(self.sizes[one] for one in together), len(together))
                )
            )

    def _copy_out(self, tensor: _Tensor) -> None:
        """All tensors of a buffer are copied with the first that is used; the last frees it."""
        buffer = self.waiting.pop(tensor, None)
        if buffer is None:
            return
        if not buffer.copied:
            buffer.copied = True
            self.buffered += buffer.size
        buffer.left -= 1
        if not buffer.left:
            self.buffered -= buffer.size

    def _gather(self, tensor: _Tensor) -> int:
        """Elements that were not gathered before."""
        if tensor in self.gathered:
            return 0
        self.gathered.add(tensor)
        self.total += self.sizes[tensor]
        if self.reuses:
            self._free({tensor})
        return self.sizes[tensor]

    def _free(self, tensors: set[_Tensor]) -> None:
        """Forgets what autograd kept of released tensors."""
        freed = self.stale & tensors
        self.stale -= freed
        self.released -= sum(self.sizes[tensor] for tensor in freed)

    def _run(self, module: int, *, backward: bool) -> None:
        """What autograd keeps of the module from its forward pass, and frees in its backward."""
        if backward:
            self.views.difference_update(self.tensors[module])
            self._free(set(self.tensors[module]))
        elif module in self.kept:
            self.views.update(self.tensors[module])

    def _release(self, step: int) -> None:
        """Rule 3: the tensors of the module, except those that are needed again soon."""
        for tensor, use in zip(self.tensors[self.trace[step]], self.next_uses[step], strict=True):
            distance = None if use is None else self.before[use] - self.before[step + 1]
            soon = distance is not None and distance < self.limits.reuse
            if self.fetched_for.get(tensor, -1) <= step and not soon:
                self.gathered.discard(tensor)
                self.total -= self.sizes[tensor]
                if tensor in self.views and tensor not in self.stale:
                    self.stale.add(tensor)
                    self.released += self.sizes[tensor]


def _next_uses(trace: list[int], tensors: list[list[_Tensor]]) -> list[list[int | None]]:
    """For each step, the step that uses each of its tensors next."""
    found: list[list[int | None]] = []
    last: dict[_Tensor, int] = {}
    for step in reversed(range(len(trace))):
        own = tensors[trace[step]]
        found.append([last.get(tensor) for tensor in own])
        last.update(dict.fromkeys(own, step))
    return found[::-1]


@functools.lru_cache(maxsize=64)
def _rows(model: ModelShape) -> tuple[Modules, frozenset[int], frozenset[int], Shared]:
    """All modules; those of embedding and output layer; those of experts; shared tensors."""
    rows, stacked, shared = model.modules, frozenset(model.stacked), model.shared
    if not rows:
        rows, stacked = _by_tensor(model)
        shared = ((len(rows) - 1, 0),) if model.tied else ()
    outer = model.embedding_parameters
    return rows, frozenset(at for at, row in enumerate(rows) if row[0] == outer), stacked, shared


def _by_tensor(model: ModelShape) -> tuple[Modules, frozenset[int]]:
    """Each tensor as a module, but the two of the experts of a layer as one.

    A tied output layer comes last.
    """
    found: list[tuple[int, ...]] = []
    stacked = set()
    opened = False
    each = model.experts * model.expert_width * model.hidden
    for size in model.tensors():
        if opened:  # with biases between them
            found[-1] = (*found[-1], size)
            opened = size != each
        elif each and size == 2 * each:
            stacked.add(len(found))
            found.append((size,))
            opened = True
        else:
            found.append((size,))
    if model.tied:
        found.append((model.embedding_parameters,))
    return tuple(found), frozenset(stacked)


def gathered(model: ModelShape, setting: Setting) -> tuple[int, Levels, int]:
    """Elements of the weights that ZeRO-3 has gathered, as `replay` says it.

    Autograd keeps some of them. Without recomputation, `linear` of old releases saves a view of its
    weight (`Setting.linear_views`), and so do experts that transformers 5 cuts out of one tensor.
    bitsandbytes keeps 4-bit weights on its node of the graph (`ctx.tensors` of `MatMul4Bit`), which
    recomputation leaves there unless it is reentrant.

    With adapters, the embedding is frozen and has no backward pass. With recomputation it has one:
    PEFT and transformers then say that its output needs a gradient (`enable_input_require_grads`).
    Weights that autograd keeps are gathered beside it again, as engines of 0.19.8 showed for
    experts and 4-bit weights; for `linear` of old releases no engine was asked: they count once.
    """
    if not setting.partitions_weights:
        return 0, (), 0
    if setting.world == 1 and not setting.offloads_parameters:
        return 0, (), 0
    rows, outer, stacked, shared = _rows(model)
    kept: frozenset[int] = frozenset()
    if setting.quantized:
        packed = 2 * setting.width  # weights of 4 bits in an element
        rows = tuple(
            row if at in outer else tuple(-(-size // packed) for size in row)
            for at, row in enumerate(rows)
        )
        if not (setting.checkpointing and setting.reentrant):
            kept = frozenset(range(len(rows))) - outer
    elif not setting.checkpointing:
        kept = frozenset(range(1, len(rows))) if setting.linear_views else stacked
    unused = setting.lora_rank and not (setting.saved_head or setting.checkpointing)
    frozen = frozenset({0} if unused else ())
    limits = (setting.max_live, setting.prefetch, setting.reuse)
    reuses = setting.linear_views and not setting.quantized
    return replay(rows, *limits, kept, shared, frozen, reuses=reuses)


def level_at(levels: Levels, share: float, step: float) -> int:
    """The most elements that are gathered until this share of the backward pass, and a step more.

    >>> level_at(((0.0, 5), (0.5, 7), (0.9, 9)), 0.4, 0.1), level_at((), 0.4, 0.1)
    (7, 0)
    """
    return max((count for done, count in levels if done <= share + step), default=0)
