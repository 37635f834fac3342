"""The buckets in which gradients are reduced, and what is allocated beside them.

They follow `runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py` and
`runtime/comm/coalesced_collectives.py` of DeepSpeed 0.19.8; docs/recommend.md derives each figure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from dsdoctor.recommend.activations import Moment
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: The end of a pass, where ZeRO-1 and -2 reduce what no full bucket has.
LAST_REDUCTION = "last reduction"
#: A bucket is reduced, in a measured pass.
COPYING = "bucket reduced"


def bucket_bytes(trained: int, setting: Setting) -> int:
    """The reduce bucket, two of them with `overlap_comm` in ZeRO-1 and -2.

    ZeRO-3 allocates it in the type that is reduced; ZeRO-1 and -2 cast what they reduce.
    """
    if setting.partitions_weights:
        return setting.sent_width * setting.bucket
    if setting.stage == 0:
        return setting.width * (min(setting.bucket, trained) if setting.world > 1 else 0)
    return setting.width * setting.bucket * (2 if setting.overlap else 1)


def beside_bucket(
    trained: int, setting: Setting, moment: Moment, *, copies: bool
) -> tuple[int, int]:
    """Elements of a gradient that waits beside the bucket, and of the copy of a reduction.

    ZeRO-3 does not copy a gradient that is larger than the bucket into it. It waits as a tensor of
    its own until the next one arrives (`__add_grad_to_ipg_bucket`), and is reduced in place if the
    ranks divide it (`reduce_scatter_coalesced`). A measured pass knows both.
    """
    if moment.copied is not None:
        return moment.waiting, moment.copied
    if setting.partitions_weights and moment.latest > setting.bucket:
        return moment.latest, 0
    return 0, min(setting.bucket, trained) if copies else 0


def last_reduction(model: ModelShape, trained: int, setting: Setting) -> Moment:
    """The end of a pass of ZeRO-1 or -2, by formula.

    What no full bucket has is reduced, or the model's first tensor if it is larger than the bucket.
    """
    last = 0 if setting.lora_rank else next(model.tensors(), 0)
    if last <= setting.bucket:
        return Moment(name=LAST_REDUCTION, activations=0, finished=trained)
    copied = flattened(0, last, trained, setting)
    return Moment(
        name=LAST_REDUCTION, activations=0, gradient=last, finished=trained, copied=copied
    )


def flattened(start: int, end: int, total: int, setting: Setting) -> int:
    """The most elements that ZeRO-1 and -2 copy at once when they reduce a bucket.

    `average_tensor` cuts it where the part of another rank begins, and `allreduce_and_scatter`
    flattens as many pieces as are needed to exceed a bucket. A single piece is not copied.

    Args:
        start: the bucket's first element in the flat list of all that are trained.
        end: after the bucket's last.
        total: of that list.
        setting: the option.

    >>> four = Setting(stage=2, world=4, bucket=25)
    >>> flattened(80, 100, 100, four), flattened(70, 90, 100, four), flattened(0, 100, 100, four)
    (0, 20, 50)
    """
    part = max(1, -(-total // setting.world))
    cuts = [start, *range((start // part + 1) * part, end, part), end]
    most = held = pieces = 0
    for first, last in itertools.pairwise(cuts):
        held, pieces = held + last - first, pieces + 1
        if held > setting.bucket or last == end:
            most = max(most, held if pieces > 1 else 0)
            held = pieces = 0
    return most


#: A stretch of a measured pass: its peak, the bytes of the gradient at its end, what is alive then.
Stretch = tuple[int, int, int]


def reductions(stretches: Iterable[Stretch], setting: Setting) -> list[Moment]:
    """Each reduction of ZeRO-1 or -2 in a measured pass, with the copy that it makes.

    A bucket is reduced when the next gradient does not fit, and at the end. What a rank keeps of
    the bucket is moved out of it afterwards (`copy_grads_in_partition`), so it does not count yet.
    """
    sizes = [(size // setting.width, left) for _, size, left in stretches]
    all_of_it = sum(count for count, _ in sizes)
    total = inside = 0
    found = []
    for count, left in sizes:
        if inside and (not count or inside + count > setting.bucket):
            start = all_of_it - total
            copied = flattened(start, start + inside, all_of_it, setting)
            own = inside if inside > setting.bucket else 0
            found.append(
                Moment(
                    name=COPYING,
                    activations=left,
                    gradient=count + own,
                    finished=total - inside,
                    copied=copied,
                )
            )
            inside = 0
        inside, total = inside + count, total + count
    return found


def passes_of_zero_3(stretches: Iterable[Stretch], setting: Setting) -> list[Moment]:
    """The backward pass of ZeRO-3 in a measured pass, with what its bucket adds.

    A bucket is reduced when the next gradient does not fit, and at the end: from a copy, unless
    there is one gradient in it that the ranks divide.
    """
    world, total, inside, waiting, largest = setting.world, 0, 0, 0, 0
    alone = True
    found = []
    for number, (stretch, size, left) in enumerate(stretches):
        count = size // setting.width
        if number:  # the first stretch is that of the loss
            found.append(
                Moment(
                    name="backward", activations=stretch, finished=total, waiting=waiting, copied=0
                )
            )
        if inside and (not size or inside + count > setting.bucket):
            whole = alone and inside % world == 0
            cast = waiting and setting.sent_width != setting.width
            found.append(
                Moment(
                    name=COPYING,
                    activations=left,
                    gradient=count,
                    finished=total,
                    waiting=waiting,
                    copied=0 if whole and not cast else inside,
                    fetched=-(-largest // world) if setting.offloads_optimizer else 0,
                )
            )
            inside = waiting = largest = 0
        alone = not inside
        inside, largest, total = inside + count, max(largest, count), total + count
        waiting = count if count > setting.bucket else waiting
    return found
