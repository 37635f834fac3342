"""The parser of a training script, read from its source."""

from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Missing, Packages, RunNeeds, ScriptOptions
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.python import Package, PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_options import script_options
from dsdoctor.scripts.dataclass_fields import fields_of
from dsdoctor.testing import read
from tests.support.command import clean_environment

PLAIN = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("-b", "--batch-size", type=int, choices=[1, 2])
parser.add_argument("--fp16", action="store_true")
group = parser.add_argument_group("more")
group.add_argument("--mode", choices=("a", "b"), nargs="+")
"""
READS = "args = parser.parse_args()\n"


def asked(folder: Path, text: str, command: str, **facts: Any) -> ScriptOptions | Missing:
    (folder / "train.py").write_text(text)
    words = tuple(command.split())
    found: ScriptOptions | Missing = read(
        script_options,
        LocalHost(clean_environment(folder)),
        run_needs=RunNeeds(cwd=str(folder), command=words),
        launch_command=parse_command(words),
        patient_choice=PatientChoice(executable="python", chosen_by="--python"),
        packages=facts.get("packages", Packages()),
    )
    return found


@pytest.mark.parametrize(
    ("words", "unknown", "refusal"),
    [
        pytest.param("d --lr 1e-4 -b 2 --fp16 --mode a b", (), "", id="all is known"),
        pytest.param("d --lr=1 --batch 1", (), "", id="the beginning of a name"),
        pytest.param("d --lr 1 --bf16 --x=1", ("--bf16", "--x"), "", id="unknown options"),
        pytest.param("d", (), "the following arguments are required: --lr", id="required"),
        pytest.param("d --nope", ("--nope",), "the following arguments are required: --lr",
                     id="unknown and required"),
        pytest.param("d --lr x", (), "argument --lr: invalid float value: 'x'", id="no number"),
        pytest.param("d e --lr 1", (), "unrecognized arguments: e", id="a word too many"),
        pytest.param("d --lr 1 -- --x", (), "unrecognized arguments: --x", id="after the dashes"),
        pytest.param("$DATA --lr $LR $MORE", (), "", id="a shell fills it in"),
        pytest.param("$DATA --lr $LR --nope $X", ("--nope",), "", id="but not this"),
    ],
)  # fmt: skip
def test_words(tmp_path: Path, words: str, unknown: tuple[str, ...], refusal: str) -> None:
    found = asked(tmp_path, PLAIN + READS, f"torchrun train.py {words}")
    assert isinstance(found, ScriptOptions)
    assert (found.unknown, found.refusal) == (unknown, refusal)


def test_a_choice_is_refused_in_the_words_of_argparse(tmp_path: Path) -> None:
    found = asked(tmp_path, PLAIN + READS, "torchrun train.py d --lr 1 -b 3")
    assert isinstance(found, ScriptOptions)
    assert found.refusal.startswith("argument -b/--batch-size: invalid choice: 3 (choose from")


@pytest.mark.parametrize(
    ("launcher", "torch", "passed"),
    [
        pytest.param("deepspeed", "2.4.0", "--local_rank", id="deepspeed"),
        pytest.param("deepspeed --no_local_rank", "2.4.0", "", id="deepspeed is told not to"),
        pytest.param("deepspeed --launcher openmpi", "2.4.0", "", id="deepspeed by MPI"),
        pytest.param("torchrun", "2.4.0", "", id="torchrun"),
        pytest.param("python -m torch.distributed.launch", "1.13.1", "--local_rank", id="torch 1"),
        pytest.param("python -m torch.distributed.launch", "2.4.0", "--local-rank", id="torch 2"),
        pytest.param("python -m torch.distributed.launch --use_env", "2.4.0", "", id="use_env"),
    ],
)
def test_what_launchers_pass(tmp_path: Path, launcher: str, torch: str, passed: str) -> None:
    packages = Packages(packages={"torch": Package(name="torch", version=torch)})
    command = f"{launcher} train.py d --lr 1"
    found = asked(tmp_path, PLAIN + READS, command, packages=packages)
    assert isinstance(found, ScriptOptions)
    assert (found.by_launcher, found.unknown) == (passed, (passed,) if passed else ())
    declared = PLAIN + 'parser.add_argument("--local_rank", "--local-rank")\n' + READS
    known = asked(tmp_path, declared, command, packages=packages)
    assert isinstance(known, ScriptOptions)
    assert known.unknown == ()


def test_options_of_deepspeed_and_of_functions_count(tmp_path: Path) -> None:
    text = PLAIN + (
        "import deepspeed\n"
        "def more(one):\n"
        "    one.add_argument('--extra', required=True)\n"
        "    return one\n"
        "parser = more(deepspeed.add_config_arguments(parser))\n" + READS
    )
    found = asked(tmp_path, text, "torchrun train.py d --lr 1 --deepspeed --deepspeed_config c")
    assert isinstance(found, ScriptOptions)
    assert (found.unknown, found.refusal) == ((), "")
    wrong = asked(tmp_path, text, "torchrun train.py d --lr 1 --extra 1 --deepspeed_cfg c")
    assert isinstance(wrong, ScriptOptions)
    assert wrong.near == {"--deepspeed_cfg": "--deepspeed_config"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("args, rest = parser.parse_known_args()\n", id="the rest is left over"),
        pytest.param("import lib\nlib.add(parser)\n" + READS, id="another module adds options"),
        pytest.param("import lib\nlib.add(group)\n" + READS, id="to a group"),
        pytest.param("p = parser\np.add_arguments(X)\n" + READS, id="an unknown method"),
        pytest.param("for n in X:\n    parser.add_argument(n)\n" + READS, id="names of a list"),
        pytest.param("import sys\nsys.argv.append('--x')\n" + READS, id="the words are changed"),
        pytest.param("args = parser.parse_args(['--lr'])\n", id="other words"),
        pytest.param("parser.add_argument('--x', action=Mine)\n" + READS, id="an action"),
        pytest.param("parser.add_argument('--x', nargs=N)\n" + READS, id="how many values"),
        pytest.param("parser.add_argument('--x', **X)\n" + READS, id="settings of a variable"),
        pytest.param("parser.add_subparsers()\n" + READS, id="commands"),
        pytest.param("b = argparse.ArgumentParser()\n" + READS, id="two parsers"),
        pytest.param("", id="nothing is parsed"),
    ],
)
def test_a_parser_that_is_not_known_as_a_whole_is_not_judged(tmp_path: Path, more: str) -> None:
    found = asked(tmp_path, PLAIN + more, "torchrun train.py --nope")
    assert isinstance(found, Missing)
    assert not found.is_unknown


def test_the_parser_of_another_package_is_not_judged(tmp_path: Path) -> None:
    text = PLAIN.replace("import argparse", "import configargparse as argparse") + READS
    assert isinstance(asked(tmp_path, text, "torchrun train.py --nope"), Missing)


CLASSES = """from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
from near import Base
@dataclass
class Mine(Base):
    model: str = field(metadata={"aliases": ["-m"]})
    rate: float | None = None
    hidden: int = field(default=1, init=False)
