"""The verdict on what was found in the logs: a pure function.

An unrecognized failure is never called clean, and a guess is never presented as an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsdoctor.logs import reader
from dsdoctor.logs.answers import Answer, answered_by
from dsdoctor.logs.candidates import Choice, sorted_errors
from dsdoctor.logs.echoes import is_echo, signal_of, told_by
from dsdoctor.logs.endings import is_of_native_stack
from dsdoctor.logs.errors import Error
from dsdoctor.logs.first import choose
from dsdoctor.logs.hits import Scan
from dsdoctor.logs.knowledge import Answered, Known, Rule
from dsdoctor.logs.marks import FATAL_MARKS, TRAINED
from dsdoctor.logs.outcome import (
    LAUNCHERS,
    Course,
    course_of,
    outcome_of,
    with_answer,
    with_last_lines,
)
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.raised import explained, raised_by, releases_of
from dsdoctor.logs.recovered import (
    after_training,
    answered_requests,
    ended_before,
    log_continued,
    long_past,
    recurring,
    served_since,
    stopped_on_request,
    training_continued,
    tried_again,
)
from dsdoctor.logs.shown import causes_of, first_error_of, line_of
from dsdoctor.logs.starts import began_again, refused_start
from dsdoctor.logs.warning_lines import tries_again
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
from dsdoctor.model.observation import Observation

#: Outcomes of an exception that no condition covers.
UNKNOWN = frozenset({Outcome.UNRECOGNISED, Outcome.USER_CODE})
#: Marks of a job of several ranks.
OF_SEVERAL = ("world", "spawned", "world-size", "distributed", "lightning-world")
#: When exceptions do not mean that a run failed.
HARMLESS = (recurring, long_past, answered_requests, stopped_on_request, began_again)


def judge(
    sources: Sequence[reader.Source],
    scans: Sequence[Scan],
    *,
    rules: Sequence[Rule] = (),
    expect: Sequence[str] = (),
    answer: Answer | None = None,
    answer_native: Answer | None = None,
    observed: Mapping[Observation, Known] | None = None,
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
        observed: the condition for what an exception states without a product's message.
    """
    names = [source.name for source in sources]
    answered = answered_by(scans, answer) if answer is not None else {}
    choice = choose(scans, rules, answered)
    run = course_of(scans)
    causes, error, late = _that_count(choice, run, scans, names)
    outcome, summary = outcome_of(causes, error, choice.silent, run, scans)
    said = None
    if error is not None and outcome in UNKNOWN:
        said = _said_of(error, answered, answer_native)
        if said is not None:
            outcome, summary = with_answer(said, error, outcome, summary)
    outcome, summary = with_last_lines(outcome, summary, error, run, scans, late=late)
    told = _explained(said, outcome, error)
    own = None
    if observed and outcome in UNKNOWN:
        own = _own(choice, error, outcome, observed, told, scans)
    elif observed and outcome is Outcome.CLEAN:
        own = _not_finite(observed, scans)
    if own is not None:
        causes = causes_of(own, names, sorted_errors(scans))
        outcome, summary = Outcome.CAUSE, causes[0].message
    unknown = outcome is Outcome.UNRECOGNISED
    if choice.silent is not None or (error is not None and error.type == LAUNCHERS):
        error = None  # it only follows from the failure of a rank
    decided = choice.decided_by if outcome in {Outcome.CAUSE, Outcome.USER_CODE} else ""
    return Diagnosis(
        outcome=outcome,
        summary=summary,
        first_error=first_error_of(error, names) if error is not None else None,
        causes=causes if outcome is Outcome.CAUSE else (),
        considered=_considered(scans, names, run.marks) if unknown else (),
        files=len(sources),
        lines=sum(scan.lines for scan in scans),
        truncated=run.blank or (run.open_end and unknown),
        expectations=_answers(expect, run.marks, names) if expect else (),
        decided_by=presentable(decided),
        raised_by=_raised(error, scans) if unknown else None,
        explained=told,
        attempts=_attempts(scans, names) if any(scan.restarts for scan in scans) else (),
        consequences=(
            _consequences(choice, scans, names)
            if outcome is Outcome.CAUSE or (error is not None and outcome is not Outcome.CLEAN)
            else ()
        ),
    )


