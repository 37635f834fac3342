"""What releases of DeepSpeed, transformers and Liger do differently with memory.

Each fact was read in the code of the releases on both sides of the change; docs/recommend.md shows
what each one changes.
"""

from __future__ import annotations

import dataclasses

from packaging.version import Version

from dsdoctor.errors import UsageError
from dsdoctor.recommend.setting import Setting

#: `pin_memory` of an offload section is true by default from this release on.
PINNED_BY_DEFAULT = Version("0.19.5")
#: ZeRO-1 and -2 make buckets with the first gradient from this release on (pull request 7665).
LATE_BUCKETS = Version("0.18.3")
#: fp16 without ZeRO divides gradients by a loss scale that it does not apply to the loss, from this
#: release on (the same change; pull request 8393 is open) in every release that was read.
UNSCALED_LOSS, UNSCALED_LOSS_READ = Version("0.18.3"), Version("0.19.8")
#: bf16 without ZeRO keeps gradients of optimizers other than `FusedAdam` from step to step, from
#: this release on (pull request 7515) to the one before the second (pull request 7839).
UNCLEARED_GRADIENTS, CLEARED_GRADIENTS = Version("0.17.6"), Version("0.18.6")
#: ZeRO-3 replaces `linear` in a model that was not built under `zero.Init` from this release on
#: (pull request 8189), so that autograd keeps no gathered weight.
REPLACES_LINEAR = Version("0.19.4")
#: Gradients are reduced to their extremes before they are searched for inf and NaN from this
#: release on (`has_inf_or_nan` of runtime/utils.py).
REDUCES_BEFORE_SEARCH = Version("0.19.6")
#: `gradient_checkpointing_enable` of transformers is not reentrant from this release on, unless it
#: is asked to be (modeling_utils.py of 4.57.3 and 5.0.0; read 2026-11-23).
NOT_REENTRANT = Version("5.0.0")
#: T5 and mT5 have SDPA, which takes their position bias, from this release of transformers on
#: (`_supports_sdpa` of models/t5/modeling_t5.py: absent in 5.14.1; read 2026-11-23).
T5_KERNEL = Version("5.15.0")
#: Liger's fused loss adds each piece of the output layer's gradient as a 16-bit product and its
#: fp32 copy, from the first of these releases to the one before the second
#: (`ops/fused_linear_cross_entropy.py` of 0.6.1, 0.6.2, 0.8.2 and 0.8.3; read 2026-11-28).
LIGER_COPIES, LIGER_IN_PLACE = Version("0.6.2"), Version("0.8.3")


def release_of(text: str | None) -> Version | None:
    """The release; None = not known, which counts as the newest.

    >>> release_of("0.18.9+abc") < REPLACES_LINEAR, release_of("x"), release_of(None)
    (True, None, None)
    """
    try:
        return None if text is None else Version(text)
    except ValueError:  # also of a number of 4,300 digits
        return None


def parse_option(text: str, option: str = "--deepspeed", example: str = "0.18.9") -> str:
    """The value of `--deepspeed` or `--transformers`.

    Raises:
        UsageError: it is not a version.
    """
    if release_of(text) is None:
        raise UsageError(f"`{option} {text[:40]}` is not a version; expected one such as {example}")
    return text


def bias_kernel(transformers: str | None) -> bool | None:
    """Whether T5's attention has a kernel in this release; None = the release is not known.

    >>> bias_kernel("4.57.3"), bias_kernel("5.15.0"), bias_kernel(None)
    (False, True, None)
    """
    release = release_of(transformers)
    return None if release is None else release >= T5_KERNEL


def at_least(release: Version | None, first: Version) -> bool:
    """Whether a release is this one or newer, or not known."""
    return release is None or release >= first


def as_in(
    setting: Setting,
    release: Version | None,
    transformers: str | None = None,
    liger: Version | None = None,
) -> Setting:
    """The setting as these releases of DeepSpeed and others run it; None = not known."""
    return dataclasses.replace(
        setting,
        buckets_first=not at_least(release, LATE_BUCKETS),
        linear_views=setting.loads_first and not at_least(release, REPLACES_LINEAR),
        elementwise_overflow=not at_least(release, REDUCES_BEFORE_SEARCH),
        bias_kernel=bias_kernel(transformers),
        fused_copies=liger is not None and LIGER_COPIES <= liger < LIGER_IN_PLACE,
        reentrant=not at_least(release_of(transformers), NOT_REENTRANT),
    )
