"""A hint that names a torch build names the one that the fix installs, and that build works."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator

import msgspec
import pytest

from dsdoctor.api import Fact, PackageManagers, Packages, Run, TorchBuild
from dsdoctor.fixes import planner
from dsdoctor.judge import judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.python import Package
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.fix_plan import Findings, FixRequest, PlanDocument
from dsdoctor_checks.torch._tables import VARIANTS
from tests.checks import machines as m
from tests.fixes import cases

FIX = "install-torch-build"
UNITS = [unit for unit in cases.REGISTRY if FIX in unit.condition.fixes]
UNITS = [unit for unit in UNITS if unit.check and unit.condition.name != "cuda-toolkit-mismatch"]
DRIVERS = ("470.82.01", "525.60.13", "535.104.05", "570.86.10", "580.65.06", "595.45.04")
MACHINES = ("V100", "T4", "A100", "H100", "B200", "5090", "V100+5090")
#: Installed packages: with pip, and as `uv venv` leaves an environment, with torchvision.
PIP = Packages(packages={"pip": Package(name="pip", version="26.0")}, origins={"torch": ""})
UV = Packages(
    packages={"torchvision": Package(name="torchvision", version="0.20.1")}, origins={"torch": ""}
)


def _torches() -> Iterator[TorchBuild]:
    yield TorchBuild()
    for (major, minor), variants in VARIANTS.items():
        yield m.torch(f"{major}.{minor}.0+cpu", None)
        for cuda in variants:
            yield m.torch(f"{major}.{minor}.0+cu{cuda.replace('.', '')}", cuda)


TORCHES = tuple(_torches())


VENV_OF_UV = msgspec.structs.replace(cases.VENV, made_by_uv=True)


def _judged(
    torch: TorchBuild, driver: str, cards: str, packages: Packages, python: str = "3.11.7"
) -> tuple[list[Finding], PlanDocument]:
    """What fails, and what the fix would do about it."""
    facts: list[Fact] = [
        msgspec.structs.replace(VENV_OF_UV if packages is UV else cases.VENV, version=python),
        m.LINUX, m.NO_ENV, m.ANY, PackageManagers(), packages, torch,
        m.kernel(driver), m.nvml(driver), m.gpus(*cards.split("+")),
    ]  # fmt: skip
    snapshot = snapshots.of(facts)
    found = judge(snapshot, UNITS, cases.REGISTRY).findings
    bad = [finding for finding in found if finding.status in (Status.FAIL, Status.WARN)]
    request = FixRequest(state="/s", asked=(FIX,))
    return bad, planner.plan(snapshot, cases.REGISTRY, Findings(findings=tuple(found)), request)


def _named(finding: Finding) -> list[list[str]]:
    """The commands of a hint that name a package index."""
    return [shlex.split(part) for part in finding.hint.split("`")[1::2] if "--index-url" in part]


@pytest.mark.parametrize("cards", MACHINES)
@pytest.mark.parametrize("driver", DRIVERS)
def test_hint_and_fix_name_one_build_and_it_works(driver: str, cards: str) -> None:
    for torch, packages in itertools.product(TORCHES, (PIP, UV)):
        bad, document = _judged(torch, driver, cards, packages)
        where = (torch.version, driver, cards, [finding.hint for finding in bad])
        named = [command for finding in bad for command in _named(finding)]
        if not document.plans:
            assert not named, where
            assert bad == [] or document.impossible, where
            continue
        (step,) = document.plans[0].steps
        assert isinstance(step, Run)
        wanted = {part for part in step.argv[4:] if not part.startswith("--")}
        for command in named:
            kept = {part for part in command if not part.startswith("--")}
            assert wanted <= kept, where
            assert command[0] == ("uv" if packages is UV else "/e/bin/python"), where
            assert "/e/bin/python" in command, where
        assert len(named) == len(bad), where
        (index,) = {part for part in step.argv if part.startswith("https://")}
        requirement = next(part for part in wanted if part.startswith("torch=="))
        cuda = index.rpartition("/cu")[2]
        works = m.torch(
            f"{requirement.removeprefix('torch==').replace('*', '0')}+cu{cuda}",
            f"{cuda[:2]}.{cuda[2:]}",
        )
        assert _judged(works, driver, cards, packages)[0] == [], where


@pytest.mark.parametrize(
    ("torch", "driver", "card", "said"),
    [
        ("2.13.0+cu130", "570.86.10", "A100", "'torch==2.13.0' --index-url {}/cu126"),
        ("2.13.0+cu130", "570.86.10", "B200", "'torch==2.11.*' --index-url {}/cu128"),
        ("2.13.0+cu132", "580.65.06", "5090", None),
        ("2.5.1+cu124", "580.65.06", "5090", "'torch==2.7.*' --index-url {}/cu128"),
        ("2.5.1+cu124", "580.65.06", "T4", None),
        ("2.11.0+cu130", "535.104.05", "T4", "'torch==2.11.0' --index-url {}/cu128"),
        ("2.11.0+cu130", "580.65.06", "V100", "'torch==2.11.0' --index-url {}/cu126"),
    ],
)
def test_the_build_that_a_machine_is_told(
    torch: str, driver: str, card: str, said: str | None
) -> None:
    cuda = torch.rpartition("+cu")[2]
    build = m.torch(torch, f"{cuda[:2]}.{cuda[2:]}")
    bad, _ = _judged(build, driver, card, PIP)
    if said is None:
        assert bad == []
        return
    (finding,) = bad
    index = said.format("https://download.pytorch.org/whl")
    assert f"run `/e/bin/python -m pip install --force-reinstall {index}`" in finding.hint


@pytest.mark.parametrize(
    ("python", "driver", "said"),
    [
        pytest.param("3.10.12", "595.45.04", "torch==2.14.*", id="too old for the newest"),
        pytest.param("3.11.9", "595.45.04", "torch==2.15.*", id="the oldest of the newest"),
        pytest.param("3.8.18", "595.45.04", "torch==2.4.*", id="for old releases only"),
        pytest.param("3.15.2", "595.45.04", "torch==2.15.*", id="for the newest only"),
        pytest.param("3.15.2", "535.104.05", None, id="whose builds the driver does not run"),
    ],
)
def test_a_build_that_is_published_for_the_python(
    python: str, driver: str, said: str | None
) -> None:
    """torch 2.15 has no wheels for Python 3.10, and only it has some for 3.15."""
    (finding,), document = _judged(TorchBuild(), driver, "A100", PIP, python)
    if said is None:
        assert "Python 3.14" in finding.hint
        assert finding.fixes == ()
        assert not document.plans
        assert "use an environment with Python 3.14" in document.impossible[0].why
        return
    assert f"'{said}'" in finding.hint
    (step,) = document.plans[0].steps
    assert isinstance(step, Run)
    assert said in step.argv


def test_a_cpu_build_is_not_installed_for_a_run_that_needs_gpus() -> None:
    facts: list[Fact] = [
        cases.VENV, m.LINUX, m.NO_ENV, m.WANTS, PackageManagers(), PIP, m.NO_GPU,
        m.torch("2.13.0+cpu", None),
    ]  # fmt: skip
    snapshot = snapshots.of(facts)
    found = judge(snapshot, UNITS, cases.REGISTRY).findings
    request = FixRequest(state="/s", asked=(FIX,))
    document = planner.plan(snapshot, cases.REGISTRY, Findings(findings=tuple(found)), request)
    assert not document.plans
    assert "neither a driver nor a GPU was read" in document.impossible[0].why
