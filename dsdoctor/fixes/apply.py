"""The one module of the fixes that acts: carries out a plan, step by step, and proves it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from dsdoctor import files, process
from dsdoctor.fixes import error_hints, inventory
from dsdoctor.fixes.journal import Journal
from dsdoctor.host import HostError, LocalHost
from dsdoctor.host import account as accounts
from dsdoctor.host.own_environment import start_of
from dsdoctor.model.fix_plan import (
    Env,
    Fetch,
    Link,
    LinkNames,
    LinkTree,
    Plan,
    Proof,
    Remove,
    Run,
    Step,
    Tell,
    Write,
    prepended,
)
from dsdoctor.model.masking import mask, mask_words
from dsdoctor.model.plain import shortened
from dsdoctor.probes.extension_cache import builders_in
from dsdoctor.probes.memory import mapped

CHILDREN = Path(__file__).parent.parent / "probes" / "children"
#: What the re-check may take, in seconds: a cold import of torch is healthy.
CHECK_SECONDS = 600.0

#: What a re-check says about a condition that did not become ok.
_STILL = {
    "skip": "is now skipped",
    "warn": "still warns",
    "fail": "still fails",
    "unknown": "is inconclusive",
    "crash": "was not judged because its check crashed",
}

Say = Callable[[str], None]


class StepError(Exception):
    """A step failed; one line: what, why, what to do."""


def overlay(env: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """An environment with changes; an empty value removes a variable.

    >>> overlay({"A": "1", "PATH": "/bin"}, {"A": "", "PATH": "/x/bin:$PATH"})
    {'PATH': '/x/bin:/bin'}
    >>> overlay({}, {"LD_LIBRARY_PATH": "/x/lib64:$LD_LIBRARY_PATH"})
    {'LD_LIBRARY_PATH': '/x/lib64'}
    """
    made = dict(env)
    for name, value in changes.items():
        if (added := prepended(name, value)) is not None:
            made[name] = ":".join(filter(None, (added[0], env.get(name))))
        elif value:
            made[name] = value
        else:
            made.pop(name, None)
    return made


def done_already(plan: Plan) -> bool:
    """Whether a plan would change nothing: its files and links already exist."""
    for step in plan.steps:
        if isinstance(step, Env):
            continue
        if isinstance(step, Write):
            path = Path(step.write)
            if not path.is_file() or path.read_bytes() != step.content.encode():
                return False
        elif isinstance(step, Link):
            if not os.path.islink(step.link) or os.readlink(step.link) != step.target:  # noqa: PTH114, PTH115
                return False
        elif isinstance(step, Remove):
            if os.path.lexists(step.remove):
                return False
        else:
            return False
    return any(not isinstance(step, Env) for step in plan.steps)


class Applier:
    """Carries out one plan.

    Attributes:
        env: the environment that later steps, the proofs and the re-check get.
    """

    def __init__(self, plan: Plan, journal: Journal, env: Mapping[str, str], say: Say) -> None:
        self.plan = plan
        self.journal = journal
        self.env = dict(env)
        self.say = say

    def carry_out(self) -> None:
        """Carries out every step, in order.

        Raises:
            StepError: a step did not work; nothing after it was begun.
        """
        for folder in self.plan.creates:
            if not Path(folder).exists():
                for parent in reversed([p for p in Path(folder).parents if not p.exists()]):
                    self.journal.note("folder", path=str(parent))
                self.journal.note("tree", path=folder)
        for number, step in enumerate(self.plan.steps, 1):
            self.say(f"step {number}/{len(self.plan.steps)}: {step.why}")
            try:
                self._do(step)
            except OSError as error:
                raise StepError(error_hints.of_os_error(error)) from None

    def _do(self, step: Step) -> None:
        if isinstance(step, Run):
            self._run(step)
        elif isinstance(step, Write):
            self._write(Path(step.write), step)
        elif isinstance(step, Link):
            self._link(Path(step.link), step.target)
        elif isinstance(step, LinkTree):
            self._link_tree(step)
        elif isinstance(step, LinkNames):
            self._link_names(Path(step.link))
        elif isinstance(step, Remove):
            self._remove(step)
        elif isinstance(step, Fetch):
            self._fetch(step)
        elif isinstance(step, Env):
            self.env = overlay(self.env, step.env)
        elif isinstance(step, Tell):
            self.say(f"do this yourself: {step.tell}")

    # ---- files and links -------------------------------------------------------------------

    def _write(self, path: Path, step: Write) -> None:
        content = step.content.encode()
        # the writer keeps the mode of a file, but not that of what another account's link leads to
        mode = 0o644 if step.mode is None and not os.path.lexists(path) else step.mode
        self.journal.note_file(path, content)
        # a link is replaced: its target may belong to another account
        files.write(path, content, mode=mode, strict=True, follow=False, make=0o777, durable=True)

    def _link(self, link: Path, target: str) -> None:
        if link.is_dir() and not link.is_symlink():
            raise StepError(f"`{link}` is a folder, so no link can be made there; move it away")
        self.journal.note_file(link)
        files.symlink(target, link, strict=True)

    def _link_tree(self, step: LinkTree) -> None:
        source, place = Path(step.source), Path(step.link)
        if not source.is_dir():
            raise StepError(f"`{source}` is not a folder, but the plan links what is in it")
        for folder, _, names in os.walk(source, followlinks=True):
            inside = place / Path(folder).relative_to(source)
            for name in names:
                link = inside / name
                if not os.path.lexists(link):
                    self._link(link, str(Path(folder) / name))

    def _link_names(self, folder: Path) -> None:
        for library in sorted(folder.glob("lib*.so.*")):
            link = folder / (library.name.partition(".so.")[0] + ".so")
            if not os.path.lexists(link):
                self._link(link, library.name)

    def _remove(self, step: Remove) -> None:
        path = Path(step.remove)
        if step.unless_held:
            folders = {step.unless_held, os.path.realpath(step.unless_held)}
            processes = LocalHost().query("processes")
            held = [pid for folder in folders for pid in builders_in(folder, processes)]
            if held:
                raise StepError(
                    f"`{path}` is in use: process {held[0]} builds there now; wait until it ends"
                )
        if not os.path.lexists(path):
            return
        if step.segment:
            try:
                used = mapped(LocalHost(), os.geteuid())
            except HostError as error:
                raise StepError(
                    f"whether a process maps `{path}` is unknown: {error.missing.detail}"
                ) from None
            if str(path) in used:
                raise StepError(f"`{path}` is in use: a process maps it")
            files.remove(path, strict=True)
            return
        if path.is_symlink() or path.is_file():
            self.journal.note_file(path)
            files.remove(path, strict=True)
            return
        # a folder is moved aside on its own file system: at once, and without a copy
        aside = path.with_name(f".dsdoctor-removed-{uuid.uuid4().hex[:8]}-{path.name}")
        self.journal.note("moved", path=str(path), aside=str(aside))
        files.rename(path, aside.name, strict=True)

    # ---- programs --------------------------------------------------------------------------

    def _run(self, step: Run) -> None:
        env = overlay(self.env, step.env)
        if step.needs_bytes:
            trouble_here = error_hints.no_room(step.creates or os.curdir, step.needs_bytes)
            if trouble_here:
                raise StepError(trouble_here)
        if step.inventory:
            try:
                before = inventory.take(step.inventory, step.argv, env)
            except inventory.InventoryError as error:
                raise StepError(
                    f"the list of installed packages cannot be read, so undo could not restore it: "
                    f"{error}"
                ) from None
            self.journal.note(
                "inventory", manager=step.inventory, argv=list(step.argv), before=before
            )
        result = self.program(step.argv, env, step.timeout)
        if not result.ok:
            raise StepError(error_hints.of_result(result, step.timeout))
        if step.inventory:  # an undo leaves alone what is installed later
            with contextlib.suppress(inventory.InventoryError):
                after = inventory.take(step.inventory, step.argv, env)
                self.journal.note("inventory-after", after=after)

    def _fetch(self, step: Fetch) -> None:
        argv = [sys.executable, "-I", str(CHILDREN / "fetch.py"), step.fetch, step.sha256]
        argv += [step.into, str(step.size or 0)]
        result = self.program(argv, self.env, step.timeout)
        if not result.ok:
            raise StepError(error_hints.of_fetch(step.fetch, result, step.timeout))

    def program(
        self, argv: Sequence[str], env: Mapping[str, str], timeout: float
    ) -> process.Result:
        """Runs a program with its output on the screen and in the log.

        Raises:
            StepError: it does not exist or may not be run.
        """
        with os.fdopen(files.open_append(self.journal.log, strict=True), "ab") as log:
            log.write(f"\n$ {shlex.join(mask_words(list(argv)))}\n".encode())
            tee = _Tee(self.say, log)
            try:
                account, env, cwd = start_of(argv, env)
                child = process.Child(
                    argv if account is None else accounts.readable(argv),
                    env=env,
                    cwd=cwd,
                    on_stdout=tee.take,
                    on_stderr=tee.take,
                    account=account,
                )
            except OSError as error:
                raise StepError(
                    f"`{argv[0]}` cannot be started: {error.strerror or error}"
                ) from None
            try:
                result = child.wait(timeout)
            except BaseException:
                child.kill()
                raise
            tee.flush()
            log.write(f"[exit {result.returncode}, {result.seconds:.1f} s]\n".encode())
        return result

    # ---- proof -----------------------------------------------------------------------------

    def prove(self) -> str:
        """Runs the programs that must work now; returns what is wrong, "" if nothing is."""
        for proof in self.plan.proof:
            self.say(f"proof: {proof.why}")
            wrong = self._one_proof(proof)
            if wrong:
                return wrong
        return ""

    def recheck(self, check_options: Sequence[str], bad_before: Collection[str]) -> list[str]:
        """Checks again in a fresh process; returns what is still wrong.

        Args:
            check_options: options that the check of this fix was run with (`--config …`).
            bad_before: conditions that were not ok; one that is no longer judged is not fixed.
        """
        if not self.plan.proves:
            return []
        self.say(f"proof: `dsdoctor check` of {', '.join(self.plan.proves)}")
        argv = [
            *process.own_module("dsdoctor"),
            "check",
            "--format",
            "json",
            "--select",
            ",".join(self.plan.proves),
            *check_options,  # they end with the command line of the job
        ]
        result = process.run(argv, timeout=CHECK_SECONDS, env=self.env)
        try:
            findings = json.loads(result.stdout)["findings"]
        except (ValueError, KeyError):
            return [f"the re-check failed: {result.error_text}"]
        seen = {finding["condition"] for finding in findings}
        # ok and skip may appear together for one condition: that is not a relapse
        good = {finding["condition"] for finding in findings if finding["status"] == "ok"}
        bad = [
            f"`{finding['condition']}` {_STILL[finding['status']]}: {finding['message']}"
            for finding in findings
            if finding["status"] not in ("ok", "skip")
            or (finding["status"] == "skip" and finding["condition"] in set(bad_before) - good)
        ]
        return bad + [f"`{name}` was not judged" for name in self.plan.proves if name not in seen]

    def _one_proof(self, proof: Proof) -> str:
        argv = [
            word.replace("{doctor}", sys.executable).replace("{children}", str(CHILDREN))
            for word in proof.argv
        ]
        try:
            result = self.program(argv, overlay(self.env, proof.env), proof.timeout)
        except StepError as error:
            return str(error)
        if result.ok:
            return ""
        return f"{proof.why}: {error_hints.of_result(result, proof.timeout)}"


class _Tee:
    """Passes output on line by line, to the screen and to the log."""

    def __init__(self, say: Say, log: BinaryIO) -> None:
        self.say = say
        self.log = log
        self.rest = b""
        self.last = 0.0

    def take(self, chunk: bytes) -> None:
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            self._line(line + b"\n")

    def _line(self, line: bytes) -> None:
        """A package manager prints the address that it queries, including its password."""
        shown = mask(line.decode("utf-8", "replace"))
        with contextlib.suppress(OSError, ValueError):  # a full disk must not end the step
            self.log.write(shown.encode())
            self.log.flush()
        self._show(shown.rstrip("\n"))

    def _show(self, line: str) -> None:
        text = line.rpartition("\r")[2] if line.endswith("\r") else line.rsplit("\r", 1)[-1]
        words = "".join(c if c.isprintable() else " " for c in text)
        if words.strip():
            self.last = time.monotonic()
            width = shutil.get_terminal_size((100, 24)).columns
            self.say(shortened(f"  | {words.rstrip()}", max(width, 40)))

    def flush(self) -> None:
        if self.rest:
            self._line(self.rest)
            self.rest = b""
