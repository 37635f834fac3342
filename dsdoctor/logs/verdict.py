"""The verdict on what was found in the logs: a pure function.

An unrecognized failure is never called clean, and a guess is never presented as an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs import ray_deaths, reader
from dsdoctor.logs.answers import Answer, answered_by
from dsdoctor.logs.candidates import Choice, sorted_errors
from dsdoctor.logs.echoes import LOADER_TERMINATED, is_echo, signal_of, told_by
from dsdoctor.logs.echoes import TERMINATED as PADDLES
from dsdoctor.logs.endings import (
    installed,
    is_cut_off,
    is_mistake_in_script,
    last_words,
    logged_above,
    only_began,
    reported_by_a_library,
    succeeded,
)
from dsdoctor.logs.error_lookup import INTERNAL
from dsdoctor.logs.errors import Error
from dsdoctor.logs.first import choose
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.hits import Failure, Scan
from dsdoctor.logs.knowledge import Answered, Rule
from dsdoctor.logs.launcher_lines import TERMINATED
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.products import package_of
from dsdoctor.logs.raised import explained, raised_by, releases_of
from dsdoctor.logs.recovered import (
    after_training,
    answered_requests,
    interrupted_before,
    log_continued,
    long_past,
    recurring,
    served_since,
    stopped_on_request,
    training_continued,
)
from dsdoctor.logs.shown import causes_of, first_error_of, line_of, words_of
from dsdoctor.logs.silent import how_it_ended
from dsdoctor.logs.starts import refused_start
from dsdoctor.model.condition import Level
from dsdoctor.model.diagnosis import (
    Attempt,
    Cause,
    Consequence,
    Diagnosis,
    Expectation,
    Explained,
    Line,
    Outcome,
    RaisedBy,
)

#: Exceptions that Python raises in anybody's code.
ANYBODYS = frozenset({"AttributeError", "KeyError", "NameError", "TypeError"})
#: Outcomes of an exception that no condition covers.
UNKNOWN = frozenset({Outcome.UNRECOGNISED, Outcome.USER_CODE})
#: When exceptions do not mean that a run failed.
HARMLESS = (recurring, long_past, answered_requests, stopped_on_request)
DIED = "the run died and the log does not show why"
#: torchrun's own exception after a rank has died: it says nothing of the reason.
LAUNCHERS = "ChildFailedError"
AFTERWARDS = "the training has finished; a background thread failed afterwards"


def judge(
    sources: Sequence[reader.Source],
    scans: Sequence[Scan],
    *,
    rules: Sequence[Rule] = (),
    expect: Sequence[str] = (),
    answer: Answer | None = None,
    answer_native: Answer | None = None,
) -> Diagnosis:
    """The verdict on what was found.

    Args:
        sources: the logs.
        scans: what was found in each.
        rules: traceback rules.
        expect: what must have been active.
        answer: looks up an exception by its words and the place that raised it. Its answers
            compete with the patterns.
        answer_native: looks up what native code says, by its words alone: for an error without a
            cause.
    """
    names = [source.name for source in sources]
    answered = answered_by(scans, answer) if answer is not None else {}
    choice = choose(scans, rules, answered)
    well = succeeded(scans)
    done = well or installed(scans)
    error = None if done else _first_error(scans, choice)
    marks = _marks(scans, without=FATAL_MARKS if well else ())
    blank = not any(scan.tail or scan.hits for scan in scans)
    open_end = ("spawned" in marks and not {"finished", "died"} & set(marks)) or only_began(scans)
    answers = _answers(expect, marks, names) if expect else ()
    causes = causes_of(choice, names, sorted_errors(scans))
    fell = any(name in marks for name in FATAL_MARKS)
    if not fell and served_since(scans):
        causes, error = (), None
    alive = not (causes or fell or choice.silent)
    late = alive and after_training(scans)
    before = interrupted_before(scans)
    if late or (alive and any(harmless(scans) for harmless in HARMLESS)) or before:
        error = None
    died = error is not None or fell
    stuck = open_end and _is_sure(choice)
    if done or (
        not died
        and (
            _only_hints(choice)
            or training_continued(causes, scans)
            or (not stuck and log_continued(causes, scans))
        )
    ):
        causes = ()
    outcome, summary = _outcome(
        causes,
        error,
        marks,
        choice.silent,
        blank=blank,
        open_end=open_end,
        last_exception=scans[0].errors[-1].line if not done and long_past(scans) else 0,
    )
    said = answered.get(error) if error is not None and outcome in UNKNOWN else None
    if said is not None and said.known is not None:
        said = None
    if said is None and answer_native is not None and error is not None and outcome in UNKNOWN:
        said = answer_native(error)
    if said is not None and error is not None:
        outcome, summary = _outcome_of(said, error, outcome, summary)
    breaks_off = any(is_cut_off(scan.tail) for scan in scans)
    if outcome is Outcome.USER_CODE and breaks_off and _is_bare(error) and _ends_in_product(scans):
        outcome = Outcome.UNRECOGNISED  # the frames that would show who raised it are cut off
        summary = f"no known condition fits: {summary.partition(': ')[2]}"
    if summary == DIED and (line := reported_by_a_library(scans)):
        summary = f"the run died; the log reports {presentable(line)!r}"
    elif summary == DIED and any(
        TERMINATED.search(marks[name][1]) for name in FATAL_MARKS if name in marks
    ):
        summary = "SIGTERM from outside ended a rank, but the log does not show who sent it"
    if outcome is Outcome.CLEAN:
        outcome, summary = _closing(scans, summary, late=late, breaks_off=breaks_off)
    unknown = outcome is Outcome.UNRECOGNISED
    if choice.silent is not None or (error is not None and error.type == LAUNCHERS):
        error = None  # it only follows from the failure of a rank
    decided = choice.decided_by if outcome in {Outcome.CAUSE, Outcome.USER_CODE} else ""
    return Diagnosis(
        outcome=outcome,
        summary=summary,
        first_error=first_error_of(error, names) if error is not None else None,
        causes=causes if outcome is Outcome.CAUSE else (),
        considered=_considered(scans, names, marks) if unknown else (),
        files=len(sources),
        lines=sum(scan.lines for scan in scans),
        truncated=blank or (open_end and unknown),
        expectations=answers,
        decided_by=presentable(decided),
        raised_by=_raised(error, scans) if unknown else None,
        explained=_explained(said, outcome, error),
        attempts=_attempts(scans, names) if any(scan.restarts for scan in scans) else (),
        consequences=(
            _consequences(choice, scans, names)
            if outcome is Outcome.CAUSE or (error is not None and outcome is not Outcome.CLEAN)
            else ()
        ),
    )


# Few logs need the following, so their modules are imported only then.


def _explained(said: Answered | None, outcome: Outcome, error: Error | None) -> Explained | None:
    """What is known of an error without a condition: from the index, or of a launcher's option."""
    if said is not None:
        return explained(said)
    if outcome is not Outcome.USER_CODE or error is None:
        return None
    from dsdoctor.logs.passed_options import passed_option  # noqa: PLC0415

    return passed_option(error)


