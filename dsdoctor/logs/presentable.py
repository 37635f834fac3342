"""Makes text from a log safe to print."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.model.masking import mask as _mask
from dsdoctor.model.plain import shortened

LONGEST_SHOWN = 400
#: Cut twice: masking costs time, and a secret that the first cut halves is beyond the second.
LONGEST_READ = 4 * LONGEST_SHOWN
UNPRINTABLE = lazy(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def presentable(text: str) -> str:
    r"""A line that is safe to print: no control characters, no secrets, limited length.

    >>> presentable("a\x1b[2Jb")
    'a[2Jb'
    """
    text = UNPRINTABLE.sub("", text[:LONGEST_READ].replace("\t", " ")).strip()
    text = _mask(text)
    return shortened(text, LONGEST_SHOWN)
