"""What `recommend` predicts for a rank, against the peak of torch's caching allocator in a real engine.

Shapes only (STANDIN_MODE=meta) on GPUs of 80 GiB, one rank of eight; see the README for what no
stand-in can show: workspaces, fragmentation, the CUDA context and NCCL's buffers are left out.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.recommend import memory
from dsdoctor.recommend.models import PRESETS, written
from dsdoctor.recommend.setting import Setting
from tests.standin import bed
from tests.standin.conftest import GIB, machine

pytestmark = [pytest.mark.standin, pytest.mark.timeout(960)]

#: What torch does not allocate, or the stand-in does not do.
OUTSIDE = ("CUDA context", "NCCL", "workspaces", "fragmentation")


#: Preset, layers, and the setting.
CASES: tuple[tuple[str, int, dict[str, int]], ...] = (
    ("llama-3-8b", 4, {"stage": 1}),
    ("llama-3-8b", 4, {"stage": 2, "micro_batch": 4, "checkpointing": True}),
    ("llama-3-8b", 4, {"stage": 2, "checkpointing": True, "accumulation": 4}),
    ("llama-3-8b", 4, {"stage": 3, "checkpointing": True}),
    ("qwen2.5-0.5b", 24, {"stage": 3, "accumulation": 4}),
    ("gpt2", 12, {"stage": 2, "micro_batch": 8, "sequence": 1024}),
    ("mistral-7b", 4, {"stage": 1, "micro_batch": 4, "checkpointing": True}),
)


def setting_of(options: dict[str, int]) -> Setting:
    return dataclasses.replace(
        Setting(world=8, sequence=2048, attention="flash"),
        **options,  # type: ignore[arg-type]  # True is a bool
    )


@pytest.fixture(scope="module", name="peaks")
def _peaks(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The peak of each case, from one child: importing takes longer than measuring."""
    cases = [
        {
            **dataclasses.asdict(setting_of(options)),
            "model": written(dataclasses.replace(PRESETS[name], layers=layers)),
        }
        for name, layers, options in CASES
    ]
    env = bed.environment(
        machine(gpus=1, memory=80 * GIB),
        tmp_path_factory.mktemp("bed"),
        STANDIN_MODE="meta",
        STANDIN_NCCL_SOLO="1",
        PYTORCH_NVML_BASED_CUDA_CHECK="1",  # the other way starts CUDA, and then no fork can
    )
    script = Path(__file__).with_name("rank_peak.py")
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(cases)],
        env=env, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "OVERFLOW" not in done.stdout + done.stderr, "a step was skipped"
    # DeepSpeed logs to the same stream
    found = [line for line in done.stdout.splitlines() if line.startswith("peak ")]
    return [json.loads(line.split(maxsplit=2)[2])["allocated"] for line in found]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_rank_peaks_where_recommend_says(peaks: list[int], number: int) -> None:
    """Within 5 %, and never more than 2 % below."""
    name, layers, options = CASES[number]
    need = memory.estimate(dataclasses.replace(PRESETS[name], layers=layers), setting_of(options))
    predicted = memory.peak(item for item in need.gpu if item.name not in OUTSIDE)
    words = f"{name} {options}: {peaks[number] / GIB:.2f} GiB, predicted {predicted / GIB:.2f}"
    print(words)
    assert 0.98 < predicted / peaks[number] < 1.05, words
