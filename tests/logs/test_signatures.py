"""Every signature: what it is searched by, its examples and near-misses, and its cost."""

from __future__ import annotations

import ast
import collections
import json
import re
import time
from pathlib import Path

import pytest

import dsdoctor
import dsdoctor_checks
from dsdoctor import packs
from dsdoctor.logs import Row, signatures_of
from dsdoctor.logs.anchors import COMMON
from dsdoctor.logs.necessary import derived, necessary
from dsdoctor.logs.scan import Scanner
from tests.support.alternatives import untried

ROWS = signatures_of(packs.load(builtin_only=True))
SCANNER = Scanner((), boilerplate=ROWS.boilerplate, own=ROWS.own)
IDS = [f"{row[0]}-{number}" for number, row in enumerate(ROWS)]
#: A pattern of more says more than one message.
MOST_ALTERNATIVES = 5
LONGEST = 360


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_examples_and_near_misses(row: Row) -> None:
    signature = row[4]
    pattern = re.compile(signature.pattern)
    literals = necessary(signature.pattern)
    assert signature.examples
    for example in signature.examples:
        assert any(literal in example for literal in literals), example
        assert pattern.search(example), example
    for near in signature.not_examples:
        assert any(literal in near for literal in literals), f"never reaches the pattern: {near}"
        assert not pattern.search(near), near
    if not signature.not_examples:
        assert all(pattern.search(literal) for literal in literals), "needs a near-miss"


def test_every_signature_says_who_words_its_message() -> None:
    """A product with its file, or whose checks word it so; nobody else's words are evidence."""
    assert [name for name, row in zip(IDS, ROWS, strict=True) if not row[4].source] == []


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_each_alternative_has_an_example(row: Row) -> None:
    assert untried(row[4].pattern, row[4].examples) == []


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_literal_is_derived_that_is_worth_searching_for(row: Row) -> None:
    literals = necessary(row[4].pattern)
    assert literals
    assert min(map(len, literals)) >= 4
    assert not [text for text in literals if text.strip().encode() in COMMON]


def test_what_was_derived_beforehand_is_what_would_be_derived() -> None:
    """`python docs/generate.py` writes it; what is lacking is derived anew at each start."""
    rows = json.loads((Path(dsdoctor_checks.__file__).parent / "literals.json").read_text())
    patterns = {row[4].pattern for row in ROWS}
    wrong = [one for one in patterns & rows.keys() if tuple(rows[one]) != derived(one)]
    assert wrong == []
    assert len(patterns & rows.keys()) > 0.9 * len(patterns)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_one_signature_is_one_message(row: Row) -> None:
    depth, alternatives = 0, 1
    for mark in re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|[()|]", row[4].pattern):
        depth += {"(": 1, ")": -1}.get(mark, 0)
        alternatives += mark == "|" and depth == 0
    assert alternatives <= MOST_ALTERNATIVES
    assert len(row[4].pattern) <= LONGEST


def test_no_two_conditions_claim_one_message() -> None:
    owners: dict[object, set[str]] = collections.defaultdict(set)
    for name, *_, s in ROWS:
        context = (s.near, s.not_near, s.requires, s.unless, s.final)
        owners[s.pattern, context].add(name)
    assert [(key, names) for key, names in owners.items() if len(names) > 1] == []


def test_no_condition_says_one_message_twice() -> None:
    counts = collections.Counter((name, signature) for name, *_, signature in ROWS)
    assert [key for key, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_no_pattern_is_slow(row: Row) -> None:
    signature = row[4]
    pattern = re.compile(signature.pattern)
    literal = necessary(signature.pattern)[0]
    # patterns see at most scan.LONGEST characters; a megabyte is far beyond that
    for text in ("a" * 1_000_000, " " * 1_000_000):
        start = time.thread_time()
        pattern.search(text)
        assert time.thread_time() - start < 1.0
    text = ((literal + " ") * 4000)[:4000]
    start = time.thread_time()
    for _ in range(10):
        pattern.search(text)
    assert time.thread_time() - start < 1.0


def test_conditions_have_a_page() -> None:
    for name, title, hint, _, _ in ROWS:
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name)
        assert title
        assert hint


#: Modules whose constants are words of other programs, which they look for.
OTHERS_WORDS = ("logs/", "paste/", "probes/", "fixes/error_hints.py", "guard.py")


def _constants(tree: ast.Module) -> list[str]:
    """Texts of a module that are neither docstrings nor parts of others."""
    parts = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            node.values
            if isinstance(node, ast.JoinedStr)
            else [node.value]
            if isinstance(node, ast.Expr)
            else []
        )
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    ]


def _own_sentences() -> list[str]:
    """Titles, hints and the texts of the engine."""
    found = [text for row in ROWS for text in (row[1], row[2])]
    root = Path(dsdoctor.__file__).parent
    # `dsdoctor run` writes what it measured beside the log, as evidence to be read
    files = (path for path in root.rglob("*.py") if root / "run" not in path.parents)
    for path in sorted(files):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        found += [
            "".join(str(p.value) if isinstance(p, ast.Constant) else "7" for p in node.values)
            for node in calls
        ]
        if not path.relative_to(root).as_posix().startswith(OTHERS_WORDS):
            found += _constants(tree)
    return [text for text in found if " " in text]


def test_no_signature_matches_a_sentence_of_dsdoctor() -> None:
    sentences = _own_sentences()
    assert len(sentences) > 2000
    hits = [
        (name, text)
        for name, _, _, _, signature in ROWS
        for text in sentences
        if any(literal in text for literal in necessary(signature.pattern))
        and not signature.near + signature.requires
        and re.search(signature.pattern, SCANNER.bare(text))
    ]
    assert hits == []
