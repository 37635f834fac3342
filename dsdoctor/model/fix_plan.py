"""A fix plan: what would be done, why, what it proves and how it is undone."""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.finding import Finding

SCHEMA = "dsdoctor/plan"
VERSION = 1
#: Default time limit of a step, in seconds (a download of GBs on a slow connection).
STEP_SECONDS = 3600.0


class Reach(enum.Enum):
    """How far a step reaches: the environment, the user's home, the machine."""

    ENV = "env"
    HOME = "home"
    SYSTEM = "system"

    @property
    def order(self) -> int:
        """0 for the nearest."""
        return list(Reach).index(self)


class _Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    why: str
    reach: Reach = Reach.ENV


class Run(_Step, frozen=True, kw_only=True, tag="run"):
    """Starts a program.

    Attributes:
        argv: program and arguments; never a shell string.
        env: additional variables.
        timeout: deadline in seconds.
        inventory: the package manager whose list of packages is noted before and put back by undo:
            `pip`, `conda`, `apt` or `dnf`.
        creates: folder that it makes; undo removes it.
        needs_bytes: free space that it takes where `creates` is, in bytes.
        irreversible: why undo cannot revert it; "" = it can, or there is nothing to revert.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    timeout: float = STEP_SECONDS
    inventory: str = ""
    creates: str = ""
    needs_bytes: int = 0
    irreversible: str = ""


class Write(_Step, frozen=True, kw_only=True, tag="write"):
    """Writes a file; undo puts the former bytes, mode and time back, or removes it.

    Attributes:
        write: the file.
        content: all of it.
        mode: permission bits; None = as they were, else 0644.
    """

    write: str
    content: str
    mode: int | None = None


class Link(_Step, frozen=True, kw_only=True, tag="link"):
    """Makes a symbolic link; undo removes it, and puts back what was there.

    Attributes:
        link: the link.
        target: what it points to.
    """

    link: str
    target: str


class LinkTree(_Step, frozen=True, kw_only=True, tag="link-tree"):
    """Links every file of a folder tree that another one does not have, as `cp -rsn` does.

    Attributes:
        link: folder to make links in.
        source: folder whose files they point to.
    """

    link: str
    source: str


class LinkNames(_Step, frozen=True, kw_only=True, tag="link-names"):
    """Gives every `libX.so.N` of a folder the name that a linker looks for, `libX.so`.

    Attributes:
        link: the folder.
    """

    link: str


class Remove(_Step, frozen=True, kw_only=True, tag="remove"):
    """Removes a file or directory; undo restores it.

    Attributes:
        remove: the path.
        unless_held: a process that works in the directory of this path stops the step.
        segment: it is a shared-memory segment. A process that maps it stops the step, and undo does
            not restore it.
    """

    remove: str
    unless_held: str = ""
    segment: bool = False


class Fetch(_Step, frozen=True, kw_only=True, tag="fetch"):
    """Downloads an archive, compares its checksum and unpacks it below a folder.

    Attributes:
        fetch: URL.
        sha256: expected SHA-256 of the file.
        size: in bytes; None = not known.
        into: folder to unpack into; the archive's own top folder is left off.
        timeout: deadline in seconds.
    """

    fetch: str
    sha256: str
    into: str
    size: int | None = None
    timeout: float = STEP_SECONDS


class Env(_Step, frozen=True, kw_only=True, tag="env"):
    """Variables for what follows, for the re-check and for the activation snippet.

    Attributes:
        env: name to value; "" = the variable is unset. A value such as `/x/bin:$PATH` puts a
            folder in front of a search path.
    """

    env: dict[str, str]


def prepended(name: str, value: str) -> tuple[str, str] | None:
    """The folder that a value of a plan puts in front of a search path, and the shell's rest.

    Only the search path of programs is never empty; an empty entry would be the working folder.

    >>> prepended("PATH", "/x/bin:$PATH"), prepended("A", "/x"), prepended("A", "")
    (('/x/bin', '":$PATH"'), None, None)
    >>> prepended("LD_LIBRARY_PATH", "/x/lib64:$LD_LIBRARY_PATH")
    ('/x/lib64', '"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"')
    """
    folder, separator, _ = value.rpartition(f":${name}")
    if not separator or value != f"{folder}{separator}":
        return None
    return folder, '":$PATH"' if name == "PATH" else f'"${{{name}:+:${name}}}"'


class Tell(_Step, frozen=True, kw_only=True, tag="tell"):
    """Something that the user has to do; dsdoctor only prints it.

    Attributes:
        tell: a command line, or lines for a file.
    """

    tell: str


Step = Run | Write | Link | LinkTree | LinkNames | Remove | Fetch | Env | Tell


class Proof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that shows that the fix works: it must end with status 0.

    Attributes:
        argv: program and arguments; `{doctor}` is replaced by dsdoctor's own interpreter and
            `{children}` for its folder of child scripts.
        why: what it shows.
        env: additional variables.
        timeout: deadline in seconds.
    """

    argv: tuple[str, ...]
    why: str
    env: dict[str, str] = {}
    timeout: float = 600.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a fix would do.

    Attributes:
        name: of the fix.
        title: what it does, one sentence.
        steps: in order.
        proves: conditions that must turn ok.
        proof: programs that must work afterwards.
        undo: how it is undone, or why it cannot be.
        reach: the farthest that a step reaches.
        reasons: why this way and not another.
        activate: line to source so that a shell uses the result, "" = none is needed.
        creates: folders that the plan makes and that undo removes whole.
        alternative: another plan of this run fixes the same condition.
        otherwise: option of `fix` to plan again with if the proof fails.
        recheck: options of the check that differ when the plan is proven (`config`).
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    proves: tuple[str, ...] = ()
    proof: tuple[Proof, ...] = ()
    undo: str = "`dsdoctor fix --undo` restores everything"
    reach: Reach = Reach.ENV
    reasons: tuple[str, ...] = ()
    activate: str = ""
    creates: tuple[str, ...] = ()
    alternative: bool = False
    otherwise: str = ""
    recheck: dict[str, str] = {}

    @property
    def only_shown(self) -> bool:
        """Whether every step is the user's to carry out."""
        return all(isinstance(step, Tell) for step in self.steps)

    @property
    def irreversible(self) -> tuple[str, ...]:
        """Why undo cannot restore everything; empty if it can."""
        return tuple(s.irreversible for s in self.steps if isinstance(s, Run) and s.irreversible)