first, second = HfArgumentParser((Mine, TrainingArguments)).parse_args_into_dataclasses()
"""
NEAR = """from dataclasses import dataclass
@dataclass
class Base:
    depth: int = 1
"""


def installed() -> Packages:
    """transformers as it is installed here."""
    found = importlib.metadata.distribution("transformers")
    package = Package(
        name="transformers", version=found.version, location=str(found.locate_file(""))
    )
    return Packages(packages={"transformers": package})


@pytest.mark.parametrize(
    ("words", "unknown", "refusal"),
    [
        pytest.param("--model m --depth 2 --output_dir o --eval-strategy no --no_bf16", (), "",
                     id="all is known"),
        pytest.param("-m m --output_dir o --rate 1e-4", (), "", id="an alias"),
        pytest.param("--model m --output_dir o --evaluation_strategy no",
                     ("--evaluation_strategy",), "", id="renamed"),
        pytest.param("--model m --output_dir o --hidden 2", ("--hidden",), "", id="no option"),
        pytest.param("--output_dir o", (), "the following arguments are required: --model",
                     id="required"),
        pytest.param("--model m --output_dir o --learning_rate x", (),
                     "argument --learning_rate: invalid float value: 'x'", id="no number"),
        pytest.param("--model m --output_dir o --rate", (),
                     "argument --rate: expected one argument", id="no value"),
        pytest.param("$ARGS --rate x", (), "", id="a shell fills it in"),
        pytest.param("args.json", (), "", id="a file with all of them"),
    ],
)  # fmt: skip
def test_options_of_dataclasses(
    tmp_path: Path, words: str, unknown: tuple[str, ...], refusal: str
) -> None:
    (tmp_path / "near.py").write_text(NEAR)
    found = asked(tmp_path, CLASSES, f"torchrun train.py {words}", packages=installed())
    assert isinstance(found, ScriptOptions)
    assert (found.unknown, found.refusal) == (unknown, refusal)
    assert found.of == "transformers"


def test_the_module_whose_function_is_called_is_read(tmp_path: Path) -> None:
    (tmp_path / "near.py").write_text(NEAR)
    (tmp_path / "inner").mkdir()
    main = CLASSES.replace("first, second", "def run():\n    first, second")
    (tmp_path / "inner" / "main.py").write_text(main)
    text = "import os\nfrom inner.main import run\nif __name__ == '__main__':\n    run()\n"
    words = "torchrun train.py --model m --depth 1 --output_dir o --nope 1"
    found = asked(tmp_path, text, words, packages=installed())
    assert isinstance(found, ScriptOptions)
    assert found.unknown == ("--nope",)
    assert isinstance(asked(tmp_path, text.replace("    run()", "    x()"), words), Missing)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("from near import Base", "from far import Base", id="a class is not found"),
        pytest.param("from transformers import HfArgumentParser, ",
                     "from mine import HfArgumentParser\nfrom transformers import ",
                     id="a parser of its own"),
        pytest.param("parse_args_into_dataclasses()",
                     "parse_args_into_dataclasses(return_remaining_strings=True)",
                     id="the rest is left over"),
        pytest.param("parse_args_into_dataclasses()", "parse_yaml_file('a')", id="a file"),
        pytest.param("(Mine, TrainingArguments)", "CLASSES", id="classes of a variable"),
    ],
)  # fmt: skip
def test_dataclasses_that_are_not_known_are_not_judged(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "near.py").write_text(NEAR)
    text = CLASSES.replace(old, new)
    assert text != CLASSES
    found = asked(tmp_path, text, "torchrun train.py --nope", packages=installed())
    assert isinstance(found, Missing)


def test_the_fields_are_those_of_the_real_parser() -> None:
    transformers = pytest.importorskip("transformers")
    tree = ast.parse(Path(transformers.training_args.__file__).read_text())
    made = next(
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "TrainingArguments"
    )
    fields = fields_of("TrainingArguments", lambda _, __: (made, "f"))
    real = transformers.HfArgumentParser(transformers.TrainingArguments)
    options = {flag for action in real._actions for flag in action.option_strings}
    ours = {flag for field in fields.values() for flag in field.flags}
    assert options - ours == {"-h", "--help"}
    assert all(flag.startswith(("--no_", "--no-")) for flag in ours - options)
    numbers = {a.dest for a in real._actions if a.type in {int, float}}
    assert {name for name, field in fields.items() if field.number} <= numbers
    assert {name for name, field in fields.items() if field.required} == {
        action.dest for action in real._actions if action.required
    }
