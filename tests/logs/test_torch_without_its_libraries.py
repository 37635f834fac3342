"""A library of torch that is not found: by torch itself, or by an extension for another torch."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/env/lib/python3.11/site-packages"
LOST = "libc10.so: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("frame", "error", "condition"),
    [
        pytest.param(
            f'  File "{SITE}/torch/__init__.py", line 9, in <module>\n'
            "    from torch._C import *  # noqa: F403\n    ^^^^^^^^^^^^^^^^^^^^^^\n",
            f"ImportError: {LOST}",
            "torch-import-broken",
            id="torch itself",
        ),
        pytest.param(
            f'  File "{SITE}/torch/__init__.py", line 9, in _load_global_deps\n    raise err\n',
            f"OSError: {SITE}/torch/lib/libtorch_global_deps.so: cannot open shared object file",
            "torch-import-broken",
            id="what torch loads first",
        ),
        pytest.param(
            f'  File "{SITE}/my_ops/__init__.py", line 9, in <module>\n'
            "    from my_ops import _kernels\n",
            f"ImportError: {LOST}",
            "cxx-abi-undefined-symbol",
            id="an extension that is loaded before torch",
        ),
    ],
)
def test_who_does_not_find_it(frame: str, error: str, condition: str) -> None:
    log = (
        f'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n{frame}{error}\n'
    )
    found = diagnose([Source("log", data=log.encode())], KNOWN)
    assert [cause.condition for cause in found.causes] == [condition]
