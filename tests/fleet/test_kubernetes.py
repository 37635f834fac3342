"""`fleet check --kubernetes`: the real kubectl against a small API server, and `kubectl exec`.

A command in a pod needs a kubelet, so `exec` is a program that speaks kubectl's command line and
its messages (those of 1.20 and 1.32) and runs the command here.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.cli.main import run
from dsdoctor.errors import UsageError
from dsdoctor.fleet import kubernetes, names

KUBECTL = shutil.which("kubectl")


def pod(name: str, node: str | None = "gpu-1", phase: str = "Running", **more: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "train", **more.pop("metadata", {})},
        "spec": {"nodeName": node, "containers": [{"name": "train", "image": "x"}]},
        "status": {"phase": phase, **more},
    }


UNSCHEDULED = pod(
    "train-2",
    None,
    "Pending",
    conditions=[
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
        }
    ],
)
PULLING = pod(
    "train-3",
    "gpu-3",
    "Pending",
    containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
)


class Server:
    """What the API server answers to a list of pods."""

    def __init__(self, pods: list[Any]) -> None:
        self.pods = pods
        self.status = 200
        self.message = ""
        self.asked: list[str] = []

    def answer(self, path: str) -> tuple[int, Any]:
        place, _, query = path.partition("?")
        if place == "/api":
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if place == "/apis":
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        if place == "/api/v1":
            resource = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod"}
            resource |= {"verbs": ["list", "get"], "shortNames": ["po"]}
            return 200, {
                "kind": "APIResourceList",
                "groupVersion": "v1",
                "resources": [resource],
            }
        if place == "/version":
            return 200, {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
        if not place.endswith("/pods"):
            return 404, {}
        self.asked.append(f"{place} {query}")
        if self.status != 200:
            reason = {401: "Unauthorized", 403: "Forbidden"}[self.status]
            return self.status, {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": self.message,
                "reason": reason,
                "code": self.status,
            }
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.pods}


@contextlib.contextmanager
def cluster(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """kubectl's configuration for a server; a home of its own, since it keeps what it discovers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, value = server.answer(self.path)
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: the requests are kept."""

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        configure(folder, f"http://127.0.0.1:{listener.server_address[1]}", monkeypatch)
        yield
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def configure(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "ann", "user": {"token": "t"}}],
        "contexts": [
            {"name": "c", "context": {"cluster": "c", "user": "ann", "namespace": "train"}}
        ],
    }
    (folder / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(folder / "config"))
    monkeypatch.setenv("HOME", str(folder))


def found(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: Any) -> Any:
    assert KUBECTL is not None, "tests/system-deps.sh installs `kubectl`"
    with cluster(server, folder, monkeypatch):
        return kubernetes.find(kubernetes.target(*(words or ("app=train", None, None))))


@pytest.mark.system
def test_pods_are_called_by_their_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(
        [
            pod("train-0", "gpu-1"),
            pod("train-1", "gpu-2"),
            PULLING,
            pod("old", "gpu-4", "Succeeded"),
            pod("going", "gpu-5", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        ]
    )
    wanted = found(server, tmp_path, monkeypatch)
    assert {name: one.name for name, one in wanted.pods.items()} == {
        "gpu-1": "train-0",
        "gpu-2": "train-1",
        "gpu-3": "train-3",
    }
    assert wanted.pods["gpu-3"].problem == "pod train-3 is Pending (ImagePullBackOff)"
    (asked,) = server.asked
    assert asked.startswith("/api/v1/namespaces/train/pods labelSelector=app%3Dtrain")


@pytest.mark.system
def test_pods_keep_their_names_where_a_node_has_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server([pod("train-0", "gpu-1"), pod("train-1", "gpu-1"), UNSCHEDULED])
    wanted = found(server, tmp_path, monkeypatch)
    assert list(wanted.pods) == ["train-0", "train-1", "train-2"]
    assert wanted.pods["train-2"].problem == (
        "pod train-2 is Pending (Unschedulable: 0/2 nodes are available: 2 Insufficient "
        "nvidia.com/gpu.)"
    )


@pytest.mark.system
def test_without_a_selector_the_agents_own_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server([pod("dsdoctor-x", "gpu-1", metadata={"namespace": "dsdoctor"})])
    found(server, tmp_path, monkeypatch, None, None, None)
    assert server.asked[0].startswith(
        "/api/v1/namespaces/dsdoctor/pods labelSelector=app.kubernetes.io%2Fname%3Ddsdoctor"
    )


@pytest.mark.system
@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        pytest.param(
            200, "", "no pod matches `--selector app=train` in the context's namespace", id="no pod"
        ),
        pytest.param(
            403,
            (
                'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the '
                'namespace "train"'
            ),
            (
                "`kubectl` may not list pods: Error from server (Forbidden): pods is forbidden: User "
                '"ann" cannot list resource "pods"'
            ),
            id="no permission to list pods",
        ),
        pytest.param(401, "Unauthorized", "`kubectl` is not logged in: ", id="no login"),
    ],
)
def test_what_the_cluster_refuses_is_one_line(
    status: int, message: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server([])
    server.status, server.message = status, message
    with pytest.raises(UsageError) as error:
        found(server, tmp_path, monkeypatch)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    if status == 403:
        assert str(error.value).endswith("`list` on `pods` and `create` on `pods/exec`")


@pytest.mark.system
def test_a_cluster_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path, "http://127.0.0.1:1", monkeypatch)
    assert run(["fleet", "check", "--kubernetes"]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert "`kubectl get pods` failed: " in error
    assert "127.0.0.1:1 was refused" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--kubernetes --selector=-x", "expected, for example, `app=train`"),
        ("--kubernetes --selector=a --namespace=../x", "lowercase letters"),
        ("--kubernetes --container=A", "lowercase letters"),
        ("--kubernetes --engine pdsh", "has no effect with `--kubernetes`"),
        ("--nodes a --selector=b", "requires `--kubernetes`"),
        ("--kubernetes --ray x", "pass exactly one of"),
        ("--kubernetes", "`kubectl` cannot be run (No such file or directory)"),
    ],
)
def test_misuse_is_one_line(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["fleet", "check", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1, error


#: Speaks kubectl's command line; what each pod does stands in a file.
PROGRAM = """\
#!{python}
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
state = json.load(open(os.path.join(here, "state.json")))
words = sys.argv[1:]
assert "--namespace=train" in words, words
if words[:2] == ["get", "pods"]:
    assert "--output=json" in words and "--selector=app=train" in words, words
    print(json.dumps({{"kind": "List", "items": state["pods"]}}))
    sys.exit(0)
