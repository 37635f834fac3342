"""The fault matrix: real processes that hang, die and babble under a real `dsdoctor check`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import TEST_RUN, clean_environment, dsdoctor, left_running

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shell scripts and /proc"),
]

#: Scales every limit, so that a tool that hangs costs 3 s and not 10.
LIMIT = ("--timeout", "54", "--format", "json")

TORCH_VERSION = "__version__ = '2.13.0+cu130'\ncuda = '13.0'\nhip = None\ndebug = False\n"


def script(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def tool_environment(tmp_path: Path, name: str, body: str) -> dict[str, str]:
    tools = tmp_path / "tools"
    script(tools, name, body)
    env = clean_environment(tmp_path)
    return {**env, "PATH": f"{tools}:{env['PATH']}"}


def torch_environment(tmp_path: Path, body: str) -> dict[str, str]:
    """A torch package that does as `body` says when it is imported."""
    package = tmp_path / "stub" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(body)
    (package / "version.py").write_text(TORCH_VERSION)
    return clean_environment(tmp_path, PYTHONPATH=str(tmp_path / "stub"))


def assert_clean(err: str, tmp_path: Path) -> None:
    assert "Traceback" not in err
    deadline = time.monotonic() + 60
    while left_running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_running(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        ("exec sleep 1000", "nvidia-smi-hangs"),
        (
            'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."\nexit 9',
            None,
        ),
        ("printf '\\377\\376\\000\\001garbage'", None),
    ],
    ids=["hangs", "exits-9", "prints-binary"],
)
def test_nvidia_smi(tmp_path: Path, body: str, condition: str | None) -> None:
    env = tool_environment(tmp_path, "nvidia-smi", body)
    done = dsdoctor("check", "--quick", *LIMIT, env=env, cwd=tmp_path)
    named = condition or "nvidia-smi-broken"
    assert done.of(named) in ("fail", "warn"), done.statuses()
    assert done.status in (0, 1)
    assert_clean(done.err, tmp_path)


@pytest.mark.parametrize(
    "body",
    ["exec sleep 1000", "echo this is no compiler", "printf '\\377\\376\\000'", "exit 126"],
    ids=["hangs", "prints-rubbish", "prints-binary", "exits-126"],
)
def test_nvcc(tmp_path: Path, body: str) -> None:
    home = tmp_path / "cuda"
    script(home, "unused", "true")
    script(home / "bin", "nvcc", body)
    env = torch_environment(tmp_path, "raise ImportError('not wanted here')")
    asked = ("check", "--quick", "--gpus", "0", *LIMIT)
    done = dsdoctor(*asked, env={**env, "CUDA_HOME": str(home)}, cwd=tmp_path)
    assert done.of("nvcc-unusable") in ("fail", "warn"), done.statuses()
    assert_clean(done.err, tmp_path)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ImportError('libcudart.so.99: cannot open shared object file')", "libcudart"),
        ("raise OSError('libtorch.so: undefined symbol: nothing_known')", "undefined symbol"),
        ("import os; os.abort()", "SIGABRT"),
        ("import time; time.sleep(1000)", ""),
    ],
    ids=["ImportError", "OSError", "abort", "hang"],
)
def test_import_torch(tmp_path: Path, body: str, words: str) -> None:
    env = torch_environment(tmp_path, body)
    done = dsdoctor("check", *LIMIT, env=env, cwd=tmp_path)
    troubles = [f for f in done.report["findings"] if f["status"] in ("fail", "unknown")]
    named = {f["condition"] for f in troubles}
    assert named & {
        "torch-import-broken",
        "cuda-runtime-lib-mismatch",
        "cxx-abi-undefined-symbol",
    }, done.statuses()
    assert any(words in f["message"] for f in troubles)
    assert "torch-missing" not in named
    assert done.status == 1
    assert_clean(done.err, tmp_path)


def test_home_unset_and_path_empty(tmp_path: Path) -> None:
    env = {"PATH": "", "DSDOCTOR_PYTHON": sys.executable, TEST_RUN: str(tmp_path)}
    done = dsdoctor("check", "--quick", *LIMIT, env=env, cwd=tmp_path)
    assert done.status in (0, 1, 3)
    assert done.of("driver-missing") != "crash"
    assert "crash" not in done.statuses().values()
    assert_clean(done.err, tmp_path)


def test_home_read_only(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    done = dsdoctor("check", "--quick", *LIMIT, env={**env, "HOME": "/proc/1"}, cwd=tmp_path)
    assert "crash" not in done.statuses().values()
    assert done.status in (0, 1, 3)
    assert_clean(done.err, tmp_path)


def test_no_nvml_library(tmp_path: Path) -> None:
    asked = ("check", "--quick", "--timeout", "300", "--format", "json")
    done = dsdoctor(*asked, env=clean_environment(tmp_path), cwd=tmp_path)
    assert "crash" not in done.statuses().values()
    assert "unknown" not in done.statuses().values()
    assert_clean(done.err, tmp_path)


def test_ctrl_c_in_the_middle(tmp_path: Path) -> None:
    begun = tmp_path / "torch-begun"
    body = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(1000)"
    env = torch_environment(tmp_path, body)
    child = subprocess.Popen(
        [sys.executable, "-m", "dsdoctor", "check", "--format", "json"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 200
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(left_running(tmp_path)) >= 2, "no child carries the mark of this test"  # itself too
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=200)
    assert child.returncode == 130
    assert '"partial": true' in out
    assert_clean(err, tmp_path)
