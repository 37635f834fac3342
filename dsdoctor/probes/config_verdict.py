"""Validates the config with the environment's own DeepSpeed."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from dsdoctor.api import (
    ClassParameters,
    ConfigRefusal,
    ConfigVerdict,
    DeepSpeedInstall,
    Missing,
    probe,
)
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.redact import mask
from dsdoctor.process import Result

#: An import from a cold network disk is slow and healthy.
SECONDS = 120.0


def parse_verdict(
    records: Sequence[Mapping[str, Any]], result: Result, world: int
) -> ConfigVerdict | Missing:
    """Turns the records of `children/ds_config.py` into the fact."""
    if not any(record.get("done") for record in records):
        if result.timed_out:
            detail = f"DeepSpeed did not finish reading the config within {SECONDS:g} s"
            return Missing(why=Why.TIMEOUT, detail=detail)
        ended = f"status {result.returncode}"
        detail = f"the process that checks the config with DeepSpeed ended with {ended}"
        return Missing(why=Why.BROKEN, detail=detail)
    for record in records:
        if "error" in record:
            # why it cannot be imported is reported by the check of the import itself
            detail = f"DeepSpeed could not check the config: {record.get('text')}"
            return Missing(why=Why.ABSENT, detail=mask(detail))
    version = next((r["value"] for r in records if r.get("fact") == "version"), None)
    classes = [record["parameters"] for record in records if "parameters" in record]
    found = (record["refusal"] for record in records if isinstance(record.get("refusal"), dict))
    return ConfigVerdict(
        version=version,
        world=world,
        refusals=tuple(
            ConfigRefusal(
                key=str(one.get("key", "")),
                message=mask(str(one.get("message", ""))),
                kind=str(one.get("kind", "")),
            )
            for one in found
        ),
        parameters={
            str(one["part"]): ClassParameters(cls=str(one["class"]), names=tuple(one["names"]))
            for one in classes
        },
    )


@probe
def config_verdict(
    host: Host, choice: PatientChoice, deepspeed: DeepSpeedInstall, run: RunNeeds
) -> ConfigVerdict | Missing:
    """The verdict, in a child that imports deepspeed and starts nothing."""
    if run.config_path is None:
        raise HostError(Why.NOT_ASKED, "no DeepSpeed config was passed (`--config FILE`)")
    if run.quick:
        raise HostError(Why.NOT_ASKED, "the config was not checked with DeepSpeed (`--quick`)")
    if deepspeed.version is None:
        raise HostError(Why.ABSENT, "the config was not checked: `deepspeed` is not installed")
    world = len(run.gpus) or run.expect_gpus or 0
    records, result = run_child(
        host,
        choice.executable,
        "ds_config",
        [posixpath.join(run.cwd, run.config_path), str(world)],
        timeout=SECONDS,
        cwd=run.cwd,
    )
    return parse_verdict(records, result, max(world, 1))