def _that_count(
    choice: Choice, run: Course, scans: Sequence[Scan], names: Sequence[str]
) -> tuple[tuple[Cause, ...], Error | None, bool]:
    """What counts as the failure: the causes, the first exception, and whether it came late.

    What the run survived does not count. Late is what failed after the training.
    """
    error = None if run.done else _first_error(scans, choice)
    causes = causes_of(choice, names, sorted_errors(scans))
    if not run.fell and served_since(scans):
        causes, error = (), None
    alive = not (causes or run.fell or choice.silent)
    late = alive and after_training(scans)
    harmless = alive and any(is_harmless(scans) for is_harmless in HARMLESS)
    if late or harmless or ended_before(scans):
        error = None
    several = any(name in run.marks for name in OF_SEVERAL)  # the others may go on, or wait
    past = error is not None and not several and long_past(scans)
    died = run.fell or (error is not None and not past)
    if run.done or not (died or _ended_the_run(causes, choice, run, scans)):
        causes, error = (), None if past else error
    return causes, error, late


def _ended_the_run(
    causes: Sequence[Cause], choice: Choice, run: Course, scans: Sequence[Scan]
) -> bool:
    """Whether causes explain an end of which no exception and no launcher tells."""
    if training_continued(causes, scans) or tried_again(causes, scans):
        return False
    if _only_hints(choice):
        return bool(causes) and _shows_nothing_else(choice, scans)
    return (run.open_end and _is_sure(choice)) or not log_continued(causes, scans)


def _said_of(
    error: Error, answered: Mapping[Error, Answered], answer_native: Answer | None
) -> Answered | None:
    """What the error index says of an exception that belongs to no condition."""
    said = answered.get(error)
    if said is not None and said.known is None:
        return said
    return answer_native(error) if answer_native is not None else None


# Few logs need the following, so their modules are imported only then.


def _explained(said: Answered | None, outcome: Outcome, error: Error | None) -> Explained | None:
    """What is known of an error without a condition: from the index, or of a launcher's option."""
    if said is not None:
        return explained(said)
    if outcome is not Outcome.USER_CODE or error is None:
        return None
    from dsdoctor.logs.own_advice import advice_for  # noqa: PLC0415

    return advice_for(error)


def _own(
    choice: Choice,
    error: Error | None,
    outcome: Outcome,
    observed: Mapping[Observation, Known],
    told: Explained | None,
    scans: Sequence[Scan],
) -> Choice | None:
    """The condition that an exception states which no message covers; None if there is none."""
    if error is None or choice.silent is not None or error.type == LAUNCHERS:
        return None
    from dsdoctor.logs.own_conditions import cause_of  # noqa: PLC0415  # see above

    chain = (error.source, error.rank, error.chain)
    later = [
        one
        for one in sorted_errors(scans)
        if (one.source, one.rank, one.chain) == chain and one.line > error.line
    ]
    return cause_of(error, outcome, observed, told.text if told is not None else "", later)


def _not_finite(observed: Mapping[Observation, Known], scans: Sequence[Scan]) -> Choice | None:
    """A training that went through with NaN."""
    known = observed.get(Observation.NOT_FINITE)
    if known is None or not any(TRAINED in scan.marks for scan in scans):
        return None
    from dsdoctor.logs.not_finite import to_the_end  # noqa: PLC0415  # few logs end well

    return to_the_end(scans, known.condition)


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


def _is_sure(choice: Choice) -> bool:
    """Whether a message states the cause, so a job that never trained is not taken as recovered."""
    return bool(choice.ranked) and choice.ranked[0].level >= Level.STRONG


def _only_hints(choice: Choice) -> bool:
    """Whether there is nothing but echoes of a failure that the log does not show."""
    return all(one.echo and one.level is Level.HINT for one in choice.ranked)


def _shows_nothing_else(choice: Choice, scans: Sequence[Scan]) -> bool:
    """Whether the only log consists of such echoes and of the calls below them.

    Somebody cut them out of a longer log because of the failure. What is tried again is none.
    """
    hits = [hit for one in choice.ranked for hit in one.hits]
    if len(scans) != 1 or any(tries_again(hit.text) for hit in hits):
        return False
    shown = {hit.line for hit in hits}
    return 1 in shown and all(
        number in shown or is_of_native_stack(text) for number, text in scans[0].tail
    )


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
