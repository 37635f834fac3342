"""Inside a container, a hint says which steps belong on the host."""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import Gpu, GpuHealth, Gpus, OsInfo
from dsdoctor.host_actions import MENTIONS_HOST, NOTE, OF_HOST
from dsdoctor.judge import judge
from dsdoctor.model.snapshot import of
from dsdoctor.run import ending

REGISTRY = packs.load(builtin_only=True)
PACK = Path(__file__).parents[2] / "checks" / "dsdoctor_checks"
#: Words of actions that look like the administrator's of the machine.
SUSPECT = re.compile(
    r"as root|sudo |modprobe|insmod|sysctl|systemctl|reboot|dmesg|driver package|reseat|kernel"
)
#: Hints with such a word that a container's reader can carry out, or that name WSL's own files.
INSIDE = {
    "job-left-shm-files": "the container's own /dev/shm",
    "shm-nearly-full": "the container's own segments",
    "stale-shm-segments": "the container's own segments",
    "wsl-driver-unavailable": "WSL: packages of this system",
}
HOST = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="h")


def hints() -> Iterator[tuple[str, str]]:
    """Texts of hints in calls of `fail` and `warn`, by condition."""
    for path in sorted(PACK.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("fail", "warn"):
                for word in node.keywords:
                    if word.arg == "hint":
                        parts = [
                            n.value for n in ast.walk(word.value) if isinstance(n, ast.Constant)
                        ]
                        text = " ".join(one for one in parts if isinstance(one, str))
                        yield path.stem.replace("_", "-"), text


def test_every_hint_for_the_administrator_is_recognized() -> None:
    found = list(hints())
    assert len(found) > 150
    missed = {
        name: text
        for name, text in found
        if SUSPECT.search(text) and not OF_HOST.search(text) and not MENTIONS_HOST.search(text)
    }
    assert set(missed) == set(INSIDE), missed


@pytest.mark.parametrize("container", ["docker", "kubernetes", None])
def test_a_reset_is_the_hosts(container: str | None) -> None:
    gpu = Gpu(index=3, health=GpuHealth(remapped_rows_pending=True))
    machine = of([msgspec.structs.replace(HOST, container=container), Gpus(gpus=(gpu,), count=1)])
    (finding,) = judge(machine, REGISTRY.select(["row-remap-pending"]), REGISTRY).findings
    assert finding.hint.endswith(NOTE) is (container is not None)


@pytest.mark.parametrize("container", ["/.dockerenv", None])
def test_a_run_that_died_in_a_container_names_the_host(
    container: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"/.dockerenv": "docker"}.get(container or "")
    monkeypatch.setattr("dsdoctor.host_actions.container_of", lambda _host: found)
    line = "RuntimeError: CUDA error: system not yet initialized\n"
    (tmp_path / "output-1.log.gz").write_bytes(gzip.compress(line.encode()))
    diagnosis = ending.diagnose(tmp_path, REGISTRY)
    assert diagnosis is not None
    (cause, *_) = diagnosis.causes
    assert cause.condition == "fabric-manager-not-running"
    assert cause.hint.endswith(NOTE) is (container is not None)
