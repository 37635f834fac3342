"""Entries of an error index, exceptions, and logs that contain them."""

from __future__ import annotations

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, error_lookup, signatures_of
from dsdoctor.logs.error_index import Entry, ErrorIndex, Header, Label
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.logs.errors import Error
from dsdoctor.logs.frames import Frame
from dsdoctor.model.diagnosis import Diagnosis

REGISTRY = packs.load(builtin_only=True)
KNOWN = signatures_of(REGISTRY)
PLACE = "deepspeed/runtime/pipe/engine.py"


def chunk(text: str) -> tuple[int, str]:
    words = error_lookup.words_of(text)
    return len(words), error_lookup.digest(words)


def entry(*chunks: str, exception: str = "ValueError", anchored: bool = False) -> Entry:
    return Entry("deepspeed", exception, PLACE, "f", ("1.0",), tuple(map(chunk, chunks)), anchored)


def index(*entries: Entry) -> ErrorIndex:
    labels = {one.key: Label(REFUSAL, str(number)) for number, one in enumerate(entries)}
    return ErrorIndex(Header("deepspeed", "2026-01-01", ("1.0",)), entries, labels)


def error(message: str, kind: str = "ValueError", file: str = PLACE, function: str = "f") -> Error:
    frames = (Frame(f"/x/site-packages/{file}", function, 7),) if file else ()
    return Error(
        source=0, line=1, rank=None, type=kind, message=message, file="", file_line=0,
        text=message, when="", traced=bool(file), frames=frames,
    )  # fmt: skip


def log(file: str, function: str, line: str) -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/deepspeed/{file}", line 7, in {function}\n'
        f"    raise\n{line}\n"
    )


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)
