"""Runs code of packs: what it raises, prints or returns is reported, and never ends dsdoctor.

Packs are trusted code that the user or root installed, so this is about mistakes. They are reported
with the pack's name; texts of a pack are masked and cannot control the terminal.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.fix_plan import Impossible, Plan
from dsdoctor.model.masking import mask
from dsdoctor.model.plain import shortened
from dsdoctor.packs.places import BUILTIN
from dsdoctor.packs.printed import shown
from dsdoctor.time_limit import OutOfTimeError

#: Longest text of an error, and of a finding, in characters.
LONGEST_ERROR = 400
LONGEST_TEXT = 10_000
#: Largest evidence of a finding, and largest fact of a pack, in bytes of JSON.
LARGEST_EVIDENCE = 1 << 20
LARGEST_FACT = 8 << 20
#: Most signatures, rules or sentences in one module; dsdoctor's own have up to 101.
MOST_ROWS = 10_000
#: Time limit for loading a pack.
LOAD_SECONDS = 30.0


Row = TypeVar("Row", bound=msgspec.Struct)


class PackCodeError(Exception):
    """Code of a pack returned an unusable value, or tried to end dsdoctor; the text is one line."""


def one_line(text: str, longest: int = LONGEST_ERROR) -> str:
    r"""A text of a pack, safe for a terminal: one line, secrets masked, no control characters.

    >>> one_line("no `HF_TOKEN=hf_abcdefghijklmnopqrst`\n\x1b[2Jin the file")
    'no `HF_TOKEN=[masked]` \ufffd[2Jin the file'
    """
    shown = "".join(
        letter if letter.isprintable() or letter.isspace() else "\N{REPLACEMENT CHARACTER}"
        for letter in mask(text[: 4 * longest])
    )
    return shortened(" ".join(shown.split()), longest)


def words(error: BaseException) -> str:
    """An exception in one line: its type and the beginning of its text."""
    kind = type(error).__name__
    try:
        text = one_line(str(error))
    except Exception:  # noqa: BLE001  # `__str__` is code of the pack too
        text = "its text cannot be shown"
    return f"{one_line(kind)}: {text or 'no message'}"


def said(error: BaseException) -> str:
    """The text in a report for an exception that a pack's code raised or caused."""
    return str(error) if isinstance(error, PackCodeError) else words(error)


def where(error: BaseException) -> str:
    """File and line that raised it, in parentheses; "" if it was not raised."""
    import traceback  # noqa: PLC0415  # only if a pack's code has failed

    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f" ({one_line(last[0].filename)}:{last[0].lineno})" if last else ""


class _Interrupts:
    """Whether Ctrl-C was pressed while code of a pack ran."""

    seen = False


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    _Interrupts.seen = True
    raise KeyboardInterrupt


@contextlib.contextmanager
def _noting_interrupts() -> Iterator[None]:
    """Records Ctrl-C, to distinguish it from a `KeyboardInterrupt` that the block raises itself."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Ctrl-C never raises here
        return
    _Interrupts.seen = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if _Interrupts.seen:  # the program's own handler may raise anything
        yield
        return
    signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pack_of(function: Callable[..., object]) -> str:
    """The pack that a function is part of: a package, or the file of a checks.d folder."""
    package = function.__module__.partition(".")[0]
    if package in ("dsdoctor", "dsdoctor_checks"):
        return BUILTIN
    code = getattr(function, "__code__", None)
    return package if code is None or "." in function.__module__ else str(code.co_filename)


def _is_ours(error: BaseException) -> bool:
    """Whether dsdoctor itself ends the block: at a time limit, or from a signal handler."""
    if isinstance(error, OutOfTimeError):
        return True
    on_main = threading.current_thread() is threading.main_thread()
    if isinstance(error, KeyboardInterrupt) and on_main and _Interrupts.seen:
        return True
    import traceback  # noqa: PLC0415  # only if a pack's code has failed

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__", "")) if frames else ""
    # where the handlers of dsdoctor are, and those of a program that uses it as a library
    return module == "__main__" or (module.startswith("dsdoctor.") and module != __name__)


@contextlib.contextmanager
def contained(pack: str = BUILTIN) -> Iterator[None]:
    """Turns an attempt of a pack's code to end dsdoctor into an error of that pack.

    Args:
        pack: its name; output of a third party's pack is shown with that name.

    Raises:
        PackCodeError: the block raised `SystemExit`, `KeyboardInterrupt` or a similar exception.
        BaseException: any other exception of the block, or one with which dsdoctor ends it.
    """
    try:
        printing = contextlib.nullcontext() if pack == BUILTIN else shown(pack, one_line)
        with _noting_interrupts(), printing:
            yield
    except BaseException as error:
        if isinstance(error, Exception) or _is_ours(error):
            raise
        raise PackCodeError(f"it tried to end dsdoctor ({words(error)}){where(error)}") from None


_EXPECTED = "expected findings (`yield ok()`, `warn(…)`, `fail(…)` or `skip(…)`)"


def _bounded(text: object, name: str) -> str:
    if not isinstance(text, str):
        kind = one_line(type(text).__name__)
        raise PackCodeError(f"`{name}` of a finding is `{kind}`, expected text")
    if len(text) > LONGEST_TEXT:
        return f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"
    return text


def _evidence(finding: Finding) -> dict[str, Any]:
    """A finding's evidence, or a statement why a report cannot contain it."""
    try:
        size = len(msgspec.json.encode(finding.evidence))
    except (TypeError, ValueError, RecursionError) as error:
        return {"unusable": words(error)}
    if not isinstance(finding.evidence, dict):
        return {"unusable": f"`{one_line(type(finding.evidence).__name__)}`, expected a mapping"}
    if size > LARGEST_EVIDENCE:
        return {"left_out": f"{size} bytes of evidence (limit: {LARGEST_EVIDENCE})"}
    return finding.evidence


