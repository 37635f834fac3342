"""What looks like a secret is masked wherever it stands; what does not, stays."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.logs.necessary import derived
from dsdoctor.model import masking
from dsdoctor.model.masking import MASK, mask, mask_tree, mask_value, mask_words
from tests.support.command import clean_environment, dsdoctor
from tests.support.planted import LINES, NAMES, ORDINARY, PLANTED, Planted

TEXTS = (*PLANTED, *LINES)
by_kind = pytest.mark.parametrize("planted", TEXTS, ids=[one.kind for one in TEXTS])


def test_there_are_many_kinds() -> None:
    assert len({planted.kind for planted in PLANTED}) >= 60


@by_kind
@pytest.mark.parametrize("frame", ["{}", "[rank3]: ValueError: {}", "2026-01-02 03:04:05 {} end"])
def test_it_is_masked_in_text(planted: Planted, frame: str) -> None:
    masked = mask(frame.format(planted.line))
    assert planted.secret not in masked
    assert MASK in masked
    assert mask(masked) == masked


@by_kind
def test_it_is_masked_in_a_document(planted: Planted) -> None:
    tree = {"argv": ["env", planted.line], "nested": [{"text": planted.line}], planted.line: 1}
    assert planted.secret not in json.dumps(mask_tree(tree))
    # a document within a text, as logs quote it
    assert planted.secret not in mask(json.dumps({"text": planted.line}, ensure_ascii=False))


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text) == text
    assert mask_tree({"a": [text]}) == {"a": [text]}
    for word in text.split():
        assert mask(word) == word


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            n.line.partition("=")[0].split()[-1]
            for n in NAMES
            if n.line.count("=") == 1 and n.line.isprintable() and "[" not in n.line
        }
    ),
)
def test_a_secret_stands_apart_from_its_name(name: str) -> None:
    assert mask_tree({name: "hunter2x"}) == {name: MASK}
    assert mask_tree([{"name": name, "value": "hunter2x"}])[0]["value"] == MASK
    assert mask_words([f"--{name.lstrip('-')}", "hunter2x"])[1] == MASK


def test_an_ordinary_value_stands_apart_from_its_name() -> None:
    for name, value in (
        ("NCCL_DEBUG", "INFO"), ("key", "zero_optimization.stage"), ("pad_token", "<pad>"),
        ("tokenizer", "gpt2"), ("path", "/etc/deepspeed"), ("PWD", "/home/ann"),
    ):  # fmt: skip
        assert mask_value(name, value) == value
    assert mask_words(["torchrun", "--max-tokens", "4096", "--key", "3"])[2:] == [
        "4096",
        "--key",
        "3",
    ]
    assert mask_tree({"passwords": 3, "tokens": [1, 2], "password": 1234}) == {
        "passwords": 3, "tokens": [1, 2], "password": MASK,
    }  # fmt: skip


#: Repeated without end, each of these drives a careless pattern into quadratic time.
UNITS = (
    "a", "-", "key", "key ", "token=", "--token ", "-a", "password: ", "://", "://a:", "eyJ", "-eyJ",
    "eyJaaaaa.", "sk-", "sk-a", "hf_", "xoxb-", "glpat-", "basic ", "bearer a", "curl ", "curl -u ",
    "login a ", "?sig", "&token=", "-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA ", "cookie: ", "SG.",
    "\\", '"', "' ", "authorization: ", "KEY_", "aA1", "pass", "secret.", "0", "[masked]", "api_key='",
    "\n", "=", ": ", "é", "name: a\n value: ", '("key", ', "<key>", "</", "setenv a ", "docker login ",
    "wandb login a ", "proxy=a:", "/t/a-", "mysql ", "redis-cli -a", "key: |\n ", "%22", "'\"'\"'",
    "\\n", "eyJhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh ", 'token="\\', "machine a ", "Private-Lines: 1 ",
    "$6$", "authorization: digest ", "cookie: =", "echo a | ", "\u5bc6\u7801", "key \x1b[",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_masking_takes_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = 1e9
        for _ in range(3):
            begun = time.process_time()
            mask(text)
            best = min(best, time.process_time() - begun)
        return best

    short, long = seconds(8_000), seconds(64_000)
    # eight times the text: linear is eight times the time, quadratic sixty-four
    assert long < max(24 * short, 0.05)


#: Among them signs that count as k, s and i where a pattern ignores case (Kelvin, long s, dotless i).
LETTERS = (*"aAkKsSiI:_-./x1", "\u212a", "\u017f", "\u0131", "\u00e9", "hf_", "GL")


@given(st.lists(st.sampled_from(LETTERS)))
def test_the_quick_look_for_clues_sees_what_the_slow_one_sees(pieces: list[str]) -> None:
    text = "".join(pieces)
    slow = re.compile("|".join(map(re.escape, masking._CLUES)), re.IGNORECASE)
    assert masking._is_suspicious(text) == (slow.search(text) is not None)


def test_no_pattern_fits_a_text_without_the_parts_that_it_is_looked_up_by() -> None:
    for parts, pattern, *_ in masking._SECRETS:
        if pattern in (masking._PARAMETER, masking._COMMAND, masking._AUTHORITY):
            continue
        needed = derived(pattern)
        assert needed
        for text in needed:
            assert any(part in text.lower() for part in parts), text
    # what these begin with is one of several characters, or a word among others
    assert masking._PARAMETER.startswith("([?&;]")
    assert "{6,80}@(" in masking._AUTHORITY
    programs = "|".join(sorted(masking._PROGRAMS.split(), key=len, reverse=True))
    for part in masking._COMMAND.split(r"|(?<![\w-])("):
        assert re.match(rf"(?:\(\?<!\[\\w-\]\)\()?(?:\(\?:)?(?:{programs})", part), part


def test_what_follows_a_secret_in_a_secret_is_hidden_too() -> None:
    """A path of a Slack hook whose first part is a token of another kind."""
    token = "hf" + "_abcdefghijklmnopqrst"
    assert mask(f"https://hooks.slack.com/{token}/Zk2Xw9Rt4V") == f"https://hooks.slack.com/{MASK}"


#: Beginnings of secrets, and what in front of them is part of a longer word.
BEGINNINGS = (
    "hf_abcdefghijklmnopqrst", "gsk_", "rsk_live_", "rk_live_abcdefghijklmnop1", "glpat-", "glglpat-",
    "abcdefghijklmnopqrst1", "AKIA", "ABCDEFGHIJKLMNOP", "12345678:AA", "x" * 33, "sk-", "ta", "SG.",
    "eyJ", "hbGciOi.", "xoxb-", "hvs.", "dop_v1_", "0123456789abcdef" * 2, "-----BEGIN ",
    "PRIVATE KEY-----", "-----END PRIVATE KEY-----", "shpat_", "proxy-", "authorization", "set-",
    "cookie", ":", "bearer", "basic", "=", "curl", "sshpass", "login", " -p ", " -u ", " password ", " ",
    "\n", "a", "1", "-", "_", "'", "bob", "wandb_v1_", "npm_", "r8_", "lin_api_", "age-secret-key-1",
)  # fmt: skip


@given(st.lists(st.sampled_from(BEGINNINGS), max_size=12))
def test_what_a_pattern_finds_does_not_depend_on_where_it_is_looked_for(pieces: list[str]) -> None:
    """Where a match can begin is looked up first: no beginning is forgotten in that."""
    for text in ("".join(pieces), "".join(pieces).upper()):
        small = masking.lower(text)
        for _, pattern, begins, by, exact in masking._SECRETS:
            where = text if exact else small
            looked_for = re.compile(pattern)
            everywhere = masking._substitute(text, looked_for, None, by, where)
            if begins is not None:
                found = masking._substitute(text, looked_for, re.compile(begins), by, where)
                assert found == everywhere, pattern


@by_kind
def test_it_is_masked_in_a_long_text(planted: Planted) -> None:
    """A longer text is searched in another way."""
    text = f"step 1\n{planted.line}\n" + "loss 2.5\n" * (masking._SHORT // 9)
    assert planted.secret not in mask(text)


@pytest.mark.parametrize(
    "text", ["to\u212aEN=x", "pa\u017f\u017f", "AKIA", "akia", "SG.", "GLpat-"]
)
def test_a_clue_counts_in_letters_of_either_case(text: str) -> None:
    assert masking._is_suspicious(text)


@pytest.mark.any_user
@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(
            ("recommend", "--model", "gpt2", "--hostfile", "hosts"), id="a hostfile of recommend"
        ),
        pytest.param(("smoke", "--hostfile", "hosts"), id="a hostfile of smoke"),
        pytest.param(("check", "--select", "SECRET"), id="a selection"),
        pytest.param(("check", "--config", "SECRET"), id="a config"),
        pytest.param(("lint", "SECRET.json"), id="a file to lint"),
        pytest.param(("SECRET",), id="a command"),
        pytest.param(
            ("snapshot", "-o", "x", "--", "deepspeed", "t.py", "--hf_token", "SECRET"),
            id="an option of the job",
        ),
    ],
)
def test_what_is_wrong_is_said_without_the_secret_in_it(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    """An error quotes a line of a file, or the words of the command, and ends in the log of CI."""
    secret = "ghp_" + "fb2b7fce0940161406a6" + "aa3e4d8b4aa61040"
    (tmp_path / "hosts").write_text(f"n1 slots=8\nn2 slots=x # {secret}\n")
    words = [word.replace("SECRET", secret) for word in argv]
    done = dsdoctor(*words, env=clean_environment(tmp_path), cwd=tmp_path)
    assert (done.status, done.err.count("\n")) == (2, 1), done
    assert secret not in done.out + done.err
