"""A library needs a newer glibc than this system has.

## Why it matters
A wheel or an op that was built on a newer distribution needs symbol versions that the system's C
library does not have, so it does not load. pip and conda cannot upgrade glibc.

## What to do
Install a wheel built for an older glibc (`manylinux_2_28` needs 2.28), build the package on this
system, or run in a container image of a newer distribution.

## References
- https://peps.python.org/pep-0600/
- `ldd --version` prints the system's glibc
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("glibc-too-old", id="DSD1061", scope=Scope.NODE, since="0.1")

HINT = "install a wheel for an older glibc, build the package here, or use a container of a newer distribution"

SIGNATURES = (
    Signature(
        pattern=r"version [`']GLIBC_(?P<want>2\.\d+)' not found",
        source="glibc 2.17-2.41 elf/dl-version.c",
        message="A library needs glibc {want}, which this system does not have",
        examples=(
            "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by y.so)",
            "version 'GLIBC_2.34' not found",
        ),
        not_examples=("version `GLIBC_2.32' found", "version 'GLIBC_2.32' found"),
        level=Level.CERTAIN,
        masks=("cpu-adam-unbuilt", "libstdcxx-too-old"),
    ),
)
