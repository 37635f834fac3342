"""A SOCKS proxy is set, but the package that supports it is not installed.

## Why it matters
The hub's client takes its proxy from the environment. huggingface_hub 1.0 and newer uses httpx, which
needs socksio for `socks5://`; older releases use requests, which needs PySocks. Without it, the first
download stops with an ImportError or `Missing dependencies for SOCKS support`.

## What to do
Install the package, set the proxy to an `http://` address, or unset the variable. With
`HF_HUB_OFFLINE=1` nothing is downloaded.

## References
- httpx 0.28 _config.py, _transports/default.py; requests 2.32 adapters.py
- huggingface_hub 1.0 release notes: httpx in place of requests
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import HUB_TRUE, at_least

CONDITION = Condition("proxy-package-missing", id="DSD916", scope=Scope.USER_ENV, since="0.1")
#: Read by httpx and requests, in either case.
VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")


@check(CONDITION)
def proxy_is_supported(
    packages: Packages, env: Environment, patient: Patient | Missing
) -> Iterator[Finding]:
    """Judges SOCKS proxies if the hub's client is installed and may go online."""
    hub = packages.version("huggingface-hub")
    if hub is None or (env.get("HF_HUB_OFFLINE") or "").upper() in HUB_TRUE:
        yield skip("no client of the hub is installed, or it is offline")
        return
    names = [*VARIABLES, *(name.lower() for name in VARIABLES)]
    socks = [name for name in names if (env.get(name) or "").lower().startswith("socks")]
    needed = "socksio" if at_least(hub, "1.0") else "pysocks"
    if not socks or packages.version(needed) is not None:
        yield ok(variables=socks)
        return
    install = pip(patient, packages, f"install {needed}")
    yield warn(
        f"`{socks[0]}` is a SOCKS proxy, but `{needed}`, which huggingface_hub {hub} needs for one, is not"
        " installed",
        effect="downloads from the hub stop with an error about SOCKS support",
        hint=f"run `{install}`, or unset `{socks[0]}`",
        variable=socks[0],
        needed=needed,
        huggingface_hub=hub,
    )


HINT = (
    "install `socksio` (or `PySocks` for huggingface_hub before 1.0), or unset the proxy variables"
)

SIGNATURES = (
    Signature(
        pattern="Using SOCKS proxy, but the 'socksio' package is not installed|Missing dependencies for SOCKS support",
        source="httpx 0.22-0.28 _transports/default.py; requests 2.10-2.32 adapters.py",
        examples=(
            "ImportError: Using SOCKS proxy, but the 'socksio' package is not installed. Make sure to install httpx using `pip install httpx[socks]`.",
            "requests.exceptions.InvalidSchema: Missing dependencies for SOCKS support.",
        ),
        level=Level.CERTAIN,
    ),
)
