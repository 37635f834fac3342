"""The image's Dockerfile, by the rules of hadolint that concern it.

`image.sh` beside this file, which tests/run.sh calls, builds the image and starts it where podman can
run; here it is tried with a podman that only answers. docs/verified.md has a real build. That a
wheel of these files installs and runs is tested in tests/packaging.
"""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.version import __version__
from tests.deploy import rendered

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = rendered.DEPLOY.parent
TEXT = (rendered.DEPLOY / "Dockerfile").read_text()


def instructions(text: str) -> list[tuple[str, str]]:
    """Instruction and its words, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (line.split(None, 1)[0].upper(), line.split(None, 1)[1])
        for line in joined.splitlines()
        if line.strip()
    ]


def problems(text: str) -> list[str]:
    """What is wrong with a Dockerfile."""
    wrong = []
    found = instructions(text)
    users = [words for name, words in found if name == "USER"]
    bases = [words for name, words in found if name == "ARG" and words.startswith("BASE=")]
    if not bases or not re.search(r":\d+\.\d+\.\d+[-\w.]*@sha256:[0-9a-f]{64}$", bases[0]):
        wrong.append("the base is not pinned")  # DL3006, DL3007
    for name, words in found:
        if name == "FROM" and not words.startswith("${BASE}"):
            wrong.append(f"FROM {words} goes round the pinned base")
        if name == "ADD":
            wrong.append("ADD instead of COPY")  # DL3020
        if name == "RUN" and "pip install" in words and "--no-cache-dir" not in words:
            wrong.append("pip keeps a cache")  # DL3042
        if name == "RUN" and re.search(r"\b(sudo|curl|wget)\b", words):
            wrong.append(f"RUN {words}")  # DL3004
        if name == "WORKDIR" and not words.startswith("/"):
            wrong.append(f"WORKDIR {words} is relative")  # DL3000
        if name in ("ENTRYPOINT", "CMD") and not words.startswith("["):
            wrong.append(f"{name} starts a shell")  # DL3025
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        wrong.append("the last USER is not a number other than 0")  # DL3002
    labels = " ".join(words for name, words in found if name == "LABEL")
    wanted = ("title", "description", "licenses", "version", "revision")
    return wrong + [
        f"no label {label}"
        for label in wanted
        if f"org.opencontainers.image.{label}=" not in labels
    ]


def test_the_dockerfile_keeps_the_rules() -> None:
    assert problems(TEXT) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("python:3.13.5-slim-bookworm@", "python:latest@"),
        ("e30987419\n", "e3098741\n"),
        ("USER 65532:65532", "USER root"),
        ("--no-cache-dir ", ""),
        ('ENTRYPOINT ["dsdoctor"]', "ENTRYPOINT dsdoctor"),
        ("COPY checks", "ADD checks"),
        ("FROM ${BASE} AS build", "FROM python AS build"),
        ("WORKDIR /src", "WORKDIR src"),
        ("image.revision", "image.rev"),
    ],
)
def test_the_rules_notice(old: str, new: str) -> None:
    assert old in TEXT
    assert len(problems(TEXT.replace(old, new))) == 1


def test_what_is_copied_is_there_and_not_ignored() -> None:
    kept = [
        line.removeprefix("!")
        for line in (rendered.DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    for name, words in instructions(TEXT):
        if name == "COPY" and "--from" not in words:
            for source in words.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch.fnmatch(source.removeprefix("./"), k) for k in kept), source


def test_the_build_has_all_that_the_wheel_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {package.split("/")[0] for package in packages}
    needed |= {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"}
    copied = {
        source
        for name, words in instructions(TEXT)
        if name == "COPY" and "--from" not in words
        for source in words.split()[:-1]
    }
    assert needed <= copied
    assert f"ARG VERSION={__version__}" in TEXT


def test_the_account_is_that_of_the_pod() -> None:
    (daemon,) = [o for o in rendered.kustomize("agent") if o["kind"] == "DaemonSet"]
    security = daemon["spec"]["template"]["spec"]["securityContext"]
    assert f"USER {security['runAsUser']}:{security['runAsGroup']}" in TEXT


#: Answers as podman 4.3 does; FAKE says what goes wrong.
PODMAN = """#!/bin/sh
echo "$*" >>"$0.calls"
case "$FAKE $*" in
  "not-here info"*) exit 125 ;;
  "no-base image inspect docker"* | "no-base pull"*) exit 125 ;;
  "no-start run"*" true") exit 126 ;;
  "no-build build"*) exit 1 ;;
  "root run"*" id "*) echo 0 ;;
  *" run "*" id "*) echo 65532 ;;
  "old run"*" --version") echo dsdoctor 0.0.1 ;;
  *" run "*" --version") echo dsdoctor VERSION ;;
  "broken run"*" check --quick") exit 2 ;;
  *" run "*" check --quick") exit 3 ;;
  "unlabeled image inspect --format"*) echo "<no value>" ;;
  *" image inspect --format"*) echo VERSION ;;
esac
"""


def build(folder: Path, wrong: str) -> subprocess.CompletedProcess[str]:
    program = folder / "podman"
    program.write_text(PODMAN.replace("VERSION", __version__))
    program.chmod(0o755)
    named = str(program) if wrong != "absent" else "no-podman-of-this-name"
    return subprocess.run(
        ["bash", str(Path(__file__).with_name("image.sh"))],
        env={**os.environ, "DSDOCTOR_PODMAN": named, "FAKE": wrong or "none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="podman runs on Linux")
def test_the_image_is_built_and_started_where_podman_runs(tmp_path: Path) -> None:
    done = build(tmp_path, "")
    assert done.returncode == 0, done.stderr
    assert "built on docker.io/library/python:" in done.stdout
    calls = (tmp_path / "podman.calls").read_text().splitlines()
    started = [call for call in calls if call.startswith("run") and not call.endswith(" true")]
    assert len(started) == 3
    for call in started:
        assert "--rm --read-only --cap-drop=ALL --network=none" in call
    assert calls[-1].startswith("image rm -f localhost/dsdoctor-test:")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="podman runs on Linux")
@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ("absent", 0, "left out: the image (no podman)"),
        ("not-here", 0, "left out: the image (podman does not run here)"),
        ("no-base", 0, "neither here nor in a registry"),
        ("no-start", 0, "left out: the image (podman starts no container here)"),
        ("no-build", 1, "image: it does not build"),
        ("old", 1, "image: it says `dsdoctor 0.0.1`"),
        ("root", 1, "image: it runs as account 0, expected 65532"),
        ("unlabeled", 1, "image: its label says version `<no value>`"),
        ("broken", 1, "`check --quick` ended with status 2"),
    ],
)
def test_what_is_wrong_with_an_image_fails_and_what_cannot_run_is_left_out(
    tmp_path: Path, wrong: str, status: int, words: str
) -> None:
    done = build(tmp_path, wrong)
    assert done.returncode == status, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
