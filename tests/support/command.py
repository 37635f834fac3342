"""Runs the dsdoctor command in a process of its own, as a user would."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Names the test to all that it starts: what else runs on the machine does not count.
TEST_RUN = "DSDOCTOR_TEST_RUN"


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def of(self, condition: str) -> str | None:
        """Worst status of a condition in a JSON report, None when it is not in it."""
        order = ["ok", "skip", "warn", "unknown", "crash", "fail"]
        found = [f["status"] for f in self.report["findings"] if f["condition"] == condition]
        return max(found, key=order.index) if found else None

    def statuses(self, *, bad_only: bool = True) -> dict[str, str]:
        return {
            f["condition"]: f["status"]
            for f in self.report["findings"]
            if not bad_only or f["status"] in ("warn", "unknown", "crash", "fail")
        }


def clean_environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """An environment that knows nothing of the machine but where its tools are."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
    }
    return {
        **kept,
        TEST_RUN: str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "DSDOCTOR_PYTHON": sys.executable,
        **more,
    }


def dsdoctor(
    *argv: str,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 500,
    address_mib: int | None = None,
) -> Outcome:
    """Runs the command, with no more than so much address space."""

    def bound() -> None:
        if address_mib is not None:
            resource.setrlimit(resource.RLIMIT_AS, (address_mib << 20, address_mib << 20))

    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", *argv],
        env=dict(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
        preexec_fn=bound,  # the suite starts no threads here
    )
    return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - begun)


def left_running(tmp_path: Path) -> list[str]:
    """Command lines of processes that the test of this folder started and that still run."""
    mark = f"{TEST_RUN}={tmp_path}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in found if line]
