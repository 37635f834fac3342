"""Packs are code of one's own choice: their mistakes are named, bounded, and never end dsdoctor."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from dsdoctor.judge import MOST_FINDINGS
from dsdoctor.packs import containment, printed
from tests.support.command import Outcome, clean_environment, dsdoctor

pytestmark = pytest.mark.any_user

SECRET = "hf_" + "a1B2" * 8
HEAD = '''
"""Something of this site."""
from __future__ import annotations
from dsdoctor.api import *
CONDITION = Condition("acme-x", id="ACME001", scope=Scope.NODE, since="1")
'''
CHECK = "@check(CONDITION)\ndef judge(run: RunNeeds) -> Iterator[Finding]:\n"


def folder_with(tmp_path: Path, text: str, name: str = "acme_x.py") -> Path:
    folder = tmp_path / "config" / "dsdoctor" / "checks.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(text))
    return folder


def command(tmp_path: Path, text: str, *words: str) -> Outcome:
    """What a command does that loads the text as a pack of the user."""
    folder_with(tmp_path, text)
    env = clean_environment(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))
    done = dsdoctor(*words, env=env, cwd=tmp_path, timeout=120)
    assert "Traceback" not in done.err, done.err
    assert "internal error" not in done.err, done.err
    return done


def judged(tmp_path: Path, text: str) -> Outcome:
    """What `check` says of the pack's condition."""
    return command(tmp_path, text, "check", "--select", "acme-x", "--quick", "--format", "json")


IMPORTS = {
    "a secret and escapes": f'raise ValueError("\\x1b]52;c;eA==\\x07 HF_TOKEN={SECRET}\\n2nd")',
    "the end of the process": "raise SystemExit(0)",
    "an end by another's hand": "import sys\nsys.exit('good bye')",
    "an interruption": "raise KeyboardInterrupt",
    "a generator's end": "raise GeneratorExit",
    "recursion": "def f():\n    f()\nf()",
    "an error without words": (
        "class E(Exception):\n    def __str__(self):\n        raise SystemError\nraise E"
    ),
    "no condition": HEAD + 'CONDITION = Condition(5, id="ACME001", scope=Scope.NODE, since="1")',
    "a scope that is text": (
        HEAD + 'CONDITION = Condition("acme-x", id="ACME001", scope="node", since="1")'
    ),
    "fixes that are text": (
        HEAD
        + 'CONDITION = Condition("acme-x", id="ACME001", scope=Scope.NODE, since="1", fixes="y")'
    ),
    "signatures that are text": HEAD + 'SIGNATURES = ("no signature",)',
    "a number of signatures": HEAD + "SIGNATURES = 5",
    "examples that are text": HEAD + 'SIGNATURES = (Signature("x", examples="xyz"),)',
    "too many signatures": HEAD + 'SIGNATURES = (Signature("x", examples=("x",)),) * 2_000_000',
    "sentences of nothing": HEAD + "BOILERPLATE = (None,)",
    "a fact of code": HEAD + "class AcmeX(Fact, frozen=True, kw_only=True):\n    x: Iterator[int]",
}


@pytest.mark.parametrize("how", IMPORTS)
def test_a_pack_that_cannot_be_used_is_one_line(tmp_path: Path, how: str) -> None:
    done = command(tmp_path, IMPORTS[how], "explain", "gpu-lost")
    said = done.err
    assert done.status == 0, said
    assert "gpu-lost" in done.out
    assert said.count("\n") == 1
    assert "acme_x.py` is ignored: " in said
    assert SECRET not in said
    assert all(letter.isprintable() for letter in said[:-1])


def test_a_pack_whose_import_does_not_end_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dsdoctor import packs

    left = signal.setitimer(signal.ITIMER_REAL, 0)  # pytest-timeout's alarm
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    monkeypatch.setattr("dsdoctor.packs.loading.LOAD_SECONDS", 0.5)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder_with(tmp_path, "while True:\n    pass\n")
    try:
        registry = packs.load()
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *left)
    assert [problem.message for problem in registry.problems] == ["it was not loaded within 0.5 s"]


