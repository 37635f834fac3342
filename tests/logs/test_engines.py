"""The engines that find literals: the same answer as a plain search, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor import packs
from dsdoctor.logs import Source, anchors, signatures_of
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.scan import Scanner
from dsdoctor.logs.verdict import judge

KNOWN = [Known(*row) for row in signatures_of(packs.load(builtin_only=True))]
REAL = sorted({text for one in KNOWN for text in necessary(one.signature.pattern)})
EXAMPLES = [text for one in KNOWN for text in one.signature.examples]
ENGINES = sorted(anchors.ENGINES)


def plain(data: bytes, literals: list[str]) -> anchors.Hot:
    """What the engines must answer, the slow way."""
    hot: anchors.Hot = {}
    start = 0
    for line in data.split(b"\n"):
        found = {text for text in literals if text.encode() in line}
        if found:
            hot[start] = found
        start += len(line) + 1
    return hot


#: Few letters, so that literals overlap, touch and contain each other.
LITERAL = st.text(alphabet="aAb1 _'(é", min_size=1, max_size=5)
NOISE = st.binary(max_size=12)


@st.composite
def text_with_literals(draw: st.DrawFn) -> tuple[list[str], list[bytes]]:
    literals = draw(st.lists(LITERAL, min_size=1, max_size=8, unique=True))
    piece = st.one_of(
        NOISE,
        st.sampled_from([text.encode() for text in literals]),
        st.sampled_from([b"\n", b"\r", b" ", b"a", b"A1"]),
    )
    return literals, [b"".join(p) for p in draw(st.lists(st.lists(piece, max_size=12), max_size=4))]


@pytest.mark.parametrize("engine", ENGINES)
@given(case=text_with_literals())
@settings(max_examples=150, deadline=None)
def test_every_literal_of_every_line(engine: str, case: tuple[list[str], list[bytes]]) -> None:
    literals, blocks = case
    found = anchors.matcher(literals, engine)
    for raw in blocks:  # one matcher for many blocks: what it has learned must not mislead it
        block = raw.replace(b"\0", b"")
        assert found.find(block) == plain(block, literals)


@given(case=text_with_literals())
@settings(max_examples=150, deadline=None)
def test_every_literal_of_a_block_that_is_read_as_numbers(
    case: tuple[list[str], list[bytes]],
) -> None:
    literals, blocks = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "TINY", 0)
        for raw in blocks:
            block = raw.replace(b"\0", b"")
            assert anchors.GramMatcher(literals).find(block) == plain(block, literals)


@given(
    lines=st.lists(
        st.one_of(
            st.sampled_from(EXAMPLES).map(str.encode),
            st.sampled_from(REAL).map(str.encode),
            st.tuples(NOISE, st.sampled_from(REAL), NOISE).map(
                lambda t: t[0] + t[1].encode() + t[2]
            ),
            NOISE,
        ),
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_the_same_diagnosis_from_every_engine(lines: list[bytes]) -> None:
    source = Source(name="x", data=b"\n".join(lines))
    answers = [judge([source], [scanner.scan(source)]) for scanner in SCANNERS]
    assert all(answer == answers[0] for answer in answers)


SCANNERS = [Scanner(KNOWN, engine) for engine in ENGINES]


def test_words_are_forgotten_and_learned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "MOST_WORDS", 20)
    found = anchors.WordMatcher(["disk full", "killed"])
    for turn in range(50):
        noise = " ".join(f"w{chr(97 + turn % 26)}{chr(97 + n)}" for n in range(9))
        assert found.find(f"{noise}\ndisk full\n".encode()) == {len(noise) + 1: {"disk full"}}


def test_without_the_library_pure_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hyperscan", None)
    assert anchors.fastest(["x"]).name == "words"
    with pytest.raises(ImportError):
        anchors.matcher(["x"], "hyperscan")


@pytest.mark.parametrize("one", KNOWN, ids=[f"{n}-{one.condition}" for n, one in enumerate(KNOWN)])
def test_what_is_searched_for_stands_in_every_example(one: Known) -> None:
    texts = necessary(one.signature.pattern)
    for example in one.signature.examples:
        assert not texts or any(text in example for text in texts)


def test_the_engine_grows_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "HyperscanMatcher", anchors.WordMatcher)
    found = anchors.matcher(["disk full"])
    line = b"step 1 of 9\n"
    seen = []
    for block in (b"", line * 30_000, line * 100_000):
        assert found.find(block + b"disk full\n") == {len(block): {"disk full"}}
        seen.append(found.name)
    assert seen == ["grams", "words", "words"]


#: Lines of healthy runs, of which a log may hold millions.
HEALTHY = (
    "{'loss': 2.3113, 'grad_norm': 1.25, 'learning_rate': 1.9e-05, 'epoch': 0.37}",
    "step 120/9999 | loss 2.31 | lr 1.9e-05 | async prefetch on | 3.4 it/s | eta 01:02:03",
    " 12%|████      | 1203/9999 [10:02<1:14:02,  1.98it/s, loss=2.31, mem=40.1G]",
    "2026-01-05 08:00:00 | INFO | trainer | saving checkpoint shard 3 of 8, layer norm in bf16",
    "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-4], mom=[[0.9, 0.95]]",
    "[INFO] [utils.py:782:see_memory_usage] MA 4.0 GB  Max_MA 6 GB  CA 9 GB  Max_CA 9 GB",
    "[INFO] [timer.py:264:stop] epoch=0/micro_step=4, CurrSamplesPerSec=9.1, MemAllocated=1.0GB",
    "node-3:12:34 [2] NCCL INFO Channel 01/32 : 0[0] -> 1[1] via P2P/CUMEM/read",
    "optimizer.zero_grad took 0.1 ms; timestamps of 8-bit states are automatic and exclusive",
)


@pytest.mark.parametrize("engine", ENGINES)
def test_lines_of_healthy_runs_hold_nothing_that_is_searched_for(engine: str) -> None:
    """Each such line would be decoded and tried, which halves the speed on a long log."""
    assert not Scanner(KNOWN, engine).hot("\n".join(HEALTHY).encode())[0]


def test_a_line_after_a_kept_block_is_told_once() -> None:
    quiet = b"x" * 99 + b"\n"
    data = quiet * 20_000 + b"CUDA out of memory. Tried to allocate 2.00 GiB\n" + quiet * 20_000
    for engine in ENGINES:
        scan = Scanner(KNOWN, engine).scan(Source(name="x", data=data))
        assert {hit.line for hit in scan.hits} == {20_001}
        assert scan.lines == 40_001
