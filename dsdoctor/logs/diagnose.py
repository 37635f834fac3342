"""From the lines found in the logs to the cause: a pure function.

The first initiating failure beats what follows from it; a cause masks its victims; a deep cause
beats a symptom. What is not recognised is never called sound.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Iterable, Sequence

from dsdoctor.logs import reader
from dsdoctor.logs.expect import expectation
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.ranks import disagreement
from dsdoctor.logs.scan import Error, Hit, Known, Scan, Scanner
from dsdoctor.logs.traceback_rules import cut_off, family, package_of
from dsdoctor.model.condition import Level, Signature
from dsdoctor.model.diagnosis import Cause, Diagnosis, FirstError, Line, Outcome
from dsdoctor.model.redact import mask

MOST_CAUSES = 3
LONGEST_SHOWN = 400
#: A second cause is shown when its level is this close to that of the first.
WORTH_SHOWING = 2
#: What a first cause of each level is worth: see docs/accuracy.md.
CONFIDENCE = {
    Level.CERTAIN: 0.95,
    Level.STRONG: 0.9,
    Level.LIKELY: 0.8,
    Level.WEAK: 0.7,
    Level.HINT: 0.6,
}

#: A cause below this is a symptom; the log may name the cause in lines that a terminal changed.
SYMPTOM = 0.72
#: Exceptions, from the first on, whose place is asked for the cause.
MOST_GUESSES = 4
#: A cause that only the place of an exception tells: less than any signature.
GUESS = Signature(pattern="", examples=(), level=Level.HINT)

#: Exceptions that only echo a death elsewhere.
ECHOES = re.compile(
    r"ChildFailedError|Connection closed by peer|Connection reset by peer|SignalException"
    r"|exits with return code|Broken pipe|CalledProcessError.*returned non-zero exit status"
    r"|DataLoader worker .* exited unexpectedly|KeyboardInterrupt|SystemExit: 1$"
    r"|ProcessRaisedException|ProcessExitedException",
)
#: Exceptions that speak of the machine, the libraries or the network, not of the user's code.
ENVIRONMENT_TYPES = frozenset(
    {
        "BrokenPipeError", "CalledProcessError", "ChildFailedError", "ConnectionError",
        "ConnectionRefusedError", "ConnectionResetError", "DistBackendError", "DistError",
        "DistNetworkError", "DistStoreError", "ImportError", "MemoryError",
        "ModuleNotFoundError", "OSError", "RendezvousConnectionError", "RendezvousTimeoutError",
        "TimeoutError", "TimeoutExpired", "BlockingIOError", "ProcessExitedException",
        "AcceleratorError", "SubprocessError", "HTTPError", "KeyboardInterrupt",
        "RendezvousError",
    },
)  # fmt: skip
ENVIRONMENT_TEXT = re.compile(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport",
)
#: Words of the hub and of Python that tell of a wrong name in the script, not of the machine.
OWN_MISTAKE = re.compile(
    r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError"
    r"|Repository Not Found|GatedRepoError|EntryNotFoundError|40[134] Client Error"
    r"|does not appear to have a file named|Unable to load vocabulary",
)
#: A package that a training environment brings; a missing module of another name is the script's.
PACKAGES = re.compile(
    r"No module named '?(?:torch|deepspeed|transformers|accelerate|peft|trl|datasets|flash_attn"
    r"|apex|xformers|triton|bitsandbytes|numpy|scipy|sklearn|pandas|mpi4py|vllm|sentencepiece"
    r"|tokenizers|huggingface_hub|safetensors|diffusers|einops|wandb|tensorboard|packaging|ninja"
    r"|psutil|yaml|cv2|PIL|tqdm|mmcv|pkg_resources|distutils|setuptools|amp_C|fused_\w+|\w+_cuda)\b",
)
IMPORTED = re.compile(r"cannot import name .{1,200} \((?P<path>[/~.\w][^()]{1,400}\.py)\)$")
#: A line of a run that trains; a loss of 0.0 is what a step that was skipped reports.
PROGRESS = re.compile(
    r"^\{'loss': |'train_runtime'|\b(?:iteration|iter|step|epoch)s?\b[ :=#]*\[?\d.{0,80}\bloss\b"
    r"|\d+<[\d:]+, +[\d.]+ ?(?:it/s|s/it)",
)
NO_PROGRESS = re.compile(r"(?i)\bnan\b|\binf\b|loss'?[:=]? *0\.0*(?:\D|$)|overflow|skipping")
DEVICE_ASSERT = re.compile(
    r"device-side assert"
    r"|CUDA error: (?:an illegal memory access|invalid (?:configuration )?argument)"
)
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
FATAL_MARKS = (
    "died",
    "child-failed",
    "exitcode",
    "exit-code",
    "slurm",
    "slurm-step",
    "terminate",
    "segfault",
)
HANG_LINES = re.compile(
    r"KeyboardInterrupt|SIGTERM|SIGINT|Killing subprocess|CANCELLED|exit code|^\^C|Terminated",
)


BEGINNING = re.compile(r"real_accelerator\.py|PyTorch extensions root")


def presentable(text: str) -> str:
    r"""A line that is safe to print: no controls, no secrets, not endless.

    >>> presentable("a\x1b[2Jb")
    'a[2Jb'
    """
    # cut twice: masking costs time, and a secret that the first cut halves is beyond the second
    text = UNPRINTABLE.sub("", text[: 4 * LONGEST_SHOWN].replace("\t", " ")).strip()
    text = mask(text)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


@dataclasses.dataclass
class _Candidate:
    known: Known
    hits: list[Hit]
    level: Level
    first: tuple[int, str, int, int]
    masks: set[str]


@functools.lru_cache(maxsize=1)  # to make one ready takes longer than to read a short log
def _scanner(known: tuple[Known, ...]) -> Scanner:
    return Scanner(known)


def diagnose(
    sources: Iterable[reader.Source],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
) -> Diagnosis:
    """Reads the logs and names the cause."""
    known = [
        item
        if isinstance(item, Known)
        else Known(item[0], item[1], item[2], tuple(item[3]), item[4])  # type: ignore[arg-type]
        for item in signatures
    ]
    scanner = _scanner(tuple(known))
    wanted = list(sources)
    scans = [scanner.scan(source, index) for index, source in enumerate(wanted)]
    names = [source.name for source in wanted]
    found = _causes(scans, names)
    for index, scan in enumerate(scans):
        if not found or (found[0].confidence < SYMPTOM and _changed(scan)):
            scan.hits += scanner.again(scan, index)
    if not _causes(scans, names):
        guesses = _guesses(scans, {one.condition: one for one in known})
        return judge(wanted, scans, expect=expect, guesses=guesses)
    return judge(wanted, scans, expect=expect)


def judge(
    sources: Sequence[reader.Source],
    scans: Sequence[Scan],
    *,
    expect: Sequence[str] = (),
    guesses: Sequence[Hit] = (),
) -> Diagnosis:
    """The verdict on what was found; `guesses` count only where no signature fits."""
    total = sum(scan.lines for scan in scans)
    names = [source.name for source in sources]
    error = _first_error(scans)
    causes = _causes(scans, names) or _guessed(guesses, names)
    marks: dict[str, tuple[int, str, int]] = {}
    for index, scan in enumerate(scans):
        for name, (number, text) in scan.marks.items():
            marks.setdefault(name, (number, text, index))
    first = _told(error, names) if error is not None else None
    blank = not any(scan.tail or scan.hits for scan in scans)
    open_end = ("spawned" in marks and not {"finished", "died"} & set(marks)) or _only_began(scans)
    answers = tuple(
        expectation(name, marks, lambda mark: _line(mark[2], mark[0], mark[1], None, names))
        for name in expect
    )
    if error is None and not any(name in marks for name in FATAL_MARKS):
        causes = () if _went_on(causes, scans) else causes
    outcome, summary = _outcome(causes, error, marks, blank=blank, open_end=open_end)
    if outcome is Outcome.CLEAN and any(cut_off(scan.tail, 0) for scan in scans):
        outcome, summary = Outcome.UNRECOGNISED, "the log breaks off within a traceback"
    considered: tuple[Line, ...] = ()
    if outcome is Outcome.UNRECOGNISED:
        considered = _considered(scans, names, marks)
    return Diagnosis(
        outcome=outcome,
        summary=summary,
        first_error=first,
        causes=causes if outcome is Outcome.CAUSE else (),
        considered=considered,
        files=len(sources),
        lines=total,
        truncated=blank or (open_end and outcome is Outcome.UNRECOGNISED),
        expectations=answers,
    )


def _outcome(
    causes: tuple[Cause, ...],
    error: Error | None,
    marks: dict[str, tuple[int, str, int]],
    *,
    blank: bool,
    open_end: bool,
) -> tuple[Outcome, str]:
    if causes:
        return Outcome.CAUSE, causes[0].message
    if blank:
        return Outcome.UNRECOGNISED, "the log is empty"
    if error is not None:
        what = presentable(f"{error.type}: {error.message}" if error.message else error.type)
        if _is_user_code(error):
            return Outcome.USER_CODE, f"the first exception is the script's own: {what}"
        return Outcome.UNRECOGNISED, f"the run died and no known cause fits: {what}"
    if any(name in marks for name in FATAL_MARKS):
        return Outcome.UNRECOGNISED, "the run died and the log shows no known cause"
    if open_end:
        return Outcome.UNRECOGNISED, "the log ends before the processes it started have ended"
    return Outcome.CLEAN, "the log shows no failure"


def _when(item: Hit | Error, *, many: bool) -> tuple[int, str, int, int]:
    """Sorts by time where several logs are compared, by line within one."""
    if many:
        return (0 if item.when else 1, item.when, item.line, item.source)
    return (0, "", item.source, item.line)


def _causes(scans: Sequence[Scan], names: Sequence[str]) -> tuple[Cause, ...]:
    many = len(scans) > 1
    flags: set[str] = set().union(*(scan.flags for scan in scans)) if scans else set()
    grouped: dict[str, list[Hit]] = collections.defaultdict(list)
    for scan in scans:
        for hit in scan.hits:
            signature = hit.known.signature
            if any(text in flags for text in signature.unless):
                continue
            if signature.requires and not any(text in flags for text in signature.requires):
                continue
            if signature.final and not _is_final(hit, scan):
                continue
            grouped[hit.known.condition].append(hit)
    candidates: dict[str, _Candidate] = {}
    for condition, hits in grouped.items():
        hits.sort(key=lambda hit: _when(hit, many=many))
        level = max(hit.known.signature.level for hit in hits)
        best = [hit for hit in hits if hit.known.signature.level == level]
        masks = {name for hit in hits for name in hit.known.signature.masks} - {condition}
        candidates[condition] = _Candidate(
            best[0].known, best + [h for h in hits if h not in best], level,
            _when(best[0], many=many), masks,
        )  # fmt: skip
    masked: dict[str, str] = {}
    for name, candidate in sorted(candidates.items(), key=lambda row: -row[1].level):
        if name in masked:
            continue
        for victim in candidate.masks & candidates.keys():
            if candidates[victim].level <= candidate.level:
                masked.setdefault(victim, name)
    ranked = sorted(
        (c for name, c in candidates.items() if name not in masked),
        key=lambda c: (-c.level, c.first),
    )
    if not ranked:
        return ()
    top = ranked[0].level
    shown = [c for c in ranked if c.level >= top - WORTH_SHOWING][:MOST_CAUSES]
    return tuple(
        _cause(
            candidate,
            place,
            names,
            tuple(sorted(v for v, by in masked.items() if by == candidate.known.condition)),
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
        if not any(
            number > last and PROGRESS.search(text) and not NO_PROGRESS.search(text)
            for number, text in scan.tail
        ):
            return False
    return seen


def _changed(scan: Scan) -> bool:
    """The last lines hold drawn boxes or words of other languages."""
    return not all(text.isascii() for _, text in scan.tail)


def _guesses(scans: Sequence[Scan], known: dict[str, Known]) -> list[Hit]:
    """The first exception whose place tells a cause, unless the script's own came before."""
    for error in _own_errors(scans)[:MOST_GUESSES]:
        name = family(error)
        if name in known:
            one = known[name]._replace(signature=GUESS)
            return [Hit(one, error.source, error.line, error.text, error.rank, {}, error.when)]
        if _is_user_code(error) and error.file:
            return []
    for index, scan in enumerate(scans):
        if (
            not scan.errors
            and (cut := cut_off(scan.tail, index))
            and (name := family(cut)) in known
        ):
            one = known[name]._replace(signature=GUESS)
            return [Hit(one, index, cut.line, cut.text, None, {}, "")]
    return []


