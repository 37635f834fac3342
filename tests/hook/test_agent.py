"""The agent of the DaemonSet: what a verdict becomes in Kubernetes."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs, settings
from dsdoctor.hook import agent, nodeapi
from dsdoctor.hook.agent import Agent, Options, condition_for
from tests.hook.apiserver import Cluster, served
from tests.nvml import fakenvml, scenarios

TAINT = "dsdoctor/unhealthy"
HEALTHY = {"verdict": "healthy", "gpus": {"0": "GPU-1"}, "reason": "dsdoctor: ok"}
LOST = {
    "verdict": "faulty",
    "gpus": {"0": "GPU-1"},
    "reason": "dsdoctor: DSD601 gpu-lost: GPU 1 is lost (and 1 more)",
    "findings": [
        {"status": "warn", "condition": "power-capped", "hint": "no"},
        {"status": "fail", "condition": "gpu-lost", "hint": "restart the node"},
        {"status": "fail", "condition": "nvlink-inactive", "hint": "later"},
    ],
}
LATE = {"verdict": "unknown", "cause": "timeout", "reason": "dsdoctor: inconclusive (timeout): x"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    with served(cluster) as found:
        yield found


def rounds(url: str, folder: Path, *verdicts: Any, taint: str = TAINT) -> list[bool]:
    given = iter(verdicts)
    options = Options("gpu-1", folder, taint=taint, device=folder)
    one = Agent(options, nodeapi.Api(url), lambda: next(given))
    return [one.round() for _ in verdicts]


def keys(cluster: Cluster) -> list[str]:
    return [taint["key"] for taint in cluster.node["spec"]["taints"]]


def test_a_fault_sets_condition_taint_and_event(cluster: Cluster, url: str, tmp_path: Path) -> None:
    assert rounds(url, tmp_path, HEALTHY, LOST) == [True, True]
    found = cluster.condition("GPUProblem")
    assert (found["status"], found["reason"]) == ("True", "GpuLost")
    assert found["message"] == (
        "DSD601 gpu-lost: GPU 1 is lost (and 1 more); hint: restart the node"
    )
    assert found["lastTransitionTime"].endswith("Z")
    assert keys(cluster) == ["maintenance", TAINT]
    (event,) = cluster.events  # a node that starts healthy is not reported
    assert (event["type"], event["reason"]) == ("Warning", "GpuLost")
    assert event["message"].startswith("DSD601 gpu-lost")
    assert event["involvedObject"]["name"] == "gpu-1"
    assert cluster.condition("Ready")["status"] == "True"


def test_a_healed_node_is_opened_and_what_others_set_stays(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    rounds(url, tmp_path, LOST, HEALTHY)
    assert cluster.condition("GPUProblem")["status"] == "False"
    assert keys(cluster) == ["maintenance"]
    assert [event["type"] for event in cluster.events] == ["Warning", "Normal"]


@pytest.mark.parametrize(
    "verdict",
    [
        pytest.param(LATE, id="a timeout"),
        pytest.param(None, id="no verdict"),
        pytest.param({**HEALTHY, "gpus": {}}, id="no GPU judged"),
    ],
)
@pytest.mark.parametrize(
    "before", [pytest.param(HEALTHY, id="healthy before"), pytest.param(LOST, id="faulty before")]
)
def test_an_inconclusive_verdict_neither_closes_nor_opens(
    cluster: Cluster, url: str, tmp_path: Path, verdict: Any, before: Any
) -> None:
    rounds(url, tmp_path, before, verdict)
    assert cluster.condition("GPUProblem")["status"] == "Unknown"
    assert (TAINT in keys(cluster)) == (before is LOST)


def test_a_container_without_gpus_says_nothing_of_the_node(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    """Without its runtime class a healthy node would look as if its driver were gone."""
    options = Options("gpu-1", tmp_path, taint=TAINT, device=tmp_path / "nvidiactl")
    assert Agent(options, nodeapi.Api(url), lambda: LOST).round()
    found = cluster.condition("GPUProblem")
    assert (found["status"], found["reason"]) == ("Unknown", "NoGpuInContainer")
    assert keys(cluster) == ["maintenance"]


def test_an_unchanged_verdict_writes_nothing(cluster: Cluster, url: str, tmp_path: Path) -> None:
    rounds(url, tmp_path, LOST, LOST, LOST)
    writes = [line for line in cluster.requests if not line.startswith("GET")]
    assert len(writes) == 3  # condition, taint and event, once each


def test_without_a_taint_the_node_is_not_patched(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    rounds(url, tmp_path, LOST, taint="")
    assert keys(cluster) == ["maintenance"]
    assert not [r for r in cluster.requests if r.startswith("PATCH /api/v1/nodes/gpu-1 ")]


def test_a_taint_that_comes_meanwhile_is_not_lost(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    cluster.conflicts = 2
    assert rounds(url, tmp_path, LOST) == [True]
    assert keys(cluster) == ["maintenance", "other-1", "other-2", TAINT]


def test_what_is_refused_is_said_and_tried_again(
    cluster: Cluster, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refuse["/api/v1/nodes/gpu-1/status"] = 403
    given = iter([LOST, LOST])
    one = Agent(Options("gpu-1", tmp_path, device=tmp_path), nodeapi.Api(url), lambda: next(given))
    assert not one.round()
    assert "HTTP 403 is forbidden" in capsys.readouterr().out
    cluster.refuse.clear()
    assert one.round()
    assert cluster.condition("GPUProblem")["status"] == "True"


def test_no_server_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rounds("http://127.0.0.1:1", tmp_path, LOST) == [False]
    assert "ConnectionRefusedError" in capsys.readouterr().out


def test_the_decisive_finding_is_the_one_that_is_named() -> None:
    found = condition_for(LOST)
    assert found["reason"] == "GpuLost"
    assert "power-capped" not in str(found)


def test_metrics_and_health(tmp_path: Path, url: str) -> None:
    (tmp_path / "metrics.prom").write_text("dsdoctor_hook_healthy 1\n")
    one = Agent(Options("gpu-1", tmp_path, device=tmp_path), nodeapi.Api(url), lambda: HEALTHY)
    one.round()
    server = agent.serve(one, 0)
    try:
        for path, status, text in (
            ("/metrics", 200, "dsdoctor_hook_healthy 1\n"),
            ("/healthz", 200, ""),
            ("/run", 404, ""),
        ):
            asked = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
            asked.request("GET", path)
            found = asked.getresponse()
            assert (found.status, found.read().decode()) == (status, text)
            assert found.getheader("Content-Type", "").startswith("text/plain")
            asked.close()
        one.last -= 1000
        asked = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
        asked.request("GET", "/healthz")
        assert asked.getresponse().status == 503
        asked.close()
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("verdict", "has_device"),
    [
        pytest.param(HEALTHY, False, id="no-device"),
        pytest.param({**HEALTHY, "gpus": {}}, True, id="no-gpu"),
        pytest.param(LOST, False, id="faults-of-a-container-without-gpus"),
        pytest.param(LATE, True, id="late"),
        pytest.param(None, True, id="no-verdict-in-this-round"),
    ],
)
def test_metrics_of_a_node_that_was_not_judged(
    verdict: dict[str, Any] | None, has_device: bool, tmp_path: Path, url: str
) -> None:
    """An alert for nodes that cannot be judged must fire, and none for faults."""
    (tmp_path / "metrics.prom").write_text(
        'dsdoctor_hook_healthy{hook="npd"} 1\n'
        'dsdoctor_condition_failed{condition="gpu-lost",id="DSD601"} 1\n'
        'dsdoctor_hook_blocked{hook="npd"} 0\n'
    )
    device = tmp_path if has_device else tmp_path / "nvidiactl"
    one = Agent(Options("gpu-1", tmp_path, device=device), nodeapi.Api(url), lambda: verdict)
    one.round()
    assert one.metrics == (
        'dsdoctor_hook_healthy{hook="npd"} -1\ndsdoctor_hook_blocked{hook="npd"} 0\n'
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--node ../x", "expected the node's name"),
        ("", "expected the node's name"),
        ("--node a --taint x/y/z", "dsdoctor/unhealthy"),
        ("--node a --interval 0", "expected 1 to 86400 s"),
        ("--node a --effect NoExecute", "NoSchedule"),
        ("--node a --condition a-b", "GPUProblem"),
        ("--node a", "`KUBERNETES_SERVICE_HOST` is not set"),
    ],
)
def test_misuse(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("NODE_NAME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    try:
        status = agent.main(words.split())
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("fail", "status"), [({}, "False"), ({"*@1": 15}, "True")])
def test_a_whole_round_on_a_machine(
    fail: dict[str, int],
    status: str,
    cluster: Cluster,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine: Any = scenarios.rtx_3090_x2_nvlink()
    machine["fail"] = fail
    for name, value in fakenvml.environment(machine, tmp_path).items():
        monkeypatch.setenv(name, value)
    # the driver of this machine is not the one of the fake library
    words = ["--ignore", "nvidia-smi-broken", "--ignore", "driver-missing"]
    for family in agent.IGNORED:
        words += ["--ignore", family]
    folder = tmp_path / "agent"
    given = ["--node", "gpu-1", "--api", url, "--folder", str(folder), "--once", "--budget", "60"]
    given += ["--device", str(tmp_path)]
    assert agent.main([*given, "--taint", TAINT, *words]) == 0
    found = cluster.condition("GPUProblem")
    assert found["status"] == status, found
    assert (TAINT in keys(cluster)) == bool(fail)
    if fail:
        assert found["reason"] == "GpuLost"
    assert "dsdoctor_hook_healthy" in (folder / "metrics.prom").read_text()


def test_an_account_without_a_home_has_no_configuration_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod's `runAsUser` is often in no passwd file."""

    def homeless(_: str) -> str:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("DSDOCTOR_CONFIG", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("platformdirs.user_config_dir", homeless)
    assert packs.load(only_root_owned=True).problems == []
    assert settings.load() == settings.Settings()
