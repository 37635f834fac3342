"""What went wrong with a command, in words."""

from __future__ import annotations

from dsdoctor.model.redact import mask
from dsdoctor.process import Result


def trouble(result: Result, seconds: float) -> str | None:
    """The error of a command in words; None if it succeeded.

    >>> trouble(Result(argv=("x",), returncode=None, timed_out=True), 10)
    'timed out after 10 s'
    >>> trouble(Result(argv=("x",), returncode=9, stdout=b"no driver"), 10)
    'exit 9: no driver'
    """
    if result.timed_out:
        return f"timed out after {seconds:g} s"
    if result.returncode is None:
        return "it did not end"
    if result.returncode < 0:
        return f"ended by signal {-result.returncode}"
    if not result.is_text:
        return "its output is not text"
    if result.returncode > 0:
        words = first_words(result)
        return f"exit {result.returncode}" + (f": {words}" if words else "")
    return None


def first_words(result: Result) -> str:
    """The first lines of a command's output, with secrets masked."""
    for stream in (result.stderr, result.stdout):
        lines = stream.decode("utf-8", "replace").replace("\0", " ").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return mask("; ".join(said[:2]))[:300]
    return ""
