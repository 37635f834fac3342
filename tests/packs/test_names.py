"""Names of a third party's pack: prefixed, and refused where another pack has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.errors import UsageError
from dsdoctor.packs.entry_points import EntryPoint
from dsdoctor.packs.registry import Registry, id_order

HEAD = '''"""The licence server does not answer.

## Why it matters
Nothing starts.
"""
from collections.abc import Iterator

from dsdoctor.api import (
    Condition, Fact, Finding, Fix, Host, Network, Plan, Reach, Scope, check, fail, fix, probe
)

'''
CHECK = '''CONDITION = Condition("acme-licence", id="ACME001", scope=Scope.NODE, since="1.0")


class AcmeLicence(Fact, frozen=True, kw_only=True):
    """The licence."""

    answers: bool


@probe
def licence(host: Host) -> AcmeLicence:
    return AcmeLicence(answers=bool(host.read("/licence")))


@check(CONDITION)
def answers(licence: AcmeLicence) -> Iterator[Finding]:
    if not licence.answers:
        yield fail("no answer", effect="nothing starts", hint="ask")


@fix("acme-ask", reach=Reach.ENV)
def ask(licence: AcmeLicence) -> Plan | None:
    return None
'''
GOOD = HEAD + CHECK


def load(folder: Path, **files: str) -> Registry:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return packs.load([str(folder)])


def test_a_prefixed_pack_loads_whole(tmp_path: Path) -> None:
    registry = load(tmp_path, acme_licence=GOOD)
    assert registry.problems == []
    (pack,) = [pack for pack in registry.packs if pack.units[0].condition.id == "ACME001"]
    assert [kind.key() for kind in pack.facts] == ["acme_licence"]
    assert (len(pack.probes), len(pack.fixes)) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            '"acme-licence"',
            '"licence"',
            "condition `licence` (FILE) must be called `acme-…`",
            id="a condition without the prefix",
        ),
        pytest.param(
            "ACME001",
            "DSD9001",
            "id `DSD9001` of `acme-licence` (FILE) must be `ACME` and three or four digits",
            id="an id with the letters of dsdoctor",
        ),
        pytest.param(
            '"acme-ask"', '"ask"', "fix `ask` (dsdoctor_checks_d_acme_licence) must be called",
            id="a fix without the prefix",
        ),
        pytest.param(
            "AcmeLicence",
            "NetworkState",
            "fact `NetworkState` (dsdoctor_checks_d_acme_licence) must be called `Acme…`",
            id="a fact without the prefix",
        ),
        pytest.param(
            "AcmeLicence",
            "TorchBuild",
            "must be called `Acme…`; `torch_build` is a fact of `dsdoctor.model.facts.python`",
            id="a fact that is called like one of dsdoctor",
        ),
        pytest.param(
            "-> AcmeLicence:",
            "-> Network:",
            "probe `licence` (dsdoctor_checks_d_acme_licence) reads `network`, a fact of "
            "`dsdoctor.model.facts.network`",
            id="a probe for a fact of dsdoctor",
        ),
    ],
)  # fmt: skip
def test_a_name_that_is_not_the_packs_own_is_refused(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    registry = load(tmp_path, acme_licence=GOOD.replace(old, new))
    (problem,) = registry.problems
    assert problem.pack == str(tmp_path / "acme_licence.py")
    assert reason.replace("FILE", problem.pack) in problem.message
    assert registry.find("acme-licence") is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, "`acme-licence` (ACME001) (NEW) is already taken by `acme-licence` "
                     "(ACME001) of pack `OLD` (OLD)", id="a condition"),
        pytest.param({"acme-licence": "acme-other"}, "`acme-other` (ACME001) (NEW) is already",
                     id="an id"),
        pytest.param({"acme-licence": "acme-other", "ACME001": "ACME002"},
                     "fix `acme-ask` (dsdoctor_checks_d_acme_b) is already taken by pack `OLD` "
                     "(dsdoctor_checks_d_acme_a)", id="a fix"),
        pytest.param({"acme-licence": "acme-other", "ACME001": "ACME002", "acme-ask": "acme-beg"},
                     "fact `acme_licence` (dsdoctor_checks_d_acme_b) is already taken by pack "
                     "`OLD` (dsdoctor_checks_d_acme_a)", id="a fact"),
    ],
)  # fmt: skip
def test_what_another_file_has_taken_is_refused_and_both_are_named(
    tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    text = GOOD
    for old, new in changes.items():
        text = text.replace(old, new)
    registry = load(tmp_path, acme_a=GOOD, acme_b=text)
    (problem,) = registry.problems
    old, new = str(tmp_path / "acme_a.py"), str(tmp_path / "acme_b.py")
    assert problem.pack == new
    assert reason.replace("OLD", old).replace("NEW", new) in problem.message


def test_two_probes_for_one_fact_are_refused(tmp_path: Path) -> None:
    twice = (
        GOOD + "\n\n@probe\ndef other(host: Host) -> AcmeLicence:\n    raise NotImplementedError\n"
    )
    (problem,) = load(tmp_path, acme_twice=twice).problems
    assert "probe `other`" in problem.message
    assert "which `licence` of pack" in problem.message


@pytest.mark.parametrize(
    ("stem", "reason"),
    [
        pytest.param("dsd_x", "reserved for dsdoctor", id="a reserved prefix"),
        pytest.param("Acme_x", "expected lowercase letters", id="capital letters"),
        pytest.param("acme2_x", "digits between letters", id="a digit at the end"),
    ],
)
def test_a_file_whose_name_is_not_a_prefix_is_refused(
    tmp_path: Path, stem: str, reason: str
) -> None:
    (problem,) = load(tmp_path, **{stem: GOOD}).problems
    assert reason in problem.message


def test_entry_points_of_one_name_are_refused_and_none_replaces_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("builtin", "evil_checks", "evil 1.0"),
        EntryPoint("builtin", "dsdoctor_checks", "dsdoctor 1.0"),
    ]
    monkeypatch.setattr("dsdoctor.packs.loading.entry_points", lambda _: points)
    registry = packs.load()
    assert registry.packs[0].origin == "dsdoctor 1.0"
    assert registry.find("driver-too-old") is not None
    (problem,) = registry.problems
    assert problem.message == (
        "the entry point `builtin` of evil 1.0 (`evil_checks`) is already taken by "
        "dsdoctor 1.0 (`dsdoctor_checks`)"
    )


def test_ids_of_a_pack_are_selected_by_their_letters(tmp_path: Path) -> None:
    registry = load(tmp_path, acme_licence=GOOD)
    for word in ("ACME001", "acme001", "ACME", "ACME0", "acme-licence"):
        assert [unit.condition.id for unit in registry.select([word])] == ["ACME001"]
    with pytest.raises(UsageError, match="selects nothing"):
        registry.select(["ACM"])
    assert max(["ACME001", "DSD1001", "DSD201"], key=id_order) == "ACME001"
