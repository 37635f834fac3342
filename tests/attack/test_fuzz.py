"""Small fuzzing of all that reads data from outside; `benchmarks/fuzz.py` does it for longer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.fuzz_targets import TARGETS, WORDS

EXAMPLES = 60


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_is_a_traceback(name: str) -> None:
    target, seeds = TARGETS[name]

    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(
        st.sampled_from(seeds),
        st.lists(
            st.tuples(st.floats(0, 1), st.sampled_from(WORDS) | st.binary(max_size=8)), max_size=6
        ),
        st.floats(0, 1),
    )
    def tried(seed: bytes, inserted: list[tuple[float, bytes]], cut: float) -> None:
        data = seed if cut > 0.5 else seed[: int(len(seed) * cut * 2)]
        for place, word in inserted:
            at = int(place * len(data))
            data = data[:at] + word + data[at:]
        target(data)

    tried()
    target(b"")
