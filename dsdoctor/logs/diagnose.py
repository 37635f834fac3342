"""From the lines found in the logs to the answer: a pure function.

What is not recognised is never called sound, and a guess is never given for an answer.
"""

from __future__ import annotations

import bisect
import collections
import functools
import re
from collections.abc import Iterable, Sequence

import msgspec

from dsdoctor.logs import reader
from dsdoctor.logs.answers import Answer, answered_by
from dsdoctor.logs.bounds import Budget
from dsdoctor.logs.consequences import consequences
from dsdoctor.logs.errors import Error
from dsdoctor.logs.expect import expectation
from dsdoctor.logs.first import Candidate, Choice, choose, is_echo, sorted_errors
from dsdoctor.logs.flight_recorder import Dump, Missing, missing
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.knowledge import Knowledge, Known, Rule
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.products import STACK, caller_of, package_of, passer_of
from dsdoctor.logs.progress import step_of
from dsdoctor.logs.raised import explained, raised_by, releases_of
from dsdoctor.logs.ranks import disagreement
from dsdoctor.logs.scan import TAIL, Failure, Hit, Scan, Scanner
from dsdoctor.model.condition import Boilerplate, Level
from dsdoctor.model.diagnosis import Attempt, Cause, Diagnosis, FirstError, Line, Outcome
from dsdoctor.model.observation import Observation
from dsdoctor.model.redact import mask as _mask

MOST_CAUSES = 3
#: Outcomes of an exception that no condition knows.
UNKNOWN = frozenset({Outcome.UNRECOGNISED, Outcome.USER_CODE})
LONGEST_SHOWN = 400
#: A second cause is shown when its level is this close to that of the first.
WORTH_SHOWING = 2
#: How often an answer of each level is right, at least: docs/diagnose.md.
CONFIDENCE = {
    Level.CERTAIN: 0.95,
    Level.STRONG: 0.9,
    Level.LIKELY: 0.8,
    Level.WEAK: 0.7,
    Level.HINT: 0.6,
}
#: A cause below this may be named by lines that a terminal changed.
SYMPTOM = 0.85
#: Lines behind the last frame of a traceback that is not cut off.
CUT_LINES = 3

#: Words of the hub and of Python that tell of a wrong name in the script, not of the machine.
OWN_MISTAKE = re.compile(
    r"is not a local folder and is not a valid model identifier|EntryNotFoundError"
    r"|does not appear to have a file named|Unable to load vocabulary",
)
#: Exceptions that are never the script's own: the machine, the network, the disk, an accelerator.
FOREIGN = frozenset(
    {
        "AcceleratorError", "BlockingIOError", "BrokenPipeError", "ChildFailedError",
        "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DistBackendError",
        "DistError", "DistNetworkError", "DistStoreError", "GatedRepoError", "HTTPError",
        "HfHubHTTPError", "MemoryError", "NotADirectoryError", "OSError", "PermissionError",
        "ProcessExitedException", "RendezvousConnectionError", "RendezvousError",
        "RendezvousTimeoutError", "RepositoryNotFoundError", "SubprocessError", "TimeoutError",
        "TimeoutExpired", "CalledProcessError", "KeyboardInterrupt", "OutOfMemoryError",
        "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "LocalEntryNotFoundError",
        "IOError", "SSLError", "InternalTorchDynamoError", "BackendCompilerFailed",
    },
)  # fmt: skip
FOREIGN_TEXT = re.compile(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport|HCCL|MPS "
    r"|\b40[134] (?:Client Error|Unauthorized|Forbidden)"
    r"|Input/output error|INTERNAL ASSERT|(?i:\bout of memory\b)|unhandled (?:system|cuda) error",
)
#: The user's data on the device: an index beyond a table, which the kernel asserts.
DATA_ASSERT = re.compile(r"device-side assert|Assertion `[^`]{1,200}` failed")
#: A package that a training environment brings; a missing module of another name is the script's.
PACKAGES = re.compile(
    r"No module named '?(?:torch|deepspeed|transformers|accelerate|peft|trl|datasets|flash_attn"
    r"|apex|xformers|triton|bitsandbytes|numpy|scipy|sklearn|pandas|mpi4py|vllm|sentencepiece"
    r"|tokenizers|huggingface_hub|safetensors|diffusers|einops|wandb|tensorboard|packaging|ninja"
    r"|psutil|yaml|cv2|PIL|tqdm|mmcv|pkg_resources|distutils|setuptools|amp_C|fused_\w+|\w+_cuda)\b",
)
IMPORTED = re.compile(r"cannot import name .{1,200} \((?P<path>[/~.\w][^()]{1,400}\.py)\)$")
#: Libraries that only read data, so that what they refuse is the script's, whoever called them.
LIBRARIES_OF_DATA = frozenset({"numpy", "pandas", "json", "yaml", "PIL", "cv2", "sklearn", "scipy"})
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: How native libraries report what failed; a log that ends with it is not sound.
LAST_WORDS = re.compile(
    r"NCCL WARN |\[E\d{3,4}[ \d:.]+ \S+\.(?:cpp|cc|cu):|\bCaught signal \d|received SIGTERM\b"
    r"|(?:^|[\]\s])Terminated$"
)
#: Last lines in which they are looked for.
LAST_LINES = 8
BEGINNING = re.compile(r"real_accelerator\.py|PyTorch extensions root")


