"""`dsdoctor packs new`: the pack that it writes passes its own tests, and loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from dsdoctor.packs import template
from tests.support.command import clean_environment, dsdoctor

ROOT = Path(__file__).parent.parent.parent


def run(
    *argv: str | Path, cwd: Path, python_path: str | None = None
) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env["ACME_SCRATCH"] = str(cwd / "nowhere")
    if python_path is not None:
        env["PYTHONPATH"] = python_path
    return subprocess.run(
        [str(part) for part in argv], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "acme-dsdoctor"
    written = run(sys.executable, "-m", "dsdoctor", "packs", "new", "acme", cwd=tmp_path)
    assert (written.returncode, written.stderr) == (0, "")
    assert f"wrote 7 files to {folder.name}\n" in written.stdout
    return folder


def test_it_passes_its_own_tests_and_ruff(pack: Path) -> None:
    tested = run(sys.executable, "-m", "pytest", "-q", cwd=pack, python_path=str(pack))
    assert tested.returncode == 0, tested.stdout
    assert "10 passed" in tested.stdout
    for argv in (["check"], ["format", "--check"]):
        judged = run(sys.executable, "-m", "ruff", *argv, ".", cwd=pack)
        assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("name", ["a", "a-pack-with-a-long-name"])
def test_it_is_whole_under_any_name(tmp_path: Path, name: str) -> None:
    for path, text in template.files(name).items():
        assert "@" not in text.replace("@probe", "").replace("@check", "").replace(
            "@fix", ""
        ).replace("@pytest", ""), path
        if path.endswith(".py"):
            compile(text, path, "exec")


def test_an_environment_that_has_it_uses_it(pack: Path) -> None:
    info = pack / "acme_dsdoctor-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-dsdoctor\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[dsdoctor.packs]\nacme = acme_checks\n")
    judge_installed(Path(sys.executable), pack, str(pack))


def judge_installed(python: Path, pack: Path, python_path: str | None = None) -> None:
    listed = run(python, "-m", "dsdoctor", "packs", cwd=pack, python_path=python_path)
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert (
        "acme (acme-dsdoctor 0.1.0): 1 condition, 1 check, 1 signature, 1 probe, 1 fix\n"
        in listed.stdout
    )
    argv = ("check", "--quick", "--select", "ACME", "--format", "json")
    checked = run(python, "-m", "dsdoctor", *argv, cwd=pack, python_path=python_path)
    assert checked.returncode == 1, checked.stderr
    (finding,) = json.loads(checked.stdout)["findings"]
    assert (finding["id"], finding["status"]) == ("ACME001", "fail")
    assert finding["message"] == f"the scratch folder `{pack}/nowhere` does not exist"
    assert finding["fixes"] == ["acme-create-scratch"]
    shown = run(
        python, "-m", "dsdoctor", "facts", "acme_scratch", cwd=pack, python_path=python_path
    )
    assert "read by the probe `acme_checks.scratch.scratch`" in shown.stdout
    assert "| `free_bytes` | `int | None` | free space, in bytes;" in shown.stdout
    (pack / "train.log").write_text("OSError: [Errno 122] scratch quota of alice exceeded\n")
    told = ("diagnose", "--format", "json", "train.log")
    named = run(python, "-m", "dsdoctor", *told, cwd=pack, python_path=python_path)
    cause = json.loads(named.stdout)["causes"][0]
    assert cause["condition"] == "acme-scratch-missing"
    assert cause["message"] == "the scratch quota of alice is used up"


@pytest.mark.packaging
@pytest.mark.network
def test_it_installs_into_a_clean_environment(pack: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "-q", ROOT, f"{pack}[dev]", cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    tested = run(python, "-m", "pytest", "-q", pack / "tests", "--rootdir", elsewhere, "-c",
                 pack / "pyproject.toml", cwd=elsewhere)  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    judge_installed(python, elsewhere)


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        pytest.param(("Acme",), "expected lowercase letters", id="a name in capitals"),
        pytest.param(("dsdoctor",), "reserved for dsdoctor", id="a reserved name"),
        pytest.param(("acme", "--into", "full"), "is not an empty folder", id="a folder in use"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, argv: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = dsdoctor("packs", "new", *argv, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 2
    assert reason in done.err
    assert done.err.count("\n") == 1
