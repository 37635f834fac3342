"""Modules that a run did not find: packages that are not installed, or the project's own."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.missing_modules import is_own
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
OWN = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/flowers/run/train.py", line 3, in <module>\n'
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def named(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("module", "condition"),
    [
        pytest.param("loralib", "script-module-missing", id="a package"),
        pytest.param("cv2", "script-module-missing", id="a package of another name"),
        pytest.param("torch", "torch-missing", id="a condition of its own"),
        pytest.param("deepspeed", "deepspeed-missing", id="another one"),
        pytest.param("utils", "user-code", id="a name that projects use"),
        pytest.param("flowers", "user-code", id="a folder of the project"),
        pytest.param("flowers.data", "user-code", id="a part of a package that was found"),
    ],
)
def test_a_module_that_was_not_found(module: str, condition: str) -> None:
    text = f"{OWN}    import {module}\nModuleNotFoundError: No module named '{module}'\n"
    assert named(text) == condition


def test_the_hint_names_the_module_and_both_remedies() -> None:
    cause = read(
        f"{OWN}    import loralib\nModuleNotFoundError: No module named 'loralib'\n"
    ).causes[0]
    assert cause.message == "the module `loralib` is not installed"
    assert "provides `loralib`" in cause.hint
    assert "PYTHONPATH" in cause.hint


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param(
            "ModuleNotFoundError: No module named 'deepspeeed'. Did you mean: 'deepspeed'?",
            "script-module-missing",
            id="a module",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'apex'. Did you mean: 'aplex'?",
            "script-module-missing",
            id="a known module",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'torch'. Did you mean: 'torrch'?",
            "torch-missing",
            id="torch",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'loralib'. Site initialization is disabled, did "
            "you forget to add the site-packages directory to sys.path?",
            "script-module-missing",
            id="without site-packages",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'loralib'. Although a module with this name was "
            "found for a different Python version (loralib.cpython-311-x86_64-linux-gnu.so).",
            "compiled-extension-broken",
            id="of another Python",
        ),
        pytest.param(
            "AttributeError: module 'flowers' has no attribute 'rose'. Did you mean '.roses' instead "
            "of '.rose'?",
            "user-code",
            id="an attribute",
        ),
        pytest.param(
            "ImportError: cannot import name 'rose' from 'flowers' (/home/me/flowers/__init__.py). "
            "Did you mean: 'roses'?",
            "user-code",
            id="a name of the project",
        ),
        pytest.param(
            "ModuleNotFoundError: No module named '_lzma'", "script-module-missing", id="of Python"
        ),
        pytest.param(
            "ModuleNotFoundError: Standard library module '_lzma' was not found",
            "script-module-missing",
            id="of Python, since 3.14",
        ),
    ],
)
def test_what_python_adds_to_a_message(line: str, condition: str) -> None:
    """Since 3.15 there are suggestions for modules that are not found."""
    found = read(f"{OWN}    import x\n{line}\n")
    assert named(f"{OWN}    import x\n{line}\n") == condition
    assert found.first_error is not None
    assert found.first_error.log.text == line


def test_a_module_of_python_itself_is_no_package() -> None:
    cause = read(f"{OWN}    import lzma\nModuleNotFoundError: No module named '_lzma'\n").causes[0]
    assert "built without its module `_lzma`" in cause.message
    assert "liblzma-dev" in cause.hint


def test_hyphens_and_case_of_folders_do_not_hide_the_project() -> None:
    text = OWN.replace("flowers", "Deep-Flowers")
    missing = "ModuleNotFoundError: No module named 'deep_flowers'\n"
    assert read(text + missing).outcome is Outcome.USER_CODE


def test_installed_packages_are_not_the_project() -> None:
    text = OWN.replace("/home/me/flowers/run", "/env/lib/python3.11/site-packages/flowers")
    missing = "ModuleNotFoundError: No module named 'flowers'\n"
    assert named(text + missing) == "script-module-missing"
    assert not is_own("flowers", ())


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param(
            "/usr/bin/python3: No module named bench", "launch-file-missing", id="python -m"
        ),
        pytest.param("/usr/bin/python3: No module named torch", "torch-missing", id="of torch"),
        pytest.param(
            "/usr/bin/python3: Error while finding module specification for 'bench.run' "
            "(ModuleNotFoundError: No module named 'bench')",
            "launch-file-missing",
            id="its package",
        ),
        pytest.param(
            "/usr/bin/python3: Error while finding module specification for "
            "'torch.distributed.run' (ModuleNotFoundError: No module named 'torch')",
            "torch-missing",
            id="torch itself",
        ),
    ],
)
def test_what_python_m_does_not_find(line: str, condition: str) -> None:
    assert named(line + "\n") == condition


def test_a_part_that_is_looked_up_and_then_imported() -> None:
    """hydra looks for an attribute first; only the import says why it is not there."""
    locate = (
        '  File "/env/lib/python3.11/site-packages/hydra/_internal/utils.py", line {}, in _locate\n'
    )
    text = (
        "Traceback (most recent call last):\n"
        + locate.format(644)
        + "AttributeError: module 'flowers.nets' has no attribute 'iris'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        + locate.format(650)
        + '  File "/home/me/flowers/nets/iris.py", line 3, in <module>\n    {}\n{}\n'
    )
    own = text.format("from layers import Petal", "ModuleNotFoundError: No module named 'layers'")
    assert read(own).outcome is Outcome.USER_CODE
    lacking = text.format("import loralib", "ModuleNotFoundError: No module named 'loralib'")
    assert named(lacking) == "script-module-missing"