def presentable(text: str) -> str:
    r"""A line that is safe to print: no controls, no secrets, not endless.

    >>> presentable("a\x1b[2Jb")
    'a[2Jb'
    """
    # cut twice: masking costs time, and a secret that the first cut halves is beyond the second
    text = UNPRINTABLE.sub("", text[: 4 * LONGEST_SHOWN].replace("\t", " ")).strip()
    text = _mask(text)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


@functools.lru_cache(maxsize=1)  # to make one ready takes longer than to read a short log
def _scanner(
    known: tuple[Known, ...], boilerplate: tuple[Boilerplate, ...], own: frozenset[str]
) -> Scanner:
    return Scanner(known, boilerplate=boilerplate, own=own)


def diagnose(
    sources: Iterable[reader.Source],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
    answer: Answer | None = None,
    dumps: Sequence[Dump] = (),
    budget: Budget | None = None,
) -> Diagnosis:
    """Reads the logs and names the cause.

    Args:
        sources: the logs.
        signatures: what `signatures_of` returns, or rows of signatures alone.
        expect: what must have been active.
        answer: asked for an exception that no condition knows, before it is `unrecognised`;
            by default the error index of the packs.
        dumps: of torch's flight recorder.
        budget: what reading may cost; None = the limits of `bounds`.
    """
    budget = budget or Budget()
    known = [
        item
        if isinstance(item, Known)
        else Known(item[0], item[1], item[2], tuple(item[3]), item[4])  # type: ignore[arg-type]
        for item in signatures
    ]
    more = signatures if isinstance(signatures, Knowledge) else Knowledge()
    scanner = _scanner(tuple(known), more.boilerplate, more.own)
    wanted = list(sources)
    scans = _scans(scanner, wanted, budget)
    wanted = wanted[: len(scans)]
    choice = choose(scans, more.rules)
    for index, scan in enumerate(scans):
        if choice.silent is not None:
            break
        top = choice.ranked[0] if choice.ranked else None
        if top is None or (CONFIDENCE[top.level] < SYMPTOM and _changed(scan)):
            since = scan.step[0] if scan.step else 0
            scan.hits += [hit for hit in scanner.again(scan, index) if hit.line > since]
    answer = answer or (more.answer if more.indexes else None)
    found = judge(wanted, scans, rules=more.rules, expect=expect, answer=answer)
    if budget.left_out:
        found = _with_gaps(found, budget)
    late = missing(dumps)
    return found if late is None else _with_missing(found, late, more)


def _scans(scanner: Scanner, sources: Sequence[reader.Source], budget: Budget) -> list[Scan]:
    """What is found in each log, as far as the budget reaches."""
    scans: list[Scan] = []
    for index, source in enumerate(sources):
        why = budget.exceeded() or (
            f"the limit of {budget.files} logs" if index >= budget.files else ""
        )
        if why and index:
            budget.leave_out(f"{len(sources) - index} of {len(sources)} logs ({why})")
            break
        scan = scanner.scan(source, index, budget)
        scan.bound(budget)
        scans.append(scan)
    return scans


def _with_gaps(found: Diagnosis, budget: Budget) -> Diagnosis:
    """The diagnosis of logs of which not everything was read: it never says that they are clean."""
    told = tuple(presentable(part) for part in budget.told())
    found = msgspec.structs.replace(found, left_out=told)
    if found.outcome is not Outcome.CLEAN and found.lines:
        return found
    words = "no failure in the part of the logs that was read"
    return msgspec.structs.replace(
        found, outcome=Outcome.UNRECOGNISED, summary=words, truncated=False
    )


