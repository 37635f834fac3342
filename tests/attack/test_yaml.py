"""YAML that states gigabytes in a kilobyte, or itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs, yaml_text
from dsdoctor.host import LocalHost
from dsdoctor.judge import Policy
from dsdoctor.lint import Linter
from dsdoctor.probes.yaml_files import read_yaml

pytestmark = pytest.mark.any_user

HEAD = "distributed_type: DEEPSPEED\ndeepspeed:\n  zero_optimization: {stage: 2}\n"
BOMB = f"{HEAD}  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"  a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
CIRCLE = f"{HEAD}  a: &a [*a]\n"
LONG = HEAD + "".join(f"  a{n}: 1\n" for n in range(90_000)) + "#" * (1 << 20)
DEEP = HEAD + "  a: " + "[" * 5000 + "]" * 5000 + "\n"


@pytest.mark.parametrize(
    "text", [BOMB, CIRCLE, DEEP, LONG], ids=["aliases", "circle", "depth", "size"]
)
def test_a_bomb_is_not_unpacked(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"values|characters|depth|recursion|nested|stack"):
        yaml_text.load(text)
    path = tmp_path / "x.yaml"
    path.write_text(text)
    registry = packs.load(())
    assert Linter(registry, list(registry), None, Policy()).lint(path, "x.yaml") is None
    assert read_yaml("x.yaml", LocalHost(), str(tmp_path)) is None


def test_an_ordinary_alias_is_read() -> None:
    text = "common: &c {fp16: {enabled: true}}\ndeepspeed:\n  <<: *c\n  train_batch_size: 8\n"
    assert yaml_text.load(text)["deepspeed"]["fp16"] == {"enabled": True}
