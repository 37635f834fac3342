"""`fleet check --kubernetes --pod-image`: pods that exist for one check.

`kubectl` is a program that keeps Jobs in a folder, with kubectl's command line and messages; the
Jobs themselves are validated by the published schemas.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from dsdoctor.cli.main import run
from dsdoctor.fleet import pods

PROGRAM = """\
#!{python}
import json, os, subprocess, sys, time
here = os.path.dirname(os.path.abspath(__file__))
state = json.load(open(os.path.join(here, "state.json")))
words = sys.argv[1:]
jobs = os.path.join(here, "jobs.json")
with open(os.path.join(here, "asked"), "a") as file:
    file.write(" ".join(words[:2]) + "\\n")
if words[:2] == ["get", "nodes"]:
    assert "--selector=nvidia.com/gpu.present=true" in words, words
    names = state["nodes"]
    print(json.dumps({{"items": [{{"metadata": {{"name": name}}}} for name in names]}}))
    sys.exit(0)
assert "--namespace=ops" in words, words
if words[0] == "create":
    assert "--filename=-" in words, words
    if state.get("forbidden"):
        sys.exit(state["forbidden"])
    open(jobs, "w").write(sys.stdin.read())
    sys.exit(0)
items = json.load(open(jobs))["items"] if os.path.exists(jobs) else []
number = items[0]["metadata"]["labels"]["dsdoctor/check"] if items else ""
if words[:2] == ["get", "pods"]:
    assert "--selector=dsdoctor/check=" + number in words, words
    listed = []
    for item in items:
        spec = item["spec"]["template"]["spec"]
        status = state["status"].get(spec["nodeName"], {{"phase": "Running"}})
        name = item["metadata"]["name"] + "-x"
        listed.append({{"metadata": {{"name": name}}, "spec": spec, "status": status}})
    print(json.dumps({{"items": listed}}))
    sys.exit(0)
if words[:2] == ["get", "events"]:
    if "events" not in state:
        sys.exit("Error from server (Forbidden): events is forbidden")
    rows = [(item["metadata"]["name"] + "-x", text) for item in items for text in state["events"]]
    made = [{{"involvedObject": {{"name": name}}, "message": text}} for name, text in rows]
    print(json.dumps({{"items": made}}))
    sys.exit(0)
if words[:2] == ["delete", "jobs"]:
    assert "--selector=dsdoctor/check=" + number in words or not items, words
    if state.get("undeletable"):
        sys.exit("Error from server (Forbidden): jobs.batch is forbidden")
    if items:
        os.unlink(jobs)
    sys.exit(0)
assert words[0] == "exec" and "--container=check" in words, words
if state.get("hangs"):
    time.sleep(500)
