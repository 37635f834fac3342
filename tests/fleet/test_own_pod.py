"""Pods of dsdoctor's own: their limits and their image are not judged as those of a job."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.cli.main import run
from dsdoctor.fleet import kubernetes, pods
from dsdoctor.fleet.own_pod import OwnPod
from dsdoctor.model.facts.machine import Environment, OsInfo, Resources
from dsdoctor.model.facts.python import DeepSpeedInstall, TorchBuild
from tests.fleet import test_kubernetes, test_pods

AGENTS = "fleet check --kubernetes"


def checked(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    saved = tmp_path / "saved"
    assert run([*words.split(), "--format", "json", "--save", str(saved)]) in (0, 1, 3)
    document = json.loads(capsys.readouterr().out)
    # the reports are the same when they are read again
    assert run(["fleet", "check", "--from", str(saved), "--format", "json"]) in (0, 1, 3)
    again = json.loads(capsys.readouterr().out)
    assert [row["condition"] for row in again["findings"]] == [
        row["condition"] for row in document["findings"]
    ]
    (file,) = saved.iterdir()
    return json.loads(file.read_text())


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test_kubernetes.program(tmp_path, [test_kubernetes.pod("dsdoctor-x", "gpu-1")], {})
    kubectl = tmp_path / "kubectl"
    text = kubectl.read_text().replace("=train", f"={kubernetes.NAMESPACE}")
    kubectl.write_text(text.replace("=app=dsdoctor", f"={kubernetes.SELECTOR}"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """An interpreter of an image without torch."""
    venv.create(tmp_path / "bare", with_pip=False)
    return str(tmp_path / "bare" / "bin" / "python")


@pytest.mark.usefixtures("agents")
def test_the_agents_pod_has_no_environment_and_no_limits_of_a_job(
    tmp_path: Path, bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(kubectl.read_text().replace(f"[{sys.executable!r}, ", f"[{bare!r}, "))
    found = checked(AGENTS, tmp_path, capsys)
    for kind in (Resources, Environment, TorchBuild, DeepSpeedInstall):
        assert kind.key() not in found["facts"]
        assert found["missing"][kind.key()] == {
            "why": "not-asked",
            "detail": "collected in the agent's pod, not in a job's",
        }
    assert OsInfo.key() in found["facts"]
    assert found["facts"]["fleet_node"]["cpus_logical"] >= 1
    assert found["facts"]["fleet_node"]["memory_total_bytes"] > 1 << 28


@pytest.mark.usefixtures("agents")
def test_an_environment_that_is_named_is_examined_in_the_agents_pod(
    tmp_path: Path, bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(f"{AGENTS} --python {bare}", tmp_path, capsys)
    assert found["facts"]["torch_build"]["version"] is None
    assert Resources.key() not in found["facts"]


def test_a_pod_for_one_check_has_the_jobs_image_but_not_its_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(test_pods.PROGRAM.format(python=sys.executable))
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    test_pods.state(folder, nodes=["gpu-1"])
    found = checked(test_pods.WORDS, tmp_path, capsys)
    assert TorchBuild.key() in found["facts"]
    assert Resources.key() not in found["facts"]
    assert found["facts"]["fleet_node"]["cpus_logical"] >= 1


@pytest.mark.parametrize(
    ("selector", "namespace", "own"),
    [
        pytest.param(None, None, OwnPod.AGENT, id="the-agents"),
        pytest.param(None, "monitoring", OwnPod.AGENT, id="the-agents-elsewhere"),
        pytest.param(kubernetes.SELECTOR, "monitoring", OwnPod.AGENT, id="their-label"),
        pytest.param("app=train", None, None, id="a-job"),
    ],
)
def test_whose_pods_they_are(
    selector: str | None, namespace: str | None, own: OwnPod | None
) -> None:
    assert kubernetes.target(selector, namespace, None).own is own


def test_torch_needs_the_drivers_library_and_memory() -> None:
    (job,) = pods.manifest(pods.Wanted("x", live=True), ["gpu-1"])["items"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"} in container["env"]
    assert container["resources"]["limits"] == {"memory": "16Gi"}
