"""Rows of `rocm-toolkit-missing`, and where the probe looks for hipcc."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    Compiler,
    Compilers,
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    RunNeeds,
    TorchBuild,
)
from dsdoctor.probes.compilers import compilers
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.cuda import rocm_toolkit_missing
from dsdoctor_checks.python import deepspeed_import_broken
from tests.checks import machines as m

ROCM = TorchBuild(version="2.6.0+rocm6.2.4", hip="6.2.4")
GCC = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="12.2.0")
PLAIN = RunNeeds(config={"bf16": {"enabled": True}})


@pytest.mark.parametrize(
    ("hipcc", "facts", "expected"),
    [
        pytest.param(None, {}, "fail", id="offload, and no compiler"),
        pytest.param("/opt/rocm/bin/hipcc", {}, "ok", id="a compiler"),
        pytest.param(None, {"run_needs": PLAIN}, "ok", id="a config without an op"),
        pytest.param(None, {"run_needs": RunNeeds()}, "skip", id="no config"),
        pytest.param(None, {"torch_build": m.torch()}, "skip", id="a build for CUDA"),
        pytest.param(
            None,
            {
                "deep_speed_install": DeepSpeedInstall(
                    version="0.16.4", installed_ops={"cpu_adam": True}
                )
            },
            "ok",
            id="the op is pre-built",
        ),
    ],
)
def test_rows(hipcc: str | None, facts: dict[str, Any], expected: str) -> None:
    usual: dict[str, Any] = {
        "torch_build": ROCM,
        "run_needs": m.OFFLOAD,
        "deep_speed_install": DeepSpeedInstall(version="0.16.4"),
        "compilers": Compilers(cxx=GCC, cc=GCC, hipcc=hipcc),
    }
    check = rocm_toolkit_missing.rocm_compiler_is_there
    assert judge(check, **(usual | facts)).status == expected


MISSING = ImportOutcome(
    ok=False, error_type="MissingCUDAException", message="CUDA_HOME does not exist"
)
OTHER = ImportOutcome(ok=False, error_type="ImportError", message="no module named x")


@pytest.mark.parametrize(
    ("outcome", "build", "expected", "left_to_it"),
    [
        pytest.param(MISSING, ROCM, "fail", "skip", id="a build for ROCm asks for CUDA"),
        pytest.param(OTHER, ROCM, "skip", "fail", id="another error of the import"),
        pytest.param(ImportOutcome(ok=True), ROCM, "skip", "ok", id="it imports"),
        pytest.param(MISSING, m.torch(), "skip", "fail", id="a build for CUDA asks for CUDA"),
    ],
)
def test_the_import_of_deepspeed(
    outcome: ImportOutcome, build: TorchBuild, expected: str, left_to_it: str
) -> None:
    facts: dict[str, Any] = {
        "torch_build": build,
        "deep_speed_live": DeepSpeedLive(imported=outcome),
        "deep_speed_install": DeepSpeedInstall(version="0.19.8"),
    }
    check = rocm_toolkit_missing.rocm_compiler_is_there
    plain = RunNeeds()
    tools = Compilers(cxx=GCC, cc=GCC)
    assert judge(check, compilers=tools, run_needs=plain, **facts).status == expected
    imports = deepspeed_import_broken.deepspeed_imports
    assert judge(imports, torch_live=m.live(), **facts).status == left_to_it


@pytest.mark.parametrize(
    ("env", "files", "expected"),
    [
        pytest.param({}, (), None, id="none"),
        pytest.param({}, ("/opt/rocm/bin/hipcc",), "/opt/rocm/bin/hipcc", id="default"),
        pytest.param({}, ("/usr/bin/hipcc", "/opt/rocm/bin/hipcc"), "/usr/bin/hipcc", id="PATH"),
        pytest.param(
            {"ROCM_HOME": "/r"}, ("/usr/bin/hipcc", "/r/bin/hipcc"), "/r/bin/hipcc", id="ROCM_HOME"
        ),
        pytest.param({"ROCM_PATH": "/r"}, ("/usr/bin/hipcc",), None, id="a wrong ROCM_PATH"),
    ],
)
def test_hipcc_is_looked_for_as_torch_does(
    env: dict[str, str], files: tuple[str, ...], expected: str | None
) -> None:
    host = FakeHost(env={"PATH": "/usr/bin", **env}, files=dict.fromkeys(files, ""))
    assert compilers.function(host, m.ABSENT).hipcc == expected
