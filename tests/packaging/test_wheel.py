"""The wheel, built and installed in a clean environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.packaging, pytest.mark.network]


def run(*argv: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(part) for part in argv], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_the_wheel_works_in_a_clean_environment(tmp_path: Path) -> None:
    built = run(
        sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    installed = run(python, "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    program = tmp_path / "env" / "bin" / "dsdoctor"
    assert run(program, "--version", cwd=tmp_path).stdout.startswith("dsdoctor ")
    listed = run(program, "packs", cwd=tmp_path)
    assert listed.returncode == 0, listed.stdout
    checked = run(program, "check", "--quick", "--format", "json", cwd=tmp_path)
    report = json.loads(checked.stdout)
    assert report["schema"] == "dsdoctor/report"
    assert "Traceback" not in checked.stderr
    assert run(python, "-c", "import checks", cwd=tmp_path).returncode != 0
    assert run(python, "-c", "import torch", cwd=tmp_path).returncode != 0
    # the two sources are the package and the pack: nothing else reaches site-packages
    import zipfile

    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    ours = {t for t in tops if not t.endswith((".dist-info", ".data"))}
    assert ours == {"dsdoctor", "dsdoctor_checks"}
    page = tmp_path / "env" / "share" / "man" / "man1" / "dsdoctor.1"
    assert page.read_bytes() == (ROOT / "docs" / "man" / "dsdoctor.1").read_bytes()
    _bill_of_materials_is_whole(python, tmp_path / "sbom.json")


def _bill_of_materials_is_whole(python: Path, file: Path) -> None:
    """The command of docs/contributing/releasing.md, on the environment of the wheel."""
    made = run(
        sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml",
        "--output-reproducible", "--validate", "--of", "JSON", "-o", file, python, cwd=file.parent,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    document = json.loads(file.read_text())
    assert document["bomFormat"] == "CycloneDX"
    component = document["metadata"]["component"]
    assert (component["name"], component["licenses"][0]["license"]["id"]) == (
        "dsdoctor", "Apache-2.0",
    )  # fmt: skip
    (direct,) = (d for d in document["dependencies"] if d["ref"] == component["bom-ref"])
    named = {re.split("[<>=~]", one)[0].lower() for one in direct["dependsOn"]}
    wanted = metadata.requires("dsdoctor") or []
    core = {re.split("[<>=~;]", one)[0].strip().lower() for one in wanted if ";" not in one}
    assert named >= core
    assert {"click", "msgspec", "psutil"} <= core
