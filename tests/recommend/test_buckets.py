"""The buckets in which gradients are reduced, replayed over a measured pass."""

from __future__ import annotations

from dsdoctor.recommend.measured import Measured, Pass
from dsdoctor.recommend.models import PRESETS
from dsdoctor.recommend.setting import Setting

BUCKETED = ((50, 20, 40), (60, 200, 30), (70, 20, 20), (80, 20, 10), (90, 30, 5), (8, 0, 0))


def test_gradients_fill_the_bucket_of_zero_3_as_they_come() -> None:
    """One that is larger than the bucket waits until the next one comes, and is not copied."""
    passed = Pass(batch=1, forward=100, segments=BUCKETED)
    setting = Setting(stage=3, world=4, bucket=25)
    moments = Measured(by="torch", plain=(passed,)).moments(PRESETS["gpt2"], setting)
    assert moments is not None
    found = [(one.name, one.activations, one.gradient, one.waiting, one.copied) for one in moments]
    assert found == [
        ("loss", 50, 0, 0, None),
        ("backward", 60, 0, 0, 0),
        ("bucket reduced", 30, 100, 0, 10),  # 10 elements are not divided by 4 ranks
        ("backward", 70, 0, 100, 0),
        ("bucket reduced", 20, 10, 100, 0),
        ("backward", 80, 0, 0, 0),
        ("backward", 90, 0, 0, 0),
        ("bucket reduced", 5, 15, 0, 20),
        ("backward", 8, 0, 0, 0),
        ("bucket reduced", 0, 0, 0, 15),
    ]


def test_offload_takes_a_part_of_each_gradient_back_to_the_gpu() -> None:
    passed = Pass(batch=1, forward=100, segments=BUCKETED)
    setting = Setting(stage=3, world=4, bucket=25, offload="optimizer")
    moments = Measured(by="torch", plain=(passed,)).moments(PRESETS["gpt2"], setting)
    assert moments is not None
    assert [one.fetched for one in moments if one.name == "bucket reduced"] == [3, 25, 3, 4]


def test_a_bucket_of_several_ranks_is_copied_to_be_reduced() -> None:
    """145 elements, 37 of each of four ranks. Of the large gradient, pieces of 2 and 37 exceed a bucket."""
    passed = Pass(batch=1, forward=100, segments=BUCKETED)
    model = PRESETS["gpt2"]
    reduced = [(30, 100, 0, 0), (20, 110, 10, 39), (5, 15, 110, 0), (0, 0, 130, 0)]
    accumulating = Setting(stage=1, world=4, bucket=25, accumulation=2)
    for setting, expected in ((Setting(stage=2, world=4, bucket=25), reduced), (accumulating, [])):
        moments = Measured(by="torch", plain=(passed,)).moments(model, setting)
        assert moments is not None
        found = [one for one in moments if one.name == "bucket reduced"]
        assert [(o.activations, o.gradient, o.finished, o.copied) for o in found] == expected
