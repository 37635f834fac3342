from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import ImportOutcome, Resources, Status, TorchBuild, TorchLive
from dsdoctor.model.snapshot import of
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_import_broken
from tests.checks import machines as m

CHECK = torch_import_broken.torch_imports


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"torch_build": m.torch(), "torch_live": m.live()}, ["ok"], id="torch imports"
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="ImportError", message="x")
                ),
            },
            ["fail"],
            id="a Python name is missing",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="OSError", message="x")
                ),
            },
            ["fail"],
            id="a shared library is missing",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="signal", message="x", signal=6)
                ),
            },
            ["fail"],
            id="the process is killed by a signal",
        ),
        pytest.param(
            {
                "torch_build": m.torch(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="hang", message="x")
                ),
            },
            ["fail"],
            id="the import hangs",
        ),
        pytest.param(
            {
                "torch_build": TorchBuild(),
                "torch_live": TorchLive(
                    imported=ImportOutcome(ok=False, error_type="ModuleNotFoundError")
                ),
            },
            ["skip"],
            id="torch is not installed",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param(1 << 30, "skip", id="memory is short: its own condition reports it"),
        pytest.param(64 << 30, "fail", id="memory is free again"),
    ],
)
def test_a_killed_import_is_not_a_broken_torch(free: int, expected: str) -> None:
    dead = ImportOutcome(ok=False, error_type="signal", message="SIGKILL", signal=9)
    resources = Resources(
        cpus_logical=8,
        cpus_usable=8,
        memory_total_bytes=64 << 30,
        memory_available_bytes=free,
    )
    found = judge(
        CHECK, torch_build=m.torch(), torch_live=TorchLive(imported=dead), resources=resources
    ).findings
    assert m.words(found) == [expected]
    assert "reinstall" not in found[0].hint
    assert found[0].fixes == ()


def test_another_build_does_not_help_against_a_slow_disk() -> None:
    for kind, fixes in (("hang", ()), ("OSError", ("install-torch-build",))):
        live = TorchLive(imported=ImportOutcome(ok=False, error_type=kind, message="x"))
        (found,) = judge(CHECK, torch_build=m.torch(), torch_live=live).bad
        assert found.fixes == fixes


REGISTRY = packs.load(builtin_only=True)


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        pytest.param(
            "/lib64/libm.so.6: version `GLIBC_2.27' not found (required by /env/libcurand.so.10)",
            "glibc-too-old",
            id="the C library is too old",
        ),
        pytest.param(
            "/env/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found",
            "libstdcxx-too-old",
            id="the C++ library is too old",
        ),
        pytest.param(
            "/env/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemFree",
            "nccl-version-mismatch",
            id="another NCCL is loaded",
        ),
        pytest.param("no module of that name", "torch-import-broken", id="nothing is recognized"),
    ],
)
def test_the_error_of_the_import_tells_the_cause(message: str, condition: str) -> None:
    outcome = ImportOutcome(ok=False, error_type="ImportError", message=message)
    facts = [m.torch(), TorchLive(imported=outcome)]
    report = judging.judge(of(facts), list(REGISTRY), REGISTRY)
    failed = {one.condition for one in report.findings if one.status is Status.FAIL}
    assert failed == {condition}