def _with_missing(found: Diagnosis, late: Missing, known: Knowledge) -> Diagnosis:
    """The diagnosis with what the flight recorder shows: which ranks never came."""
    name = known.observed.get(Observation.NO_COLLECTIVE)
    top = found.causes[0] if found.causes else None
    if name is None or (top is None and found.first_error is not None):
        return found
    if top is None:
        top = Cause(
            condition=name.condition, title=name.title, confidence=CONFIDENCE[Level.STRONG],
            message=name.title, hint=name.hint, fixes=tuple(name.fixes), evidence=(),
        )  # fmt: skip
    elif top.condition != name.condition:
        return found
    top = msgspec.structs.replace(top, message=f"{top.message}; {presentable(str(late))}")
    return msgspec.structs.replace(
        found,
        outcome=Outcome.CAUSE,
        summary=top.message,
        causes=(top, *found.causes[1:]),
        considered=(),
        truncated=False,
        decided_by="the flight recorder's dumps, by collective sequence number",
    )


def judge(
    sources: Sequence[reader.Source],
    scans: Sequence[Scan],
    *,
    rules: Sequence[Rule] = (),
    expect: Sequence[str] = (),
    answer: Answer | None = None,
) -> Diagnosis:
    """The verdict on what was found."""
    names = [source.name for source in sources]
    answered = answered_by(scans, answer) if answer is not None else {}
    choice = choose(scans, rules, answered)
    error = _first_error(scans, choice)
    marks: dict[str, tuple[int, str, int]] = {}
    for index, scan in enumerate(scans):
        for name, (number, text) in scan.marks.items():
            marks.setdefault(name, (number, text, index))
    blank = not any(scan.tail or scan.hits for scan in scans)
    open_end = ("spawned" in marks and not {"finished", "died"} & set(marks)) or _only_began(scans)
    answers = tuple(
        expectation(name, marks, lambda mark: _line(mark[2], mark[0], mark[1], None, names))
        for name in expect
    )
    causes = _causes(choice, names)
    died = error is not None or any(name in marks for name in FATAL_MARKS)
    if not died and (_only_hints(choice) or _went_on(causes, scans) or _outran(causes, scans)):
        causes = ()
    outcome, summary = _outcome(causes, error, marks, choice.silent, blank=blank, open_end=open_end)
    said = answered.get(error) if error is not None and outcome in UNKNOWN else None
    if said is not None and said.known is not None:
        said = None
    if said is not None and error is not None:
        outcome = Outcome.UNRECOGNISED
        summary = presentable(f"{error.type}: {error.message}" if error.message else error.type)
    if outcome is Outcome.CLEAN and (said_last := _last_words(scans)):
        outcome, summary = Outcome.UNRECOGNISED, f"the log ends with {presentable(said_last)!r}"
    if outcome is Outcome.CLEAN and any(_cut_off(scan.tail) for scan in scans):
        outcome, summary = Outcome.UNRECOGNISED, "the log breaks off within a traceback"
    unknown = outcome is Outcome.UNRECOGNISED
    if choice.silent is not None:
        error = None  # what others print of it
    decided = choice.decided_by if outcome in {Outcome.CAUSE, Outcome.USER_CODE} else ""
    return Diagnosis(
        outcome=outcome,
        summary=summary,
        first_error=_told(error, names) if error is not None else None,
        causes=causes if outcome is Outcome.CAUSE else (),
        considered=_considered(scans, names, marks) if unknown else (),
        files=len(sources),
        lines=sum(scan.lines for scan in scans),
        truncated=blank or (open_end and unknown),
        expectations=answers,
        decided_by=presentable(decided),
        raised_by=raised_by(error, _releases(scans)) if unknown and error is not None else None,
        explained=explained(said) if said is not None else None,
        attempts=_attempts(scans, names),
        consequences=consequences(
            choice, scans, lambda *row: _line(row[0], row[1], row[2], row[3], names)
        )
        if outcome is Outcome.CAUSE
        else (),
    )


def _outcome(
    causes: tuple[Cause, ...],
    error: Error | None,
    marks: dict[str, tuple[int, str, int]],
    silent: Failure | None,
    *,
    blank: bool,
    open_end: bool,
) -> tuple[Outcome, str]:
    if causes:
        return Outcome.CAUSE, causes[0].message
    if blank:
        return Outcome.UNRECOGNISED, "the log is empty"
    if silent is not None:
        return Outcome.UNRECOGNISED, (
            f"rank {silent.rank} ended first, with exit status {silent.code}, and its lines do not "
            "show why"
        )
    if error is not None:
        what = presentable(f"{error.type}: {error.message}" if error.message else error.type)
        if is_user_code(error):
            return Outcome.USER_CODE, f"the first exception is the script's own: {what}"
        return Outcome.UNRECOGNISED, f"no known condition fits: {what}"
    if any(name in marks for name in FATAL_MARKS):
        return Outcome.UNRECOGNISED, "the run died and the log does not show why"
    if open_end:
        return Outcome.UNRECOGNISED, "the log ends before the processes it started have ended"
    return Outcome.CLEAN, "the log shows no failure"


