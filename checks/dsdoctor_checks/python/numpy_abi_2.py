"""NumPy 2 is installed with packages that were built for NumPy 1.

## Why it matters
NumPy 2 changed its binary interface. torch older than 2.3 was compiled for NumPy 1: it starts with a
long warning, and `torch.from_numpy` and the default collate function of a DataLoader fail with
`Numpy is not available`. DeepSpeed older than 0.14.4 cannot be imported.

## What to do
Install `numpy<2`, or upgrade the package named in the finding.

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
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import at_least

CONDITION = Condition("numpy-abi-2", id="DSD904", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def packages_know_numpy_2(
    packages: Packages,
    torch: TorchBuild | Missing,
    live: DeepSpeedLive | Missing,
    patient: Patient | Missing,
) -> Iterator[Finding]:
    """Judges torch and deepspeed against NumPy 2."""
    numpy = packages.version("numpy")
    if numpy is None:
        yield skip("numpy is not installed")
        return
    if not at_least(numpy, "2"):
        yield ok(numpy=numpy)
        return
    older = pip(patient, packages, "install 'numpy<2'")
    works = isinstance(live, DeepSpeedLive) and live.imported.ok
    deepspeed = None if works else packages.version("deepspeed")
    if not works and not at_least(deepspeed, "0.14.4"):
        yield fail(
            f"numpy {numpy} is installed, but deepspeed {deepspeed} supports only NumPy 1; 0.14.4 is"
            " the first release that supports NumPy 2",
            effect="`import deepspeed` fails with `cannot import name 'BUFSIZE' from 'numpy'`",
            hint=f"run `{older}`, or upgrade to deepspeed 0.14.4 or newer",
            numpy=numpy,
            deepspeed=deepspeed,
            needed="0.14.4",
        )
    version = packages.version("torch") if isinstance(torch, Missing) else torch.version
    if not at_least(version, "2.3"):
        yield warn(
            f"numpy {numpy} is installed, but torch {version} was built for NumPy 1; 2.3 is the"
            " first release built for NumPy 2",
            effect="`torch.from_numpy` and DataLoaders that use it fail with `Numpy is not available`",
            hint=f"run `{older}`, or upgrade to torch 2.3 or newer",
            numpy=numpy,
            torch=version,
            needed="2.3",
        )


HINT = "run `python -m pip install 'numpy<2'`, or upgrade the package named in the error"

SIGNATURES = (
    Signature(
        pattern="compiled using NumPy 1",
        source="numpy 2.4.6 core/_multiarray_umath.py",
        examples=("A module that was compiled using NumPy 1.x cannot be run in",),
        level=Level.STRONG,
        goes_on=True,  # only printed; what needs the module fails with words of its own
        masks=("native-crash", "dependency-version-conflict"),
    ),
    Signature(
        pattern="_ARRAY_API not found",
        source="numpy 2.0-2.4 core/_multiarray_umath.py",
        examples=("AttributeError: _ARRAY_API not found",),
        level=Level.STRONG,
        goes_on=True,  # PyErr_Print of numpy's import_array; what follows is another exception
        masks=("native-crash", "dependency-version-conflict"),
    ),
    Signature(
        # as a warning, the structure only grew, which Cython allows: numpy itself hides it
        pattern=r"(?<!Warning: )numpy\.dtype size changed",
        source="Cython 0.28-3.1 Cython/Utility/ImportExport.c; numpy 1.8-2.4 __init__.py",
        examples=("ValueError: numpy.dtype size changed, may indicate binary incompatibility.",),
        not_examples=(
            "RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Numpy is not available",
        source="torch 2.13.0 distributed/_local_tensor/__init__.py",
        examples=("RuntimeError: Numpy is not available",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="removed in the NumPy 2",
        source="numpy 2.4.6 __init__.py",
        examples=(
            "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
        ),
        level=Level.STRONG,
        message="the code uses a name that NumPy 2 has removed",
        hint="use the replacement named in the message, or run `python -m pip install 'numpy<2'`",
    ),
    Signature(
        pattern=r"numpy\.core\.multiarray failed",
        source="numpy 1.0-2.4 numpy/core/include/numpy/__multiarray_api.h",
        examples=("ImportError: numpy.core.multiarray failed to import",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"module 'numpy' has no attribute '(?:BUFSIZE|float_|complex_|Inf|NaN|NAN|infty|PINF|NINF|product|cumproduct|sometrue|alltrue|in1d|row_stack|trapz|sctypes|unicode_|string_|cast|obj2sctype|RankWarning|mat|round_)'|numpy\.ufunc size changed|No module named 'numpy\._core(?!\._multiarray_umath')|Unable to avoid copy while creating an array",
        source=(
            "numpy 1.20-2.4 __init__.py; cython 0.29-3.1 Cython/Utility; numpy 2.0-2.4 "
            "_core/src/multiarray"
        ),
        examples=(
            "AttributeError: module 'numpy' has no attribute 'BUFSIZE'",
            "ValueError: numpy.ufunc size changed, may indicate binary incompatibility.",
            "ModuleNotFoundError: No module named 'numpy._core'",
            "Unable to avoid copy while creating an array",
        ),
        not_examples=("ModuleNotFoundError: No module named 'numpy._core._multiarray_umath'",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"cannot import name '\w{1,60}' from 'numpy(?!\.(?:typing|testing|random))[\w.]{0,60}'",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'ComplexWarning' from 'numpy' (/x/numpy/__init__.py)",
        ),
        not_examples=(
            "ImportError: cannot import name 'NDArray' from 'numpy.typing' (/x/numpy/typing/__init__.py)",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern="module compiled against A[BP]I version 0x",
        source="torch 2.13.0 libtorch_python.so",
        examples=(
            "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"Could not infer dtype of numpy\.",
        source="torch 1.0-2.13 csrc/utils/tensor_new.cpp",
        examples=("RuntimeError: Could not infer dtype of numpy.int64",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"expected np\.ndarray \(got numpy\.ndarray\)",
        source="torch 1.0-2.13 csrc/utils/tensor_numpy.cpp",
        examples=("TypeError: expected np.ndarray (got numpy.ndarray)",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"numpy\.core\.umath failed",
        source="numpy 1.0-2.4 numpy/core/include/numpy/__ufunc_api.h",
        examples=("numpy.core.umath failed",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern=r"Cannot convert numpy\.ndarray to numpy\.ndarray",
        source="cython 3.0-3.1 Cython/Utility, in pandas 1.5-2.2 built for another numpy",
        examples=("Cannot convert numpy.ndarray to numpy.ndarray",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern="Unable to convert function return value to a Python type",
        source="torch 2.13.0 libtorch_python.so",
        examples=("Unable to convert function return value to a Python type",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
    Signature(
        pattern="module 'numpy' has no attribute '_",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=("module 'numpy' has no attribute '_",),
        level=Level.STRONG,
        masks=("dependency-version-conflict",),
    ),
)
