"""A machine that is elsewhere: no command is offered that would change this one in its place."""

from __future__ import annotations

import json
from pathlib import Path

from dsdoctor.api import BuildLock, ExtensionCache, TorchBuild
from dsdoctor.testing import snapshot
from tests.support.command import clean_environment, dsdoctor

LOCK = BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=7200)
CACHE = ExtensionCache(root="/c", locks=(LOCK,))
CONFIG = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"overlap_com": true}}'
NOTE = "run `dsdoctor fix` on the machine that was read, not here"


def test_a_snapshot_says_where_to_fix(tmp_path: Path) -> None:
    saved = tmp_path / "node.json"
    torch = TorchBuild(version="2.13.0")
    saved.write_bytes(snapshot(extension_cache=CACHE, torch_build=torch).to_json())
    env = clean_environment(tmp_path)
    done = dsdoctor("check", "--from", str(saved), env=env)
    assert done.status == 1
    assert "fix: `dsdoctor fix remove-stale-lock`" in done.out
    assert NOTE in done.out.splitlines()


def test_a_snapshot_without_a_fix_says_nothing_of_fixes(tmp_path: Path) -> None:
    saved = tmp_path / "node.json"
    saved.write_bytes(snapshot(extension_cache=ExtensionCache(root="/c")).to_json())
    assert NOTE not in dsdoctor("check", "--from", str(saved), env=clean_environment(tmp_path)).out


def test_of_a_described_machine_only_the_files_of_the_job_can_be_fixed(tmp_path: Path) -> None:
    """`fix` would examine this machine, where the driver or the GPUs are others."""
    config = tmp_path / "ds.json"
    config.write_text(CONFIG)
    like = ("--like", "2x4090", "--driver", "470.256.02", "--config", str(config))
    found = dsdoctor("check", *like, "--json", env=clean_environment(tmp_path)).report["findings"]
    bad = [one for one in found if one["status"] in ("warn", "fail")]
    assert {one["condition"]: one["fixes"] for one in bad if one["scope"] == "job"} == {
        "ds-config-invalid-key": ["repair-ds-config"]
    }
    elsewhere = [one for one in bad if one["scope"] != "job"]
    assert elsewhere
    assert not [one for one in elsewhere if one["fixes"]], json.dumps(elsewhere)
