"""NumPy 2 is installed beside packages that were built for NumPy 1.

## Why it matters
NumPy 2 changed its binary interface. torch before 2.3 was compiled against NumPy 1: it starts with
a long warning, and `torch.from_numpy` and the default collate of a DataLoader end in `Numpy is not
available`. DeepSpeed before 0.14.4 does not import at all.

## What to do
Install `numpy<2`, or upgrade the package that is named.

## References
- https://github.com/deepspeedai/DeepSpeed/pull/5680
- https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Finding,
    Missing,
    Packages,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

CONDITION = Condition("numpy-abi-2", id="DSD904", scope=Scope.USER_ENV, since="0.1")
HINT = "run `pip install 'numpy<2'`, or upgrade to {needed} or newer"


@check(CONDITION)
def packages_know_numpy_2(
    packages: Packages, torch: TorchBuild | Missing, live: DeepSpeedLive | Missing
) -> Iterator[Finding]:
    """Judges torch and deepspeed against NumPy 2."""
    numpy = packages.version("numpy")
    if numpy is None:
        yield skip("numpy is not installed")
        return
    if not at_least(numpy, "2"):
        yield ok(numpy=numpy)
        return
    deepspeed = packages.version("deepspeed")
    works = isinstance(live, DeepSpeedLive) and live.imported.ok
    if not works and not at_least(deepspeed, "0.14.4"):
        yield fail(
            f"numpy {numpy} is installed, but deepspeed {deepspeed} knows NumPy 1 only; 0.14.4 is "
            "the first that knows NumPy 2",
            effect="`import deepspeed` ends in `cannot import name 'BUFSIZE' from 'numpy'`",
            hint=HINT.format(needed="deepspeed 0.14.4"),
            numpy=numpy,
            deepspeed=deepspeed,
            needed="0.14.4",
        )
    version = packages.version("torch") if isinstance(torch, Missing) else torch.version
    if not at_least(version, "2.3"):
        yield warn(
            f"numpy {numpy} is installed, but torch {version} was built for NumPy 1; 2.3 is the "
            "first built for NumPy 2",
            effect="`torch.from_numpy` and DataLoaders that use it end in `Numpy is not available`",
            hint=HINT.format(needed="torch 2.3"),
            numpy=numpy,
            torch=version,
            needed="2.3",
        )


HINT = "`python -m pip install 'numpy<2'`, or upgrade the package"

SIGNATURES = (
    Signature(
        anchor=(
            "compiled using NumPy 1",
            "_ARRAY_API not found",
            "numpy.dtype size changed",
            "Numpy is not available",
            "numpy.core.multiarray failed",
            "removed in the NumPy 2",
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
    Signature(
        anchor=(
            "module 'numpy' has no attribute",
            "numpy.ufunc size changed",
            "numpy._core",
            "Unable to avoid copy",
        ),
        pattern=(
            r"module 'numpy' has no attribute '(?:BUFSIZE|float_"
            r"|complex_|Inf|NaN|NAN|infty|PINF|NINF|product"
            r"|cumproduct|sometrue|alltrue|in1d|row_stack|trapz"
            r"|sctypes|unicode_|string_|cast|obj2sctype|RankWarning"
            r"|mat|round_)'|numpy\.ufunc size changed|No module named 'numpy\._core"
            r"|Unable to avoid copy while creating an array"
        ),
        examples=(
            "AttributeError: module 'numpy' has no attribute 'BUFSIZE'",
            "ValueError: numpy.ufunc size changed, may indicate binary incompatibility.",
            "ModuleNotFoundError: No module named 'numpy._core'",
        ),
        not_examples=("AttributeError: module 'numpy' has no attribute 'bool'",),
        weight=60,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        anchor=(
            "' from 'numpy",
            "module compiled against A",
            "Could not infer dtype of numpy",
            "got numpy.ndarray)",
            "numpy.core.umath failed",
            "Cannot convert numpy.ndarray to",
            "convert function return value to a Python",
            "module 'numpy' has no attribute '_",
        ),
        pattern=(
            r"cannot import name '\w{1,60}' from 'numpy(?!\.(?:typing|testing|random))[\w.]{0,60}'"
            r"|module compiled against A[BP]I version 0x|Could not infer dtype of numpy\."
            r"|expected np\.ndarray \(got numpy\.ndarray\)|numpy\.core\.umath failed"
            r"|Cannot convert numpy\.ndarray to numpy\.ndarray"
            r"|Unable to convert function return value to a Python type"
            r"|module 'numpy' has no attribute '_"
        ),
        examples=(
            "ImportError: cannot import name 'ComplexWarning' from 'numpy' (/x/numpy/__init__.py)",
            "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
            "RuntimeError: Could not infer dtype of numpy.int64",
            "TypeError: expected np.ndarray (got numpy.ndarray)",
        ),
        not_examples=(
            "ImportError: cannot import name 'NDArray' from 'numpy.typing' (/x/numpy/typing/__init__.py)",
            "RuntimeError: Could not infer dtype of NoneType",
        ),
        weight=60,
        masks=("dependency-version-conflict",),
    ),
)
