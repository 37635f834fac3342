from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Gpu, Gpus, LaunchCommand, RunNeeds, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.driver import visible_devices_invalid
from tests.checks import machines as m

CHECK = visible_devices_invalid.names_exist


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"gpus": m.gpus("A100"), "environment": m.NO_ENV},
            ["ok"],
            id="CUDA_VISIBLE_DEVICES is not set",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,1")},
            ["ok"],
            id="both GPUs are named",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="1, 0")},
            ["ok"],
            id="both GPUs are named in reverse order with a space",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="")},
            ["ok"],
            id="an empty list hides all GPUs on purpose",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100"),
                "environment": m.env(CUDA_VISIBLE_DEVICES="NoDevFiles", SLURM_JOB_ID="7"),
            },
            ["skip"],
            id="a Slurm job that has no GPU",
        ),
        pytest.param(
            {"gpus": m.gpus("A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="NoDevFiles")},
            ["fail"],
            id="the same word outside a job",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="-1")},
            ["ok"],
            id="-1 hides all GPUs on purpose",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,-1")},
            ["ok"],
            id="-1 ends the list after GPU 0",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="GPU-1a1")},
            ["ok"],
            id="a UUID prefix that names GPU 1 alone",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,2")},
            ["fail"],
            id="GPU 2 is named on a machine with two",
        ),
        pytest.param(
            {
                "gpus": Gpus(gpus=(Gpu(index=0, name="NVIDIA A100"),), count=1),
                "environment": m.env(CUDA_VISIBLE_DEVICES="GPU-9"),
            },
            ["skip"],
            id="a UUID where the driver does not report UUIDs",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="GPU-9")},
            ["fail"],
            id="a UUID prefix that names none of the GPUs",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,0")},
            ["fail"],
            id="GPU 0 is named twice",
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="cuda:0")},
            ["fail"],
            id="torch's name for a device is used where CUDA expects an index",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100", "A100"),
                "run_needs": RunNeeds(gpus=("1",)),
                "environment": m.env(CUDA_VISIBLE_DEVICES="0"),
            },
            ["fail"],
            id="the run asks for GPU 1, but only GPU 0 is visible",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100", "A100"),
                "run_needs": RunNeeds(gpus=("1",)),
                "environment": m.env(CUDA_VISIBLE_DEVICES="1"),
            },
            ["ok"],
            id="the run asks for GPU 1, the only visible one",
        ),
        pytest.param(
            {"gpus": m.gpus("A100"), "run_needs": RunNeeds(gpus=("7",)), "environment": m.NO_ENV},
            ["fail"],
            id="the run asks for GPU 7 on a machine with one",
        ),
        pytest.param(
            {"gpus": Gpus(), "run_needs": RunNeeds(gpus=("7",)), "environment": m.NO_ENV},
            ["ok"],
            id="the run asks for GPU 7 and no GPU could be listed",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        pytest.param({}, "unset `CUDA_VISIBLE_DEVICES`", id="set by the user"),
        pytest.param({"SLURM_JOB_ID": "7"}, "from the job script", id="set over what Slurm sets"),
    ],
)
def test_the_hint_fits_the_place(variables: dict[str, str], words: str) -> None:
    env = m.env(CUDA_VISIBLE_DEVICES="4,5", **variables)
    found = judge(CHECK, gpus=m.gpus("A100", "A100"), environment=env)
    assert words in found.findings[0].hint


@pytest.mark.parametrize(
    ("variables", "hip", "expected"),
    [
        pytest.param({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0,1"}, "6.2", True, id="one is left"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "4,5"}, "6.2", True, id="the same twice"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "0,1"}, "6.2", False, id="from 0"),
        pytest.param(
            {"ROCR_VISIBLE_DEVICES": "4", "HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0,1"},
            "6.2", False, id="HIP's own variable first",
        ),
        pytest.param({"ROCR_VISIBLE_DEVICES": "0,1,2,3"}, "6.2", False, id="only the layer below"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0,1"}, "6.2", False, id="only CUDA's"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0,1"}, None, False, id="a build for CUDA"),
    ],
)  # fmt: skip
def test_amd_gpus_are_counted_among_those_that_are_left(
    variables: dict[str, str], hip: str | None, expected: bool
) -> None:
    torch = TorchBuild(version="2.6.0", hip=hip)
    found = judge(CHECK, gpus=m.NOT_ASKED, torch_build=torch, environment=m.env(**variables))
    assert bool(found.bad) == expected


@pytest.mark.parametrize(
    ("variables", "hip", "here", "said"),
    [
        pytest.param({"HIP_VISIBLE_DEVICES": "0,4"}, "6.2", 4, "HIP_VISIBLE_DEVICES", id="of HIP"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "4"}, "6.2", 4, "CUDA_VISIBLE_DEVICES", id="of CUDA"),
        pytest.param(
            {"ROCR_VISIBLE_DEVICES": "3,4", "HIP_VISIBLE_DEVICES": "1"},
            "6.2", 4, "ROCR_VISIBLE_DEVICES", id="of the layer below",
        ),
        pytest.param({"HIP_VISIBLE_DEVICES": "0,1,2,3"}, "6.2", 4, "", id="all that there are"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "3", "HIP_VISIBLE_DEVICES": "0"}, "6.2", 4, "", id="the last"),
        pytest.param({"ROCR_VISIBLE_DEVICES": "GPU-1f"}, "6.2", 4, "", id="a UUID"),
        pytest.param({"HIP_VISIBLE_DEVICES": "4"}, "6.2", 0, "", id="no number is known"),
        pytest.param({"HIP_VISIBLE_DEVICES": "4"}, None, 4, "", id="a build for CUDA"),
    ],
)  # fmt: skip
def test_amd_gpus_that_the_kernel_does_not_have(
    variables: dict[str, str], hip: str | None, here: int, said: str
) -> None:
    os = msgspec.structs.replace(m.LINUX, amd_gpus=here)
    torch = TorchBuild(version="2.6.0", hip=hip)
    env = m.env(**variables)
    found = judge(CHECK, gpus=m.NOT_ASKED, torch_build=torch, environment=env, os_info=os)
    assert bool(found.bad) == bool(said)
    if said:
        value = variables[said]
        assert found.worst.message == f"`{said}={value}` contains `4`, but the GPUs here are 0 to 3"


def test_a_paste_that_does_not_name_torch() -> None:
    twice = {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}
    found = judge(CHECK, gpus=m.NOT_ASKED, torch_build=m.NOT_ASKED, environment=m.env(**twice))
    assert found.status == "fail"
    of_cuda = {"ROCR_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1"}
    found = judge(CHECK, gpus=m.NOT_ASKED, torch_build=m.NOT_ASKED, environment=m.env(**of_cuda))
    assert found.status != "fail"


@pytest.mark.parametrize(
    ("value", "here", "expected"),
    [
        pytest.param("0,1,2,3", None, ["fail"], id="the command lists more than there are"),
        pytest.param("0,1", "4,5", ["ok"], id="the command's own wins"),
        pytest.param("$GPUS", None, ["ok"], id="the shell fills it in"),
    ],
)
def test_the_command_sets_the_variable(value: str, here: str | None, expected: list[str]) -> None:
    command = LaunchCommand(argv=("x",), env={"CUDA_VISIBLE_DEVICES": value})
    env = m.env() if here is None else m.env(CUDA_VISIBLE_DEVICES=here)
    found = judge(CHECK, gpus=m.gpus("A100", "A100"), environment=env, launch_command=command)
    assert found.statuses == expected
