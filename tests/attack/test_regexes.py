"""Every regular expression of the engine and the checks, against input made to blow it up.

The patterns are read from the source, so none is forgotten; those that are put together from tables
are recorded while all modules are imported and a log is diagnosed. For each repeat in a pattern a text is
made that leads to it, goes round in it, and then does not match. What takes exponential or cubic
time shows at once; patterns that read text without bounds have tests of their own for linear time.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.model import masking

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from re import _parser as parser  # type: ignore[attr-defined, unused-ignore]
    except ImportError:  # Python 3.10
        import sre_parse as parser  # type: ignore[no-redef, unused-ignore]

ROOT = Path(__file__).parent.parent.parent
CALLS = frozenset(
    {"compile", "search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
)
SIZES = (18, 25, 200, 2000)
#: Quadratic patterns need a hundredth of it at 2,000 characters, cubic ones ten times as much.
LIMIT_SECONDS = 1.0
ENDS = ("", "\x00", "!\n", "\uffff")


def _constant(node: ast.AST, known: dict[str, Any]) -> Any:
    """The text of a pattern that is put together from literals."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _constant(node.left, known), _constant(node.right, known)
        return left + right if left is not None and type(left) is type(right) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):  # what is only known when it runs becomes a word
        parts = [
            _constant(part.value, known) or "word"
            if isinstance(part, ast.FormattedValue)
            else _constant(part, known)
            for part in node.values
        ]
        return "".join(part for part in parts if isinstance(part, str))
    return None


def patterns() -> Iterator[tuple[str, str]]:
    for base in (ROOT / "dsdoctor", ROOT / "checks" / "dsdoctor_checks"):
        for path in sorted(base.rglob("*.py")):
            tree = ast.parse(path.read_text())
            known: dict[str, Any] = {}
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    known[node.targets[0].id] = _constant(node.value, {})
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call):
                    continue
                function = node.func
                if isinstance(function, ast.Attribute):
                    owner = getattr(function.value, "id", "")
                    texts = node.args[:1] if owner == "re" and function.attr in CALLS else []
                else:
                    texts = []
                texts += [k.value for k in node.keywords if k.arg in ("pattern", "unless")]
                for text in texts:
                    value = _constant(text, known)
                    if value:
                        text_of = value.decode("latin-1") if isinstance(value, bytes) else value
                        yield f"{path.relative_to(ROOT).as_posix()}:{node.lineno}", text_of


def _sample(items: Any, pumps: list[tuple[str, str]], lead: str = "", depth: int = 0) -> str:
    """A text that a parsed pattern matches; notes what leads to each repeat, and what goes round."""
    made = ""
    for operation, value in items:
        name = str(operation)
        if name == "LITERAL":
            made += chr(value)
        elif name == "NOT_LITERAL":
            made += "a" if value != ord("a") else "b"
        elif name == "ANY":
            made += "a"
        elif name == "IN":
            made += _one(value)
        elif name == "SUBPATTERN":
            made += _sample(value[-1], pumps, lead + made, depth)
        elif name == "BRANCH":
            options = [_sample(branch, pumps, lead + made, depth) for branch in value[1][:6]]
            made += options[0]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            one = _sample(inner, pumps, lead + made, depth + 1)
            if most > 8:
                pumps.append((lead + made, one))
            made += one * min(least, 3)
        elif name == "ATOMIC_GROUP":
            made += _sample(value, pumps, lead + made, depth)
    return made


def _one(options: Any) -> str:
    """A character of a set."""
    kinds = {
        "CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " ",
        "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": "-", "CATEGORY_NOT_DIGIT": "a",
    }  # fmt: skip
    banned: set[str] = set()
    negated = False
    for operation, value in options:
        name = str(operation)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL" and not negated:
            return chr(value)
        elif name == "RANGE" and not negated:
            return chr(value[0])
        elif name == "CATEGORY" and not negated:
            return kinds[str(value)]
        elif name == "LITERAL":
            banned.add(chr(value))
        elif name == "RANGE":
            banned.update(map(chr, range(value[0], min(value[1], value[0] + 200) + 1)))
        elif name == "CATEGORY":
            banned.update({" ", "\t"} if "SPACE" in str(value) else {kinds[str(value)]})
    return next(c for c in "a1-. ~\u00e9\u4e00" if c not in banned)


ALL = sorted({text: place for place, text in patterns()}.items())


def test_the_patterns_are_found() -> None:
    assert len(ALL) > 1600
    places = {place.partition(":")[0] for _, place in ALL}
    assert "dsdoctor/model/masking.py" in places
    assert any(place.startswith("checks/") for place in places)


