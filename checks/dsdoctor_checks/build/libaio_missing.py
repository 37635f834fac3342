"""Libaio is absent while async_io is required.

## Why it matters
NVMe offload and async_io are built on libaio. DeepSpeed's message for a failed load does not name
it.

## What to do
Install `libaio-dev` (`libaio-devel`).

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition(
    "libaio-missing", id="DSD453", scope=Scope.USER_ENV, since="0.1", fixes=("install-libaio",)
)

HINT = "install `libaio-dev` (`libaio-devel`)"

SIGNATURES = (
    Signature(
        anchor=("async_io", "libaio", "-laio", "undefined symbol: io_"),
        pattern=(
            r"Unable to (?:JIT load the|pre-compile) async_io|fatal error: libaio\.h"
            r"|cannot find -laio|libaio\.so\S*: cannot open|undefined symbol: io_(?:setup|submit|getevents|destroy|pgetevents|prep)\w*"
        ),
        examples=(
            "AssertionError: Unable to pre-compile async_io",
            "/usr/bin/ld: cannot find -laio",
        ),
        not_examples=(
            "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
        ),
        weight=68,
        masks=("cpu-adam-unbuilt",),
    ),
)
