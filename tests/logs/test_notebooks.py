"""Notebooks are read as what their cells have printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.notebooks import printed_by
from dsdoctor.packs import load

KNOWN = signatures_of(load(builtin_only=True))
TRACEBACK = [
    "\x1b[0;31m----------------------------------------\x1b[0m",
    "\x1b[0;31mRuntimeError\x1b[0m          Traceback (most recent call last)",
    "Cell \x1b[0;32mIn[4], line 2\x1b[0m\n\x1b[1;32m      1\x1b[0m x\n----> 2 model.cuda()\n",
    "\x1b[0;31mRuntimeError\x1b[0m: CUDA error: an illegal memory access was encountered",
]
FAILED = {"output_type": "error", "ename": "RuntimeError", "evalue": "x", "traceback": TRACEBACK}


def cell(count: int | None, *outputs: dict[str, Any], source: str = "train()") -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "outputs": list(outputs),
        "source": [source],
    }


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [text]}


def notebook(*cells: dict[str, Any]) -> bytes:
    return json.dumps({"cells": list(cells), "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def said(data: bytes) -> str:
    found = diagnose([Source("a.ipynb", data=data)], KNOWN)
    return found.causes[0].condition if found.causes else found.outcome.value


def test_the_exception_of_a_cell() -> None:
    assert said(notebook(cell(4, FAILED), cell(None))) == "cuda-kernel-failed"


def test_a_notebook_whose_cells_ran() -> None:
    assert said(notebook(cell(1, printed("loss 2.1\n")), cell(2))) == "clean"


def test_words_in_the_source_of_a_cell_are_no_failure() -> None:
    raised = "raise RuntimeError('CUDA out of memory')  # RuntimeError: CUDA out of memory"
    assert said(notebook(cell(1, printed("loss 2.1\n"), source=raised))) == "clean"


def test_cells_are_read_in_the_order_of_the_notebook() -> None:
    data = notebook(cell(7, printed("b")), {"cell_type": "markdown", "source": ["# c"]},
                    cell(2, {"output_type": "execute_result", "data": {"text/plain": ["a"]}}))  # fmt: skip
    assert printed_by(data) == b"In [7]:\nb\nIn [2]:\na\n"


def test_tables_among_the_outputs_do_not_make_it_a_document() -> None:
    table = "".join(
        f"\n\n## Part {n}\nThis usually means that the answer of it is wrong.\n" for n in range(30)
    )
    own = {"output_type": "error", "ename": "TypeError", "evalue": "no", "traceback": [
        "TypeError                Traceback (most recent call last)", "Cell In[9], line 1\n----> 1 f()\n",
        "TypeError: string indices must be integers"]}  # fmt: skip
    assert said(notebook(cell(8, printed(table)), cell(9, own))) == "user-code"


@pytest.mark.parametrize(
    "data",
    [b'{"cells": [', b'{"cells": 3, "nbformat": 4}', b'{"nbformat": 4}', b'{"cells": [1, {"a": 2}]}'],
    ids=["cut off", "no list", "no cells", "no format"],
)  # fmt: skip
def test_what_is_no_notebook_is_read_as_it_stands(data: bytes) -> None:
    assert printed_by(data) is None
    assert (
        said(data + b"\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n") == "gpu-oom"
    )


OLD = [
    "-------------------------------------------",
    "{0}                                 Traceback (most recent call last)",
    "<ipython-input-{1}-0f1e2d> in <module>\n----> 1 train(model)\n",
    "<ipython-input-2-aa1e2d> in train(model)\n      1 def train(model):\n----> 2     model.step()\n",
    "{0}: {2}",
]


def failed(kind: str, number: int, words: str) -> dict[str, Any]:
    shown = [line.format(kind, number, words) for line in OLD]
    return {"output_type": "error", "ename": kind, "evalue": words, "traceback": shown}


def test_the_frames_of_earlier_releases_of_ipython() -> None:
    assert (
        said(notebook(cell(3, failed("NameError", 3, "name 'epoch' is not defined"))))
        == "user-code"
    )


def test_the_last_cell_that_failed_counts() -> None:
    first = failed("RuntimeError", 3, "CUDA out of memory. Tried to allocate 2.00 GiB")
    last = failed("KeyError", 4, "'labels'")
    assert said(notebook(cell(3, first))) == "gpu-oom"
    assert said(notebook(cell(3, first), cell(4, last))) == "user-code"
    assert said(notebook(cell(4, last), cell(3, first))) == "gpu-oom"


def test_a_name_that_a_file_beside_the_notebook_does_not_have() -> None:
    words = "cannot import name 'tree' from 'grow' (/home/me/nb/grow.py)"
    assert said(notebook(cell(3, failed("ImportError", 3, words)))) == "user-code"
