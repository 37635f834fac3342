"""Which interpreter is examined."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.interpreter import choose, holding, read_records, release_of
from dsdoctor.testing import FakeHost

TORCH = "lib/python3.11/site-packages/torch/__init__.py"
DEEPSPEED = "lib/python3.11/site-packages/deepspeed/__init__.py"


def machine(
    *files: str,
    env: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> FakeHost:
    """A machine whose doctor lives in /doctor and whose system Python holds nothing."""
    closed = {
        f"{prefix}/pyvenv.cfg": "include-system-site-packages = false\n"
        for prefix in ("/doctor", "/venv")
        if prefix == "/doctor" or f"{prefix}/pyvenv.cfg" in files
    }
    always = ["/usr/bin/python3.11", "/doctor/bin/python"]
    return FakeHost(
        env={"PATH": "/usr/bin", **(env or {})},
        files={**dict.fromkeys([*always, *files], ""), **closed, **(texts or {})},
        links={"/usr/bin/python3": "/usr/bin/python3.11", **(links or {})},
        queries={
            "executable": "/doctor/bin/python",
            "prefix": "/doctor",
            "home": "/home/ann",
            "cwd": "/home/ann/train",
        },
    )


UVX: dict[str, Mapping[str, str]] = {
    "env": {"PATH": "/doctor/bin:/usr/bin"},
    "links": {"/doctor/bin/python3": "/doctor/bin/python"},
}
VENV = ("/venv/bin/python", "/venv/pyvenv.cfg")


@pytest.mark.parametrize(
    ("host", "explicit", "chosen_by", "executable"),
    [
        pytest.param(
            machine(*VENV),
            "/venv/bin/python",
            "--python",
            "/venv/bin/python",
            id="--python: an interpreter",
        ),
        pytest.param(
            machine(*VENV), "/venv", "--python", "/venv/bin/python", id="--python: an environment"
        ),
        pytest.param(
            machine(*VENV),
            "/venv/",
            "--python",
            "/venv/bin/python",
            id="--python: an environment with a slash",
        ),
        pytest.param(
            machine(), "python3", "--python", "/usr/bin/python3", id="--python: a command on PATH"
        ),
        pytest.param(
            machine("/home/ann/train/.venv/bin/python3"),
            "./.venv",
            "--python",
            "/home/ann/train/.venv/bin/python3",
            id="--python: a relative environment",
        ),
        pytest.param(
            machine("/home/ann/v/bin/python"),
            "~/v",
            "--python",
            "/home/ann/v/bin/python",
            id="--python: an environment in the home directory",
        ),
        pytest.param(
            machine(*VENV, f"/venv/{TORCH}", env={"DSDOCTOR_PYTHON": "/doctor"}),
            None,
            "DSDOCTOR_PYTHON",
            "/doctor/bin/python",
            id="a variable of dsdoctor's own",
        ),
        pytest.param(
            machine(*VENV, f"/venv/{TORCH}", env={"VIRTUAL_ENV": "/venv"}),
            None,
            "VIRTUAL_ENV",
            "/venv/bin/python",
            id="an active venv with torch",
        ),
        pytest.param(
            machine("/conda/bin/python", f"/conda/{DEEPSPEED}", env={"CONDA_PREFIX": "/conda"}),
            None,
            "CONDA_PREFIX",
            "/conda/bin/python",
            id="an active conda environment with DeepSpeed",
        ),
        # the venv is empty, the conda environment under it is not
        pytest.param(
            machine(
                *VENV,
                "/conda/bin/python",
                f"/conda/{TORCH}",
                env={"CONDA_PREFIX": "/conda", "VIRTUAL_ENV": "/venv"},
            ),
            None,
            "CONDA_PREFIX",
            "/conda/bin/python",
            id="an active venv without torch within conda's",
        ),
        pytest.param(
            machine(f"/doctor/{TORCH}"),
            None,
            "running interpreter",
            "/doctor/bin/python",
            id="torch next to dsdoctor",
        ),
        pytest.param(
            machine(f"/usr/{TORCH}"),
            None,
            "python3 on PATH",
            "/usr/bin/python3",
            id="torch on PATH",
        ),
        pytest.param(
            machine("/usr/lib/python3/dist-packages/torch/__init__.py"),
            None,
            "python3 on PATH",
            "/usr/bin/python3",
            id="torch of the distribution",
        ),
        # none holds torch
        pytest.param(
            machine(*VENV, env={"VIRTUAL_ENV": "/venv"}),
            None,
            "VIRTUAL_ENV",
            "/venv/bin/python",
            id="an active venv, no torch anywhere",
        ),
        pytest.param(
            machine(), None, "python3 on PATH", "/usr/bin/python3", id="no torch anywhere"
        ),
        pytest.param(
            machine(env={"PATH": "/nowhere"}),
            None,
            "running interpreter",
            "/doctor/bin/python",
            id="nothing on PATH",
        ),
        # `uvx` puts dsdoctor's own environment in front of PATH
        pytest.param(
            machine(f"/usr/{TORCH}", **UVX),
            None,
            "python3 on PATH",
            "/usr/bin/python3",
            id="uvx, torch on PATH",
        ),
        pytest.param(
            machine(**UVX), None, "python3 on PATH", "/usr/bin/python3", id="uvx, no torch"
        ),
        pytest.param(
            machine(env={"PATH": "/doctor/bin"}, links=UVX["links"]),
            None,
            "running interpreter",
            "/doctor/bin/python",
            id="uvx, nothing else on PATH",
        ),
        # a variable that outlived its environment
        pytest.param(
            machine(env={"VIRTUAL_ENV": "/gone"}),
            None,
            "python3 on PATH",
            "/usr/bin/python3",
            id="a variable that outlived its environment",
        ),
    ],
)
def test_order(host: FakeHost, explicit: str | None, chosen_by: str, executable: str) -> None:
    choice = choose(host, explicit)
    assert (choice.chosen_by, choice.executable) == (chosen_by, executable)
    assert choice.why
    assert "\n" not in choice.why
    assert host.ran == []


@pytest.mark.parametrize(
    ("explicit", "text"),
    [
        ("/nope", "does not exist"),
        ("nope", "no such command on PATH"),
        ("/empty", "contains no interpreter"),
    ],
)
def test_what_the_user_named_is_no_interpreter(explicit: str, text: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        choose(machine("/empty/readme"), explicit)
    assert "expected" in str(caught.value)
    assert explicit in str(caught.value)


def test_a_variable_is_named_in_the_error() -> None:
    with pytest.raises(UsageError, match="DSDOCTOR_PYTHON=/nope"):
        choose(machine(env={"DSDOCTOR_PYTHON": "/nope"}))


def test_no_interpreter_at_all() -> None:
    with pytest.raises(UsageError, match="no Python interpreter"):
        choose(FakeHost())


def test_a_venv_sees_system_packages_only_if_told_so() -> None:
    files = ["/usr/lib/python3.11/site-packages/torch/__init__.py", *VENV[:1]]
    link = {"/venv/bin/python": "/usr/bin/python3.11"}
    closed = {"/venv/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\n"}
    opened = {"/venv/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = true\n"}
    assert holding(machine(*files, links=link, texts=closed), "/venv") == ()
    assert holding(machine(*files, links=link, texts=opened), "/venv") == ("torch",)


def test_the_release_of_a_package_is_that_of_its_metadata() -> None:
    folder = "/venv/lib/python3.11/site-packages/"
    files = [folder + "transformers-5.14.1.dist-info/METADATA", *VENV[:1]]
    link = {"/venv/bin/python": "/usr/bin/python3.11"}
    found = machine(*files, links=link, texts={"/venv/pyvenv.cfg": "home = /usr/bin\n"})
    assert release_of(found, "/venv/bin/python", "transformers") == "5.14.1"
    assert release_of(found, "/venv/bin/python", "deepspeed") is None


def test_the_user_site_counts_where_it_is_on() -> None:
    file = "/home/ann/.local/lib/python3.11/site-packages/torch/__init__.py"
    python = "/usr/bin/python3"
    assert holding(machine(file), "/usr", python) == ("torch",)
    assert holding(machine(file, env={"PYTHONNOUSERSITE": "1"}), "/usr", python) == ()
    assert holding(machine(file), "/doctor") == ()


def test_packages_of_another_version_are_not_its_own() -> None:
    host = machine("/usr/lib/python3.9/site-packages/torch/__init__.py")
    assert holding(host, "/usr", "/usr/bin/python3") == ()


def test_an_editable_install_is_held() -> None:
    file = "/venv/lib/python3.11/site-packages/__editable__.deepspeed-0.19.8.pth"
    assert holding(machine(*VENV, file), "/venv") == ("deepspeed",)


def test_names_that_are_not_utf_8_become_printable() -> None:
    records = read_records(b'\x1edsdoctor:{"fact": "\\udc80"}\n')
    assert records == [{"fact": "?"}]
