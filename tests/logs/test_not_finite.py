"""A training that ends well with NaN in its last steps has not gone well."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

SIGNATURES = signatures_of(packs.load(builtin_only=True))
FINE = "{{'loss': 0.{0}, 'learning_rate': 1e-05, 'epoch': 0.{0}}}\n"
BAD = "{{'loss': 0.0, 'learning_rate': 1e-05, 'rewards/chosen': nan, 'epoch': 0.{0}}}\n"
NAN = "{{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.{0}}}\n"
END = (
    "{'train_runtime': 4730.6, 'train_samples_per_second': 0.5, 'train_loss': 7.1, 'epoch': 1.0}\n"
)
METRICS = "***** train metrics *****\n  epoch                    =        1.0\n"


def condition(text: str) -> str:
    found = diagnose([Source(name="a.log", data=text.encode())], SIGNATURES)
    return found.causes[0].condition if found.causes else found.outcome.value


def steps(*rows: str) -> str:
    return "".join(row.format(number) for number, row in enumerate(rows, 1))


@pytest.mark.parametrize("row", [pytest.param(BAD, id="rewards"), pytest.param(NAN, id="loss")])
@pytest.mark.parametrize(
    "between",
    [
        pytest.param("", id="at once"),
        pytest.param("\n100%|###| 9/9 [00:09<00:00,  1.0it/s]\n\n", id="below a bar"),
    ],
)
def test_nan_in_the_last_step_is_named(row: str, between: str) -> None:
    assert condition(steps(FINE, FINE, row, row, row) + between + END + METRICS) == (
        "training-diverged"
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(steps(FINE, FINE, FINE) + END, id="finite"),
        pytest.param(steps(FINE, NAN, FINE, FINE, FINE) + END + METRICS, id="survived"),
        pytest.param(steps(FINE, BAD, BAD, FINE, FINE) + END + METRICS, id="rewards-survived"),
    ],
)
def test_a_training_that_ends_with_finite_steps_is_clean(text: str) -> None:
    assert condition(text) == "clean"
