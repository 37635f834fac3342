"""How `numpy-abi-2` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "numpy-abi-2"
TITLE = "a package built for NumPy 1 runs under NumPy 2"
HINT = "`python -m pip install 'numpy<2'`, or upgrade the package"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "compiled using NumPy 1",
            "_ARRAY_API not found",
            "numpy.dtype size changed",
            "Numpy is not available",
            "was removed in the NumPy 2",
            "numpy.core.multiarray failed",
        ),
        pattern=(
            r"compiled using NumPy 1|_ARRAY_API not found|numpy\.dtype size changed"
            r"|Numpy is not available|removed in the NumPy 2|numpy\.core\.multiarray failed"
        ),
        examples=(
            "AttributeError: _ARRAY_API not found",
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility.",
        ),
        not_examples=("numpy 1.26",),
        weight=66,
    ),
)