#: Those of secrets are texts in a table, and compiled when they are first used.
MASKING = {text for row in masking._SECRETS for text in row[1:3] if text} | {
    masking._PLACEHOLDER, masking._CODE, masking._ATTRIBUTE, masking._FILE, masking._KUBEADM,
    masking._ENCODED, *(pattern for _, pattern in masking._NAMED),
}  # fmt: skip
#: Imports everything, reads a log and a config, and prints each pattern that our code has compiled.
RECORDER = """
import importlib, inspect, json, pkgutil, re, sys, warnings
warnings.simplefilter("ignore")
made = {}
original = re.compile

def record(pattern, flags=0):
    got = original(pattern, flags)
    text = got.pattern if isinstance(got.pattern, str) else got.pattern.decode("latin-1")
    module = sys._getframe(1).f_globals.get("__name__", "")
    if module.startswith("dsdoctor"):
        made[text, int(got.flags) & ~int(re.UNICODE | re.DEBUG)] = module
    return got

re.compile = record
import dsdoctor, dsdoctor_checks
for package in (dsdoctor, dsdoctor_checks):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from dsdoctor.cli.main import run
for argv in (["diagnose", "train.log"], ["lint", "ds_config.json"], ["triage", "train.log"]):
    assert run(argv) in (0, 1), argv
for name in [name for name in sys.modules if name.startswith("dsdoctor")]:
    for made_later in list(vars(sys.modules[name]).values()):
        if hasattr(made_later, "cache_info"):  # patterns that are compiled when first used
            shape = inspect.signature(made_later)
            if not shape.parameters and "Pattern" in str(shape.return_annotation):
                made_later()
from dsdoctor.logs import marks
for name in marks.MARKS:
    marks.mark_pattern(name)
from dsdoctor.model import masking
for text in json.loads(sys.argv[1]):
    masking._compiled(text)
print("RECORDED " + json.dumps([[*key, module] for key, module in sorted(made.items())]))
"""


def compiled_patterns(folder: Path) -> list[tuple[str, int, str]]:
    (folder / "train.log").write_text(
        'Traceback (most recent call last):\n  File "/x/t.py", line 1, in f\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    (folder / "ds_config.json").write_text(
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'
    )
    done = subprocess.run(
        [sys.executable, "-c", RECORDER, json.dumps(sorted(MASKING))],
        cwd=folder, capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    line = next(line for line in done.stdout.splitlines() if line.startswith("RECORDED "))
    return [tuple(row) for row in json.loads(line.removeprefix("RECORDED "))]


def test_patterns_that_are_made_from_tables(tmp_path: Path) -> None:
    known = {text for text, _ in ALL}
    recorded = compiled_patterns(tmp_path)
    assert {row[0] for row in recorded if row[2] == "dsdoctor.model.masking"} > MASKING
    rest = [row for row in recorded if row[0] not in known]
    assert {"dsdoctor.logs.foreign", "dsdoctor.logs.marks"} <= {module for *_, module in rest}
    slow = {
        (module, text[:80]): why for text, flags, module in rest if (why := attack(text, flags))
    }
    assert slow == {}


def _seconds(pattern: re.Pattern[str], data: str) -> float:
    begun = time.process_time()
    pattern.search(data)
    return time.process_time() - begun


def attack(text: str, flags: int = 0) -> str:
    """The slowest input that was found to be too slow; empty where none is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(text, flags)
        pumps: list[tuple[str, str]] = []
        _sample(parser.parse(text, flags), pumps)
    for lead, one in list(dict.fromkeys(pumps))[:12]:
        for end in ENDS:
            for size in SIZES:
                data = lead + one * max(1, size // max(1, len(one))) + end
                # twice, since programs beside this one empty its caches
                if all(_seconds(compiled, data) > LIMIT_SECONDS for _ in range(2)):
                    return f"{lead!r} + {one!r} * {size} + {end!r}"
    return ""


@pytest.mark.parametrize("group", range(20))
def test_no_pattern_takes_more_than_quadratic_time(group: int) -> None:
    slow = {place: (text, why) for text, place in ALL[group::20] if (why := attack(text))}
    assert slow == {}


@pytest.mark.parametrize("text", [r"(a+)+$", r"(?:a|a)*b", r"x(\s*\w*)*y", r"^(\d+,?)+$"])
def test_the_attack_finds_patterns_that_blow_up(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # each more character doubles the time: what takes this long at 22 takes seconds at 25
    monkeypatch.setattr(sys.modules[__name__], "SIZES", (18, 20, 22, 25))
    monkeypatch.setattr(sys.modules[__name__], "LIMIT_SECONDS", 0.05)
    assert attack(text)
    monkeypatch.setattr(sys.modules[__name__], "SIZES", (18, 20))
    assert attack(r"(?:a{1,20}b)+c") == ""
