"""Fatal errors that one line states without a traceback."""

from __future__ import annotations

import re

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.frames import Frame

#: A failed check of native code that ended the process; the line itself contains its place.
NATIVE_ASSERT = "NativeAssert"
#: A failed check of a kernel, after which every later call fails, and how its text begins.
DEVICE_ASSERT, ASSERTION = "DeviceAssert", "Assertion `"
#: What Hydra raises for an object of the config that cannot be made.
INSTANTIATED = "InstantiationException"
#: How the two are called where people read them; native code has no exceptions of these names.
DISPLAYED = {NATIVE_ASSERT: "failed assertion", DEVICE_ASSERT: "device-side assertion"}
#: The name of a function in its C++ signature.
CALLED = lazy(r"~?\w+(?=\s?\()")
#: What Markdown puts around quoted words, and what it and mail put before quoted lines.
INLINE, QUOTE = "`", "> "
#: What it puts around words in bold, here around a whole line; not a row of asterisks, nor a
#: question of a list of them.
BOLD = "**"
IN_BOLD = lazy(
    r"(?P<indent>\s{0,40})\*\*(?!(?:Q|A|Question|Answer)\s?\d{0,3}[:.)])"
    r"(?P<words>[^*\s](?:[^*]{0,998}[^*\s])?)\*\*\s*"
)
PLAIN_ERRORS = (
    (
        lazy(r": error: (?P<message>(?:unrecognized|the following) arguments.*|argument .*)"),
        "SystemExit",
    ),
    # click 7-8 (exceptions.py), in the box of typer 0.6-0.20, and Fire 0.3-0.7 (core.py)
    (
        lazy(
            r"^(?:Error: |\u2502 )(?P<message>(?:No such option|Missing (?:option|argument)"
            r"|Invalid value for|Got unexpected extra arguments?)\b[^\u2502]{1,300}?)(?: *\u2502)?$"
        ),
        "SystemExit",
    ),
    (lazy(r"^ERROR: (?P<message>Could not consume arg: .{1,300})$"), "SystemExit"),
    # Hydra 1.0-1.3 (_internal/config_loader_impl.py, core/override_parser, utils.py): what it was
    # asked for, in the command line or the config of the script
    (
        lazy(
            r"^(?P<message>(?:In '[^']{1,400}': Could not (?:override|find)|Could not override)"
            r" '[^']{1,400}'"
            r"(?:\.(?: No match in the defaults list\.)?)?|Error parsing override '.{1,400}'"
            r"|Error merging override \S.{0,400}|Cannot find primary config '[^']{1,400}'\..*)$"
        ),
        "ConfigCompositionException",
    ),
    # Hydra 1.2-1.3 (_internal/instantiate/_instantiate2.py), above what the target raised
    (lazy(r"^(?P<message>Error in call to target '[^']{1,300}':)$"), INSTANTIATED),
    (lazy(r"can't open file (?P<message>.*)"), "FileNotFoundError"),
    (
        lazy(
            r"Error while finding module specification for '[^']{1,200}'"
            r" \(ModuleNotFoundError: (?P<message>[^()]{1,200})\)"
        ),
        "ModuleNotFoundError",
    ),
    # of `python -m` (CPython 3.3-3.14 Lib/runpy.py)
    (
        lazy(r"^\S{0,300}python[\w.]{0,12}: (?P<message>No module named [\w.]{1,200})$"),
        "ModuleNotFoundError",
    ),
    # `failed` is on the next line if a narrow terminal wrapped it
    (lazy(r"(?P<message>.{0,400}Assertion `[^`]*`(?: failed.*|\s*$))"), DEVICE_ASSERT),
    # torch 0.1-1.8 (aten/src/THC/THCGeneral.cpp), before the exception of Python or Lua
    (
        lazy(
            r"^THCudaCheck FAIL file=\S{1,400} line=\d{1,7} error=\d{1,4} : "
            r"(?P<message>device-side assert triggered)"
        ),
        DEVICE_ASSERT,
    ),
    # torch 1.5-2.13 (c10/cuda/CUDAException.cpp), where no Python code catches it
    (
        lazy(r"^what\(\):  (?P<message>CUDA error: device-side assert triggered.*)"),
        "RuntimeError",
    ),
    (
        # glibc's `assert`, of C++ (assert/assert.c, the same since 2.0)
        lazy(
            r"(?:^|: )(?P<file>[^\s:]{1,400}):(?P<line>\d{1,7}): (?P<function>.{1,1000}?): "
            r"(?P<message>Assertion `.{1,600}' failed\.)$"
        ),
        NATIVE_ASSERT,
    ),
)
PLAIN_LITERALS = (
    "error: unrecognized arguments",
    "error: the following arguments",
    "error: argument ",
    "No such option",
    "Missing option",
    "Missing argument",
    "Invalid value for ",
    "Got unexpected extra argument",
    "Could not consume arg: ",
    "Could not override '",
    "Error parsing override '",
    "Error merging override ",
    "Cannot find primary config '",
    "Error in call to target '",
    "': Could not ",
    "can't open file",
    ASSERTION,
    "what():  CUDA error: device-side assert",
    "THCudaCheck FAIL file=",
    "Error while finding module specification for",
    ": No module named ",
)


def plain_error(line: str) -> tuple[str, str, tuple[Frame, ...]] | None:
    """The exception that a line states: its type, its message and its place in native code.

    >>> plain_error("x.cu:9: f: block: [0,0,0], thread: [1,0,0] Assertion `i < n` failed.")[0]
    'DeviceAssert'
    """
    for pattern, name in PLAIN_ERRORS:
        if found := pattern.search(line):
            message: str = found["message"]
            if name == DEVICE_ASSERT and message.rstrip().endswith(INLINE):
                message = f"{message.rstrip()} failed."
            return name, message, (_native_frame(found),) if name == NATIVE_ASSERT else ()
    return None


def _native_frame(found: re.Match[str]) -> Frame:
    """The place of a check in native code, from the line that it prints."""
    called = CALLED.search(found["function"])
    return Frame(found["file"], called[0] if called else found["function"], int(found["line"]))


#: An exception without its traceback. Its class has none of the usual endings, but is defined where
#: packages keep their exceptions: `torch._dynamo.exc.Unsupported`, `filelock._error.Timeout`.
NAMED_EXCEPTION = lazy(
    r"^(?P<type>(?:[A-Za-z_]\w*\.){1,6}(?:_?exc|_?errors?|_?exceptions?)\.[A-Z]\w*"
    r"|pyarrow\.lib\.Arrow[A-Z]\w*)(?::\s(?P<message>.*)|:?\s*$)"
)
NAMED_LITERALS = (
    ".exc.", "._exc.", ".error.", "._error.", ".errors.", "._errors.", ".exceptions.",
    "._exceptions.", "pyarrow.lib.Arrow",
)  # fmt: skip


def without_backticks(text: str) -> str:
    """A line without the marks with which Markdown quotes words in a line, or sets it in bold.

    >>> without_backticks("`ValueError: no`"), without_backticks("```")
    ('ValueError: no', '```')
    >>> without_backticks("  **what():  no**"), without_backticks("*** Aborted at 7 ***")
    ('  what():  no', '*** Aborted at 7 ***')
    >>> without_backticks("**Q3: RuntimeError: no**")
    '**Q3: RuntimeError: no**'
    """
    if BOLD in text and (found := IN_BOLD.fullmatch(text)):
        return found["indent"] + found["words"]
    quoted = text[:1] == INLINE and not text.startswith(INLINE * 3)
    return text.strip(INLINE) if quoted else text
