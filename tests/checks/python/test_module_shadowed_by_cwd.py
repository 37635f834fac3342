"""Rows of `module-shadowed-by-cwd`."""

from __future__ import annotations

import importlib
import sys

import pytest

from dsdoctor.api import (
    DeepSpeedLive,
    ImportOutcome,
    Package,
    Packages,
    PythonPath,
    ScriptImports,
    TorchLive,
)
from dsdoctor.testing import judge
from dsdoctor_checks.python import _shadowed_names, module_shadowed_by_cwd
from tests.checks.python.support import SITE


@pytest.mark.parametrize(
    ("shadowed", "location", "expected"),
    [
        pytest.param(
            {}, SITE, "ok", id="nothing in the working directory has the name of a package"
        ),
        pytest.param(
            {"deepspeed": "/job/deepspeed.py"},
            SITE,
            "fail",
            id="deepspeed.py in the working directory",
        ),
        pytest.param(
            {"deepspeed": "/job/deepspeed/__init__.py"},
            SITE,
            "fail",
            id="a package deepspeed in the working directory",
        ),
        # A checkout of DeepSpeed itself, installed editable.
        pytest.param(
            {"deepspeed": "/src/DeepSpeed/deepspeed/__init__.py"},
            "/src/DeepSpeed",
            "ok",
            id="the working directory is the source that is installed",
        ),
    ],
)
def test_rows(shadowed: dict[str, str], location: str, expected: str) -> None:
    package = Package(name="deepspeed", version="0.19.8", location=location)
    facts = Packages(packages={"deepspeed": package}, shadowed=shadowed)
    assert judge(module_shadowed_by_cwd.no_file_hides_a_package, packages=facts).status == expected


def test_a_module_of_the_standard_library_is_no_installed_package() -> None:
    facts = Packages(shadowed={"pty": "/job/pty.py"})
    (found,) = judge(module_shadowed_by_cwd.no_file_hides_a_package, packages=facts).bad
    assert found.message.endswith("instead of the module of the standard library")


TORCH = Packages(
    packages={"torch": Package(name="torch", version="2.13.0", location=SITE)},
    origins={"torch": "/tmp/other/torch/__init__.py"},
)


@pytest.mark.parametrize(
    ("message", "entries", "expected"),
    [
        pytest.param("No module named 'torch.optim'", ("/tmp/other",), "fail", id="it hides torch"),
        pytest.param("No module named 'einops'", ("/tmp/other",), "ok", id="another is missing"),
        pytest.param("No module named 'torch.optim'", ("/tmp/mine",), "ok", id="another entry"),
    ],
)
def test_what_pythonpath_hides_is_named_where_an_import_fails(
    message: str, entries: tuple[str, ...], expected: str
) -> None:
    failed = ImportOutcome(ok=False, error_type="ModuleNotFoundError", message=message)
    found = judge(
        module_shadowed_by_cwd.no_file_hides_a_package,
        packages=TORCH,
        python_path=PythonPath(entries=entries),
        torch_live=TorchLive(imported=ImportOutcome(ok=True)),
        deep_speed_live=DeepSpeedLive(imported=failed),
    )
    assert found.status == expected
    if expected == "fail":
        assert found.worst.hint == "remove `/tmp/other` from PYTHONPATH"


def test_a_checkout_on_pythonpath_that_works_is_meant() -> None:
    found = judge(
        module_shadowed_by_cwd.no_file_hides_a_package,
        packages=TORCH,
        python_path=PythonPath(entries=("/tmp/other",)),
        torch_live=TorchLive(imported=ImportOutcome(ok=True)),
        deep_speed_live=DeepSpeedLive(imported=ImportOutcome(ok=True)),
    )
    assert found.status == "ok"


@pytest.mark.parametrize("module", sorted(_shadowed_names.STANDARD))
def test_the_standard_library_has_each_name(module: str) -> None:
    """A name that it lacked would blame a file of the project for another error."""
    found = importlib.import_module(module)
    assert [name for name in _shadowed_names.STANDARD[module] if not hasattr(found, name)] == []
    assert module not in sys.builtin_module_names  # nothing can hide these


@pytest.mark.parametrize(
    ("module", "found", "expected"),
    [
        pytest.param("filelock", (), "warn", id="torch imports it"),
        pytest.param("yaml", ("torch", "datasets"), "warn", id="datasets imports it"),
        pytest.param("yaml", ("torch",), "ok", id="nobody imports it"),
        pytest.param("requests", ("requests",), "warn", id="the script imports it"),
    ],
)
def test_a_file_named_after_a_library_of_the_job(
    module: str, found: tuple[str, ...], expected: str
) -> None:
    judged = judge(
        module_shadowed_by_cwd.no_file_hides_a_package,
        packages=Packages(shadowed={module: f"/job/{module}.py"}),
        script_imports=ScriptImports(script="train.py", found=found),
    )
    assert judged.status == expected
