"""A clock is wrong, or the clocks of the nodes disagree.

## Why it matters
The run starts, but anything that compares times across nodes is wrong. Logs cannot be put in order,
and a build on a shared disk is repeated or skipped. With a difference of a few minutes, Kerberos
tickets and short-lived credentials are rejected. With a clock that is years behind, no download works,
because certificates are not valid yet.

## What to do
Run chrony or systemd-timesyncd on every node, and check with `timedatectl`.

## References
- chrony.conf(5); RFC 4120, 3.1.3: Kerberos tolerates five minutes
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Limits,
    Missing,
    NodesReach,
    OsInfo,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import listed

CONDITION = Condition("clock-skew", id="DSD1210", scope=Scope.NODE, since="0.1")


class SkewLimits(Limits, frozen=True, kw_only=True):
    """Differences between clocks that are tolerated.

    Attributes:
        max_seconds: between another node and this one; ssh itself can take a second or two.
    """

    max_seconds: float = 5


@check(CONDITION)
def clocks_agree(
    nodes: NodesReach | Missing, limits: SkewLimits, os: OsInfo | Missing
) -> Iterator[Finding]:
    """Warns about a clock that is certainly wrong, and about every node whose clock differs."""
    if isinstance(os, OsInfo) and os.clock is not None:
        yield warn(
            f"this node's clock shows {os.clock}, which is before the release of this dsdoctor",
            effect="downloads fail (`certificate is not yet valid`), and builds are repeated or skipped",
            hint="set the clock: start chrony or systemd-timesyncd, and check with `timedatectl`",
            clock=os.clock,
        )
        return
    if isinstance(nodes, Missing):
        yield skip(nodes.detail, fact=NodesReach.key(), why=nodes.why.value)
        return
    skews = {node.host: node.skew_s for node in nodes.nodes if node.skew_s is not None}
    if not skews:
        yield skip("no other node reported its time")
        return
    off = {host: skew for host, skew in skews.items() if abs(skew) > limits.max_seconds}
    if not off:
        yield ok(skew_s=skews)
        return
    words = (f"`{host}` by {abs(skew):g} s ({_direction(skew)})" for host, skew in off.items())
    yield warn(
        f"clocks differ from this node's: {listed(words)}, but at most {limits.max_seconds:g} s"
        " are tolerated",
        effect="logs cannot be put in order, and shared builds and credentials can fail",
        hint="start chrony or systemd-timesyncd on every node, and check with `timedatectl`",
        skew_s=off,
        max_seconds=limits.max_seconds,
    )


def _direction(skew: float) -> str:
    return "ahead" if skew > 0 else "behind"


HINT = "set the clock: start chrony or systemd-timesyncd, and check with `timedatectl`"

SIGNATURES = (
    Signature(
        pattern=r"certificate is not yet valid\b",
        source="openssl 1.1-3.5 crypto/x509/x509_txt.c",
        message="a certificate is not valid yet, so this node's clock is behind",
        examples=(
            "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:997)",
        ),
        not_examples=("the certificate is not yet validated",),
        level=Level.STRONG,
        masks=("hub-unreachable",),
    ),
)
