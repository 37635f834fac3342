"""How `pip-build-isolation` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "pip-build-isolation"
TITLE = "the isolated build does not see torch"
HINT = "install torch first, then build with `pip install --no-build-isolation`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="No module named",
        pattern=r"No module named '?(?:torch|packaging|wheel|psutil|numpy|setuptools)'?$",
        examples=("ModuleNotFoundError: No module named 'torch'",),
        not_examples=("No module named 'torch._six'",),
        weight=66,
        near=(
            "build dependency",
            "build isolation",
            "build-isolation",
            "build wheel",
            "egg_info",
            "subprocess-exited",
            "pip-build-env",
            "build_meta",
            "metadata",
        ),
    ),
)
