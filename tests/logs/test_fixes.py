"""Which fixes a diagnosis offers: those that solve what the line says."""

from __future__ import annotations

import pytest

import dsdoctor


@pytest.mark.parametrize(
    ("line", "condition", "fixes"),
    [
        pytest.param(
            "ValueError: Hostfile contains a bad entry: node-b 8 gpus, unable to proceed",
            "hostfile-or-ssh-problem",
            ("repair-hostfile",),
            id="a line of the hostfile",
        ),
        pytest.param(
            "RuntimeError: launcher 'pdsh' not installed.",
            "hostfile-or-ssh-problem",
            (),
            id="pdsh is missing",
        ),
        pytest.param(
            "ssh: Could not resolve hostname node-x: Name or service not known",
            "hostfile-or-ssh-problem",
            (),
            id="a name without an address",
        ),
        pytest.param(
            "ValueError: Unknown CUDA arch (Hooper) or GPU not supported",
            "nvcc-arch-unsupported",
            ("unset-variables",),
            id="a word in TORCH_CUDA_ARCH_LIST",
        ),
    ],
)
def test_fixes(line: str, condition: str, fixes: tuple[str, ...]) -> None:
    (cause,) = dsdoctor.diagnose(text=f"{line}\n").causes
    assert (cause.condition, cause.fixes) == (condition, fixes)


def test_a_hint_has_the_name_that_the_line_has() -> None:
    line = "ssh: Could not resolve hostname node-x: Name or service not known\n"
    (cause,) = dsdoctor.diagnose(text=line).causes
    assert "`getent hosts node-x`" in cause.hint
