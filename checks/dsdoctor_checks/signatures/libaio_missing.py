"""How `libaio-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "libaio-missing"
TITLE = "libaio is absent while async_io is required"
HINT = "install `libaio-dev` (`libaio-devel`)"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("async_io", "libaio", "-laio"),
        pattern=(
            r"Unable to (?:JIT load the|pre-compile) async_io|fatal error: libaio\.h"
            r"|cannot find -laio|libaio\.so\S*: cannot open"
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
