"""Whether the run continued after what was recognized, so that was only a warning."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.endings import LAST_LINES, NATIVE_STACK
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import FEW, TAIL, Scan
from dsdoctor.logs.importing import is_importing
from dsdoctor.logs.marks import END_OF_TRAINING, FATAL_MARKS, TRAINED
from dsdoctor.logs.outlived import ALIVE, BUFFERED, covers, ends_all
from dsdoctor.logs.prefixes import strip_prefixes
from dsdoctor.logs.progress import LOADING, step_of
from dsdoctor.logs.warning_lines import RETRIED
from dsdoctor.model.diagnosis import Cause

#: A field of `kubectl describe`, whose lines are in no order of time.
FIELD = lazy(r"^ {0,12}[A-Z][A-Za-z ]{1,40}: {2,}\S")


def training_continued(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Whether training continues after all hits of the causes, so they were only warnings."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        hits = [hit for hit in scan.hits if hit.known.condition in named]
        if not hits:
            continue
        seen = True
        last = max(hit.line for hit in hits)
        if scan.lines - last < BUFFERED and any(map(ends_all, hits)):
            return False
        behind = (text for number, text in scan.tail if number > last)
        if not any(step_of(text) and not LOADING.search(text) for text in behind):
            return False
    return seen


def tried_again(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Whether a run that was training warned of the causes, and tries again below.

    Before its first step, a program may stop at what it has warned of.
    """
    named = {cause.condition for cause in causes}
    hits = [hit for scan in scans for hit in scan.hits if hit.known.condition in named]
    return bool(hits) and all(
        hit.warned
        and hit.steps
        and any(
            number > hit.line and RETRIED.search(strip_prefixes(text)[0])
            for number, text in scans[hit.source].tail
        )
        for hit in hits
    )


#: A row of the table of `nvidia-smi`, with cells or a border, and the end of a quotation around it.
_OF_NVIDIA_SMI = lazy(r"\s*(?:\|.{60,}\||[+|][-=+]{60,}[+|]|```)\s*$")


def log_continued(causes: Sequence[Cause], scans: Sequence[Scan]) -> bool:
    """Whether the logs continue long after all hits of the causes, so they were only warnings."""
    named = {cause.condition for cause in causes}
    seen = False
    for scan in scans:
        hits = [hit for hit in scan.hits if hit.known.condition in named]
        if not hits:
            continue
        seen = True
        if any(FIELD.match(hit.text) for hit in hits):
            return False
        last = max(hit.line for hit in hits)
        if all(number <= last or _OF_NVIDIA_SMI.match(text) for number, text in scan.tail):
            return False  # the person printed it afterwards
        # rows that are samples, or listed in a document, are taken out of the last lines
        if len(scan.tail) <= FEW or last >= scan.tail[0][0] or scan.lines - last < TAIL:
            return False
        if any(NATIVE_STACK.match(text) for _, text in scan.tail[-LAST_LINES:]):
            return False  # the many lines are the calls of the process that died
        # of a repeated message only the first lines are kept
        patterns = {hit.known.signature.pattern for hit in hits}
        if any(re.search(pattern, text) for pattern in patterns for _, text in scan.tail):
            return False
    return seen


