"""Logs that mean harm: no crash, no slow pattern, nothing that steers a terminal, no secrets."""

from __future__ import annotations

import importlib
import io
import pkgutil
import re
import time
from typing import get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from dsdoctor import logs, packs
from dsdoctor.api import Signature
from dsdoctor.logs import (
    Source,
    diagnose,
    errors,
    line_reader,
    marks,
    plain_errors,
    reader,
    signatures_of,
)
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.line_reader import MOST_SLOW
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.pieces import LONGEST
from dsdoctor.logs.scan import Scanner
from dsdoctor.logs.verdict import judge
from dsdoctor.model import redact
from dsdoctor.report import terminal
from dsdoctor.report.diagnosis import lines, render
from tests.support.worst import worst_cases

SIGNATURES = signatures_of(packs.load(builtin_only=True))
KNOWN = [Known(*row) for row in SIGNATURES]
SCANNER = Scanner(KNOWN)
EXAMPLES = [text for one in KNOWN for text in one.signature.examples]
#: A search of one line takes well under a millisecond; this is for machines under load.
SEARCH_SECONDS = 0.4
MEGABYTE = 1_000_000


def engine_patterns() -> list[tuple[str, str]]:
    """Every pattern of the engine that sees a line of a log."""
    found = [(f"mark {name}", pattern) for name, (_, pattern) in marks.MARKS.items()]
    found += [(f"plain {name}", pattern.pattern) for pattern, name in plain_errors.PLAIN_ERRORS]
    names = [found.name for found in pkgutil.iter_modules(logs.__path__, "dsdoctor.logs.")]
    for module in (redact, *map(importlib.import_module, names)):
        found += [
            (f"{module.__name__}.{name}", value.pattern)
            for name, value in vars(module).items()
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
        ]
        found += [  # those that are compiled when they are first used
            (f"{module.__name__}.{name}", value().pattern)
            for name, value in vars(module).items()
            if hasattr(value, "cache_info")
            and get_type_hints(value.__wrapped__) == {"return": re.Pattern[str]}
        ]
    return found


ALL_PATTERNS = [*((one.condition, one.signature.pattern) for one in KNOWN), *engine_patterns()]
SLOWEST: dict[str, str] = {}


@pytest.mark.parametrize(
    ("name", "pattern"), ALL_PATTERNS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ALL_PATTERNS)]
)
def test_no_line_is_slow_for_any_pattern(name: str, pattern: str) -> None:
    """Lines are cut to LONGEST before a pattern sees them; here they are its own worst cases."""
    compiled = re.compile(pattern)
    for text in worst_cases(pattern, LONGEST):
        # again where it was slow, since programs beside this one empty its caches
        quick = any(_seconds(compiled, text) < SEARCH_SECONDS for _ in range(3))
        assert quick, text[:60]


def _seconds(compiled: re.Pattern[str], text: str) -> float:
    begun = time.thread_time()
    compiled.search(text)
    return time.thread_time() - begun