assert words[0] == "exec" and "--stdin" in words, words
at = words.index("--")
options, pod, command = words[1 : at - 1], words[at - 1], words[at + 1 :]
assert all(word.startswith("--") for word in options) and not pod.startswith("-"), words
does = state["does"].get(pod, "runs")
if does == "runs":
    done = subprocess.run([{python!r}, *command[1:]], stdin=sys.stdin)
    if done.returncode:
        sys.stderr.write("command terminated with exit code %d\\n" % done.returncode)
    sys.exit(done.returncode)
if does == "hangs":
    import time
    time.sleep(60)
sys.stderr.write(does + "\\n")
sys.exit(1)
"""
NO_PYTHON = (
    "error: Internal error occurred: Internal error occurred: error executing command in "
    'container: failed to exec in container: failed to start exec "ab": OCI runtime exec failed: '
    'exec failed: unable to start container process: exec: "python3": executable file not found in '
    "$PATH: unknown"
)
FORBIDDEN = (
    'Error from server (Forbidden): pods "{0}" is forbidden: User "ann" cannot create resource '
    '"pods/exec" in API group "" in the namespace "train"'
)


def program(folder: Path, pods: list[Any], does: dict[str, str]) -> None:
    (folder / "kubectl").write_text(PROGRAM.format(python=sys.executable))
    (folder / "kubectl").chmod(0o755)
    (folder / "state.json").write_text(json.dumps({"pods": pods, "does": does}))


CHECK = "fleet check --kubernetes --selector app=train --namespace train"


def test_reports_come_from_pods_and_silence_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [pod(f"train-{n}", f"gpu-{n}") for n in (0, 1, 2, 4)]
    pods += [pod("train-5", "gpu-5", "Pending")]
    does = {
        "train-1": NO_PYTHON,
        "train-2": FORBIDDEN.format("train-2"),
        "train-4": 'error: unable to upgrade connection: container not found ("train")',
    }
    program(tmp_path, pods, does)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    saved = tmp_path / "saved"
    words = [*CHECK.split(), "--timeout", "60", "--format", "json", "--save", str(saved)]
    assert run(words) == 1
    document = json.loads(capsys.readouterr().out)
    told = {
        name: row["message"]
        for row in document["findings"]
        if row["condition"] == "fleet-node-silent"
        for name in names.expand(row["nodes"])
    }
    assert [path.name for path in saved.iterdir()] == ["gpu-0.json"]
    assert sorted(told) == [f"gpu-{n}" for n in (1, 2, 4, 5)]
    assert "`python3` does not exist" in told["gpu-1"]
    assert 'cannot create resource "pods/exec"' in told["gpu-2"]
    assert "container not found" in told["gpu-4"]
    assert "pod train-5 is Pending" in told["gpu-5"]


def test_a_pod_that_hangs_has_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path, [pod("train-0", "gpu-0")], {"train-0": "hangs"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run([*CHECK.split(), "--timeout", "1"]) == 1
    assert "gpu-0" in (text := capsys.readouterr().out)
    assert "no answer within 1 s" in text


def test_no_right_to_run_commands_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [pod("train-0", "gpu-0"), pod("train-1", "gpu-1")]
    program(tmp_path, pods, {one: FORBIDDEN.format(one) for one in ("train-0", "train-1")})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(CHECK.split()) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert "may not run commands in pods" in error
    assert "`create` on `pods/exec`" in error