#: What Python prints of an exception that ended a thread, and the first frame of its traceback
#: (CPython 3.8-3.14 Lib/threading.py).
THREAD_HEAD, THREAD_START = "Exception in thread ", "_bootstrap_inner"
#: What a web server prints of a request that it rejects (uvicorn 0.10-0.38 protocols/http;
#: werkzeug 1-3 serving.py; gunicorn 20-23 glogging.py).
ANSWERED = lazy(r'"[A-Z]{3,7} /\S{0,400} HTTP/[\d.]{1,3}" 4\d\d\b')
#: What it prints of one that it served, and of one that it could not.
SERVED = lazy(r'"[A-Z]{3,7} /\S{0,400} HTTP/[\d.]{1,3}" 2\d\d\b')
BROKE = lazy(r'"[A-Z]{3,7} /\S{0,400} HTTP/[\d.]{1,3}" 5\d\d\b')
#: What it prints of one that its engine answered: the status is sent with the first words (paths of
#: OpenAI's interface; vllm 0.2-0.25, sglang 0.2-0.5, lmdeploy 0.1-0.10, text-generation-inference).
GENERATED = lazy(
    r'"POST /(?:v1/)?(?:(?:chat/)?completions|responses|embeddings|generate(?:_stream)?)'
    r' HTTP/[\d.]{1,3}" 200\b'
)
#: Where servers check what a request asks for: vllm (0.4-0.25 entrypoints), sglang (0.3-0.5
#: srt/entrypoints, srt/openai_api), text-generation-inference; the frameworks below them.
HANDLER = lazy(
    r"[\\/](?:vllm[\\/]entrypoints|sglang[\\/]srt[\\/](?:entrypoints|openai_api)"
    r"|text_generation_server|starlette|fastapi|uvicorn)[\\/]"
)
#: Where Flask (0.5-3.1 app.py) catches what the function for a request raised: it logs that, and
#: answers with 500.
FLASK = lazy(r"[\\/]flask[\\/]app\.py (?:wsgi_app|__call__)$")
#: Where ComfyUI (2023-2025 execution.py) runs a node of a prompt and catches what it raises, what
#: it prints when a prompt has ended, well or not (main.py), and within how many lines.
NODES = lazy(r"[\\/]execution\.py (?:recursive_execute|get_output_data|\w*map_node_over_list)$")
PROMPT, OF_THE_SAME = "Prompt executed in ", 8
#: What a server logs once a signal asks it to stop (vllm 0.25 entrypoints/launcher.py), and what
#: its output handler may raise only because of that (v1/engine/exceptions.py; vllm issue 48745).
ASKED_TO_STOP = "[shutdown] API server: shutdown triggered"
STOPPED_ENGINE = "EngineDeadError"
#: What web servers log when they start, and once they are ready.
SERVES = (
    # uvicorn 0.10-0.38 server.py, lifespan/on.py
    ("Started server process [", "Application startup complete"),
    ("* Serving Flask app", "* Running on "),  # flask 0.11-3.1 cli.py; werkzeug 0.15-3.1 serving.py
    ("Starting gunicorn ", "Listening at: "),  # gunicorn 19-23 arbiter.py
    ("Running on local URL: ", "Running on local URL: "),  # gradio 3-5 strings.py
    ("Starting server", "To see the GUI go to: "),  # ComfyUI 0.1-0.3 server.py
)
#: Lines of other output behind an exception, so its process has not ended with it.
BEHIND = 3
#: How often an exception was outlived before it counts as caught: a script that is started again
#: after each failure fails more rarely.
OFTEN = 3


def recurring(scans: Sequence[Scan]) -> bool:
    """Whether training continued after the same exceptions before, and the log after these.

    A program that catches an exception and prints it does so again. But ranks may also die of it
    one after another, while the bars of others advance; only that of a program that directs all
    ranks shows that they are alive.
    """
    return any(scan.errors for scan in scans) and all(_recur(scan) for scan in scans)


def answered_requests(scans: Sequence[Scan]) -> bool:
    """Whether a server answered the requests that all exceptions are about, so it went on.

    Answers such as `400 Bad Request` say that the request was wrong, not the server. One that
    serves many at once prints that of another request first, and its own further down.
    """
    errors = [(error, scan) for scan in scans for error in scan.errors]
    return bool(errors) and all(
        ANSWERED.search(error.more)
        or _served_others(error, scan)
        or _caught(error, scan)
        or _ran_others(error, scan)
        for error, scan in errors
    )


def _caught(error: Error, scan: Scan) -> bool:
    """Whether Flask caught an exception of a request, and answered others after that."""
    if not (error.traced and error.frames):
        return False
    first = error.frames[0]
    if FLASK.search(f"{first.file} {first.function}") is None:
        return False
    behind = "\n".join(text for number, text in scan.tail if number > error.line)
    broke = max((found.end() for found in BROKE.finditer(behind)), default=0)
    return SERVED.search(behind[broke:]) is not None


def _ran_others(error: Error, scan: Scan) -> bool:
    """Whether ComfyUI caught an exception of a prompt, and ran another prompt after that."""
    places = (f"{frame.file} {frame.function}" for frame in error.frames)
    return any(NODES.search(place) for place in places) and any(
        PROMPT in text and number > error.line + OF_THE_SAME for number, text in scan.tail
    )


def _served_others(error: Error, scan: Scan) -> bool:
    """Whether a product refused a request, and the server answered others after that."""
    if (
        error.file
        or is_echo(error)
        or not any(HANDLER.search(frame.file) for frame in error.frames)
    ):
        return False
    behind = "\n".join(text for number, text in scan.tail if number > error.line)
    further = f"{error.more}\n{error.further}\n{behind}"
    answered = SERVED.search(further) or ANSWERED.search(further)
    return answered is not None and BROKE.search(further) is None


def served_since(scans: Sequence[Scan]) -> bool:
    """Whether a server was started after all failures of each log: they are of earlier attempts.

    One that was started before, and that answers what it is asked to generate, is alive as well,
    if the failures ended another process: those of a request may have ended its engine.
    """
    seen = False
    for scan in scans:
        failed = [*(hit.line for hit in scan.hits), *(error.line for error in scan.errors)]
        if not failed:
            continue
        seen = True
        behind = [text for number, text in scan.tail if number > max(failed)]
        if _ended_another(scan) and _generates(behind):
            continue
        if not any(_serves(behind, starts, is_ready) for starts, is_ready in SERVES):
            return False
    return seen


def _ended_another(scan: Scan) -> bool:
    """Whether all failures are exceptions that left the first statements of a program."""
    return all(
        error.traced and error.frames and error.frames[0].function == "<module>"
        for error in scan.errors
    ) and all(any(covers(hit, error) for error in scan.errors) for hit in scan.hits)


