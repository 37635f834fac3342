"""What `diagnose` says: the JSON contract of `diagnose --format json` (docs/stability.md)."""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report


class Outcome(enum.Enum):
    """The four ways in which the reading of a log ends."""

    CAUSE = "cause"
    USER_CODE = "user-code"
    UNRECOGNISED = "unrecognised"
    CLEAN = "clean"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line that proves a cause.

    Attributes:
        file: name of the log.
        line: number, from 1.
        text: the line, harmless to print, secrets masked.
        rank: the rank that wrote it, if the log says.
    """

    file: str
    line: int
    text: str
    rank: int | None = None


class FirstError(msgspec.Struct, frozen=True, kw_only=True):
    """The first exception of the first rank that failed.

    Attributes:
        rank: the rank, if the log says.
        type: name of the exception, or of the signal.
        message: its text.
        file: source file of the deepest frame of the user's own code; the log's name without one.
        line: line in that file.
        log: where it is in the log.
        is_caller: whether that frame only called the code that raised the exception.
    """

    rank: int | None
    type: str
    message: str
    file: str
    line: int
    log: Line
    is_caller: bool = False


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine, live or as a snapshot, shows about a cause.

    Attributes:
        status: `confirmed` (it is still so), `refuted` (it is no longer so) or `unknown`.
        message: why.
    """

    status: str
    message: str


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One recognized cause.

    Attributes:
        condition: its name.
        title: what it is, in one line.
        confidence: 0..1.
        message: the title, sharpened by what the log says.
        hint: what to do.
        fixes: names of fixes that may solve it.
        evidence: the lines that prove it.
        masks: conditions seen in the log that follow from this one.
        now: what the machine shows about it; None if no machine was examined.
        formerly: earlier names of the condition; left out of JSON without any.
        follows_from: condition of the environment in the same text that explains it; left out of
            JSON if there is none.
    """

    condition: str
    title: str
    confidence: float
    message: str
    hint: str
    fixes: tuple[str, ...]
    evidence: tuple[Line, ...]
    masks: tuple[str, ...] = ()
    now: Now | None = None
    formerly: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    follows_from: str | msgspec.UnsetType = msgspec.UNSET


class RaisedBy(msgspec.Struct, frozen=True, kw_only=True):
    """The product that raised an exception which no condition knows.

    Attributes:
        product: its package, such as `deepspeed`.
        version: its release, "" if the log does not report it.
        file: source file, within the package.
        line: in that file.
        function: that raised.
        url: of that line in the product's repository, "" if the release is not known.
        called_from: the deepest line of the user's own code, `FILE:LINE`.
    """

    product: str
    version: str
    file: str
    line: int
    function: str
    url: str = ""
    called_from: str = ""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """What the error index says about the first error, if no condition matches it.

    Attributes:
        kind: `refusal`: the product asks something of the reader; `internal`: a check of its own
            state failed, which is a defect to report.
        product: the package.
        text: what to do, one sentence.
        releases: harvested releases that can raise it, the oldest first.
        url: for `internal`, where to report it.
    """

    kind: str
    product: str
    text: str
    releases: tuple[str, ...] = ()
    url: str = ""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the workers, where a launcher started them several times.

    Attributes:
        number: from 1.
        ended_by: what ended it, in one line; "" if the log does not show it.
        line: the line that shows it.
    """

    number: int
    ended_by: str
    line: Line | None = None


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the log that follows from the first cause.

    Attributes:
        name: condition, or type of the exception.
        line: the first line of that rank that shows it.
    """

    name: str
    line: Line


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What `--expect` requested and what the log proves.

    Attributes:
        name: `zero3`, `offload`, `4gpus`, ...
        state: `proved`, `refuted` or `not-shown`.
        message: what the log says about it.
        evidence: the line, where there is one.
    """

    name: str
    state: str
    message: str
    evidence: Line | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer.

    Attributes:
        outcome: one of the four.
        summary: one sentence.
        first_error: the first exception seen, if any.
        causes: most likely first, at most three; empty unless the outcome is `cause`.
        considered: for `unrecognised`, the lines that were weighed.
        files: number of logs read.
        lines: number of lines read.
        truncated: the log is empty or ends before the run did.
        expectations: answers to `--expect`.
        decided_by: the evidence by which the first of several failures was found.
        raised_by: for `unrecognised`, the product that raised the first error.
        explained: for `unrecognised` and `user-code`, what the error index says about the first
            error.
        attempts: the starts of the workers, where there were several.
        consequences: what followed from the first cause or, without one, from the first error, by
            rank, at most 64.
        environment: what was found in the output of `collect_env`, `ds_report`, `nvidia-smi`, …
            that is in the text; omitted if there is none.
        left_out: parts of the logs that were not read, and the limit that was reached; left out
            of JSON if everything was read.
    """

    outcome: Outcome
    summary: str
    first_error: FirstError | None = None
    causes: tuple[Cause, ...] = ()
    considered: tuple[Line, ...] = ()
    files: int = 0
    lines: int = 0
    truncated: bool = False
    expectations: tuple[Expectation, ...] = ()
    decided_by: str = ""
    raised_by: RaisedBy | None = None
    explained: Explained | None = None
    attempts: tuple[Attempt, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    environment: Report | msgspec.UnsetType = msgspec.UNSET
    left_out: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    schema: str = "dsdoctor/diagnosis"
    version: int = 1


_EXIT = {Outcome.CAUSE: 1, Outcome.USER_CODE: 0, Outcome.CLEAN: 0, Outcome.UNRECOGNISED: 3}


def exit_code(diagnosis: Diagnosis) -> int:
    """What `diagnose` exits with: 1 for a cause, 3 for none or a log that is cut off, else 0.

    A failure found in an environment within the text counts as a cause as well.
    """
    environment = diagnosis.environment
    if isinstance(environment, Report) and environment.worst() is Status.FAIL:
        return 1
    return 3 if diagnosis.truncated else _EXIT[diagnosis.outcome]
