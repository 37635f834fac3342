"""The hosts: a recording replays to the same facts; other systems report honestly."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.api import Missing, OsInfo, Resources, RunNeeds, Status, Why
from dsdoctor.collect import collect
from dsdoctor.host import HostError, LocalHost, RecordingHost, ReplayHost, free_port
from dsdoctor.judge import judge
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.report import Verdict
from dsdoctor.probes import builtin
from dsdoctor.testing import FakeHost

REGISTRY = packs.load(builtin_only=True)
CHOICE = PatientChoice(executable="python3", chosen_by="python3 on PATH", why="test")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the range is read from /proc")
def test_a_free_port_is_not_one_that_the_kernel_deals_out(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, last = map(int, dealt.read_text().split())
    assert not any(first <= free_port() <= last for _ in range(20))
    monkeypatch.setattr("dsdoctor.host.local._PORTS", (first, first))  # no room below
    assert first <= free_port("127.0.0.1") <= last


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr("dsdoctor.host.local._PORTS", (port, port + 1))
        assert free_port() != port


def test_a_recording_replays_to_the_same_facts() -> None:
    given = [RunNeeds(quick=True), PatientChoice(executable=sys.executable, chosen_by="t", why="t")]
    recorder = RecordingHost(LocalHost())
    live = collect(recorder, given, builtin())
    tape = json.loads(json.dumps(recorder.dump()))
    again = collect(ReplayHost(tape), given, builtin())
    for key in ("os_info", "nvidia_kernel", "torch_build", "compilers", "packages", "libcuda"):
        assert again.facts.get(key) == live.facts.get(key), key
    assert again.missing.keys() == live.missing.keys()


def test_what_was_not_recorded_is_absent() -> None:
    host = ReplayHost({"system": "Linux", "env": {}, "answers": {}})
    with pytest.raises(HostError) as caught:
        host.read("/etc/os-release")
    assert caught.value.missing.why is Why.ABSENT
    assert host.glob("/usr/local/cuda*") == []
    assert host.which("nvcc") is None


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_other_systems_report_honestly(system: str) -> None:
    queries: dict[str, object] = {
        "release": "23.0",
        "machine": "arm64",
        "hostname": "mac",
        "libc": None,
        "cpu_count": 8,
        "affinity": 8,
        "memory": {"total": 2**35, "available": 2**34, "swap": 0},
        "limits": {},
        "euid": 501,
        "home": "/Users/ann",
        "cwd": "/",
        "executable": "python3",
        "processes": [],
    }
    host = FakeHost(system=system, queries=queries)
    snapshot = collect(host, [RunNeeds(), CHOICE], builtin(), timeout=200)
    kernel = snapshot.facts.get("nvidia_kernel")
    assert kernel is None
    assert snapshot.missing["nvidia_kernel"].why is Why.UNSUPPORTED
    assert not isinstance(snapshot.get(OsInfo), Missing)
    assert not isinstance(snapshot.get(Resources), Missing)
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    assert not [f for f in report.findings if f.status is Status.CRASH]
    assert report.verdict is not Verdict.HEALTHY


def test_errors_of_files_are_told_apart(tmp_path: Path) -> None:
    host = LocalHost({"PATH": ""})
    for path, why in ((tmp_path / "none", Why.ABSENT), (tmp_path, Why.BROKEN)):
        with pytest.raises(HostError) as caught:
            host.read(str(path))
        assert caught.value.missing.why is why
    with pytest.raises(HostError) as caught:
        host.run([str(tmp_path / "none")])
    assert caught.value.missing.why is Why.ABSENT


def test_a_path_on_a_network_mount_goes_through_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    host = LocalHost()
    monkeypatch.setattr(host, "_mounts", [(str(tmp_path), "nfs4")])
    assert host.file_system(str(tmp_path / "link")) == "nfs4"
    assert host.file_system("/") is None
    assert host.read(str(tmp_path / "file")) == b"content"
    assert host.stat(str(tmp_path / "file")).kind == "file"
    assert host.listdir(str(tmp_path)) == ["file", "link"]
    with pytest.raises(HostError) as caught:
        host.read(str(tmp_path / "none"))
    assert caught.value.missing.why is Why.ABSENT


def test_a_dead_network_mount_is_a_time_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = LocalHost(scale=0.1)
    monkeypatch.setattr(host, "_mounts", [(str(tmp_path), "nfs4")])
    monkeypatch.setattr("dsdoctor.host.local._REMOTE", "import time; time.sleep(60)")
    with pytest.raises(HostError) as caught:
        host.stat(str(tmp_path / "file"))
    assert caught.value.missing.why is Why.TIMEOUT
    assert "nfs4" in caught.value.missing.detail
