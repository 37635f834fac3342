"""Names, versions and addresses that reach the command lines of `fix` come from others."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from dsdoctor.api import DeepSpeedInstall, TorchBuild
from dsdoctor.fixes import downloads, inventory
from dsdoctor.model.facts.python import Patient
from dsdoctor.model.fix_plan import Env, Fetch, Link, Plan, Remove, Run, Step, Tell, Write
from dsdoctor.report import fix_plan
from tests.fixes import cases
from tests.support.command import clean_environment, dsdoctor

pytestmark = pytest.mark.any_user

VERSIONS = (
    "12.8/../../../evil",
    "12.8 --channel evil",
    "--help",
    "12.8\n13.0",
    "12.8'$(touch pwned)",
    "12.8 @ file:///evil",
    "12.8#x",
)
STEER = "\x1b]52;c;eA==\x07"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["conda", "conda-forge", "pip", "archives", "apt", "pixi"])
def test_torch_cannot_lead_a_toolkit_elsewhere(case: str, version: str) -> None:
    """`cuda` of its version.py is a part of a folder's name and of a channel's."""
    name, facts, request, run = cases.CASES[f"install-cuda-toolkit.{case}"]
    given = facts()
    (key,) = [key for key, fact in given.items() if isinstance(fact, TorchBuild)]
    document = cases.plan(name, {**given, key: replace(given[key], cuda=version)}, request, run)
    assert not document.plans
    assert "not a version" in document.impossible[0].why


def test_a_version_of_deepspeed_is_a_version() -> None:
    name, facts, request, run = cases.CASES["install-deepspeed.rebuild"]
    given = facts()
    (key,) = [key for key, fact in given.items() if isinstance(fact, DeepSpeedInstall)]
    known = given[key]
    for version, plans in ((known.version, 1), ("0.1 @ file:///evil", 0), ("0.1/../evil.whl", 0)):
        hostile = {**given, key: replace(known, version=version)}
        assert len(cases.plan(name, hostile, request, run).plans) == plans, version


def test_a_path_that_steers_a_terminal_is_in_no_plan() -> None:
    name, facts, request, run = cases.CASES["install-deepspeed.missing"]
    given = facts()
    patient = Patient(
        executable=f"/e/{STEER}\u202e/bin/python", chosen_by="", version="3.11.1", prefix="/e",
        base_prefix="/usr", kind="venv",
    )  # fmt: skip
    (key,) = [key for key, fact in given.items() if isinstance(fact, Patient)]
    document = cases.plan(name, {**given, key: patient}, request, run)
    assert not document.plans
    assert "control characters" in document.impossible[0].why
    assert document.impossible[0].why.isprintable()


def test_a_plan_as_shell_does_not_steer_a_terminal(tmp_path: Path) -> None:
    """Contents of files are written as they are; what is only shown is made harmless."""
    content = f"a\\b\\033 {STEER} \x9b31m \u202e 'x' $(touch pwned)\nend\n"
    steps: tuple[Step, ...] = (
        Write(write=str(tmp_path / "hostfile"), content=content, why=f"why {STEER}\nx"),
        Tell(tell=f"sudo x {STEER}\nsecond", why="w"),
    )
    text = fix_plan.shell([Plan(name="p", title=f"t {STEER}", steps=steps, reasons=(STEER,))])
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    for shell in ("/bin/sh", "bash"):
        subprocess.run([shell], input=text, text=True, check=True, timeout=200, cwd=tmp_path)
        assert (tmp_path / "hostfile").read_text() == content
    assert not (tmp_path / "pwned").exists()


WORDS = (
    "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "-rf", "--help",
    "a b", "*", "~", "&& touch pwned", "#x", "file:///etc/passwd", "", "!x", "\\", "=x", "é",
)  # fmt: skip


def test_each_word_of_a_plan_reaches_its_program_as_it_is(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    stub = tmp_path / "pip install"
    stub.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"open({str(noted)!r}, 'a').write(json.dumps([sys.argv[1:], os.environ.get('V')]) + '\\n')\n"
    )
    stub.chmod(0o755)
    steps: tuple[Step, ...] = tuple(
        Run(argv=(str(stub), word), env={"V": f"x{word}"}, why=word) for word in WORDS
    )
    steps += tuple(Env(env={"CUDA_HOME": f"/x{word}"}, why="w") for word in WORDS)
    steps += tuple(Remove(remove=str(tmp_path / f"n{word}"), why="w") for word in WORDS)
    steps += tuple(
        Link(link=str(tmp_path / "links" / f"n{word}"), target=f"/none/{word}", why="w")
        for word in WORDS
        if word and "/" not in word
    )
    text = fix_plan.shell([Plan(name="p", title="'; touch pwned", steps=steps)])
    for shell in ("/bin/sh", "bash"):
        subprocess.run(
            [shell], input=text, text=True, check=True, timeout=300, cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        found = [json.loads(line) for line in noted.read_text().splitlines()]
        assert found == [[[word], f"x{word}"] for word in WORDS]
        noted.unlink()
        links = {path.name for path in (tmp_path / "links").iterdir()}
        assert links == {f"n{word}" for word in WORDS if word and "/" not in word}
    assert not list(tmp_path.rglob("pwned"))


def test_an_address_with_a_password_is_masked_wherever_a_plan_is_shown() -> None:
    url = "https://bob:hunter2hunter2@example.org/simple"
    steps: tuple[Step, ...] = (
        Run(argv=("/e/python", "-m", "pip", "install", "--index-url", url, "x"), why=url),
        Run(argv=("/e/python", "-m", "pip", "install", "x"), env={"PIP_INDEX_URL": url}, why="w"),
        Fetch(fetch=f"{url}/x.tar.xz", sha256="0" * 64, into="/e/opt", why="w"),
    )
    made = Plan(name="p", title=url, steps=steps, reasons=(url,))
    assert "hunter2" not in fix_plan.shell([made]) + fix_plan.render(made, 100)


LISTINGS = {
    "pip": "torch==2.9.1\n--log=/etc/cron.d/x==1\n-r/etc/shadow==1\n-e git+https://h/y#egg=z\n"
    "-e --log=/etc/x\nx\x1b[2J==1\nplain @ file:///x.whl\n",
    "apt": "gcc:amd64=13 installed\n-oDir::Etc=/x=1 installed\n",
    "dnf": "gcc.x86_64=0:13-1\n--setopt=x.y=0:1-1\n",
    "conda": json.dumps(
        [
            {"name": "zlib", "version": "1", "build_string": "h_0", "channel": "c"},
            {"name": "--file=/etc/shadow", "version": "1", "build_string": "0", "channel": "c"},
            {"name": "x", "version": "1", "build_string": "0", "channel": "--file=/etc/shadow"},
        ]
    ),
}
KEPT = {
    "pip": {"torch", "z", "plain"},
    "apt": {"gcc:amd64"},
    "dnf": {"gcc.x86_64"},
    "conda": {"zlib"},
}


@pytest.mark.parametrize("manager", LISTINGS)
def test_an_undo_gives_no_package_as_an_option(manager: str) -> None:
    found = inventory.parse(manager, LISTINGS[manager])
    assert set(found) == KEPT[manager]
    argv = ["/e/program", "--prefix", "/e"]
    for before, after in (({}, found), (found, {})):
        for command in inventory.restore(manager, argv, before, after, after):
            assert not [word for word in command if "etc" in word or "\x1b" in word]


@pytest.mark.parametrize("version", ["1 --log=/x", "1 @ file:///x", "-1", "1\n2", "1/../x"])
def test_an_index_names_packages_by_version(version: str) -> None:
    rows = {"install": [{"metadata": {"name": "nvidia-x", "version": version}}]}
    with pytest.raises(ValueError, match="is not a package"):
        downloads.read_pip_report(json.dumps(rows))


PIP = """import os, sys
with open(os.environ["NOTED"], "a") as file:
    file.write(repr(sys.argv[1:]) + "\\n")
