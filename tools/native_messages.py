"""The messages of C++ sources: torch's macros, thrown exceptions, `assert` and what is printed.

Read without a compiler: the literals of a check's arguments are joined, and what is between them
is a place for a value. A check without words of its own prints its condition. A message whose words
come from a macro's argument alone is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.logs.plain_errors import DEVICE_ASSERT, NATIVE_ASSERT

#: A place for a value, in a template.
HOLE = "\x00"
SUFFIXES = (".cpp", ".cc", ".cu", ".h", ".hpp", ".cuh")
#: What Python calls the exception of a macro or a C++ class (torch/csrc/Exceptions.h, pybind11).
RAISES = {
    "AT_ASSERT": "RuntimeError",
    "AT_ASSERTM": "RuntimeError",
    "AT_ERROR": "RuntimeError",
    "EVOFORMER_CHECK": "RuntimeError",
    "TORCH_CHECK": "RuntimeError",
    "TORCH_CHECK_INDEX": "IndexError",
    "TORCH_CHECK_NOT_IMPLEMENTED": "NotImplementedError",
    "TORCH_CHECK_TYPE": "TypeError",
    "TORCH_CHECK_VALUE": "ValueError",
    "TORCH_INTERNAL_ASSERT": "RuntimeError",
    "invalid_argument": "ValueError",
    "out_of_range": "IndexError",
    "runtime_error": "RuntimeError",
}
#: Macros whose first argument is the class that is thrown, and not a condition.
NAMED = {"C10_THROW_ERROR", "TORCH_CHECK_WITH"}
#: Those without a condition before the message.
UNCONDITIONAL = {"AT_ERROR", "C10_THROW_ERROR", "invalid_argument", "out_of_range", "runtime_error"}
CALL = re.compile(
    r"\b(?:(?P<macro>AT_(?:ASSERTM?|ERROR)|TORCH_(?:CHECK(?:_\w+)?|INTERNAL_ASSERT)|C10_THROW_ERROR"
    r"|EVOFORMER_CHECK)|throw\s+std::(?P<thrown>\w+)|(?P<aborts>(?<!static_)assert)"
    r"|(?P<kernel>CUDA_KERNEL_ASSERT))\s*\("
)
#: What torch prints of a check that has no words of its own (c10/util/Exception.h).
WORDLESS = {
    "TORCH_CHECK": "Expected {} to be true, but got false.",
    "TORCH_INTERNAL_ASSERT": "{} INTERNAL ASSERT FAILED at",
}
#: What is printed, and not raised: `printf` of an error, and what is written to stderr.
PRINTED = re.compile(
    r"\bfprintf\s*\(\s*stderr\s*,(?P<format>[^;]*)|\bprintf\s*\((?P<plain>[^;]*)"
    r"|\bstd::cerr(?P<stream>[^;]*)"
)
FAILS = re.compile(r"(?i)\berror\b|fail|unsupported|can't|cannot|!!!!")
STRING = r'"(?:[^"\\\n]|\\.)*"'
#: Comments, and strings so that `//` in one is not taken for a comment.
COMMENT = re.compile(rf"(?P<kept>{STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
LITERAL = re.compile(STRING)
#: What joins two literals without a value between them.
JOINT = re.compile(r"(?:[\s,+]|<<|(?:c10::str|std::string)\()*")
BRACES = re.compile(r"\{[^{}]*\}")
ESCAPE = re.compile(r"\\(?:[ntr]|x[0-9a-f]{2}|(.))")
#: A definition at the left margin: the name before its parameters.
FUNCTION = re.compile(r"^(?=[A-Za-z_])(?:[^\n;={}(]*[\s*&:>])?(?P<name>\w+)\s*\(", re.MULTILINE)


class Native(NamedTuple):
    """A message of a C++ source: its line, function, exception, condition and template."""

    line: int
    function: str
    exception: str
    condition: str
    text: str


#: What stands for the exception of a line that is only printed.
STDERR = "log.stderr"
#: Conversions of `printf`.
PERCENT = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?(?:hh?|ll?|z)?[a-zA-Z]")


def without_comments(text: str) -> str:
    """The source with its comments blank and its lines where they were."""
    return COMMENT.sub(lambda m: m["kept"] or "\n" * m[0].count("\n"), text)


def arguments(text: str, start: int) -> list[str]:
    """The arguments of a call whose parenthesis is open at `start`; empty if it never closes.

    >>> arguments('f(a(1, 2), "x, y" "z")', 2)
    ['a(1, 2)', '"x, y" "z"']
    """
    depth, begun, at = 1, start, start
    found: list[str] = []
    while at < len(text):
        if text[at] == '"' and (literal := LITERAL.match(text, at)):
            at = literal.end()
            continue
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and text[at] == ","):
            found.append(text[begun:at].strip())
            begun = at + 1
        if depth == 0:
            return found
        at += 1
    return []


def template(parts: list[str]) -> str:
    """The text of a message, with holes for values.

    >>> template(['"rank ", rank, " is not " "here"']).split(HOLE)
    ['rank ', ' is not here']
    """
    source = ", ".join(parts)
    text, end = "", 0
    for literal in LITERAL.finditer(source):
        between = source[end : literal.start()]
        if not JOINT.fullmatch(between) and "format(" not in between:
            text += HOLE
        text += ESCAPE.sub(lambda m: m[1] or " ", literal[0][1:-1])
        end = literal.end()
    if "format(" in source:  # its values follow the last literal
        return BRACES.sub(HOLE, text)
    return text if JOINT.fullmatch(source[end:].strip(")")) else text + HOLE


def messages(text: str) -> Iterator[Native]:
    """Every message of a source."""
    text = without_comments(text).replace("\\\n", " \n")
    functions = [(found.start(), found["name"]) for found in FUNCTION.finditer(text)]

    def native(at: int, exception: str, condition: str, words: str) -> Native:
        function = next((name for start, name in reversed(functions) if start <= at), "")
        line = text.count("\n", 0, at) + 1
        return Native(line, function or "<module>", exception, condition, words)

    for call in CALL.finditer(text):
        found = _raised(call, arguments(text, call.end()))
        if found is not None:
            yield native(call.start(), *found)
    for print_ in PRINTED.finditer(text):
        literals = print_["format"] or print_["plain"] or print_["stream"]
        words = PERCENT.sub(HOLE, template([literals]))
        if words.strip() and (not print_["plain"] or FAILS.search(words)):
            yield native(print_.start(), STDERR, "", words)


def _raised(call: re.Match[str], args: list[str]) -> tuple[str, str, str] | None:
    """Exception, condition and template of a call; None if nothing identifies it."""
    name = call["macro"] or call["thrown"] or ""
    first = " ".join(args[0].split()) if args else ""
    if call["kernel"]:
        return DEVICE_ASSERT, first, f"Assertion `{first}` failed."  # CUDA's words
    if call["aborts"]:
        told = f"Assertion `{first}' failed."  # glibc's words, assert/assert.c
        return (NATIVE_ASSERT, first, told) if re.search("[A-Za-z]", first) else None
    if name in NAMED:
        exception = first.rpartition("::")[2]
        args = args[1:] if name in UNCONDITIONAL else args[2:]
        first = ""
    else:
        exception = RAISES.get(name, "")
        args = args if name in UNCONDITIONAL else args[1:]
    if not exception.isidentifier():
        return None
    if name in WORDLESS and not args and first not in {"", "false"}:
        return exception, first, WORDLESS[name].format(first)
    return (exception, first, template(args)) if any('"' in one for one in args) else None