def _guessed(guesses: Sequence[Hit], names: Sequence[str]) -> tuple[Cause, ...]:
    return tuple(
        _cause(
            _Candidate(hit.known, [hit], hit.known.signature.level, (0, "", 0, 0), set()),
            0,
            names,
            (),
        )
        for hit in guesses
    )


def _only_began(scans: Sequence[Scan]) -> bool:
    """The logs hold nothing but the first words of DeepSpeed."""
    tails = [text for scan in scans for _, text in scan.tail]
    return bool(tails) and all(BEGINNING.search(text) for text in tails)


def _is_final(hit: Hit, scan: Scan) -> bool:
    anchors = necessary(hit.known.signature.pattern)
    after = [text for number, text in scan.tail if number > hit.line]
    return all(any(a in text for a in anchors) or HANG_LINES.search(text) for text in after)


def _cause(
    candidate: _Candidate, place: int, names: Sequence[str], masks: tuple[str, ...]
) -> Cause:
    hit = candidate.hits[0]
    message = candidate.known.title
    if hit.known.signature.message:
        values = collections.defaultdict(
            lambda: "?", {k: presentable(v) for k, v in hit.groups.items()}
        )
        message = hit.known.signature.message.format_map(values)
    if hit.known.signature is GUESS:
        message += "; no wording is known, only where it was raised or what it lacks"
    if told := disagreement(candidate.hits):
        message += f"; the ranks do not agree: {presentable(told)}"
    seen: set[str] = set()
    lines: list[Line] = []
    for one in candidate.hits:
        if one.text in seen or len(lines) == MOST_CAUSES:
            continue
        seen.add(one.text)
        lines.append(_line(one.source, one.line, one.text, one.rank, names))
    sure = 0.35 if hit.known.signature is GUESS else CONFIDENCE[candidate.level]
    certainty = sure * (1.0, 0.6, 0.4)[min(place, 2)]
    return Cause(
        condition=candidate.known.condition,
        title=candidate.known.title,
        confidence=round(certainty, 2),
        message=message,
        hint=hit.known.signature.hint or candidate.known.hint,
        fixes=tuple(candidate.known.fixes),
        evidence=tuple(lines),
        masks=masks,
    )