def _answers(
    expect: Sequence[str], marks: dict[str, tuple[int, str, int]], names: Sequence[str]
) -> tuple[Expectation, ...]:
    from dsdoctor.logs.expect import expectation  # noqa: PLC0415  # see above

    return tuple(
        expectation(name, marks, lambda mark: line_of(mark[2], mark[0], mark[1], None, names))
        for name in expect
    )


def _attempts(scans: Sequence[Scan], names: Sequence[str]) -> tuple[Attempt, ...]:
    from dsdoctor.logs.attempts import attempts  # noqa: PLC0415  # see above

    return attempts(scans, names)


def _consequences(
    choice: Choice, scans: Sequence[Scan], names: Sequence[str]
) -> tuple[Consequence, ...]:
    from dsdoctor.logs.consequences import consequences  # noqa: PLC0415  # see above

    return consequences(choice, scans, lambda *row: line_of(row[0], row[1], row[2], row[3], names))


def _marks(scans: Sequence[Scan], *, without: Sequence[str]) -> dict[str, tuple[int, str, int]]:
    """The first line of each mark in all logs: number, text and log."""
    marks: dict[str, tuple[int, str, int]] = {}
    for index, scan in enumerate(scans):
        for name, (number, text) in scan.marks.items():
            if name not in without:
                marks.setdefault(name, (number, text, index))
    return marks


def _outcome(
    causes: tuple[Cause, ...],
    error: Error | None,
    marks: dict[str, tuple[int, str, int]],
    silent: Failure | None,
    *,
    blank: bool,
    open_end: bool,
    last_exception: int = 0,
) -> tuple[Outcome, str]:
    if causes:
        return Outcome.CAUSE, causes[0].message
    if blank:
        return Outcome.UNRECOGNISED, "the log is empty"
    if silent is not None:
        return Outcome.UNRECOGNISED, how_it_ended(silent, marks)
    if error is not None and error.type != LAUNCHERS:
        from dsdoctor.logs.own_fault import (  # noqa: PLC0415  # most logs have a cause
            is_about_data,
            is_user_code,
        )

        if name := signal_of(error):
            who = "a rank" if PADDLES in error.message else "the launcher"
            who = "a data loader's process" if LOADER_TERMINATED in error.message else who
            return Outcome.UNRECOGNISED, (
                f"{name} from outside ended {who}, but the log does not show who sent it"
            )
        what = words_of(error)
        if is_user_code(error):
            whose = "about the script's data" if is_about_data(error) else "the script's own"
            return Outcome.USER_CODE, f"the first exception is {whose}: {what}"
        if not ray_deaths.is_death(error, marks):
            return Outcome.UNRECOGNISED, f"no known condition fits: {what}"
    if ray_deaths.is_death(error, marks):
        return Outcome.UNRECOGNISED, ray_deaths.told(marks)
    if error is not None or any(name in marks for name in FATAL_MARKS):
        return Outcome.UNRECOGNISED, DIED
    if open_end:
        return Outcome.UNRECOGNISED, "the log ends before the processes it started have ended"
    return Outcome.CLEAN, (
        f"the last exception is at line {last_exception}, and the log goes on for long below it"
        if last_exception
        else "the log shows no failure"
    )


