"""`dsdoctor facts`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.api import __all__ as exported
from dsdoctor.errors import UsageError
from dsdoctor.reference import fact_pages
from tests.support.command import clean_environment, dsdoctor

PAGES = fact_pages.pages(packs.load(builtin_only=True))


def test_every_fact_that_checks_can_ask_for_is_listed(tmp_path: Path) -> None:
    listed = dsdoctor("facts", env=clean_environment(tmp_path))
    assert listed.status == 0
    keys = [line.split()[0] for line in listed.out.splitlines()]
    assert {"torch_build", "nvml", "environment", "run_needs", "stale_builds"} <= set(keys)
    assert keys == sorted(keys)


def test_a_fact_is_shown_with_its_fields_and_parts(tmp_path: Path) -> None:
    shown = dsdoctor("facts", "Storage", env=clean_environment(tmp_path))
    assert "read by the probe `dsdoctor.probes.storage.storage`" in shown.out
    assert "| `free_bytes` | `int | None` | space that this user can still use |" in shown.out
    assert "## `Quota` in `storage`" in shown.out


def test_json_names_the_probe_the_type_and_the_default(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    document = json.loads(dsdoctor("facts", "run_needs", "--format", "json", env=env).out)
    assert (document["schema"], document["version"]) == ("dsdoctor/facts", 1)
    (fact,) = document["facts"]
    assert (fact["name"], fact["probe"]) == ("RunNeeds", None)
    fields = {field["name"]: field for field in fact["fields"]}
    assert fields["lora_rank"]["default"] == "16"
    assert fields["gpus"]["type"] == "tuple[str, ...]"
    assert fields["gpus"]["meaning"].startswith("selectors given with --gpus")


def test_every_field_of_every_fact_has_a_meaning() -> None:
    structures = [(page.name, page.fields) for page in PAGES]
    structures += [(part.name, part.fields) for page in PAGES for part in page.parts]
    undocumented = [
        f"{name}.{field.name}"
        for name, fields in structures
        for field in fields
        if not field.meaning
    ]
    assert undocumented == []


def test_a_fact_that_does_not_exist_is_one_line_with_the_closest() -> None:
    with pytest.raises(UsageError, match="the closest is `torch_build`; `dsdoctor facts` lists"):
        fact_pages.find(PAGES, "torch_buld")


def test_facts_that_the_engine_reads_name_their_probe() -> None:
    given = {page.name for page in PAGES if page.probe is None}
    assert given == {"Findings", "FixRequest", "JobEnd", "PatientChoice", "RunNeeds"} & given
    assert {page.name for page in PAGES if page.name in exported} > {"TorchBuild", "Gpus"}