command = words[words.index("--") + 1 :]
sys.exit(subprocess.run([{python!r}, *command[1:]], stdin=sys.stdin).returncode)
"""
WORDS = "fleet check --kubernetes --pod-image example/python:3 --namespace ops"


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(PROGRAM.format(python=sys.executable))
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def state(folder: Path, **more: Any) -> None:
    given = {"nodes": ["gpu-1", "gpu-2"], "status": {}, **more}
    (folder / "state.json").write_text(json.dumps(given))


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


@pytest.mark.parametrize("version", ["1.30.1", "1.34.1"])
def test_the_jobs_keep_the_published_schema_and_the_policy_restricted(version: str) -> None:
    wanted = pods.Wanted("example/python:3")
    for job in pods.manifest(wanted, ["gpu-1", "gpu-2"])["items"]:
        kubernetes_validate.validate(job, version, strict=True)
        spec = job["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not spec["automountServiceAccountToken"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert not {"hostPath", "hostNetwork", "hostPID"} & set(json.dumps(spec).split('"'))
        assert job["spec"]["ttlSecondsAfterFinished"] == 60
        assert job["spec"]["activeDeadlineSeconds"] == 600


def test_no_runtime_class_where_none_is_asked_for() -> None:
    (job,) = pods.manifest(pods.Wanted("x", runtime_class=""), ["gpu-1"])["items"]
    assert "runtimeClassName" not in job["spec"]["template"]["spec"]


def test_each_node_reports_and_the_jobs_are_deleted(
    bin_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state(bin_folder)
    saved = tmp_path / "saved"
    assert run([*WORDS.split(), "--timeout", "60", "--save", str(saved)]) in (0, 1, 3)
    assert sorted(path.name for path in saved.iterdir()) == ["gpu-1.json", "gpu-2.json"]
    assert not (bin_folder / "jobs.json").exists()
    assert asked(bin_folder)[-1] == "delete jobs"
    assert "dsdoctor:" not in capsys.readouterr().err


def test_a_node_whose_pod_does_not_start_has_a_reason(
    bin_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    pending = {"phase": "Pending", "containerStatuses": [{"state": waiting}]}
    state(bin_folder, status={"gpu-1": pending, "gpu-2": {"phase": "Failed"}})
    assert run([*WORDS.split(), "--timeout", "1", "--format", "json"]) == 1
    messages = " ".join(row["message"] for row in json.loads(capsys.readouterr().out)["findings"])
    assert "Pending (ErrImagePull: no such image)" in messages
    assert "no pod ran on it within 1 s" in messages
    assert not (bin_folder / "jobs.json").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        pytest.param(
            {"events": ["first", "failed to get sandbox image"]},
            "is Pending (ContainerCreating): failed to get sandbox image",
            id="the-last-event",
        ),
        pytest.param({}, "is Pending (ContainerCreating)", id="no-right-to-list-events"),
    ],
)
def test_what_only_an_event_names_is_told(
    more: dict[str, Any], said: str, bin_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    pending = {"phase": "Pending", "containerStatuses": [{"state": waiting}]}
    state(bin_folder, nodes=["gpu-1"], status={"gpu-1": pending}, **more)
    assert run([*WORDS.split(), "--timeout", "1", "--format", "json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert row["message"].endswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            {"nodes": []}, "no node matches `--selector nvidia.com/gpu.present=true`", id="no node"
        ),
        pytest.param(
            {"forbidden": 'Error from server (Forbidden): jobs.batch is forbidden: User "ann"'},
            "`kubectl` may not create jobs: Error from server (Forbidden)",
            id="no permission to create jobs",
        ),
    ],
)
def test_what_the_cluster_refuses_is_one_line(
    given: dict[str, Any], said: str, bin_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state(bin_folder, **given)
    assert run(WORDS.split()) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_jobs_that_cannot_be_deleted_are_named(
    bin_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state(bin_folder, nodes=["gpu-1"], undeletable=True)
    run([*WORDS.split(), "--timeout", "60"])
    error = capsys.readouterr().err
    assert "could not be deleted (Error from server (Forbidden)" in error
    assert (
        "they end on their own within 360 s, or run `kubectl delete jobs --namespace=ops" in error
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_deletes_the_jobs(number: signal.Signals, bin_folder: Path) -> None:
    state(bin_folder, hangs=True)
    argv = [sys.executable, "-m", "dsdoctor", *WORDS.split()]
    with subprocess.Popen(
        argv, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        end = time.monotonic() + 300
        while not any(line.startswith("exec") for line in _asked(bin_folder)):
            assert time.monotonic() < end, "no pod was asked"
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        child.send_signal(number)
        child.communicate(timeout=300)
    assert not (bin_folder / "jobs.json").exists()
    assert asked(bin_folder)[-1] == "delete jobs"
    assert child.returncode in (130, 128 + number)


def _asked(folder: Path) -> list[str]:
    return asked(folder) if (folder / "asked").exists() else []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--nodes a --pod-image x", "`--pod-image` requires `--kubernetes`"),
        ("--kubernetes --runtime-class x", "requires `--pod-image`"),
        ("--kubernetes --pod-image x --container y", "mutually exclusive"),
    ],
)
def test_misuse_is_one_line(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "check", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