ANSWERS = {
    "nothing": ("    return None\n", "it returned `NoneType`, expected findings"),
    "no rows": ("    return fail('x')\n", "it returned `Finding`, expected findings"),
    "text": ("    yield 'broken'\n", "it gave `str`, expected findings"),
    "a mapping": ("    return {'status': 'fail'}\n", "it gave `str`, expected findings"),
    "no status": (
        "    yield Finding(status='fail', message='x')\n", "`status` of a finding is `str`",
    ),
    "no words": ("    yield fail(b'x')\n", "`message` of a finding is `bytes`, expected text"),
    "no hint": ("    yield fail('x', hint=None)\n", "`hint` of a finding is `NoneType`"),
    "the end": ("    raise SystemExit(0)\n    yield ok()\n", "SystemExit: 0"),
    "Ctrl-C": ("    raise KeyboardInterrupt\n    yield ok()\n", "KeyboardInterrupt: no message"),
    "recursion": ("    def f():\n        f()\n    f()\n    yield ok()\n", "RecursionError: "),
    "a secret": (
        f"    raise OSError('https://u:{SECRET}@h/\\x1b[2J')\n    yield ok()\n", "OSError: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ANSWERS)
def test_what_is_no_answer_names_the_pack_and_the_check(tmp_path: Path, how: str) -> None:
    body, words = ANSWERS[how]
    done = judged(tmp_path, HEAD + CHECK + body)
    assert (done.status, done.err) == (3, "")  # inconclusive
    (found,) = done.report["findings"]
    assert (found["status"], found["condition"]) == ("crash", "acme-x")
    message = found["message"]
    assert message.startswith("the check of pack `")
    assert "acme_x.py` crashed: " in message
    assert words in message
    assert SECRET not in message
    assert message.isprintable()


LARGE = {
    "findings": "    for number in range(2_000_000):\n        yield fail(str(number))\n",
    "evidence": "    yield fail('x', rows=list(range(2_000_000)))\n",
    "a message": "    yield fail('x' * 20_000_000)\n",
    "what JSON has no word for": "    yield fail('x', rows=object())\n",
    "what holds itself": "    rows = []\n    rows.append(rows)\n    yield fail('x', rows=rows)\n",
}


@pytest.mark.parametrize("how", LARGE)
def test_large_answers_are_bounded_and_stay_failures(tmp_path: Path, how: str) -> None:
    done = judged(tmp_path, HEAD + CHECK + LARGE[how])
    assert (done.status, done.err) == (1, "")
    assert done.seconds < 60
    text = done.out
    assert len(text) < 1 << 20
    assert done.report["findings"][0]["status"] == "fail"
    marks = {
        "findings": f"further findings of this check are left out (limit: {MOST_FINDINGS})",
        "evidence": "bytes of evidence (limit: ",
        "a message": "… (20000000 characters)",
        "what JSON has no word for": "unusable",
        "what holds itself": "unusable",
    }
    assert marks[how] in text


PROBES = {
    "the end": ("    raise SystemExit(0)\n", "it tried to end dsdoctor (SystemExit: 0)"),
    "nothing": ("    return None\n", "gave `NoneType`, expected `AcmeX` or `Missing`"),
    "too much": ("    return AcmeX(), AcmeX()\n", "gave 2 values, expected 1"),
    "another type": ("    return AcmeX(rows=5)\n", "gave a `AcmeX` that cannot be used ("),
    "two million": ("    return AcmeX(rows=('word',) * 2_000_000)\n", "bytes, more than "),
}


@pytest.mark.parametrize("how", PROBES)
def test_what_a_probe_gives_is_judged(tmp_path: Path, how: str) -> None:
    body, words = PROBES[how]
    text = HEAD + (
        "class AcmeX(Fact, frozen=True, kw_only=True):\n    rows: tuple[str, ...] = ()\n"
        f"@probe\ndef acme_x(host: Host) -> AcmeX:\n{body}"
        "@check(CONDITION)\ndef judge(x: AcmeX) -> Iterator[Finding]:\n    yield ok()\n"
    )
    done = judged(tmp_path, text)
    assert (done.status, done.err) == (3, "")
    assert done.seconds < 60
    (found,) = done.report["findings"]
    assert found["status"] == "unknown"
    assert "probe `acme_x` " in found["message"]
    assert words in found["message"]


FIXES = {
    "the end": ("    raise SystemExit(0)\n", "it tried to end dsdoctor (SystemExit: 0)"),
    "text": ("    return 'rm -rf /'\n", "`str`, expected `Plan`, `Impossible` or `None`"),
    "steps of text": (
        "    return Plan(name='acme-y', title='x', steps=('rm',))\n", "it returned no plan: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", FIXES)
def test_what_a_fix_gives_is_judged(tmp_path: Path, how: str) -> None:
    body, words = FIXES[how]
    text = HEAD + f"@fix('acme-y', reach=Reach.ENV)\ndef plan(run: RunNeeds) -> Plan:\n{body}"
    done = command(tmp_path, text, "fix", "acme-y", "--dry-run")
    assert done.status == 1, done
    assert words in done.out + done.err


PROBE = """class AcmeX(Fact, frozen=True, kw_only=True):
    rows: int = 0
@probe
def acme_x(host: Host) -> AcmeX:
    {body}
    return AcmeX()
@check(CONDITION)
def judge(x: AcmeX) -> Iterator[Finding]:
    yield ok()
"""
PRINTS = {
    "print": "print({text!r})",
    "stderr": "import sys; sys.stderr.write({text!r} + chr(10))",
    "bytes": "import sys; sys.stdout.buffer.write({text!r}.encode() + b'\\n')",
    "a warning": "import warnings; warnings.warn({text!r})",
    "a log": "import logging; logging.warning({text!r})",
    "no line's end": "print({text!r}, end='')",
    "another stdout": "import sys, io; sys.stdout = io.StringIO(); sys.stderr.write({text!r})",
    "a closed stdout": "import sys; print({text!r}); sys.stdout.close()",
}
WORDS = f"said \x1b]52;c;eA==\x07 HF_TOKEN={SECRET}\rand \x1b[2J more"


@pytest.mark.parametrize("where", ["import", "probe", "check"])
@pytest.mark.parametrize("how", PRINTS)
def test_what_a_pack_prints_is_its_own_harmless_line(tmp_path: Path, how: str, where: str) -> None:
    line = PRINTS[how].format(text=WORDS)
    text = {
        "import": f"{HEAD}{line}\n{CHECK}    yield ok()\n",
        "probe": HEAD + PROBE.format(body=line),
        "check": f"{HEAD}{CHECK}    {line}\n    yield ok()\n",
    }[where]
    done = judged(tmp_path, text)
    (found,) = done.report["findings"]  # stdout is the report alone
    assert found["status"] == "ok"
    assert SECRET not in done.err
    lines = done.err.splitlines()
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("dsdoctor: pack `") for line in lines)
    assert any("acme_x.py` prints: " in line and "said " in line for line in lines)
    assert any("more" in line for line in lines)


def test_what_programs_of_a_pack_print_is_no_part_of_a_report(tmp_path: Path) -> None:
    line = "__import__('os').system('echo a child')"
    done = judged(tmp_path, f"{HEAD}{line}\n{CHECK}    {line}\n    yield ok()\n")
    assert done.report["findings"][0]["status"] == "ok"
    assert done.err == "a child\na child\n"


def test_a_flood_of_a_pack_is_bounded(tmp_path: Path) -> None:
    flood = "for number in range(2_000):\n        print('x' * 5_000)\n"
    done = judged(tmp_path, f"{HEAD}{CHECK}    {flood}    print('y', end='')\n    yield ok()\n")
    assert done.report["findings"][0]["status"] == "ok"
    assert len(done.err.splitlines()) == printed.MOST_LINES + 1
    assert len(done.err) < 20_000
    assert done.err.endswith("acme_x.py` prints more, which is left out\n")


def test_other_threads_print_as_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    began, end = threading.Event(), threading.Event()

    def work() -> None:
        with containment.contained("acme"):
            began.set()
            end.wait(60)
            print("of the pack")

    thread = threading.Thread(target=work)
    before = sys.stdout
    thread.start()
    assert began.wait(60)
    print("a report")
    end.set()
    thread.join(60)
    assert sys.stdout is before
    said = capsys.readouterr()
    assert said.out == "a report\n"
    assert said.err == "dsdoctor: pack `acme` prints: of the pack\n"


def test_ctrl_c_in_the_code_of_a_pack_is_ctrl_c() -> None:
    def pressed() -> None:
        with containment.contained():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

    def raised() -> None:
        with containment.contained():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pressed()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(containment.PackCodeError):
            raised()
        # of a program that uses dsdoctor: its own handler may raise it
        signal.signal(signal.SIGINT, lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            raised()
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_thread_of_a_pack_ends_silently() -> None:
    found: list[BaseException] = []

    def work() -> None:
        try:
            with containment.contained():
                raise SystemExit(0)
        except containment.PackCodeError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert "SystemExit: 0" in str(found[0])


def test_a_file_that_takes_minutes_to_compile_is_not_a_pack(tmp_path: Path) -> None:
    done = command(tmp_path, "x = 1\n" * 200_000, "explain", "gpu-lost")
    assert done.status == 0
    assert "has more than 1048576 bytes" in done.err
    assert len(done.err.splitlines()) == 1
