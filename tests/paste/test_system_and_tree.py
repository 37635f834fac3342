"""`hostnamectl` and `uv tree`."""

from __future__ import annotations

import pytest

from dsdoctor.paste.environment import environment_of

HOST = """ Static hostname: gpu-3
Operating System: {os}
          Kernel: {kernel}
    Architecture: x86-64
"""


@pytest.mark.parametrize(
    ("os", "kernel", "expected"),
    [
        ("Ubuntu 24.04.1 LTS", "Linux 6.8.0-51-generic", ("ubuntu 24.04", "6.8.0-51-generic")),
        ("Debian GNU/Linux 12 (bookworm)", "Linux 6.1.0-9-amd64", ("debian 12", "6.1.0-9-amd64")),
        ("macOS 15.1", "Darwin 24.1.0", (None, None)),
    ],
)
def test_hostnamectl(os: str, kernel: str, expected: tuple[str | None, str | None]) -> None:
    snapshot = environment_of("$ hostnamectl\n" + HOST.format(os=os, kernel=kernel))
    told = snapshot.facts.get("os_info", {}) if snapshot else {}
    assert (told.get("distribution"), told.get("release")) == expected


TREE = """job v0.1.0
├── deepspeed v0.18.2
│   ├── einops v0.8.1
│   └── torch v2.9.1
│       └── filelock v3.20.0
├── torch v2.9.1 (*)
└── transformers[torch] v4.57.1
"""


def test_uv_tree() -> None:
    snapshot = environment_of("$ uv tree\n" + TREE)
    assert snapshot is not None
    found = snapshot.facts["packages"]["packages"]
    versions = {name: row["version"] for name, row in found.items()}
    assert versions["torch"] == "2.9.1"
    assert versions["transformers"] == "4.57.1"
    assert versions.keys() == {"deepspeed", "einops", "filelock", "torch", "transformers"}


def test_the_tree_of_another_tool() -> None:
    snapshot = environment_of(
        "$ cargo tree\ntch-job v0.1.0\n├── serde v1.0.219\n└── torch v0.1.0\n"
    )
    assert snapshot is None or "packages" not in snapshot.facts
