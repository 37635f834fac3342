"""`dsdoctor diagnose` as a user calls it, but within this process: a start costs a second."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.cli.main import run
from tests.support.command import Outcome


class _Stream(io.TextIOWrapper):
    """A stream of text over bytes that can still be read when it was closed."""

    def text(self) -> str:
        self.flush()
        buffer: Any = self.buffer
        return bytes(buffer.getvalue()).decode()


def diagnose_command(
    monkeypatch: pytest.MonkeyPatch, *argv: str | Path, stdin: bytes = b""
) -> Outcome:
    out, err = _Stream(io.BytesIO(), "utf-8"), _Stream(io.BytesIO(), "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        status = run(["diagnose", *map(str, argv)])
    return Outcome(status, out.text(), err.text(), 0.0)
