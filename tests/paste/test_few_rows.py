"""Variables and packages in a few rows: of Windows, and below a command with `grep`."""

from __future__ import annotations

import pytest

from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

CMD = """\
C:\\Users\\me>set CUDA
CUDA_PATH=C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.1
CUDA_VISIBLE_DEVICES=0

C:\\Users\\me>echo %NCCL_DEBUG%
INFO
"""
POWERSHELL = """\
PS C:\\Users\\me> Get-ChildItem Env:CUDA*

Name                           Value
----                           -----
CUDA_PATH                      C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.1
CUDA_HOME                      C:\\Program Files\\NVIDIA GPU Computing Tool...
CUDA_VISIBLE_DEVICES           0

PS C:\\Users\\me> $env:NCCL_DEBUG
INFO
"""


@pytest.mark.parametrize(
    "text", [pytest.param(CMD, id="cmd"), pytest.param(POWERSHELL, id="PowerShell")]
)
def test_variables_of_windows(text: str) -> None:
    assert value(stated(text), "environment/variables") == {
        "CUDA_PATH": r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.1",
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "$ conda list | grep torch\n"
            "pytorch   2.3.0   py3.10_cuda12.1_cudnn8.9.2_0    pytorch\n",
            id="conda list, cut down",
        ),
        pytest.param(
            "(base) PS C:\\Users\\me> pip list | findstr torch\ntorch    2.3.0+cu121\n",
            id="pip list in PowerShell",
        ),
        pytest.param(
            '$ pip list --format=json\n[{"name": "pip", "version": "24.0"}, '
            '{"name": "torch", "version": "2.3.0+cu121"}]\n',
            id="pip list as JSON",
        ),
        pytest.param("[me@n1 x]$ pip list | grep torch\ntorch  2.3.0+cu121\n", id="a long prompt"),
    ],
)
def test_packages_in_few_rows(text: str) -> None:
    found = stated(text)
    assert value(found, "packages/packages/torch/version").startswith("2.3.0")
    assert value(found, "torch_build/cuda") == "12.1"


def test_rows_below_another_command_are_no_packages() -> None:
    text = "$ conda install torch\npytorch   2.3.0   py3.10_cuda12.1_cudnn8.9.2_0    pytorch\n"
    assert environment_of(text) is None
    assert environment_of('[{"name": "left-pad", "version": "1.3.0"}]\n') is None
