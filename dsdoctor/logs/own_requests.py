"""Requests that a script makes itself: a failing one is not the fault of a product."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.products import STACK, package_of
from dsdoctor.model.condition import Level

#: Packages that send requests for their caller, and those that they are built on.
CARRIERS = frozenset(
    {"aiohttp", "anyio", "httpcore", "httpcore2", "httpx", "httpx2", "python", "requests",
     "sniffio", "urllib3"}
)  # fmt: skip
#: The modules of Python (3.6-3.14) that send requests; a script also calls others, such as `json`
#: and `tarfile`, which send none.
SENDS = lazy(r"/(?:asyncio|ftplib|http|imaplib|smtplib|socket|socketserver|ssl|urllib|xmlrpc)\b")


def is_own_request(error: Error) -> bool:
    """Whether a request failed that the script made itself, or by a client of another service.

    Ctrl-C may come during any call.
    """
    if error.type == "KeyboardInterrupt":
        return False
    asker = _without_carriers(error.frames)
    sent = any(
        package_of(frame.file) != "python" or SENDS.search(frame.file)
        for frame in error.frames[len(asker) :]
    )
    return bool(asker) and sent and package_of(asker[-1].file) not in STACK


def without_own_requests(hits: Sequence[Hit], errors: Sequence[Error]) -> list[Hit]:
    """The hits without those of level WEAK or less on exceptions of the script's own requests.

    A message that identifies the server or its product has a higher level and remains. The first
    exception of a chain may show no more than the carriers; a later one shows who asked.
    """
    asked = [error for error in errors if is_own_request(error)]
    own = {(error.source, error.line) for error in asked}
    chains = {(error.source, error.rank, error.chain) for error in asked}
    own |= {
        (error.source, error.line)
        for error in errors
        if (error.source, error.rank, error.chain) in chains
        and error.frames
        and not _without_carriers(error.frames)
    }
    return [
        hit
        for hit in hits
        if (hit.source, hit.line) not in own or hit.known.signature.level > Level.WEAK
    ]


def _without_carriers(frames: Sequence[Frame]) -> list[Frame]:
    """The frames down to the call that sent the request."""
    kept = list(frames)
    while kept and package_of(kept[-1].file) in CARRIERS:
        kept.pop()
    return kept
