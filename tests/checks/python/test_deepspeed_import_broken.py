"""Rows of `deepspeed-import-broken`."""

from __future__ import annotations

import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    Packages,
    Status,
    TorchLive,
)
from dsdoctor.model.snapshot import of
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_import_broken
from tests.checks.python.support import deepspeed, deepspeed_live, patient, torch_live

CHECK = deepspeed_import_broken.deepspeed_imports


@pytest.mark.parametrize(
    ("live", "torch", "installed", "expected"),
    [
        pytest.param(
            deepspeed_live(), torch_live(), deepspeed(), "ok", id="deepspeed and torch import"
        ),
        pytest.param(
            deepspeed_live("no module"),
            torch_live(),
            deepspeed(),
            "fail",
            id="deepspeed does not import, torch does",
        ),
        pytest.param(
            deepspeed_live("no torch"),
            torch_live(works=False),
            deepspeed(),
            "skip",
            id="neither imports, so torch is to blame",
        ),
        pytest.param(
            deepspeed_live("no module"),
            torch_live(),
            deepspeed(None),
            "skip",
            id="deepspeed is not installed",
        ),
    ],
)
def test_rows(
    live: DeepSpeedLive, torch: TorchLive, installed: DeepSpeedInstall, expected: str
) -> None:
    assert (
        judge(CHECK, deep_speed_live=live, torch_live=torch, deep_speed_install=installed).status
        == expected
    )


@pytest.mark.parametrize(
    ("live", "words"),
    [
        pytest.param(
            deepspeed_live("No module named 'torch._six'\n"),
            "`ImportError: No module named",
            id="an exception",
        ),
        pytest.param(deepspeed_live("SIGABRT", "signal"), "was killed by SIGABRT", id="a signal"),
        pytest.param(
            deepspeed_live("hung for 120 s", "hang"), "did not finish: hung for 120 s", id="a hang"
        ),
    ],
)
def test_ways_to_end_are_told_apart(live: DeepSpeedLive, words: str) -> None:
    (finding,) = judge(
        CHECK, deep_speed_live=live, torch_live=torch_live(), deep_speed_install=deepspeed()
    ).bad
    assert words in finding.message


def test_the_error_of_the_import_tells_the_cause() -> None:
    registry = packs.load(builtin_only=True)
    message = "/lib64/libc.so.6: version `GLIBC_2.32' not found (required by /env/libtriton.so)"
    outcome = ImportOutcome(ok=False, error_type="ImportError", message=message)
    snapshot = of([deepspeed(), torch_live(), DeepSpeedLive(imported=outcome)])
    report = judging.judge(snapshot, list(registry), registry)
    failed = {one.condition for one in report.findings if one.status is Status.FAIL}
    assert "glibc-too-old" in failed
    assert "deepspeed-import-broken" not in failed


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        pytest.param("numpy", "-m pip install numpy`; DeepSpeed requires it", id="required"),
        pytest.param("mpi4py", "fix what the error reports", id="only used if it is there"),
    ],
)
def test_a_package_that_it_requires_and_does_not_find(module: str, hint: str) -> None:
    outcome = ImportOutcome(
        ok=False, error_type="ModuleNotFoundError", message=f"No module named '{module}'"
    )
    judged = judge(
        CHECK,
        deep_speed_live=DeepSpeedLive(imported=outcome),
        deep_speed_install=deepspeed(),
        patient=patient(),
        packages=Packages(requires={"deepspeed": ("hjson", "numpy>=1.17 ; extra == 'x'")}),
    )
    assert hint in judged.worst.hint