def _line(source: int, number: int, text: str, rank: int | None, names: Sequence[str]) -> Line:
    return Line(file=presentable(names[source]), line=number, text=presentable(text), rank=rank)


def _is_echo(error: Error) -> bool:
    return error.type != "SIGSEGV" and bool(ECHOES.search(f"{error.type}: {error.message}"))


def _sorted_errors(scans: Sequence[Scan]) -> list[Error]:
    many = len(scans) > 1
    return sorted((e for scan in scans for e in scan.errors), key=lambda e: _when(e, many=many))


def _own_errors(scans: Sequence[Scan]) -> list[Error]:
    return [error for error in _sorted_errors(scans) if not _is_echo(error)]


def _first_error(scans: Sequence[Scan]) -> Error | None:
    errors = _sorted_errors(scans)
    own = [error for error in errors if not _is_echo(error)]
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


def _is_user_code(error: Error) -> bool:
    if DEVICE_ASSERT.search(error.message) or error.type in {
        "SIGSEGV",
        "DeviceAssert",
        "SystemExit",
    }:
        return True
    if error.type == "FileNotFoundError" or OWN_MISTAKE.search(f"{error.type}: {error.message}"):
        return True
    if error.type == "ModuleNotFoundError" and error.traced and error.file:
        return not PACKAGES.search(error.message)
    if error.type == "ImportError" and _own_import(error):
        return True
    if _is_echo(error) or error.type in ENVIRONMENT_TYPES:
        return False
    return not ENVIRONMENT_TEXT.search(error.message)


def _own_import(error: Error) -> bool:
    """A name that one file of the script looks for in another and does not find."""
    found = IMPORTED.search(error.message)
    return bool(found and error.file and not package_of(found["path"]))


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