def usable(finding: object) -> Finding:
    """The finding that a check yielded, with texts and evidence of limited size.

    Raises:
        PackCodeError: it is not a finding, or a field has the wrong type.
    """
    if not isinstance(finding, Finding):
        raise PackCodeError(f"it gave `{one_line(type(finding).__name__)}`, {_EXPECTED}")
    if not isinstance(finding.status, Status):
        kind = one_line(type(finding.status).__name__)
        raise PackCodeError(f"`status` of a finding is `{kind}`, {_EXPECTED}")
    new = {name: _bounded(getattr(finding, name), name) for name in ("message", "effect", "hint")}
    return msgspec.structs.replace(finding, **new, evidence=_evidence(finding))


def findings_of(given: object) -> Iterable[object]:
    """What a check's function returned, if it can be iterated over.

    Raises:
        PackCodeError: it is not iterable.
    """
    if not isinstance(given, Iterable):
        raise PackCodeError(f"it returned `{one_line(type(given).__name__)}`, {_EXPECTED}")
    return given


def fact_problem(value: object, kind: type[Fact]) -> str:
    """Why the result of a probe cannot be used; "" if it can.

    Args:
        value: what the probe returned.
        kind: the fact in its annotation.
    """
    if not isinstance(value, kind):
        return f"gave `{one_line(type(value).__name__)}`, expected `{kind.__name__}` or `Missing`"
    if kind.__module__.startswith("dsdoctor."):
        return ""
    try:
        size = len(msgspec.json.encode(value))
        msgspec.convert(msgspec.to_builtins(value), kind)
    except UnicodeEncodeError:  # a file name whose bytes are not UTF-8
        return ""
    except Exception as error:  # noqa: BLE001  # whatever is in a field of a pack's fact
        return f"gave a `{kind.__name__}` that cannot be used ({words(error)})"
    return "" if size <= LARGEST_FACT else f"gave {size} bytes, more than {LARGEST_FACT}"


def rows(given: object, kind: type[Row], name: str) -> tuple[Row, ...]:
    """The signatures, rules or sentences of a module.

    Raises:
        PackCodeError: they have the wrong type, or are too many.
    """
    if not isinstance(given, (tuple, list)):
        raise PackCodeError(f"`{name}` is `{one_line(type(given).__name__)}`, expected a tuple")
    if len(given) > MOST_ROWS:
        raise PackCodeError(f"`{name}` has {len(given)} items, more than {MOST_ROWS}")
    for number, item in enumerate(given):
        if not isinstance(item, kind):
            found = one_line(type(item).__name__)
            raise PackCodeError(f"`{name}[{number}]` is `{found}`, expected `{kind.__name__}`")
        wrong = struct_problem(item)
        if wrong:
            raise PackCodeError(f"`{name}[{number}]` cannot be used: {wrong}")
    return tuple(given)


def plan_problem(made: object) -> str:
    """Why what a fix returned cannot be used; "" if it is a plan or `Impossible`."""
    if not isinstance(made, (Plan, Impossible)):
        return f"`{one_line(type(made).__name__)}`, expected `Plan`, `Impossible` or `None`"
    return struct_problem(made)


def struct_problem(value: msgspec.Struct, without: Mapping[str, Any] | None = None) -> str:
    """Which field does not have the type of its annotation; "" if all do.

    Args:
        value: as a pack has constructed it.
        without: fields without a JSON form, with values to use instead.
    """
    shown = msgspec.structs.replace(value, **(without or {}))
    try:
        meant = msgspec.convert(msgspec.to_builtins(shown), type(value))
        for name in value.__struct_fields__:  # a string instead of an enumeration's member
            given = getattr(shown, name)
            if getattr(meant, name) != given:
                return f"`{name}` is `{one_line(repr(given))}`, expected another type"
    except Exception as error:  # noqa: BLE001  # whatever is in a field
        return one_line(str(error))
    return ""
