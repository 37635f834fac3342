"""What `make TARGET` starts, read from the Makefile."""

from __future__ import annotations

import pytest

from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.makefiles import arguments, shell_text
from dsdoctor.testing import FakeHost


def made(
    makefile: str, command: str = "make train", name: str = "Makefile", **env: str
) -> RunNeeds:
    files = {
        f"/job/{name}": makefile,
        "/job/t.py": "import torch\n",
        "/job/src/t.py": "import torch\n",
        "/job/src/Makefile": "train:\n\ttorchrun t.py --in src\n",
        "/usr/bin/torchrun": "#!/usr/bin/python3\n",
    }
    host = FakeHost(env={"PATH": "/usr/bin", "HOME": "/home/a", **env}, files=files)
    return resolve(RunNeeds(command=tuple(command.split()), cwd="/job"), host)


@pytest.mark.parametrize(
    ("makefile", "command", "expected"),
    [
        pytest.param("train:\n\t@torchrun t.py\n", "make train", "torchrun t.py", id="a recipe"),
        pytest.param(
            "all: train\ntrain:\n\t-torchrun t.py\n", "make", "torchrun t.py", id="default"
        ),
        pytest.param(
            ".PHONY: train\ntrain:\n\ttorchrun t.py\n", "gmake", "torchrun t.py", id="not .PHONY"
        ),
        pytest.param("train: ; torchrun t.py\n", "make -j 4 train", "torchrun t.py", id="one line"),
        pytest.param(
            "N ?= 8\nARGS := --nproc_per_node $(N)\nN = 2\ntrain:\n\ttorchrun $(ARGS) t.py\n",
            "make train",
            "torchrun --nproc_per_node 8 t.py",
            id="expanded where it stands",
        ),
        pytest.param(
            "N ?= 8\nARGS = --nproc_per_node ${N}\nN = 2\ntrain:\n\ttorchrun $(ARGS) t.py\n",
            "make train",
            "torchrun --nproc_per_node 2 t.py",
            id="expanded where it is used",
        ),
        pytest.param(
            "N = 8\ntrain:\n\ttorchrun --nproc_per_node $(N) t.py\n",
            "make train N=1",
            "torchrun --nproc_per_node 1 t.py",
            id="set by the command",
        ),
        pytest.param(
            "train: N = 4\ntrain:\n\ttorchrun --nproc_per_node $(N) t.py\n",
            "make train",
            "torchrun --nproc_per_node 4 t.py",
            id="of the target",
        ),
        pytest.param(
            "A = 1\nA += 2\ntrain:\n\ttorchrun t.py $(A) $@ $< \\\n\t  --end\n",
            "make train",
            "torchrun t.py 1 2 train --end",
            id="appended, and two lines",
        ),
        pytest.param(
            "train: data/x\n\ttorchrun t.py\ndata/x:\n\tpython get.py\n",
            "make train",
            "torchrun t.py",
            id="with a prerequisite",
        ),
        pytest.param(
            "export CUDA_VISIBLE_DEVICES = 0\ntrain:\n\ttorchrun t.py\n",
            "make train",
            "env CUDA_VISIBLE_DEVICES=0 torchrun t.py",
            id="exported",
        ),
        pytest.param(
            "train:\n\texport CUDA_VISIBLE_DEVICES=0\n\ttorchrun t.py\n",
            "make train",
            "torchrun t.py",
            id="exported in another shell",
        ),
        pytest.param(
            "# make: run\nifdef X\nM = 1\nendif\ntrain:\n\ttorchrun t.py # now\n",
            "make SHELL=/bin/bash train",
            "torchrun t.py",
            id="a conditional elsewhere",
        ),
    ],
)
def test_plain_recipes_are_followed(makefile: str, command: str, expected: str) -> None:
    run = made(makefile, command)
    assert (run.command, run.not_followed) == (tuple(expected.split()), "")
    assert run.followed.endswith("of `Makefile`")


@pytest.mark.parametrize(
    ("makefile", "command", "folder"),
    [
        pytest.param(
            "train:\n\tcd src && torchrun t.py\n", "make train", "/job/src", id="cd before"
        ),
        pytest.param(
            "train:\n\tcd src\n\ttorchrun t.py\n", "make train", "/job", id="cd in its own shell"
        ),
        pytest.param(
            ".ONESHELL:\ntrain:\n\tcd src\n\ttorchrun t.py\n",
            "make train",
            "/job/src",
            id="one shell",
        ),
        pytest.param("x:\n\ttrue\n", "make -C src train", "/job/src", id="-C"),
    ],
)
def test_the_folder_of_a_recipe(makefile: str, command: str, folder: str) -> None:
    run = made(makefile, command)
    assert (run.not_followed, run.cwd) == ("", folder)


@pytest.mark.parametrize(
    ("makefile", "reason"),
    [
        pytest.param("test:\n\tpytest\n", "it has no rule for `train`", id="no such target"),
        pytest.param(
            "ifdef A\ntrain:\n\ttorchrun a.py\nelse\ntrain:\n\ttorchrun t.py\nendif\n",
            "a conditional decides what `train` runs",
            id="a conditional",
        ),
    ],
)
def test_what_is_not_plain_is_said(makefile: str, reason: str) -> None:
    assert made(makefile).not_followed == f"`Makefile` is not followed, because {reason}"


@pytest.mark.parametrize(
    "makefile",
    [
        pytest.param("S != ls *.py\ntrain:\n\ttorchrun $(S)\n", id="computed by a shell"),
        pytest.param("S = $(wildcard *.py)\ntrain:\n\ttorchrun $(S)\n", id="computed by make"),
        pytest.param("include conf.mk\ntrain:\n\ttorchrun $(S)\n", id="perhaps included"),
        pytest.param("ifeq ($(A),1)\nS = a.py\nendif\ntrain:\n\ttorchrun $(S)\n", id="perhaps set"),
        pytest.param("define S\na.py\nendef\ntrain:\n\ttorchrun $(S)\n", id="several lines"),
    ],
)
def test_a_value_that_is_not_known_is_not_guessed(makefile: str) -> None:
    run = made(makefile)
    assert run.not_followed.startswith("`$(")
    assert run.command == ("make", "train")


def test_the_environment_is_below_the_file_and_above_a_default() -> None:
    text = "A = 1\nB ?= 1\ntrain:\n\techo $(A) $(B) $(C) $$HOME\n"
    script, reason = shell_text(text, arguments(["train"]), {"A": "9", "B": "9", "C": "9"}, bool)
    assert (script.split("\n")[3], reason) == ("(echo 1 9 9 $HOME)", "")


def test_a_loop_of_variables_or_targets_ends() -> None:
    text = "A = $(B)\nB = $(A)\ntrain: train2\n\techo $(A)\ntrain2: train\n\ttrue\n"
    script, reason = shell_text(text, arguments(["train"]), {}, bool)
    assert (script.split("\n")[3], reason) == ("(echo $(unknown))", "")
