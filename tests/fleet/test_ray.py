"""`fleet check --ray` with a program that speaks Ray's command line.

It prints what `ray job submit` of Ray 2.60.0 printed on a real cluster of two nodes, and in between
runs the job's own script, with a module `ray` that starts tasks as threads. docs/verified.md has the
run on a real cluster.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dsdoctor.cli.main import run
from dsdoctor.fleet import names, ray

PROGRAM = """\
#!{python}
import os, subprocess, sys
words = sys.argv[1:]
assert words[:3] == ["job", "submit", "--address"], words
assert words[4] == "--working-dir" and words[6:8] == ["--", "python"], words
folder = words[5]
if not words[3].startswith("http://head:8265"):
    sys.stderr.write("Traceback (most recent call last):\\n  File \\"x\\", line 1\\n"
        "ConnectionError: Failed to connect to Ray at address: " + words[3] + ".\\n")
    sys.exit(1)
print("2026-11-22 09:42:37,356\\tSUCC cli.py:67 -- \\x1b[32mJob 'raysubmit_a32J' submitted\\x1b[39m")
print("Running entrypoint for job raysubmit_a32J: " + " ".join(words[7:]))
sys.stdout.flush()
here = os.path.dirname(os.path.abspath(__file__))
env = dict(os.environ, PYTHONPATH=here, CUDA_VISIBLE_DEVICES="")
done = subprocess.run([{python!r}, *words[8:]], cwd=folder, env=env)
print("2026-11-22 09:42:51,514\\tSUCC cli.py:67 -- \\x1b[32mJob 'raysubmit_a32J' succeeded\\x1b[39m")
sys.exit(done.returncode)
"""
#: The part of Ray's interface that the job uses.
MODULE = """\
import concurrent.futures, json, os, sys, types
STATE = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "state.json")))
pool = concurrent.futures.ThreadPoolExecutor(4)
def init(log_to_driver): assert log_to_driver is False
def nodes(): return STATE["nodes"]
class Task:
    def __init__(self, function, node=None): self.function, self.node = function, node
    def options(self, scheduling_strategy): return Task(self.function, scheduling_strategy.node_id)
    def remote(self, *arguments):
        if self.node in STATE["lost"]:
            return pool.submit(self.lost)
        return pool.submit(self.function, *arguments)
    def lost(self): raise RuntimeError("The node died\\nwith more lines")
def remote(num_cpus, max_retries):
    assert (num_cpus, max_retries) == (0, 0)
    return Task
def wait(tasks, timeout):
    done, rest = concurrent.futures.wait(tasks, timeout, "FIRST_COMPLETED")
    return list(done), list(rest)
def get(task): return task.result()
def cancel(task, force): pass
class NodeAffinitySchedulingStrategy:
    def __init__(self, node_id, soft): assert soft is False; self.node_id = node_id
ray = sys.modules["ray"]
ray.__path__ = []
for name in ("ray.util", "ray.util.scheduling_strategies"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["ray.util.scheduling_strategies"].NodeAffinitySchedulingStrategy = (
    NodeAffinitySchedulingStrategy)
"""


def node(number: int, host: str, *, alive: bool = True) -> dict[str, object]:
    return {"NodeID": f"{number:08x}" * 2, "NodeManagerHostname": host, "Alive": alive}


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ray").write_text(PROGRAM.format(python=sys.executable))
    (tmp_path / "ray").chmod(0o755)
    (tmp_path / "ray.py").write_text(MODULE)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def state(folder: Path, nodes: list[dict[str, object]], *lost: object) -> None:
    (folder / "state.json").write_text(json.dumps({"nodes": nodes, "lost": lost}))


CHECK = ["fleet", "check", "--ray", "head:8265", "--format", "json"]


def test_every_living_node_reports(head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node(1, "a"), node(2, "b"), node(3, "gone", alive=False), node(4, "lost")]
    state(head, nodes, nodes[3]["NodeID"])
    assert run([*CHECK, "--save", str(head / "saved")]) == 1
    document = json.loads(capsys.readouterr().out)
    saved = sorted(path.name for path in (head / "saved").iterdir())
    assert saved == ["a.json", "b.json"]
    (silent,) = [r for r in document["findings"] if r["condition"] == "fleet-node-silent"]
    assert names.expand(silent["nodes"]) == ["lost"]
    assert "RuntimeError: The node died" in silent["message"]
    # Ray hides the GPUs of a task that reserves none; the job sees them, so the collector must
    facts = json.loads((head / "saved" / "a.json").read_text())["facts"]
    assert "variables" in facts["environment"]
    assert "CUDA_VISIBLE_DEVICES" not in facts["environment"]["variables"]


def test_two_nodes_of_one_host_have_two_names(
    head: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state(head, [node(1, "vm"), node(2, "vm")])
    words = [*CHECK, "--save", str(head / "saved"), "--remote-python", "/nowhere/python3"]
    assert run(words) == 1
    (silent,) = json.loads(capsys.readouterr().out)["findings"]
    assert sorted(names.expand(silent["nodes"])) == ["vm-00000001", "vm-00000002"]
    assert "`/nowhere/python3`: No such file or directory" in silent["message"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        pytest.param(
            "elsewhere:1",
            "ConnectionError: Failed to connect to Ray at address: http://elsewhere:1",
            id="an address without a dashboard",
        ),
        pytest.param(
            "--working-dir=/",
            "expected the address of the dashboard, such as `http://head:8265`",
            id="an option in place of an address",
        ),
        pytest.param(
            "a b",
            "expected the address of the dashboard, such as `http://head:8265`",
            id="an address with a space",
        ),
    ],
)
def test_misuse_is_one_line(
    address: str, said: str, head: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state(head, [])
    assert run(["fleet", "check", f"--ray={address}"]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert said in error


def test_no_ray_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["fleet", "check", "--ray", "auto"]) == 2
    error = capsys.readouterr().err
    assert "`ray` cannot be run (No such file or directory)" in error
    assert "pip install 'ray[default]'" in error


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("head:8265", "http://head:8265"), ("https://h/x", "https://h/x"), ("auto", "auto")],
)
def test_addresses(given: str, wanted: str) -> None:
    assert ray.address(given) == wanted
