"""Fixes without a command line: who calls `repair` brings the dialogue."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor import packs, repair
from dsdoctor.collect import Progress
from dsdoctor.errors import UsageError
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.fix_plan import Plan, PlanDocument, Reach
from tests.support.command import clean_environment

LOCK = "remove-stale-lock"


class Script:
    """A dialogue whose answers are known beforehand; keeps what it was told."""

    def __init__(self, *answers: bool, there: bool = True) -> None:
        self.answers = list(answers)
        self.there = there
        self.said: list[str] = []
        self.shown: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, plan: Plan, heading: str = "") -> None:
        self.shown.append(heading + plan.name)

    def show_rest(self, document: PlanDocument) -> None:
        self.said += [f"`{name}`: nothing to do" for name in document.nothing_to_do]

    def can_ask(self) -> bool:
        return self.there

    def confirm(self, question: str) -> bool:
        self.said.append(question)
        return self.answers.pop(0)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[Progress | None]:
        yield None


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock that a dead build left two hours ago, in the environment of this process."""
    for name in os.environ:
        monkeypatch.delenv(name)
    env = clean_environment(tmp_path, TORCH_EXTENSIONS_DIR=str(tmp_path / "cache"))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "cache" / "cpu_adam" / "lock"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    old = time.time() - 7200
    os.utime(path, (old, old))
    return path


def session(dialogue: repair.Dialogue) -> repair.Session:
    return repair.Session(
        dialogue,
        registry=packs.load(),
        request=repair.request_of((LOCK,), Reach.ENV, in_place=False),
        needs=RunNeeds(quick=True),
        python=None,
        timeout=None,
        checks_dir=(),
    )


def test_who_says_no_is_shown_the_plan_and_keeps_the_lock(lock: Path) -> None:
    script = Script(False)
    run = session(script)
    document = run.plan()
    assert run.apply(document, ask=True) is repair.Ending.SHOWN
    assert (script.shown, document.outcomes) == ([LOCK], {LOCK: "shown"})
    assert script.said[0] == "apply this plan?"
    assert lock.exists()


def test_who_says_yes_can_have_it_back(lock: Path) -> None:
    script = Script(True)
    run = session(script)
    document = run.plan()
    assert run.apply(document, ask=True) is repair.Ending.DONE
    assert (lock.exists(), document.outcomes) == (False, {LOCK: "applied"})

    nobody = Script(there=False)
    assert repair.undo_last(nobody, ask=True) == (repair.Ending.SHOWN, None)
    assert "without a terminal" in nobody.said[-1]
    assert repair.undo_last(Script(False), ask=True) == (repair.Ending.SHOWN, None)
    assert not lock.exists()
    ending, undone = repair.undo_last(Script(True), ask=True)
    assert (ending, undone and undone.outcomes) == (repair.Ending.DONE, {LOCK: "undone"})
    assert lock.exists()
    assert repair.undo_last(Script(), ask=True) == (repair.Ending.DONE, PlanDocument())


def test_what_is_in_order_already_ends_as_done(lock: Path) -> None:
    lock.unlink()
    script = Script()
    run = session(script)
    document = run.plan()
    assert run.apply(document, ask=True) is repair.Ending.DONE
    assert (script.shown, document.nothing_to_do) == ([], [LOCK])


def test_a_fix_that_does_not_exist_is_misuse(lock: Path) -> None:
    run = session(Script())
    run.request = repair.request_of(("make-it-work",), Reach.ENV, in_place=False)
    with pytest.raises(UsageError, match="make-it-work"):
        run.plan()
    assert lock.exists()
