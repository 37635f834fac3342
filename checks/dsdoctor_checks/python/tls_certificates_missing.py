"""A variable points to a file of trusted CA certificates that does not exist.

## Why it matters
Clients of the hub, of pip and of experiment trackers read it before they connect. requests stops
with `Could not find a suitable TLS CA certificate bundle`, httpx with a `FileNotFoundError` that
does not show the path, and OpenSSL trusts no authority, so that every certificate is rejected. The
variable often comes from another machine, another Linux distribution, or a conda environment that
was moved.

## What to do
Set the variable to the file on this machine, or unset it. certifi, which requests and httpx use by
default, has a file of its own: `python -m certifi` prints its path.

## References
- requests 2.32 adapters.py (`cert_verify`), sessions.py (`merge_environment_settings`)
- httpx 0.28 _config.py (`create_ssl_context`), httpcore2 2.16 _ssl.py (`default_ssl_context`)
- https://docs.openssl.org/3.0/man7/openssl-env/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    CertificatePaths,
    Condition,
    Finding,
    Level,
    Scope,
    Signature,
    TracebackRule,
    check,
    ok,
    warn,
)

CONDITION = Condition(
    "tls-certificates-missing",
    id="DSD918",
    scope=Scope.USER_ENV,
    since="0.1",
    leads_to=("hub-unreachable", "experiment-tracker-unavailable"),
)


@check(CONDITION)
def certificates_exist(certificates: CertificatePaths) -> Iterator[Finding]:
    """Warns about each variable whose file does not exist."""
    if not certificates.missing:
        yield ok(variables=sorted(certificates.paths))
        return
    for name in certificates.missing:
        path = certificates.paths[name]
        yield warn(
            f"`{name}` is `{path}`, which does not exist",
            effect=(
                "httpx stops with a `FileNotFoundError` before it connects, and OpenSSL rejects every"
                " certificate"
                if name == "SSL_CERT_FILE"
                else "requests stops with `Could not find a suitable TLS CA certificate bundle`"
            ),
            hint=f"unset `{name}`, or set it to the file of certificates on this machine",
            variable=name,
            path=path,
        )


HINT = (
    "unset `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE` and `SSL_CERT_FILE`, or set them to the file of"
    " certificates on this machine"
)

SIGNATURES = (
    Signature(
        pattern=r"Could not find a suitable TLS CA certificate bundle, invalid path: (?P<path>.{1,200})",
        source="requests 2.0-2.32 adapters.py cert_verify",
        examples=(
            "OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /etc/ssl/certs/ca-bundle.crt",
        ),
        not_examples=("Could not find a suitable TLS CA certificate bundle, invalid path: ",),
        level=Level.CERTAIN,
        masks=("hub-unreachable",),
        message="The file of trusted certificates `{path}` does not exist",
    ),
)

TRACEBACK_RULES = tuple(
    TracebackRule(
        file=file,
        function=function,
        kinds=("FileNotFoundError",),
        source=f"{source}: it reads SSL_CERT_FILE",
        level=Level.STRONG,
        example=f'Traceback (most recent call last):\n  File "/env/lib/python3.12/site-packages/{file}", line 22, in {function}\n  File "/usr/lib/python3.12/ssl.py", line 707, in create_default_context\nFileNotFoundError: [Errno 2] No such file or directory',
    )
    for file, function, source in (
        ("httpx/_config.py", "create_ssl_context", "httpx 0.28 _config.py"),
        ("httpcore2/_ssl.py", "default_ssl_context", "httpcore2 2.16 _ssl.py"),
    )
)