def _slowest(pattern: str) -> str:
    """Its slowest line, a literal in front so that the pattern is tried at all."""
    compiled = re.compile(pattern)
    # a quarter of the length tells which is the slowest; the texts come in the same order
    short = list(worst_cases(pattern, LONGEST // 4))
    number = max(range(len(short)), key=lambda place: _seconds(compiled, short[place]))
    text = list(worst_cases(pattern, LONGEST))[number]
    return f"{necessary(pattern)[0]} {text}"[: LONGEST - 1].replace("\n", " ")


@pytest.mark.parametrize("start", range(16))
def test_a_megabyte_of_its_own_worst_case(start: int) -> None:
    for one in KNOWN[start::16]:
        line = _slowest(one.signature.pattern).encode() + b"\n"
        data = line * (MEGABYTE // len(line) + 1)
        begun = time.thread_time()
        Scanner([one]).scan(Source(name="x", data=data))
        assert time.thread_time() - begun < 5, (one.condition, line[:80])


def test_the_worst_cases_find_a_bad_pattern() -> None:
    """The generator itself: it must make the classics slow."""
    for bad in (r"(?:a|aa)+$", r"x(?:\w+\s?)*$", r"^(a+)+b"):
        compiled = re.compile(bad)
        took = []
        for size in (14, 22):
            texts = [f"{text}!" for text in worst_cases(bad, size)]
            # the best of three: what a busy core adds to a time this short is many times as long
            took.append(min(sum(_seconds(compiled, text) for text in texts) for _ in range(3)))
        assert took[1] > 5 * took[0]


@pytest.mark.parametrize(("before", "heard"), [(MOST_SLOW - 1, True), (MOST_SLOW, False)])
def test_a_signature_that_is_slow_is_left_out(
    monkeypatch: pytest.MonkeyPatch, before: int, *, heard: bool
) -> None:
    """So many slow searches in vain, and the line that does match is not searched any more."""
    monkeypatch.setattr(line_reader, "SLOW", -1.0)
    signature = Signature(
        pattern=r"the pump has stopped.{0,999} for good",
        examples=("the pump has stopped for good",),
        not_examples=("the pump has stopped",),
    )
    one = KNOWN[0]._replace(signature=signature)
    pad = "x" * (LONGEST // 4)
    vain = "".join(f"the pump has stopped {number} {pad}\n" for number in range(before))
    text = vain + f"the pump has stopped {pad} for good\n"
    found = Scanner([one]).scan(Source(name="x", data=text.encode())).hits
    assert [hit.line for hit in found] == ([before + 1] if heard else [])


# -- the terminal --------------------------------------------------------------------------------

ATTACKS = (
    "\x1b]0;owned\x07",
    "\x1b[2J\x1b[H",
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m",
    "\x90q\x9c",
    "\x1bP1;1|x\x1b\\",
    "\u202eevil\u2066",
    "\u2028\u2029\x85",
    "[bold red]markup[/] [link=http://evil]x[/link]",
    "{0.__class__} {condition} %s %(x)s",
    "\r\x08\x08\x7f\x0b\x0c\x1c\x1d",
    '{"log": "\\u001b[2J\\u009b"}',
    "\udcff".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
)
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "line", ["RuntimeError: No CUDA GPUs are available {}", "KeyError: 'x{}'", "{}"]
)
def test_nothing_from_a_log_steers_the_terminal(attack: str, line: str) -> None:
    data = line.replace("{}", attack, 1).encode("utf-8", "replace")
    found = diagnose([Source(name=f"a{attack}.log", data=data)], SIGNATURES)
    assert not FORBIDDEN.search(render(found, width=60))
    console = Console(file=io.StringIO(), force_terminal=False, width=60)
    terminal.show(lines(found, width=60), console)
    shown = console.file
    assert isinstance(shown, io.StringIO)
    assert not FORBIDDEN.search(shown.getvalue())
    if "[bold red]" in attack and found.first_error is not None:
        assert "[bold red]" in re.sub(r"\s+", " ", shown.getvalue())


@pytest.mark.parametrize(
    "secret",
    [
        "hf_abcdefghijklmnopqrstuvwxyz0123",
        "ghp_abcdefghijklmnopqrstuvwx0123",
        "AKIAABCDEFGHIJKLMNOP",
        "https://bob:hunter2secret@host/x",
        "--wandb-api-key 0123456789abcdef0123456789abcdef01234567",
        "password=hunter2secret",
    ],
)
@pytest.mark.parametrize("pad", [0, 380, 1590])
def test_secrets_in_quoted_lines_are_masked(secret: str, pad: int) -> None:
    line = f"RuntimeError: No CUDA GPUs are available {'y' * pad} {secret} end"
    trace = f'Traceback (most recent call last):\n  File "/x/{secret}/t.py", line 1, in f\nKeyError: {secret}\n'
    for text in (line, trace, f"ChildFailedError {secret}"):
        shown = render(diagnose([Source(name="x", data=text.encode())], SIGNATURES), width=110)
        flat = re.sub(r"\s+", "", shown)
        core = (
            secret.split("@", maxsplit=1)[0]
            .rsplit("//", maxsplit=1)[-1]
            .rsplit(" ", maxsplit=1)[-1]
            .rsplit("=", maxsplit=1)[-1]
            .rsplit(":", maxsplit=1)[-1]
        )
        assert core not in flat


# -- fuzz ----------------------------------------------------------------------------------------

PIECE = st.one_of(
    st.sampled_from([text.encode() for text in EXAMPLES]),
    st.sampled_from([text.encode() for text in errors.ERROR_LITERALS]),
    st.sampled_from([text.encode("utf-8", "replace") for text in ATTACKS]),
    st.sampled_from([b"\n", b"\r", b"\r\n", b"\x00", b"\xff\xfe", b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"]),
    st.sampled_from([b"[rank3]: ", b"node-a: ", b'{"log":"', b'"}', b"May 06 07:08:09 h p[1]: ", b'  File "', b'", line 1, in f']),
    st.binary(max_size=40),
)  # fmt: skip


@given(pieces=st.lists(PIECE, max_size=40), again=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_no_input_crashes(pieces: list[bytes], again: int) -> None:
    check(b"".join(pieces) * again)


def check(data: bytes) -> None:
    """What holds for every input; the long fuzz run uses it too."""
    source = Source(name="x", data=data)
    found = judge([source], [SCANNER.scan(source)], expect=("zero3", "offload", "4gpus"))
    assert len(found.causes) <= 3
    assert (found.outcome.value == "cause") == bool(found.causes)
    for width in (24, 80):
        shown = render(found, width=width)
        assert not FORBIDDEN.search(shown)
        for row in shown.splitlines():  # commands and addresses are there to be copied
            copied = "`" in row or "://" in row
            assert len(row) <= (500 if copied else width), row
    total = sum(len(block) for block in reader.blocks(source))
    for cause in found.causes:
        for line in cause.evidence:
            assert 1 <= line.line <= found.lines <= total + 1
