"""Code of packs: what it raises, prints or returns is reported, and never ends dsdoctor.

A pack is code of one's own choice, and root's gate loads what lies in the system's folder. Mistakes
are named with the pack, and what it says is masked and steers no terminal.
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
from dsdoctor.packs.places import BUILTIN
from dsdoctor.packs.printed import shown
from dsdoctor.time_limit import OutOfTimeError

#: Characters of an error's text, and of a text of a finding.
LONGEST_ERROR = 400
LONGEST_TEXT = 10_000
#: Bytes of a finding's evidence, and of a pack's fact, as JSON.
LARGEST_EVIDENCE = 1 << 20
LARGEST_FACT = 8 << 20
#: Signatures, rules and sentences that one module may hold; those of dsdoctor hold up to 101.
MOST_ROWS = 10_000
#: For a pack to be loaded.
LOAD_SECONDS = 30.0


Row = TypeVar("Row", bound=msgspec.Struct)


class PackCodeError(Exception):
    """Code of a pack gave what cannot be used, or tried to end dsdoctor; in one line."""


def one_line(text: str, longest: int = LONGEST_ERROR) -> str:
    r"""Text of a pack that may go to a terminal: secrets masked, one line, nothing that steers.

    >>> one_line("no `HF_TOKEN=hf_abcdefghijklmnopqrst`\n\x1b[2Jin the file")
    'no `HF_TOKEN=[masked]` \ufffd[2Jin the file'
    """
    shown = "".join(
        letter if letter.isprintable() or letter.isspace() else "\N{REPLACEMENT CHARACTER}"
        for letter in mask(text[: 4 * longest])
    )
    shown = " ".join(shown.split())
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def words(error: BaseException) -> str:
    """An exception in one line: its kind and the beginning of what it says."""
    kind = type(error).__name__
    try:
        text = one_line(str(error))
    except Exception:  # noqa: BLE001  # `__str__` is code of the pack too
        text = "its text cannot be shown"
    return f"{one_line(kind)}: {text or 'no message'}"


def said(error: BaseException) -> str:
    """What a report says of an exception of a pack's code, or of ours about it."""
    return str(error) if isinstance(error, PackCodeError) else words(error)


def where(error: BaseException) -> str:
    """File and line that raised it, in parentheses; "" where there is none."""
    import traceback  # noqa: PLC0415  # only where a pack's code has failed

    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f" ({one_line(last[0].filename)}:{last[0].lineno})" if last else ""


class _Interrupts:
    """Whether Ctrl-C was pressed while code of a pack ran."""

    seen = False


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    _Interrupts.seen = True
    raise KeyboardInterrupt


@contextlib.contextmanager
def _telling_interrupts() -> Iterator[None]:
    """Tells Ctrl-C from a `KeyboardInterrupt` that the block raises itself."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where Python raises none
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
    """Whether dsdoctor ends the block: its time is over, or a signal handler raised."""
    if isinstance(error, OutOfTimeError):
        return True
    on_main = threading.current_thread() is threading.main_thread()
    if isinstance(error, KeyboardInterrupt) and on_main and _Interrupts.seen:
        return True
    import traceback  # noqa: PLC0415  # only where a pack's code has failed

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__", "")) if frames else ""
    # the place of dsdoctor's own handlers, and of a program's that uses dsdoctor as a library
    return module == "__main__" or (module.startswith("dsdoctor.") and module != __name__)


@contextlib.contextmanager
def contained(pack: str = BUILTIN) -> Iterator[None]:
    """Makes what would end dsdoctor an error of the pack whose code the block runs.

    Args:
        pack: its name; what a pack of others prints is shown as its words.

    Raises:
        PackCodeError: the block raised `SystemExit`, `KeyboardInterrupt` or their like.
        BaseException: what else it raises, and what dsdoctor itself ends it with.
    """
    try:
        printing = contextlib.nullcontext() if pack == BUILTIN else shown(pack, one_line)
        with _telling_interrupts(), printing:
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
    """What a report can write of a finding's evidence."""
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
    """A finding as a check gave it, its texts and its evidence within their bounds.

    Raises:
        PackCodeError: it is none, or a field is of another type.
    """
    if not isinstance(finding, Finding):
        raise PackCodeError(f"it gave `{one_line(type(finding).__name__)}`, {_EXPECTED}")
    if not isinstance(finding.status, Status):
        kind = one_line(type(finding.status).__name__)
        raise PackCodeError(f"`status` of a finding is `{kind}`, {_EXPECTED}")
    new = {name: _bounded(getattr(finding, name), name) for name in ("message", "effect", "hint")}
    return msgspec.structs.replace(finding, **new, evidence=_evidence(finding))


def findings_of(given: object) -> Iterable[object]:
    """What a check's function returned, to be walked through.

    Raises:
        PackCodeError: it is nothing that can be walked through.
    """
    if not isinstance(given, Iterable):
        raise PackCodeError(f"it returned `{one_line(type(given).__name__)}`, {_EXPECTED}")
    return given


def fact_problem(value: object, kind: type[Fact]) -> str:
    """Why what a pack's probe read cannot be used; "" where it can.

    Args:
        value: what the probe gave.
        kind: the fact that it announces.
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
        PackCodeError: they are of another type, or too many.
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
    """Why what a fix gave is no plan; "" where it is one, or says why there is none."""
    if not isinstance(made, (Plan, Impossible)):
        return f"`{one_line(type(made).__name__)}`, expected `Plan`, `Impossible` or `None`"
    return struct_problem(made)


def struct_problem(value: msgspec.Struct, without: Mapping[str, Any] | None = None) -> str:
    """Which field is of another type than its annotation says; "" where none is.

    Args:
        value: as a pack has made it.
        without: fields that have no JSON form, with a value that has.
    """
    shown = msgspec.structs.replace(value, **(without or {}))
    try:
        meant = msgspec.convert(msgspec.to_builtins(shown), type(value))
        for name in value.__struct_fields__:  # text in place of an enumeration's member
            given = getattr(shown, name)
            if getattr(meant, name) != given:
                return f"`{name}` is `{one_line(repr(given))}`, expected another type"
    except Exception as error:  # noqa: BLE001  # whatever is in a field
        return one_line(str(error))
    return ""
