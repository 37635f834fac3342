"""Messages of `dcgmi diag` and `dcgmi health`, whose tables break lines within words."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of

REGISTRY = packs.load(builtin_only=True)
HEAD = """\
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
| NVML Library              | Pass                                           |
"""


def table(name: str, text: str) -> str:
    parts = [text[at : at + 46] for at in range(0, len(text), 46)]
    rows = [f"| {name if not n else '':<25} | {part:<46} |" for n, part in enumerate(parts)]
    return HEAD + "\n".join(rows) + "\n| Memory                    | Pass - All |\n"


TEXTS = [
    pytest.param(
        "GPU 3 had uncorrectable memory errors and row remapping failed. Run a field diagnostic.",
        "row-remap-failed",
        id="remapping-failed",
    ),
    pytest.param(
        "GPU 0 had memory errors and row remappings are pending", "row-remap-pending", id="pending"
    ),
    pytest.param(
        "Detected 2 volatile double-bit ECC error(s) in GPU 5. Drain the GPU and reset it or reboot.",
        "ecc-uncorrectable",
        id="uncorrectable",
    ),
    pytest.param(
        "A pending retired page has been detected in GPU 1. Monitor - this GPU can still perform",
        "page-retirement-pending",
        id="a-page",
    ),
    pytest.param("A corrupt InfoROM has been detected in GPU 2.", "inforom-corrupt", id="inforom"),
]


@pytest.mark.parametrize(("text", "condition"), TEXTS)
@pytest.mark.parametrize("name", ["Warning", ""])
def test_messages(text: str, condition: str, name: str) -> None:
    for pasted in (table(name, text), f"Error: {text}\n"):
        stated = environment_of(pasted)
        assert stated is not None
        findings = judge(stated, list(REGISTRY), REGISTRY).findings
        assert condition in {
            one.condition for one in findings if one.status.value in ("warn", "fail")
        }


@pytest.mark.parametrize(
    "text",
    [
        table("Warning", "Persistence mode for GPU is disabled."),
        table("Warning", "GPU 0 Error using CUDA API cudaDeviceGetByPCIBusId"),
        "GPU 3 had uncorrectable memory errors last week, we replaced it.\n",
        "Detected 8 GPUs\n",
    ],
    ids=["no-number", "another-message", "a-sentence", "a-count"],
)
def test_other_texts_state_nothing(text: str) -> None:
    assert environment_of(text) is None
