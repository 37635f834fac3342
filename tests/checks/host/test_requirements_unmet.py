"""requirements_unmet, and what a wrong profile is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Finding, Package, Packages, Patient, Place, Resources, RunNeeds, Storage
from dsdoctor.errors import UsageError
from dsdoctor.profiles import SCHEMA, bundled, load, parse
from dsdoctor.testing import judge
from dsdoctor_checks.host.requirements_unmet import floors_are_met
from tests.checks.machines import ABSENT, DEEPSPEED, NO_ENV, TIMEOUT, gpus, nvml, torch

GIB = 1 << 30
GOOD: dict[str, Any] = {
    "gpus": gpus("V100", "V100", "V100", "V100"),
    "cpus": 16,
    "ram": 62.7,
    "disk": 60,
    "python": "3.10.4",
    "torch": torch("2.1.0"),
    "deepspeed": DEEPSPEED,
    "selected": (),
}


def verdict(
    profile: str = "gpt2-xl-4gpu", text: str | None = None, **changes: Any
) -> list[Finding]:
    facts = {**GOOD, **changes}
    floors = load(profile) if text is None else parse(text, "mine.toml")
    machine = Resources(
        cpus_logical=64,
        cpus_usable=facts["cpus"],
        memory_total_bytes=int(facts["ram"] * GIB),
        memory_available_bytes=GIB,
    )
    place = Place(purpose="disk of the profile", path=".", free_bytes=int(facts["disk"] * GIB))
    return judge(
        floors_are_met,
        run_needs=RunNeeds(floors=floors, gpus=facts["selected"]),
        gpus=facts["gpus"],
        environment=NO_ENV,
        nvml=nvml("535.104.05"),
        resources=machine,
        storage=Storage(places=(place,)),
        patient=Patient(executable="p", chosen_by="c", version=facts["python"], kind="venv"),
        torch_build=facts["torch"],
        deep_speed_install=facts["deepspeed"],
        packages=Packages(
            packages={"transformers": Package(name="transformers", version="4.40.0")}
        ),
    ).findings


def bad(findings: list[Finding]) -> list[str]:
    return [finding.message for finding in findings if finding.status.value != "ok"]


def test_a_machine_that_meets_it() -> None:
    assert bad(verdict()) == []


@pytest.mark.parametrize(
    ("changes", "words_"),
    [
        pytest.param(
            {"gpus": gpus("V100")},
            "GPUs: 1 is available to the run",
            id="one GPU where the profile has four",
        ),
        pytest.param(
            {"selected": ("2",)},
            "GPUs: 1 is available to the run",
            id="the run selects one of four GPUs",
        ),
        pytest.param(
            {"gpus": gpus("V100", "P100")},
            "GPU 1 (Tesla P100-PCIE-16GB): compute capability 6.0",
            id="a P100 among the GPUs",
        ),
        pytest.param({"cpus": 8}, "CPUs: the job can use 8 of 64", id="half of the CPUs"),
        pytest.param(
            {"ram": 31.2}, "host memory: the job can use 31.2 GiB", id="half of the memory"
        ),
        pytest.param({"disk": 12}, "disk: 12.0 GiB are free at `.`", id="12 GiB of disk"),
        pytest.param({"python": "3.7.1"}, "Python: 3.7.1", id="Python 3.7"),
        pytest.param({"torch": torch("1.11.0")}, "torch: 1.11.0", id="torch 1.11"),
        pytest.param(
            {"torch": torch("1.11.0")},
            "requires 1.12 or newer",
            id="torch 1.11, with the version that is required",
        ),
    ],
)
def test_what_falls_short(changes: dict[str, Any], words_: str) -> None:
    (message,) = bad(verdict(**changes))
    assert words_ in message
    assert "`gpt2-xl-4gpu`" in message


def test_sixteen_gb_cards_that_report_fifteen_are_taken() -> None:
    assert bad(verdict(gpus=gpus("T4", "T4"))) == []
    small = gpus("T4", "T4", memory_total_bytes=12 * GIB)
    assert len(bad(verdict(gpus=small))) == 2


def test_own_profile_with_packages_and_driver() -> None:
    text = '[versions]\ndriver = "550"\ncuda = "12.1"\n[packages]\ntransformers = "4.41"\npeft = "0.1"\n'
    messages = bad(verdict(text=text))
    assert [message.split(":")[0] for message in messages] == ["driver", "transformers", "peft"]


def test_what_was_not_read_is_not_ok() -> None:
    found = verdict(gpus=TIMEOUT, torch=ABSENT)
    assert [f.status.value for f in found if "compared" in f.message] == ["skip", "skip"]


def test_without_a_profile_nothing_is_said() -> None:
    assert judge(floors_are_met).statuses == ["skip"]


@pytest.mark.parametrize("name", bundled())
def test_bundled_profiles_load(name: str) -> None:
    floors = load(name)
    assert floors.gpus
    assert floors.ram_gib


@pytest.mark.parametrize(
    ("text", "words_"),
    [
        pytest.param(
            "[gpu]\ncount = 2\nmemory = 16\n",
            "line 3: unknown key `memory`; did you mean `memory_gib`",
            id="a misspelled key",
        ),
        pytest.param(
            "[gpus]\ncount = 2\n",
            "line 1: unknown table `gpus`; did you mean `gpu`",
            id="a misspelled table",
        ),
        pytest.param(
            "\n[gpu]\ncount = 'two'\n",
            "line 3: `count` is `two`; expected a whole number",
            id="a number in letters",
        ),
        pytest.param(
            "[gpu]\ncount = -1\n",
            "`count` is `-1`; expected a whole number of 0 or more",
            id="a negative number",
        ),
        pytest.param("[gpu]\ncount = true\n", "`count` is `True`", id="true in place of a number"),
        pytest.param(
            "[versions]\ntorch = 2.1\n",
            "line 2: `torch` is `2.1`; expected a version as a string",
            id="a version without quotes",
        ),
        pytest.param(
            "[versions]\ntorch = 'new'\n",
            "expected a version as a string",
            id="a version that is a word",
        ),
        pytest.param(
            "[gpu]\ncompute_capability = '8'\n",
            "expected a compute capability as a string",
            id="a compute capability without its minor number",
        ),
        pytest.param("[gpu\n", "line 1: not valid TOML", id="a bracket that is not closed"),
        pytest.param(
            "gpu = 3\n",
            "line 1: `gpu` is not a table; expected `[gpu]`",
            id="a table that is a number",
        ),
        pytest.param("", "is empty", id="an empty file"),
        pytest.param(
            "[packages]\npeft = 3\n",
            "line 2: `peft` is `3`; expected a version as a string",
            id="a package version that is a number",
        ),
    ],
)
def test_a_wrong_profile_is_told_where(text: str, words_: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "mine.toml")
    assert words_ in str(caught.value)
    assert "`--profile mine.toml`" in str(caught.value)


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean `gpt2-xl-4gpu`"):
        load("gpt2-xl")
    with pytest.raises(UsageError, match="bundled profiles: "):
        load(str(tmp_path / "x.toml"))
    (tmp_path / "bin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        load(str(tmp_path / "bin.toml"))


def test_the_schema_covers_every_floor() -> None:
    from dsdoctor.api import Floors

    fields = {field for table in SCHEMA.values() for field, _ in table.values() if field}
    assert fields == set(Floors.__struct_fields__) - {"name", "packages"}
