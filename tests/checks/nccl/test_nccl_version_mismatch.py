"""Rows of `nccl-version-mismatch`: the NCCL on LD_LIBRARY_PATH against torch's own."""

from __future__ import annotations

import pytest

from dsdoctor.api import LibraryPath, LibraryShadow
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import nccl_version_mismatch
from dsdoctor_checks.torch import ld_library_path_shadows_torch
from tests.checks import machines

CHECK = nccl_version_mismatch.torch_loads_its_nccl


def shadow(version: str | None, name: str = "libnccl.so.2") -> LibraryPath:
    one = LibraryShadow(name=name, path=f"/usr/lib/{name}", owner="nvidia/nccl", version=version)
    return LibraryPath(entries=("/usr/lib",), shadows=(one,))


@pytest.mark.parametrize(
    ("path", "own", "expected"),
    [
        pytest.param(LibraryPath(), "2.27.5", "ok", id="no library path"),
        pytest.param(
            shadow("2.27.5"), "2.27.5", "ok", id="the system's NCCL has the version of torch's own"
        ),
        pytest.param(
            shadow("2.18.3"),
            "2.27.5",
            "fail",
            id="an older NCCL of the system comes before torch's own",
        ),
        pytest.param(
            shadow("2.30.7"),
            "2.27.5",
            "warn",
            id="a newer NCCL of the system comes before torch's own",
        ),
        pytest.param(
            shadow(None), "2.27.5", "skip", id="the version of the system's NCCL is unknown"
        ),
        pytest.param(
            shadow("2.18.3"), None, "skip", id="the version of torch's own NCCL is unknown"
        ),
        pytest.param(
            shadow("9.1.0", "libcudnn.so.9"),
            "2.27.5",
            "ok",
            id="it is cuDNN that comes first, not NCCL",
        ),
    ],
)
def test_rows(path: LibraryPath, own: str | None, expected: str) -> None:
    torch = machines.torch(nccl=own)
    assert judge(CHECK, library_path=path, torch_build=torch).status == expected


def test_it_is_said_once() -> None:
    other = ld_library_path_shadows_torch.torch_loads_its_own
    assert judge(other, library_path=shadow("2.18.3"), torch_live=machines.live()).status == "ok"
    assert judge(other, library_path=shadow(None), torch_live=machines.live()).status == "warn"
