"""How `libstdcxx-too-old` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "libstdcxx-too-old"
TITLE = "the libstdc++ that is loaded is too old"
HINT = "put a newer libstdc++ first (`conda install -c conda-forge libstdcxx-ng`) or clean `LD_LIBRARY_PATH`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("GLIBCXX_", "CXXABI_", "GLIBC_"),
        pattern=r"version `?(?:GLIBCXX|CXXABI|GLIBC)_[\d.]+'? not found",
        examples=(
            "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by x.so)",
        ),
        not_examples=("GLIBCXX_USE_CXX11_ABI=0",),
        weight=72,
        masks=("cxx-abi-undefined-symbol",),
    ),
)
