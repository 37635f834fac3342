from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import (
    Environment,
    ImportOutcome,
    Package,
    Packages,
    Resources,
    Status,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.snapshot import of
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_import_broken
from tests.checks import machines as m
from tests.checks.python.support import packages

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


def test_another_build_does_not_help_where_pythonpath_brings_torch() -> None:
    live = TorchLive(imported=ImportOutcome(ok=False, error_type="ImportError", message="x"))
    torch = Package(name="torch", version="2.13.0", location="/other/site-packages")
    for path, fixes in (
        ("/a:/other/site-packages/", ()),
        ("/other", ("install-torch-build",)),
        ("", ("install-torch-build",)),
    ):
        (found,) = judge(
            CHECK,
            torch_build=m.torch(),
            torch_live=live,
            packages=Packages(packages={"torch": torch}),
            environment=Environment(variables={"PYTHONPATH": path}),
        ).bad
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


OLD = packages(torch="2.13.0", typing_extensions="4.5.0")
NO_NAME = "cannot import name 'TypeIs' from 'typing_extensions' (/env/typing_extensions.py)"


@pytest.mark.parametrize(
    ("installed", "kind", "words", "expected"),
    [
        pytest.param(OLD, "ImportError", NO_NAME, "skip", id="the package it names is too old"),
        pytest.param(
            packages(torch="2.13.0"),
            "ModuleNotFoundError",
            "No module named 'typing_extensions'",
            "skip",
            id="the package it names is missing",
        ),
        pytest.param(
            OLD, "OSError", "libtorch_cpu.so: file too short", "fail", id="another reason"
        ),
        pytest.param(
            OLD, "ImportError", "cannot import name 'x' from 'jinja2'", "fail", id="another package"
        ),
        pytest.param(
            packages(torch="2.13.0", typing_extensions="4.16.0"),
            "ImportError",
            NO_NAME,
            "fail",
            id="the requirement is met",
        ),
    ],
)
def test_a_package_that_torch_requires_is_reported_as_such(
    installed: Packages, kind: str, words: str, expected: str
) -> None:
    needs: dict[str, tuple[str, ...]] = {
        "torch": ("typing-extensions>=4.10.0", "jinja2", "opt-einsum; extra == 'opt'")
    }
    if "jinja2" in words:
        needs["torch"] = ("typing-extensions>=4.10.0",)
    outcome = ImportOutcome(ok=False, error_type=kind, message=words)
    judged = judge(
        CHECK,
        torch_build=m.torch(),
        torch_live=TorchLive(imported=outcome),
        packages=msgspec.structs.replace(installed, requires=needs),
    )
    assert judged.status == expected


def test_a_numpy_of_another_python_is_not_torchs_fault() -> None:
    words = (
        "The following compiled module files exist, but seem incompatible\n"
        "  * _multiarray_umath.cpython-312-x86_64-linux-gnu.so\n"
        "Original error was: No module named 'numpy._core._multiarray_umath'"
    )
    outcome = ImportOutcome(ok=False, error_type="ImportError", message=words)
    registry = packs.load(builtin_only=True)
    report = judging.judge(of([m.torch(), TorchLive(imported=outcome)]), list(registry), registry)
    failed = {one.condition for one in report.findings if one.status is Status.FAIL}
    assert "compiled-extension-broken" in failed
    assert not failed & {"torch-import-broken", "numpy-abi-2"}
