"""A signal at any moment leaves no process, no folder and no shared memory."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.support import signals

TIMES = 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("argv", signals.COMMANDS, ids=" ".join)
def test_nothing_is_left(argv: tuple[str, ...], tmp_path: Path) -> None:
    draw = random.Random(" ".join(argv))
    for time in range(TIMES):
        number, delay = signals.moments(draw, argv)
        folder = tmp_path / str(time)
        folder.mkdir()
        _, left = signals.attempt(argv, number, delay, folder)
        assert left == [], (number.name, delay)
