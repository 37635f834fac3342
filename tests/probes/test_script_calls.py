"""Calls of a training script, compared with the source of what they call."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from pathlib import Path

import pytest

from dsdoctor.api import Packages
from dsdoctor.framework import syntax_of
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import Package
from dsdoctor.scripts.calls import parameters_of, wrong_calls
from dsdoctor.scripts.renamed import RENAMED
from dsdoctor.scripts.sources import Sources

HEAD = "from transformers import Config, Trainer, load\nimport transformers\n"
#: A package with one class or function of each kind.
INSTALLED = {
    "transformers/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    "    from .args import Config\n    from .trainer import Trainer as Trainer\n"
    "    from .trainer import Free, Made, Strict, load\n",
    "transformers/args.py": "from dataclasses import dataclass, field\n"
    "@dataclass\nclass Base:\n    eval_strategy: str = 'no'\n"
    "@dataclass\nclass Config(Base):\n    rate: float = field(default=0.1)\n",
    "transformers/trainer.py": "from .args import Base\n"
    "class Trainer:\n"
    "    @deprecate_kwarg('tokenizer', new_name='processing_class')\n"
    "    def __init__(self, model, *, processing_class=None): ...\n"
    "class Free(Trainer):\n    def __init__(self, **kwargs): ...\n"
    "class Made(Trainer, metaclass=type): ...\n"
    "@strict\nclass Strict(Base): ...\n"
    "def load(name, max_length=1): ...\n",
}


def found(folder: Path, text: str, *, head: str = HEAD) -> list[tuple[int, str, str]]:
    for name, source in INSTALLED.items():
        (folder / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "site" / name).write_text(source)
    script = folder / "train.py"
    script.write_text(head + text)
    package = Package(name="transformers", version="5.0.0", location=str(folder / "site"))
    packages = Packages(packages={"transformers": package})
    tree = syntax_of(script.read_text())
    assert tree is not None
    sources = Sources(LocalHost(), str(script), str(folder), packages)
    first = head.count("\n")
    return [(one.line - first, one.argument, one.near) for one in wrong_calls(tree, sources)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Config(rate=1, eval_strategy='no')", [], id="fields of a class and its base"),
        pytest.param(
            "Config(evaluation_strategy='no')",
            [(1, "evaluation_strategy", "eval_strategy")],
            id="renamed",
        ),
        pytest.param("transformers.Config(x=1)", [(1, "x", "")], id="of the module"),
        pytest.param("Trainer(model=1, tokenizer=2)", [], id="an old name that is still taken"),
        pytest.param("Trainer(model=1, argz=2)", [(1, "argz", "")], id="of a class"),
        pytest.param(
            "load('a', max_seq_length=2)", [(1, "max_seq_length", "max_length")], id="a function"
        ),
        pytest.param("transformers.Free(x=1)", [], id="takes any"),
        pytest.param("transformers.Made(x=1)", [], id="a metaclass"),
        pytest.param("transformers.Strict(x=1)", [], id="an unknown decorator"),
        pytest.param("transformers.Nope(x=1)", [], id="not found"),
        pytest.param("Config(**{'x': 1})", [], id="computed"),
        pytest.param("def f():\n    load(1, b=1)\nf()", [(2, "b", "")], id="in a function"),
        pytest.param(
            "def f():\n    load(1, b=1)\nif __name__ == '__main__':\n    fire.Fire(f)",
            [(2, "b", "")],
            id="in a function that is passed on",
        ),
        pytest.param("def f():\n    load(1, b=1)", [], id="a function that nothing calls"),
        pytest.param("if x:\n    load(1, b=1)", [], id="under a condition"),
        pytest.param("try:\n    load(1, b=1)\nexcept TypeError: ...", [], id="where it is caught"),
        pytest.param("x and load(1, b=1)", [], id="behind an and"),
        pytest.param(
            "def f():\n    if x:\n        return\n    load(1, b=1)\nf()", [], id="after a return"
        ),
        pytest.param(
            "import sys\nsys.path.insert(0, 'lib/transformers/src')\nload(1, b=1)",
            [],
            id="a copy of its own",
        ),
        pytest.param(
            "import sys\nsys.path.append('..')\nload(1, b=1)", [(3, "b", "")], id="another folder"
        ),
        pytest.param("load = print\nload(1, b=1)", [], id="another thing of that name"),
        pytest.param("def load(a): ...\nload(1, b=1)", [], id="a function of the script"),
    ],
)
def test_calls(tmp_path: Path, text: str, expected: list[tuple[int, str, str]]) -> None:
    assert found(tmp_path, text + "\n") == expected


def test_modules_of_the_script_are_not_judged(tmp_path: Path) -> None:
    (tmp_path / "near.py").write_text("def load(a): ...\n")
    assert found(tmp_path, "load(1, b=1)\n", head="from near import load\n") == []


def test_a_checkout_on_the_path_is_read(tmp_path: Path) -> None:
    """It has no metadata, and comes before what is installed."""
    for folder, body in (("site", "def load(a): ..."), ("src", "def load(b): ...")):
        (tmp_path / folder / "transformers").mkdir(parents=True)
        (tmp_path / folder / "transformers" / "__init__.py").write_text(body + "\n")
    package = Package(name="transformers", version="5", location=str(tmp_path / "site"))
    origin = str(tmp_path / "src" / "transformers" / "__init__.py")
    packages = Packages(packages={"transformers": package}, origins={"transformers": origin})
    tree = syntax_of("from transformers import load\nload(a=1)\nload(b=1)\n")
    assert tree is not None
    (tmp_path / "t.py").write_text("from transformers import load\n")
    sources = Sources(LocalHost(), str(tmp_path / "t.py"), str(tmp_path), packages)
    assert [(one.line, one.argument) for one in wrong_calls(tree, sources)] == [(2, "a")]


#: Of the installed releases, with `None` where anything may be taken.
KNOWN = {
    "transformers": ("DataCollatorForLanguageModeling", "EarlyStoppingCallback",
                     "Seq2SeqTrainer", "Seq2SeqTrainingArguments", "Trainer", "TrainingArguments",
                     "get_scheduler", "set_seed"),
    "accelerate": ("Accelerator", "DataLoaderConfiguration", "DeepSpeedPlugin",
                   "notebook_launcher"),
}  # fmt: skip
FREE = {"transformers": ("BitsAndBytesConfig", "GenerationConfig", "LlamaConfig", "pipeline")}


def static(module: str, name: str, folder: Path) -> set[str] | None:
    pytest.importorskip(module)
    distribution = importlib.metadata.distribution(module)
    location = str(distribution.locate_file(""))
    package = Package(name=module, version=distribution.version, location=location)
    script = folder / "train.py"
    script.write_text(f"from {module} import {name}\n")
    packages = Packages(packages={module: package})
    sources = Sources(LocalHost(), str(script), str(folder), packages)
    defined = sources.find("", name)
    return None if defined is None else parameters_of(name, defined, sources)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in KNOWN.items() for name in names]
)
def test_the_arguments_are_those_of_the_real_signature(
    tmp_path: Path, module: str, name: str
) -> None:
    known = static(module, name, tmp_path)
    assert known is not None
    real = set(inspect.signature(getattr(importlib.import_module(module), name)).parameters)
    assert real <= known
    assert known - real <= {"self", *RENAMED}


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FREE.items() for name in names]
)
def test_what_takes_anything_is_not_judged(tmp_path: Path, module: str, name: str) -> None:
    assert static(module, name, tmp_path) is None


def test_successors_exist() -> None:
    transformers = pytest.importorskip("transformers")
    arguments = set(inspect.signature(transformers.TrainingArguments).parameters)
    arguments |= set(inspect.signature(transformers.Trainer).parameters)
    assert set(RENAMED.values()) - arguments <= {"max_length"}  # of trl
    assert not RENAMED.keys() & arguments