def _breaking_off(scans: Sequence[Scan]) -> str:
    said = next(filter(None, (logged_above(scan.tail) for scan in scans)), "")
    return "the log breaks off in the middle of a traceback" + (
        f"; above it stands {presentable(said)!r}" if said else ""
    )


def _closing(
    scans: Sequence[Scan], summary: str, *, late: bool, breaks_off: bool
) -> tuple[Outcome, str]:
    """What the last lines of a log say that shows no failure before them."""
    if late:
        return Outcome.CLEAN, AFTERWARDS
    if said_last := last_words(scans):
        is_own = is_mistake_in_script(said_last.text)
        summary = "the shell cannot read the script: " if is_own else "the log ends with "
        summary += repr(presentable(said_last.text))
        summary += f"; {presentable(said_last.where)}" if said_last.where else ""
        return Outcome.USER_CODE if is_own else Outcome.UNRECOGNISED, summary
    if breaks_off or any(scan.cut and not scan.document for scan in scans):
        return Outcome.UNRECOGNISED, _breaking_off(scans)
    if scans and all(scan.told for scan in scans):
        return _told(scans)
    return Outcome.CLEAN, summary


def _told(scans: Sequence[Scan]) -> tuple[Outcome, str]:
    """What a failure is of which a text only tells."""
    from dsdoctor.logs.own_fault import mistake_told  # noqa: PLC0415  # most logs have a cause

    if own := mistake_told(text for scan in scans for _, text in scan.tail):
        return Outcome.USER_CODE, f"the text tells of a mistake in the script: {presentable(own)}"
    return Outcome.UNRECOGNISED, "the text tells of a failure, but contains no output that shows it"


def _outcome_of(
    said: Answered, error: Error, outcome: Outcome, summary: str
) -> tuple[Outcome, str]:
    """What an exception is that the error index explains, and that no condition covers."""
    from dsdoctor.logs.own_fault import prepares_data  # noqa: PLC0415  # most logs have a cause

    what = words_of(error)
    is_own = outcome is Outcome.USER_CODE
    of_data = said.kind != INTERNAL and prepares_data(said.entry.file, said.entry.function)
    if of_data and (is_own or not error.frames):
        return Outcome.USER_CODE, f"the first exception is about the script's data: {what}"
    # native code that rejects what a script passes is called by the script
    if is_own and said.entry.is_native:
        return outcome, summary
    return Outcome.UNRECOGNISED, what


def _is_bare(error: Error | None) -> bool:
    """Whether only the type of an exception is known, as in the title of a report.

    Any code can raise these; the frames say whose did.
    """
    return error is not None and error.type in ANYBODYS and not (error.traced or error.frames)


def _ends_in_product(scans: Sequence[Scan]) -> bool:
    """Whether the last frame in the last lines of a log is a product's."""
    frames = (frames_of([text for _, text in scan.tail]) for scan in scans)
    return any(found and package_of(found[-1].file) for found in frames)


def _is_sure(choice: Choice) -> bool:
    """Whether a message states the cause, so a job that never trained is not taken as recovered."""
    return bool(choice.ranked) and choice.ranked[0].level >= Level.STRONG


def _only_hints(choice: Choice) -> bool:
    """Whether there is nothing but echoes of a failure that the log does not show."""
    return all(one.echo and one.level is Level.HINT for one in choice.ranked)


def _first_error(scans: Sequence[Scan], choice: Choice) -> Error | None:
    chosen = choice.ranked[0].error if choice.ranked else None
    if chosen is not None:
        return chosen
    errors = sorted_errors(scans)
    own = [error for error in errors if not (is_echo(error) or refused_start(error, errors))]
    if own:
        return told_by(own[0], own[1:])
    return errors[0] if errors else None


def _raised(error: Error | None, scans: Sequence[Scan]) -> RaisedBy | None:
    """What raised an exception; None if a signal from outside or a dead rank caused it."""
    if error is None or signal_of(error) or error.type == LAUNCHERS:
        return None
    return raised_by(error, _releases(scans))


def _releases(scans: Sequence[Scan]) -> dict[str, str]:
    return releases_of(text for scan in scans for text in (mark[1] for mark in scan.marks.values()))


def _considered(
    scans: Sequence[Scan],
    names: Sequence[str],
    marks: dict[str, tuple[int, str, int]],
) -> tuple[Line, ...]:
    lines = [
        line_of(e.source, e.line, e.text, e.rank, names) for scan in scans for e in scan.errors[:3]
    ][:5]
    for name in FATAL_MARKS:
        if name in marks:
            number, text, source = marks[name]
            lines.append(line_of(source, number, text, None, names))
    if not lines:
        for index, scan in enumerate(scans[:3]):
            lines += [line_of(index, number, text, None, names) for number, text in scan.tail[-2:]]
    return tuple(lines[:8])
