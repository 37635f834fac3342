from __future__ import annotations

import pytest

from dsdoctor_checks.torch import alloc_conf_unknown
from tests.checks import machines as m

CHECK = alloc_conf_unknown.allocator_setting_is_read.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.NO_ENV,), []),
        ((m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"),), []),
        ((m.env(PYTORCH_CUDA_ALLOC_CONF="a:1", PYTORCH_ALLOC_CONF="a:1"),), []),
        (
            (
                m.env(
                    PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                    PYTORCH_ALLOC_CONF="max_split_size_mb:512",
                ),
            ),
            ["warn"],
        ),
        ((m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segment:True"),), ["fail"]),
        ((m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments=True"),), ["fail"]),
        ((m.env(PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:[256:1,512:2,>:4]"),), []),
        ((m.env(PYTORCH_ALLOC_CONF="brand_new_option:1"),), []),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
