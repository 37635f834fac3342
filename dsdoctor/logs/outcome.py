"""The outcome of a run and the sentence that states it: pure functions.

An unrecognized failure is never called clean.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dsdoctor.logs import ray_deaths
from dsdoctor.logs.echoes import LOADER_TERMINATED, signal_of
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
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.hits import Failure, Scan
from dsdoctor.logs.knowledge import Answered
from dsdoctor.logs.launcher_lines import TERMINATED
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.products import package_of
from dsdoctor.logs.recovered import long_past
from dsdoctor.logs.shown import words_of
from dsdoctor.logs.silent import how_it_ended
from dsdoctor.logs.starts import began_again
from dsdoctor.model.diagnosis import Cause, Outcome

#: Exceptions that Python raises in anybody's code.
ANYBODYS = frozenset({"AttributeError", "KeyError", "NameError", "TypeError"})
#: torchrun's own exception after a rank has died: it says nothing of the reason.
LAUNCHERS = "ChildFailedError"
DIED = "the run died and the log does not show why"
AFTERWARDS = "the training has finished; a background thread failed afterwards"


class Course(msgspec.Struct, frozen=True):
    """How a run went, as far as its logs tell, before a cause is considered.

    Attributes:
        done: it trained, or installed, to the end.
        fell: a line says that a rank died.
        blank: the logs are empty.
        open_end: the log ends before what it started has ended.
        cut_off: a log ends in the middle of a traceback.
        marks: the first line of each mark: its number, its text and its log.
    """

    done: bool
    fell: bool
    blank: bool
    open_end: bool
    cut_off: bool
    marks: dict[str, tuple[int, str, int]]


def course_of(scans: Sequence[Scan]) -> Course:
    """How the run went that these logs are of."""
    well = succeeded(scans)
    marks = _marks(scans, without=FATAL_MARKS if well else ())
    spawned = "spawned" in marks and not {"finished", "died"} & set(marks)
    return Course(
        done=well or installed(scans),
        fell=any(name in marks for name in FATAL_MARKS),
        blank=not any(scan.tail or scan.hits for scan in scans),
        open_end=spawned or only_began(scans),
        cut_off=any(is_cut_off(scan.tail) for scan in scans),
        marks=marks,
    )


def outcome_of(
    causes: Sequence[Cause],
    error: Error | None,
    silent: Failure | None,
    run: Course,
    scans: Sequence[Scan],
) -> tuple[Outcome, str]:
    """The outcome and its sentence, by what counts alone.

    Args:
        causes: the conditions that count, the most likely first.
        error: the first exception that counts.
        silent: the first failure, if its rank printed nothing about it.
        run: how the run went.
        scans: what was found in each log.
    """
    if causes:
        return Outcome.CAUSE, causes[0].message
    if run.blank:
        return Outcome.UNRECOGNISED, "the log is empty"
    if silent is not None:
        return Outcome.UNRECOGNISED, how_it_ended(silent, run.marks)
    is_ray = ray_deaths.is_death(error, run.marks)
    if error is not None and error.type != LAUNCHERS and (own := _of_error(error, is_ray=is_ray)):
        return own
    if is_ray:
        return Outcome.UNRECOGNISED, ray_deaths.told(run.marks)
    if error is not None or run.fell:
        return Outcome.UNRECOGNISED, DIED
    if run.open_end:
        return Outcome.UNRECOGNISED, "the log ends before the processes it started have ended"
    if not run.done and (what := _what_followed(scans)):
        return (
            Outcome.CLEAN,
            f"the last exception is at line {scans[0].errors[-1].line}, and {what}",
        )
    return Outcome.CLEAN, "the log shows no failure"


def _what_followed(scans: Sequence[Scan]) -> str:
    """What followed exceptions that did not end the last run; "" if there are none."""
    if long_past(scans):
        return "the log goes on for long below it"
    return "the script was started again below it" if began_again(scans) else ""


def _of_error(error: Error, *, is_ray: bool) -> tuple[Outcome, str] | None:
    """What an exception is by itself; None if it only reports that a worker of Ray's died."""
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
    return None if is_ray else (Outcome.UNRECOGNISED, f"no known condition fits: {what}")


def with_answer(
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


def with_last_lines(
    outcome: Outcome,
    summary: str,
    error: Error | None,
    run: Course,
    scans: Sequence[Scan],
    *,
    late: bool,
) -> tuple[Outcome, str]:
    """The outcome once the last lines of the logs are considered too.

    Args:
        outcome: the outcome by what counts.
        summary: its sentence.
        error: the first exception that counts.
        run: how the run went.
        scans: what was found in each log.
        late: whether what failed did so after the training.
    """
    if outcome is Outcome.CLEAN:
        return _closing(scans, summary, run, late=late)
    if summary == DIED:
        return outcome, _of_a_death(scans, run)
    if outcome is Outcome.USER_CODE and run.cut_off and _is_bare(error) and _ends_in_product(scans):
        # the frames that would show who raised it are cut off
        return Outcome.UNRECOGNISED, f"no known condition fits: {summary.partition(': ')[2]}"
    return outcome, summary


def _marks(scans: Sequence[Scan], *, without: Sequence[str]) -> dict[str, tuple[int, str, int]]:
    """The first line of each mark in all logs: number, text and log."""
    marks: dict[str, tuple[int, str, int]] = {}
    for index, scan in enumerate(scans):
        for name, (number, text) in scan.marks.items():
            if name not in without:
                marks.setdefault(name, (number, text, index))
    return marks


def _of_a_death(scans: Sequence[Scan], run: Course) -> str:
    """What is known of a death that no condition and no exception explains."""
    if line := reported_by_a_library(scans):
        return f"the run died; the log reports {presentable(line)!r}"
    fatal = (run.marks[name][1] for name in FATAL_MARKS if name in run.marks)
    if any(TERMINATED.search(text) for text in fatal):
        return "SIGTERM from outside ended a rank, but the log does not show who sent it"
    return DIED


def _breaking_off(scans: Sequence[Scan]) -> str:
    said = next(filter(None, (logged_above(scan.tail) for scan in scans)), "")
    return "the log breaks off in the middle of a traceback" + (
        f"; above it stands {presentable(said)!r}" if said else ""
    )


def _closing(
    scans: Sequence[Scan], summary: str, run: Course, *, late: bool
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
    if run.cut_off or any(scan.cut and not scan.document for scan in scans):
        return Outcome.UNRECOGNISED, _breaking_off(scans)
    if scans and all(scan.told for scan in scans):
        return _told(scans)
    return Outcome.CLEAN, summary


def _told(scans: Sequence[Scan]) -> tuple[Outcome, str]:
    """What a failure is of which a text only tells."""
    from dsdoctor.logs.told_mistakes import mistake_told  # noqa: PLC0415  # most logs have a cause

    if own := mistake_told(text for scan in scans for _, text in scan.tail):
        return Outcome.USER_CODE, f"the text tells of a mistake in the script: {presentable(own)}"
    return Outcome.UNRECOGNISED, "the text tells of a failure, but contains no output that shows it"


def _is_bare(error: Error | None) -> bool:
    """Whether only the type of an exception is known, as in the title of a report.

    Any code can raise these; the frames say whose did.
    """
    return error is not None and error.type in ANYBODYS and not (error.traced or error.frames)


def _ends_in_product(scans: Sequence[Scan]) -> bool:
    """Whether the last frame in the last lines of a log is a product's."""
    frames = (frames_of([text for _, text in scan.tail]) for scan in scans)
    return any(found and package_of(found[-1].file) for found in frames)
