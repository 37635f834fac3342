"""Rows of `dependency-version-conflict`."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

from dsdoctor.api import Package, PythonPath, RunNeeds, ScriptImports
from dsdoctor.testing import judge
from dsdoctor_checks.python import dependency_version_conflict
from dsdoctor_checks.python._util import plainly_met
from tests.checks.python.support import deepspeed_live, packages, patient, torch_live

INSTALLED = packages(deepspeed="0.19.8", torch="2.13.0+cpu", pydantic="1.10.13", numpy="2.1.0rc1")


@pytest.mark.parametrize(
    ("requirement", "broken", "expected"),
    [
        pytest.param("torch>=2.0.0", False, "ok", id="torch is newer than the minimum"),
        pytest.param("torch==2.13.0", False, "ok", id="a local version label does not count"),
        pytest.param(
            "numpy>=2", False, "ok", id="a release candidate of the required major version"
        ),
        pytest.param(
            "pydantic>=2.0.0", False, "warn", id="pydantic is too old, but deepspeed imports"
        ),
        pytest.param(
            "pydantic>=2.0.0", True, "fail", id="pydantic is too old and deepspeed does not import"
        ),
        pytest.param(
            "Pydantic >= 2 ; python_version < '3.9'",
            False,
            "ok",
            id="a requirement for older Pythons alone",
        ),
        pytest.param(
            "pydantic>=2 ; extra == 'dev'",
            False,
            "ok",
            id="a requirement of an extra that is not installed",
        ),
        pytest.param(
            "pydantic @ https://example.org/p.whl",
            False,
            "ok",
            id="a requirement by URL has no version to compare",
        ),
        pytest.param("hjson", False, "ok", id="hjson is missing, but deepspeed imports"),
        pytest.param("hjson", True, "fail", id="hjson is missing and deepspeed does not import"),
        pytest.param("this is no requirement", True, "ok", id="a line that is not a requirement"),
    ],
)
def test_rows(requirement: str, *, broken: bool, expected: str) -> None:
    found = msgspec.structs.replace(INSTALLED, requires={"deepspeed": (requirement,)})
    live = deepspeed_live("ImportError" if broken else "")
    facts: dict[str, Any] = {
        "packages": found,
        "patient": patient(),
        "torch_live": torch_live(),
        "deep_speed_live": live,
    }
    assert judge(dependency_version_conflict.requirements_are_met, **facts).status == expected


def test_what_plain_releases_say_is_what_packaging_says() -> None:
    releases = ("2", "2.0", "2.0.0", "2.1", "1.9.9", "2.0.1", "10.0", "2.1.0")
    installed = (
        *releases,
        "2.0.0+cu130",
        "2.0+cpu",
        "2.0rc1",
        "2.0.post1",
        "2.0.dev3",
        "1!2.0",
        "x",
    )
    operators = (">=", "<=", "==", "!=", "<", ">", "~=", "===")
    met = parsed = 0
    for have, operator, wanted in itertools.product(installed, operators, releases):
        if operator == "~=" and "." not in wanted:
            continue
        text = f"A_b [x] ({operator} {wanted}) ; python_version < '3'"
        if plainly_met(text, packages(**{"a-b": have})):
            met += 1
            assert SpecifierSet(f"{operator}{wanted}").contains(have, prereleases=True), (
                have,
                text,
            )
        elif have in releases and operator not in ("~=", "==="):
            parsed += 1
            assert not SpecifierSet(f"{operator}{wanted}").contains(have, prereleases=True)
    assert met > 100 < parsed


@pytest.mark.parametrize(
    "text", ["a @ https://x.org/a.whl", "a>=1.*", "a==2.*", "a>=1,", "a 2", "b", "a>=1 junk", ""]
)
def test_what_is_not_plain_is_parsed(text: str) -> None:
    assert not plainly_met(text, packages(a="2.0"))


@pytest.mark.parametrize(
    ("owner", "version", "requirement", "found", "expected"),
    [
        pytest.param(
            "transformers",
            "4.6.0",
            "numpy>=9",
            ("transformers",),
            "fail",
            id="the script imports it",
        ),
        pytest.param("transformers", "4.6.0", "numpy>=9", (), "warn", id="the script does not"),
        pytest.param(
            "transformers",
            "4.6.0",
            "safetensors>=9",
            ("transformers",),
            "warn",
            id="not checked yet",
        ),
        pytest.param(
            "transformers", "4.30.0", "safetensors>=9", ("transformers",), "fail", id="now"
        ),
        pytest.param("peft", "0.15.2", "numpy>=9", ("peft",), "warn", id="another package"),
    ],
)
def test_what_transformers_checks_when_it_is_imported(
    owner: str, version: str, requirement: str, found: tuple[str, ...], expected: str
) -> None:
    installed = packages(numpy="1.16.3", safetensors="0.2.0", **{owner: version})
    facts: dict[str, Any] = {
        "packages": msgspec.structs.replace(installed, requires={owner: (requirement,)}),
        "patient": patient(),
        "script_imports": ScriptImports(script="train.py", found=found),
    }
    assert judge(dependency_version_conflict.requirements_are_met, **facts).status == expected


@pytest.mark.parametrize(
    ("location", "entries", "site", "hint"),
    [
        pytest.param("/env/lib", (), None, "-m pip install 'numpy>=2'`", id="of the environment"),
        pytest.param(
            "/tools", ("/x", "/tools/"), None, "remove `/tools/` from PYTHONPATH", id="PYTHONPATH"
        ),
        pytest.param(
            "/home/me/.local/lib", (), "/home/me/.local/lib", "PYTHONNOUSERSITE=1", id="user site"
        ),
    ],
)
def test_the_hint_fits_the_place_from_which_it_is_imported(
    location: str, entries: tuple[str, ...], site: str | None, hint: str
) -> None:
    old = Package(name="numpy", version="1.26.4", location=location)
    installed = packages(torch="2.13.0")
    (finding,) = judge(
        dependency_version_conflict.requirements_are_met,
        packages=msgspec.structs.replace(
            installed,
            packages={**installed.packages, "numpy": old},
            requires={"torch": ("numpy>=2",)},
        ),
        patient=patient(user_site=site),
        python_path=PythonPath(entries=entries),
    ).bad
    assert hint in finding.hint


def test_a_package_that_pip_was_replacing() -> None:
    installed = packages(deepspeed="0.19.8")
    (finding,) = judge(
        dependency_version_conflict.requirements_are_met,
        packages=msgspec.structs.replace(
            installed, requires={"deepspeed": ("numpy",)}, remnants={"numpy": "2.4.6"}
        ),
        patient=patient(),
        deep_speed_live=deepspeed_live("No module named 'numpy'"),
    ).bad
    assert "pip was interrupted while it replaced numpy 2.4.6" in finding.message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            "The installed pydantic-core version (2.41.5) is incompatible with the current pydantic"
            " version, which requires 2.50.5.",
            "fail",
            id="the import stops because of it",
        ),
        pytest.param("No module named 'hjson'", "warn", id="it stops because of another"),
        pytest.param("", "warn", id="it works"),
    ],
)
def test_a_package_that_checks_the_release_of_another(words: str, expected: str) -> None:
    installed = packages(**{"pydantic": "2.14.4", "pydantic-core": "2.41.5"})
    judged = judge(
        dependency_version_conflict.requirements_are_met,
        packages=msgspec.structs.replace(
            installed, requires={"pydantic": ("pydantic-core==2.50.5",)}
        ),
        patient=patient(),
        deep_speed_live=deepspeed_live(words, "SystemError"),
    )
    assert judged.status == expected


OFFLOAD = {
    "optimizer": {"type": "Adam"},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
}


@pytest.mark.parametrize(
    ("config", "installed", "expected"),
    [
        pytest.param(OFFLOAD, {}, "fail", id="the optimizer on the CPU imports it"),
        pytest.param(OFFLOAD, {"py-cpuinfo": "9.0.0"}, "ok", id="it is installed"),
        pytest.param({"optimizer": {"type": "Adam"}}, {}, "ok", id="an optimizer on the GPU"),
        pytest.param(None, {}, "ok", id="no config"),
    ],
)
def test_the_package_that_an_optimizer_on_the_cpu_imports(
    config: dict[str, Any] | None, installed: dict[str, str], expected: str
) -> None:
    judged = judge(
        dependency_version_conflict.requirements_are_met,
        packages=msgspec.structs.replace(
            packages(deepspeed="0.19.8", **installed), requires={"deepspeed": ("py-cpuinfo",)}
        ),
        patient=patient(),
        torch_live=torch_live(),
        deep_speed_live=deepspeed_live(),
        run_needs=RunNeeds(config=config),
    )
    assert judged.status == expected


@pytest.mark.parametrize(
    ("releases", "framework", "expected"),
    [
        pytest.param(
            {"accelerate": "0.20.3", "setuptools": "84.2.1"},
            "hf",
            "fail",
            id="the Trainer imports it",
        ),
        pytest.param(
            {"accelerate": "0.20.3", "setuptools": "84.2.1"},
            "",
            "warn",
            id="the job may not import accelerate",
        ),
        pytest.param(
            {"accelerate": "0.20.3", "setuptools": "81.0.0"},
            "hf",
            "ok",
            id="setuptools 81 has pkg_resources",
        ),
        pytest.param(
            {"accelerate": "0.21.0", "setuptools": "84.2.1"},
            "hf",
            "ok",
            id="accelerate 0.21 does without",
        ),
        pytest.param({"accelerate": "0.20.3"}, "hf", "ok", id="nothing is known of setuptools"),
        pytest.param({"setuptools": "84.2.1"}, "hf", "ok", id="accelerate is not installed"),
    ],
)
def test_an_old_accelerate_needs_pkg_resources(
    releases: dict[str, str], framework: str, expected: str
) -> None:
    facts: dict[str, Any] = {
        "packages": packages(**releases),
        "patient": patient(),
        "run_needs": RunNeeds(framework=framework),
    }
    judged = judge(dependency_version_conflict.requirements_are_met, **facts)
    assert judged.status == expected
    assert expected == "ok" or "'setuptools<82'" in judged.worst.hint


def test_setuptools_that_is_surely_missing_is_named() -> None:
    found = msgspec.structs.replace(packages(accelerate="0.20.3"), origins={"setuptools": ""})
    facts: dict[str, Any] = {"packages": found, "patient": patient()}
    assert judge(dependency_version_conflict.requirements_are_met, **facts).status == "warn"
