"""Requests that a script makes itself: a failing one is not the fault of a product."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.products import STACK, package_of
from dsdoctor.model.condition import Level

#: Packages that send requests for their caller, and those that they are built on.
CARRIERS = frozenset(
    {"aiohttp", "anyio", "httpcore", "httpcore2", "httpx", "httpx2", "python", "requests",
     "sniffio", "urllib3"}
)  # fmt: skip


def is_own_request(error: Error) -> bool:
    """Whether a request failed that the script made itself, or by a client of another service."""
    frames = list(error.frames)
    while frames and package_of(frames[-1].file) in CARRIERS:
        frames.pop()
    return 0 < len(frames) < len(error.frames) and package_of(frames[-1].file) not in STACK


def without_own_requests(hits: Sequence[Hit], errors: Sequence[Error]) -> list[Hit]:
    """The hits without those of level WEAK or less on exceptions of the script's own requests.

    A message that identifies the server or its product has a higher level and remains.
    """
    own = {(error.source, error.line) for error in errors if is_own_request(error)}
    return [
        hit
        for hit in hits
        if (hit.source, hit.line) not in own or hit.known.signature.level > Level.WEAK
    ]
