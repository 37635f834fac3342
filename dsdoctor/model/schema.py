"""JSON Schemas of the documents that others may rely on."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import msgspec

from dsdoctor.model import facts as built_in
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.fix_plan import PlanDocument
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.model.report import Report
from dsdoctor.model.run_diff import RunDiff
from dsdoctor.model.run_record import RunRecord
from dsdoctor.model.smoke import SmokeReport
from dsdoctor.model.snapshot import Snapshot


def fact_types() -> dict[str, type[Fact]]:
    """All built-in fact types, by key."""
    found: dict[str, type[Fact]] = {}
    for place in pkgutil.iter_modules(built_in.__path__, f"{built_in.__name__}."):
        module = importlib.import_module(place.name)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Fact) and value is not Fact:
                found[value.key()] = value
    return found


def _any_value(kind: type) -> dict[str, Any]:
    """Schema of `object`: a value of a DeepSpeed config may be anything."""
    if kind is object:
        return {"description": "any value"}
    raise NotImplementedError(kind)


def _clean(node: Any) -> Any:
    """The same with docstrings as Python 3.13 has them; older ones keep their indentation."""
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: inspect.cleandoc(value)
        if key == "description" and isinstance(value, str)
        else _clean(value)
        for key, value in node.items()
    }


def _text(schema: dict[str, Any], name: str) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **schema}
    schema = _clean(schema)
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def snapshot_schema() -> str:
    """Schema of a snapshot; facts of other packs are allowed next to the built-in ones."""
    facts = fact_types()
    (own, *refs), components = msgspec.json.schema_components(
        [Snapshot, *facts.values()], schema_hook=_any_value, ref_template="#/$defs/{name}"
    )
    snapshot = components["Snapshot"]
    snapshot["properties"]["facts"] = {
        "type": "object",
        "properties": dict(zip(facts, refs, strict=True)),
    }
    return _text({**own, "$defs": components}, "dsdoctor/snapshot")


def report_schema() -> str:
    """Schema of `check --format json`."""
    return _text(msgspec.json.schema(Report, schema_hook=_any_value), "dsdoctor/report")


def smoke_schema() -> str:
    """Schema of `smoke --format json`."""
    return _text(msgspec.json.schema(SmokeReport, schema_hook=_any_value), "dsdoctor/smoke")


def launch_schema() -> str:
    """Schema of `recommend --format json` and of the `launch.json` that `smoke --plan` reads."""
    return _text(msgspec.json.schema(LaunchPlan, schema_hook=_any_value), "dsdoctor/launch")


def plan_schema() -> str:
    """Schema of `fix --format json`; with one plan its keys are at the top level too."""
    return _text(msgspec.json.schema(PlanDocument, schema_hook=_any_value), "dsdoctor/plan")


def run_schema() -> str:
    """Schema of `run show --format json`, of each row of `run list`, and of a saved `run.json`."""
    return _text(msgspec.json.schema(RunRecord, schema_hook=_any_value), "dsdoctor/run")


def run_diff_schema() -> str:
    """Schema of `run diff --format json`."""
    return _text(msgspec.json.schema(RunDiff, schema_hook=_any_value), "dsdoctor/run-diff")
