"""Notebooks (`.ipynb`): what their cells have printed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

#: How the outputs of a cell begin.
CELL = "In ["
#: A larger notebook (bytes) is read as plain text.
LARGEST = 64 << 20
#: Bytes at the beginning of a file that show whether it is a notebook.
_SAMPLE = 4096


def outputs_of(blocks: Iterator[bytes], clean: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The blocks of a log, those of a notebook as the log that its cells have printed.

    Args:
        blocks: the content of a file.
        clean: takes terminal escapes out of a block.
    """
    first = next(blocks, b"")
    if not looks_like_notebook(first):
        return itertools.chain((first,), blocks) if first else blocks
    held, size = [first], len(first)
    for block in blocks:
        held.append(block)
        size += len(block)
        if size > LARGEST:
            return itertools.chain(held, blocks)
    printed = printed_by(b"".join(held))
    return iter(held) if printed is None else iter((clean(printed),))


def looks_like_notebook(head: bytes) -> bool:
    r"""Whether a file begins like a notebook of format 4 (nbformat 4.0-5.10 v4/nbjson.py).

    >>> looks_like_notebook(b'{\n "cells": [\n  {\n   "cell_type": "code",')
    True
    """
    if head[:1] not in {b"{", b" ", b"\t", b"\r", b"\n", b"\xef"}:
        return False
    sample = head[:_SAMPLE].lstrip(b"\xef\xbb\xbf \t\r\n")
    return sample.startswith(b"{") and (b'"cells"' in sample or b'"nbformat"' in sample)


def printed_by(data: bytes) -> bytes | None:
    """The outputs of a notebook's code cells as a log; None if it is none.

    Each cell's outputs begin with its number, as Jupyter shows it. The cells are in the order of
    the notebook: numbers begin anew with each kernel, so they give no order.
    """
    import json  # noqa: PLC0415  # few logs are a notebook

    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or "nbformat" not in notebook:
        return None
    ran: list[str] = []
    number = 0
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        count = cell.get("execution_count")
        number = count if isinstance(count, int) else number
        outputs = cell.get("outputs")
        text = "".join(map(_ended, _texts(outputs))) if isinstance(outputs, list) else ""
        if text or isinstance(count, int):
            ran.append(f"{CELL}{number}]:\n{text}")
    return "".join(ran).encode("utf-8", "replace")


def _texts(outputs: list[Any]) -> Iterator[str]:
    for output in outputs:
        if not isinstance(output, dict):
            continue
        kind = output.get("output_type")
        if kind == "stream":
            yield _joined(output.get("text"), "")
        elif kind == "error":
            shown = _joined(output.get("traceback"), "\n")
            yield shown or f"{output.get('ename', '')}: {output.get('evalue', '')}"
        elif isinstance(data := output.get("data"), dict):
            yield _joined(data.get("text/plain"), "")


def _joined(text: object, by: str) -> str:
    if isinstance(text, list):
        return by.join(part for part in text if isinstance(part, str))
    return text if isinstance(text, str) else ""


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