class Impossible(msgspec.Struct, frozen=True, kw_only=True):
    """Why a fix cannot be planned here, and what can be done instead.

    Attributes:
        name: of the fix.
        why: what was found, and what would be needed.
    """

    why: str
    name: str = ""


class FixRequest(Fact, frozen=True, kw_only=True):
    """What the command line of `fix` asks for.

    Attributes:
        reach: the farthest that steps may reach.
        in_place: install into the active conda environment instead of a prefix of its own.
        asked: names of fixes that were given.
        python: dsdoctor's own interpreter.
        state: folder for what a fix saves outside of an environment.
        arch_list: TORCH_CUDA_ARCH_LIST for the proof; "" = that of the GPUs at hand.
    """

    reach: Reach = Reach.ENV
    in_place: bool = False
    asked: tuple[str, ...] = ()
    python: str = "python3"
    state: str = ""
    arch_list: str = ""

    def allows(self, reach: Reach) -> bool:
        """Whether steps may reach so far."""
        return reach.order <= self.reach.order


class Findings(Fact, frozen=True, kw_only=True):
    """What the checks said of the same facts.

    Attributes:
        findings: all of them.
    """

    findings: tuple[Finding, ...] = ()

    def bad(self, *conditions: str) -> tuple[Finding, ...]:
        """Warnings and failures of some conditions."""
        return tuple(
            finding
            for finding in self.findings
            if finding.condition in conditions and finding.status.value in ("warn", "fail")
        )


class PlanDocument(msgspec.Struct, kw_only=True):
    """What `fix --format json` prints (docs/stability.md).

    Attributes:
        schema: SCHEMA.
        version: moves when a key is removed.
        plans: what would be done.
        impossible: fixes that cannot be planned, and why.
        nothing_to_do: names of fixes that find nothing to do.
        outcomes: name of a fix to `applied`, `failed`, `not-proven`, `shown` or `told`.
        error: why it failed, "" when it did not.
    """

    schema: str = SCHEMA
    version: int = VERSION
    plans: list[Plan] = []
    impossible: list[Impossible] = []
    nothing_to_do: list[str] = []
    outcomes: dict[str, str] = {}
    error: str = ""

    def as_builtins(self) -> dict[str, Any]:
        """Ready for JSON; with exactly one plan its keys are at the top level too."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        if len(self.plans) == 1:
            document = {**msgspec.to_builtins(self.plans[0]), **document}
        return document


def reach_of(steps: tuple[Step, ...]) -> Reach:
    """The farthest that any step reaches."""
    return max((step.reach for step in steps), key=lambda reach: reach.order, default=Reach.ENV)
