"""Rows of `build-dependency-missing`: what async_io is linked with."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor.api import (
    CudaToolkits,
    DeepSpeedInstall,
    Gpus,
    Package,
    Packages,
    RunNeeds,
    TorchBuild,
)
from dsdoctor.testing import judge
from dsdoctor_checks.ops import build_dependency_missing
from tests.checks import machines as m

NVME = RunNeeds(config={"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})
NOW = DeepSpeedInstall(version="0.19.8")


@pytest.mark.parametrize(
    ("found", "run", "deepspeed", "gpus", "expected"),
    [
        pytest.param(False, NVME, NOW, m.gpus("A100"), "fail", id="a build that links it"),
        pytest.param(True, NVME, NOW, m.gpus("A100"), "ok", id="the linker finds it"),
        pytest.param(False, m.OFFLOAD, NOW, m.gpus("A100"), "skip", id="no NVMe"),
        pytest.param(False, NVME, NOW, Gpus(gpus=(), count=0), "skip", id="a build for the CPU"),
        pytest.param(
            False, NVME, DeepSpeedInstall(version="0.14.5"), m.gpus("A100"), "skip", id="older"
        ),
        pytest.param(
            False,
            NVME,
            DeepSpeedInstall(version="0.19.8", installed_ops={"async_io": True}),
            m.gpus("A100"),
            "skip",
            id="built at installation",
        ),
    ],
)
def test_the_drivers_library(
    found: bool, run: RunNeeds, deepspeed: DeepSpeedInstall, gpus: Gpus, expected: str
) -> None:
    result = judge(
        build_dependency_missing.driver_can_be_linked,
        cuda_toolkits=CudaToolkits(chosen=0, found=(m.toolkit("12.8"),), cuda_by_default=found),
        torch_build=m.torch(),
        run_needs=run,
        deep_speed_install=deepspeed,
        gpus=gpus,
    )
    assert result.status == expected
    for row in result.bad:
        assert "/lib64/stubs`" in row.hint


def test_the_stub_of_conda_is_elsewhere() -> None:
    result = judge(
        build_dependency_missing.driver_can_be_linked,
        cuda_toolkits=CudaToolkits(
            chosen=0,
            found=(m.toolkit("12.8", root="/opt/env", source="conda"),),
            cuda_by_default=False,
        ),
        torch_build=m.torch(),
        run_needs=NVME,
        deep_speed_install=NOW,
        gpus=m.gpus("A100"),
    )
    (row,) = result.bad
    assert "`export LIBRARY_PATH=/opt/env/lib/stubs`" in row.hint


@pytest.mark.parametrize(
    ("origin", "run", "expected"),
    [
        pytest.param("", m.OFFLOAD, "fail", id="an op is built and setuptools is missing"),
        pytest.param("/env/setuptools/__init__.py", m.OFFLOAD, "skip", id="it is installed"),
        pytest.param("", RunNeeds(config={}), "skip", id="no op is built"),
        pytest.param("", RunNeeds(), "skip", id="no config"),
    ],
)
def test_setuptools(origin: str, run: RunNeeds, expected: str) -> None:
    result = judge(
        build_dependency_missing.driver_can_be_linked,
        torch_build=m.torch(),
        run_needs=run,
        deep_speed_install=NOW,
        packages=Packages(origins={"setuptools": origin}),
    )
    assert result.status == expected
    for row in result.bad:
        assert "pip install setuptools" in row.hint


@pytest.mark.parametrize(
    ("torch", "installed", "run", "expected"),
    [
        pytest.param("2.1.2+cu121", "82.0.0", m.OFFLOAD, "fail", id="82 has no pkg_resources"),
        pytest.param("2.1.2+cu121", "70.3.0", m.OFFLOAD, "fail", id="70 has no packaging in it"),
        pytest.param("2.1.2+cu121", "81.0.0", m.OFFLOAD, "skip", id="81 has both"),
        pytest.param("2.1.2+cu121", "69.5.1", m.OFFLOAD, "skip", id="69 has both"),
        pytest.param("2.2.0", "82.0.0", m.OFFLOAD, "skip", id="torch 2.2 does not ask"),
        pytest.param("2.1.2+cu121", "82.0.0", RunNeeds(), "warn", id="what is built is not known"),
        pytest.param("2.1.2+cu121", "82.0.0", RunNeeds(config={}), "skip", id="nothing is built"),
    ],
)
def test_setuptools_of_an_old_torch(
    torch: str, installed: str, run: RunNeeds, expected: str
) -> None:
    packages = Packages(
        packages={"setuptools": Package(name="setuptools", version=installed)},
        origins={"setuptools": "/env/setuptools/__init__.py"},
    )
    result = judge(
        build_dependency_missing.driver_can_be_linked,
        torch_build=TorchBuild(version=torch, cuda="12.1"),
        run_needs=run,
        deep_speed_install=NOW,
        packages=packages,
    )
    assert result.status == expected
    for row in result.bad:
        assert "pip install 'setuptools<82,!=70.*'" in row.hint


def test_ops_that_were_built_before_need_no_setuptools() -> None:
    result = judge(
        build_dependency_missing.driver_can_be_linked,
        torch_build=TorchBuild(version="2.1.2+cu121", cuda="12.1"),
        run_needs=RunNeeds(),
        deep_speed_install=msgspec.structs.replace(NOW, installed_ops={"fused_adam": True}),
        packages=Packages(packages={"setuptools": Package(name="setuptools", version="82.0.0")}),
    )
    assert result.status == "skip"