def _causes(choice: Choice, names: Sequence[str]) -> tuple[Cause, ...]:
    ranked = [one for one in choice.ranked if one.known is not None]
    if not ranked:
        return ()
    top = ranked[0].level
    shown = [c for c in ranked if c.level >= top - WORTH_SHOWING][:MOST_CAUSES]
    return tuple(
        _cause(
            candidate,
            place,
            names,
            tuple(sorted(v for v, by in choice.masked.items() if by == candidate.name)),
        )
        for place, candidate in enumerate(shown)
    )


def _went_on(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Training goes on below everything that was recognised, so that was no more than a warning."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        last = max((hit.line for hit in scan.hits if hit.known.condition in named), default=None)
        if last is None:
            continue
        seen = True
        if not any(number > last and step_of(text) for number, text in scan.tail):
            return False
    return seen


def _outran(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """The logs go on for long below all that was recognised, so that was no more than a warning."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        hits = [hit for hit in scan.hits if hit.known.condition in named]
        if not hits:
            continue
        seen = True
        if len(scan.tail) < TAIL or any(hit.line >= scan.tail[0][0] for hit in hits):
            return False
        # of a message that goes on, only the first lines are kept
        patterns = {hit.known.signature.pattern for hit in hits}
        if any(re.search(pattern, text) for pattern in patterns for _, text in scan.tail):
            return False
    return seen


def _only_hints(choice: Choice) -> bool:
    """Nothing but lines that follow from a failure, of which the log shows none."""
    return all(one.echo and one.level is Level.HINT for one in choice.ranked)


def _changed(scan: Scan) -> bool:
    """The last lines hold drawn boxes or words of other languages."""
    return not all(text.isascii() for _, text in scan.tail)


def _only_began(scans: Sequence[Scan]) -> bool:
    """The logs hold nothing but the first words of DeepSpeed."""
    tails = [text for scan in scans for _, text in scan.tail]
    return bool(tails) and all(BEGINNING.search(text) for text in tails)


def _last_words(scans: Sequence[Scan]) -> str:
    """A failure that a native library reports with the last lines of a log, "" without one."""
    if any("finished" in scan.marks for scan in scans):
        return ""
    lines = [text for scan in scans for _, text in scan.tail[-LAST_LINES:]]
    return next((text for text in lines if LAST_WORDS.search(text)), "")


def _cut_off(tail: Sequence[tuple[int, str]]) -> bool:
    """The log breaks off in the middle of a traceback."""
    return bool(frames_of(text for _, text in tail[-CUT_LINES:]))


def _cause(candidate: Candidate, place: int, names: Sequence[str], masks: tuple[str, ...]) -> Cause:
    hit = candidate.hits[0]
    message = hit.known.title
    if hit.known.signature.message:
        values = collections.defaultdict(
            lambda: "?", {k: presentable(v) for k, v in hit.groups.items()}
        )
        message = hit.known.signature.message.format_map(values)
    if told := disagreement(candidate.hits):
        message += f"; the ranks do not agree: {presentable(told)}"
    seen: set[str] = set()
    lines: list[Line] = []
    for one in candidate.hits:
        if one.text in seen or len(lines) == MOST_CAUSES:
            continue
        seen.add(one.text)
        lines.append(_line(one.source, one.line, one.text, one.rank, names))
    certainty = CONFIDENCE[candidate.level] * (1.0, 0.6, 0.4)[min(place, 2)]
    return Cause(
        condition=hit.known.condition,
        title=hit.known.title,
        confidence=round(certainty, 2),
        message=message,
        hint=hit.known.signature.hint or hit.known.hint,
        fixes=tuple(hit.known.fixes),
        evidence=tuple(lines),
        masks=masks,
    )


def _line(source: int, number: int, text: str, rank: int | None, names: Sequence[str]) -> Line:
    return Line(file=presentable(names[source]), line=number, text=presentable(text), rank=rank)


def _first_error(scans: Sequence[Scan], choice: Choice) -> Error | None:
    chosen = choice.ranked[0].error if choice.ranked else None
    if chosen is not None:
        return chosen
    errors = sorted_errors(scans)
    own = [error for error in errors if not is_echo(error)]
    for place, error in enumerate(own):
        if "Caught " in error.message and "worker process" in error.message:
            # the worker's own traceback stands right behind
            inner = [
                e for e in own[place + 1 :] if e.rank == error.rank and e.source == error.source
            ]
            return inner[0] if inner else error
        return error
    return errors[0] if errors else None


def _told(error: Error, names: Sequence[str]) -> FirstError:
    return FirstError(
        rank=error.rank,
        type=presentable(error.type),
        message=presentable(error.message),
        file=presentable(error.file) or presentable(names[error.source]),
        line=error.file_line or error.line,
        log=_line(error.source, error.line, error.text, error.rank, names),
    )


def is_user_code(error: Error) -> bool:
    """Whether an exception is the script's own: its last frame is the user's, or its data fail."""
    text = f"{error.type}: {error.message}"
    if error.type in {"SystemExit", "DeviceAssert"} or DATA_ASSERT.search(text):
        return True
    if error.type == "FileNotFoundError" or OWN_MISTAKE.search(text):
        return _users(error) or OWN_MISTAKE.search(text) is not None
    if error.type in {"ModuleNotFoundError", "ImportError"}:
        return (bool(error.file) and not PACKAGES.search(text) and error.type[0] == "M") or (
            _own_import(error)
        )
    if error.text.startswith("ray.exceptions."):  # of a worker that is gone
        return False
    if _of_a_library(error):
        return _users(error)
    if error.type in FOREIGN or FOREIGN_TEXT.search(text) or is_echo(error):
        return False
    return _users(error)


def _of_a_library(error: Error) -> bool:
    """An `OSError` that a library of the script raises of the data, not the system of a file."""
    raiser = passer_of(error.frames)
    return (
        error.type in {"OSError", "IOError"}
        and raiser is not None
        and package_of(raiser.file) not in STACK | {"", "python"}
        and "[Errno" not in error.message
    )


def _users(error: Error) -> bool:
    """The frame that raised is the user's, or of a library that only reads the user's data.

    Of an exception without a traceback nothing is known but its name.
    """
    raiser = passer_of(error.frames)
    if raiser is None:
        return not error.traced or bool(error.file)
    product = package_of(raiser.file)
    called = bool(error.file) or caller_of(error.frames) is not None
    return product in LIBRARIES_OF_DATA | {""} or (product not in STACK and called)


def _own_import(error: Error) -> bool:
    """A name that one file of the script looks for in another and does not find."""
    found = IMPORTED.search(error.message)
    return bool(found and error.file and not package_of(found["path"]))


def _releases(scans: Sequence[Scan]) -> dict[str, str]:
    return releases_of(
        text for scan in scans for text in (*(m[1] for m in scan.marks.values()), *scan.releases)
    )


def _echoes(item: Hit | Error) -> bool:
    """Whether a line only follows from a failure elsewhere."""
    return is_echo(item) if isinstance(item, Error) else item.known.signature.echo


def _attempts(scans: Sequence[Scan], names: Sequence[str]) -> tuple[Attempt, ...]:
    """What ended each start of the workers, in the log of the launcher that restarted them."""
    found: list[Attempt] = []
    for index, scan in enumerate(scans):
        if not scan.restarts:
            continue
        starts = [line for line, _ in scan.restarts]
        ended: dict[int, Hit | Error] = {}
        items: list[Hit | Error] = [*scan.outlived, *scan.hits, *scan.errors]
        for item in sorted(items, key=lambda one: one.line):
            place = bisect.bisect_left(starts, item.line)
            if place not in ended or (_echoes(ended[place]) and not _echoes(item)):
                ended[place] = item
        for place in range(len(starts) + 1):
            last = ended.get(place)
            if last is None:
                found.append(Attempt(number=place + 1, ended_by=""))
                continue
            what = last.known.title if isinstance(last, Hit) else f"{last.type}: {last.message}"
            line = _line(index, last.line, last.text, last.rank, names)
            found.append(
                Attempt(number=place + 1, ended_by=presentable(what.rstrip(": ")), line=line)
            )
    return tuple(found)


def _considered(
    scans: Sequence[Scan],
    names: Sequence[str],
    marks: dict[str, tuple[int, str, int]],
) -> tuple[Line, ...]:
    lines = [
        _line(e.source, e.line, e.text, e.rank, names) for scan in scans for e in scan.errors[:3]
    ][:5]
    for name in FATAL_MARKS:
        if name in marks:
            number, text, source = marks[name]
            lines.append(_line(source, number, text, None, names))
    if not lines:
        for index, scan in enumerate(scans[:3]):
            lines += [_line(index, number, text, None, names) for number, text in scan.tail[-2:]]
    return tuple(lines[:8])
