"""Whether an exception may follow from a warning above it."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_opaque
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit

#: Words of an exception about an accelerator, so a warning about one may explain it.
DEVICE = lazy(
    r"(?i)\bcuda|\bgpu|nvidia|nccl|\bnvml|\bdriver|\bdevices?\b|accelerator|bf16|fp16|bfloat16"
    r"|half|triton|cudnn|cublas|\bhip\b|rocm",
)
#: The module that is missing.
NAME = lazy(r"['\"](?P<name>[\w.]{2,200})['\"]")


def is_unrelated(hit: Hit, error: Error) -> bool:
    """Whether a hit is only a warning, and a later exception is about something else.

    An opaque exception may follow from any warning; a missing module only from one that contains
    its name. An exception without a message may follow from anything.
    """
    if hit.line >= error.begun or not error.message or not hit.warned:
        return False
    text = f"{error.type}: {error.message}"
    if error.type == "ModuleNotFoundError":
        return not any(name in hit.text for name in NAME.findall(error.message))
    return not is_opaque(error) and not DEVICE.search(text)
