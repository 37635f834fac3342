"""The interpreter cannot parse the training script.

## Why it matters
Every rank stops before the first line of the script, often after the job has waited in a queue.
dsdoctor lets the environment's interpreter parse the script, and the modules next to it that it
imports; nothing of them is run.

## What to do
Correct the line that is named. If a bracket or a quote is not closed, the mistake may be on an
earlier line. A script that uses the syntax of a newer Python needs an environment with that Python:
`match` came with 3.10, `except*` with 3.11, quotes of the same kind inside an f-string with 3.12.

## References
- Python documentation, "What's New in Python" 3.10 to 3.14, and "Built-in Exceptions": SyntaxError
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    Patient,
    Scope,
    ScriptSyntax,
    Signature,
    check,
    fail,
)

CONDITION = Condition("script-syntax-error", id="DSD920", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def script_is_parsed(syntax: ScriptSyntax, patient: Patient | Missing) -> Iterator[Finding]:
    """Fails on the first file that the interpreter cannot parse."""
    if syntax.file is None:
        return
    python = "this Python" if isinstance(patient, Missing) else f"Python {patient.version}"
    place = f"`{syntax.file}`" + (f", line {syntax.line}" if syntax.line else "")
    mend = "correct that line; an unclosed bracket or quote may be on an earlier one"
    if syntax.error.startswith("f-string") and not syntax.newer:  # 3.12 words none so
        mend = "correct that line; the same quotes inside an f-string need Python 3.12"
    if syntax.newer:
        mend = (
            f"run the job with a newer Python ({syntax.newer} parses the file), or write the line"
            " without the newer syntax"
        )
    yield fail(
        f"{python} cannot parse {place}: `{syntax.error_type}: {syntax.error}`",
        effect="every rank stops before the script's first line"
        if syntax.file == syntax.script
        else "every rank stops when the script imports this module",
        hint=mend,
        script=syntax.script,
        file=syntax.file,
        line=syntax.line,
        error_type=syntax.error_type,
        error=syntax.error,
        newer=syntax.newer,
    )


HINT = "correct the line; an unclosed bracket or quote may be on an earlier one"
SIGNATURES = (
    Signature(
        # Python 3 reads a file as UTF-8 unless it says otherwise, and has no such message
        pattern=r"SyntaxError: Non-ASCII character '\\x[0-9a-f]{2}' in file (?P<file>\S{1,300}) on line (?P<line>\d{1,9}), but no encoding declared",
        source="CPython 2.3-2.7 Parser/tokenizer.c; PEP 263",
        message="Python 2 was started, and cannot read line {line} of `{file}`",
        hint="start the script with `python3`, or activate the environment that contains it",
        examples=(
            "SyntaxError: Non-ASCII character '\\xe4' in file train.py on line 230, but no encoding declared; see http://python.org/dev/peps/pep-0263/ for details",
        ),
        not_examples=("SyntaxError: Non-ASCII character '\\xe4' found, but no encoding declared",),
        level=Level.STRONG,
    ),
)