if sys.argv[1] == "freeze":
    print("pip==24.0\\n--log=/etc/x==1")
else:
    print("Looking in indexes: https://bob:hunter2hunter2@h/simple \\x1b]52;c;eA==\\x07")
    sys.exit(3)
"""


def test_a_fix_for_an_environment_in_a_hostile_place(tmp_path: Path) -> None:
    """Real runs against an environment whose path, pip and versions are hostile."""
    place = tmp_path / "a'$(touch pwned);`touch pwned` -r"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=300
    )
    (site,) = place.glob("lib/python3*/site-packages")
    for package in ("torch", "pip"):
        (site / package).mkdir()
        (site / package / "__init__.py").write_text("")
        made = site / f"{package}-2.9.1.dist-info"
        made.mkdir()
        text = f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.9.1\n"
        (made / "METADATA").write_text(text)
    (site / "torch" / "version.py").write_text("__version__ = '2.9.1+cu128'\ncuda = '12.8'\n")
    (site / "pip" / "__main__.py").write_text(PIP)
    noted = tmp_path / "noted"
    env = clean_environment(tmp_path, NOTED=str(noted))
    argv = ("fix", "install-deepspeed", "--quick", "--python", str(place / "bin" / "python"))
    dry = dsdoctor(*argv, "--dry-run", env=env, cwd=tmp_path)
    assert dry.status == 0, dry.err
    assert shlex.quote(str(place / "bin" / "python")) in dry.out
    done = dsdoctor(*argv, "--yes", env=env, cwd=tmp_path)
    assert done.status == 1, done
    shown = done.out + done.err
    assert "hunter2" not in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert "install" in noted.read_text()
    assert "--log" not in noted.read_text()
    assert not list(tmp_path.rglob("pwned"))