def _generates(lines: Sequence[str]) -> bool:
    """Whether a server answers requests for text in lines, and fails at none."""
    text = "\n".join(lines)
    return GENERATED.search(text) is not None and BROKE.search(text) is None


def _serves(lines: Sequence[str], starts: str, is_ready: str) -> bool:
    """Whether a server starts in lines, and says that it is ready."""
    begun = next((number for number, text in enumerate(lines) if starts in text), len(lines))
    return any(is_ready in text for text in lines[begun:])


def stopped_on_request(scans: Sequence[Scan]) -> bool:
    """Whether the only exceptions say that an engine is gone that a signal had stopped before."""
    return any(scan.errors for scan in scans) and all(
        error.type.rpartition(".")[2] == STOPPED_ENGINE
        and any(ASKED_TO_STOP in text for number, text in scan.tail if number < error.line)
        for scan in scans
        for error in scan.errors
    )


def long_past(scans: Sequence[Scan]) -> bool:
    """Whether a log of one process goes on for long below all its exceptions.

    What logs to it either caught them, or was started again. With several ranks, the rest may only
    wait for the one that died.
    """
    if len(scans) != 1 or not scans[0].errors or not scans[0].tail:
        return False
    (scan,) = scans
    last = max([hit.line for hit in scan.hits] + [error.line for error in scan.errors])
    return (
        not scan.failures
        and all(error.rank is None for error in scan.errors)
        and scan.tail[-1][0] - last > ALIVE
    )


#: Exceptions of an import, and the lines in which a log can only show its first one: `nohup` and a
#: script write one or two above it.
UNIMPORTED = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError"})
FIRST_LINES = 3


def ended_before(scans: Sequence[Scan]) -> bool:
    """Whether an earlier run ended before it began to work, and much more was printed below.

    Ctrl-C ended it while it imported modules, or its first import failed in the first lines of the
    log, as it would have in every rank. What follows is from another run: one that had begun to
    work prints what it had buffered only when it ends, below its traceback.
    """
    if len(scans) != 1 or not scans[0].errors:
        return False
    (scan,) = scans
    last = max([hit.line for hit in scan.hits] + [error.line for error in scan.errors])
    return (
        not scan.failures
        and not any(name in scan.marks for name in FATAL_MARKS)
        and all(error.rank is None and _began_nothing(error) for error in scan.errors)
        and scan.lines - last > TAIL
    )


def _began_nothing(error: Error) -> bool:
    """Whether a run ended while it imported its modules: by Ctrl-C, or as one is missing."""
    if error.type == "KeyboardInterrupt":
        return is_importing(error)
    first = error.traced and error.begun <= FIRST_LINES and bool(error.frames)
    return error.type in UNIMPORTED and first and error.frames[0].function == "<module>"


def after_training(scans: Sequence[Scan]) -> bool:
    """Whether the only exceptions are those of background threads after the training had finished.

    Python prints such an exception and goes on: the process ends with the status of its main
    thread.
    """
    return any(scan.errors for scan in scans) and all(
        (end := _finished(scan)) > 0
        and all(error.line >= end and _is_of_a_thread(error, scan) for error in scan.errors)
        for scan in scans
        if scan.errors
    )


def _finished(scan: Scan) -> int:
    """The line at which training had finished, 0 if it had not: its metrics, or a full bar."""
    for name in (TRAINED, END_OF_TRAINING):
        if name in scan.marks:
            return scan.marks[name][0]
    if scan.step is None:
        return 0
    line, _, step = scan.step
    loads = any(LOADING.search(text) for number, text in scan.tail if number == line)
    return line if step.is_last and not loads else 0


def _is_of_a_thread(error: Error, scan: Scan) -> bool:
    """Whether an exception ended a thread, as far as its frames or the line above them show."""
    above = (text for number, text in scan.tail if number == error.begun - 1)
    return any(text.startswith(THREAD_HEAD) for text in above) or (
        bool(error.frames) and error.frames[0].function == THREAD_START
    )


def _recur(scan: Scan) -> bool:
    """Whether training continued after all exceptions of a log, and the log goes on."""
    if not scan.errors:
        return True
    behind = [text for number, text in scan.tail if number > scan.errors[-1].line and text.strip()]
    survived = collections.Counter(_kind(one) for one in scan.outlived if isinstance(one, Error))
    return (
        scan.step is not None
        and scan.step[2].kind.startswith("r")
        and not scan.restarts
        and len(behind) >= BEHIND
        and all(survived[_kind(error)] >= OFTEN for error in scan.errors)
    )


def _kind(error: Error) -> tuple[str, str, str]:
    """What exceptions share that the same part of a program raises."""
    words = re.sub(r"\d+", "0", error.message).split()[:3]
    return (error.type, error.file, " ".join(words))
