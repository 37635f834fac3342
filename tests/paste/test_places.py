"""A text that shows a host and a container of it: nothing is judged across the two."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.places import are_mixed, places
from tests.paste.reading import stated, value

REGISTRY = packs.load()
SMI = (
    "| NVIDIA-SMI 535.183.01    Driver Version: 535.183.01    CUDA Version: 12.2 |\n"
    "|   0  NVIDIA A40              On | 00000000:21:00.0 Off |                    0 |\n"
    "|   1  NVIDIA A40              On | 00000000:22:00.0 Off |                    0 |\n"
)
LOST = "Failed to initialize NVML: Unknown Error\n"
TORCH = '# python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.3.0+cu121 False\n'


def nvcc(release: str) -> str:
    return f"Cuda compilation tools, release {release}, V{release}.89\n"


INSIDE = "root@4f21ab09c3de:/workspace"
BY_PROMPT = (
    f"```\nann@gpu01:~$ nvidia-smi\n{SMI}ann@gpu01:~$ nvcc -V\n{nvcc('11.8')}"
    f"{INSIDE}# nvcc -V\n{nvcc('12.1')}{INSIDE}# nvidia-smi\n{LOST}{INSIDE}{TORCH}```\n"
)
BY_HEADING = (
    f"On the host:\n```\n{SMI}{nvcc('11.8')}```\n"
    f"Inside the container:\n```\n{nvcc('12.1')}{LOST}{TORCH}```\n"
)
BY_COMMAND = (
    f"```\nann@gpu01:~$ nvidia-smi\n{SMI}ann@gpu01:~$ nvcc -V\n{nvcc('11.8')}"
    f"ann@gpu01:~$ docker exec train nvcc -V\n{nvcc('12.1')}"
    f"ann@gpu01:~$ docker exec train nvidia-smi\n{LOST}"
    'ann@gpu01:~$ docker exec train python -c "import torch; print(torch.__version__)"\n2.3.0+cu121\n```\n'
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(BY_PROMPT, id="by the host in the prompt"),
        pytest.param(BY_HEADING, id="by the line above the block"),
        pytest.param(BY_COMMAND, id="by the command that enters the container"),
    ],
)
def test_the_nvcc_of_the_host_is_not_compared_with_the_torch_of_the_container(text: str) -> None:
    snapshot = stated(text)
    assert value(snapshot, "cuda_toolkits/found/0/version") == "12.1"
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    assert "cuda-toolkit-mismatch" not in {one.condition for one in report.findings if one.effect}
    notes = "\n".join(report.notes)
    assert "contradicts itself" not in notes
    assert "the container is judged, and what the host has instead is not used" in notes
    assert (
        value(snapshot, "nvml/driver_version") == "535.183.01"
    )  # of the host, and of every container
    assert len(value(snapshot, "gpus/gpus")) == 2


def test_the_gpus_of_a_container_are_those_that_it_lists() -> None:
    one = SMI.rsplit("\n", 2)[0] + "\n"
    snapshot = stated(f"```\nann@gpu01:~$ nvidia-smi\n{SMI}{INSIDE}# nvidia-smi\n{one}```\n")
    assert len(value(snapshot, "gpus/gpus")) == 1


def test_without_a_container_two_values_still_contradict() -> None:
    text = f"```\nann@gpu01:~$ nvidia-smi\n{SMI}bob@gpu02:~$ nvidia-smi\n{SMI.replace('535', '550')}```\n"
    assert "nvml.driver_version" in {one.field for one in stated(text).contradictions}


def test_what_only_the_host_shows_is_used() -> None:
    """A container that shows no software of its own; everything is then the host's."""
    text = f"```\nann@gpu01:~$ nvcc -V\n{nvcc('11.8')}{INSIDE}# nvidia-smi\n{LOST}```\n"
    snapshot = stated(text)
    assert value(snapshot, "cuda_toolkits/found/0/version") == "11.8"
    assert isinstance(snapshot.get(Gpus), Missing)
    assert isinstance(snapshot.get(TorchBuild), Missing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(["nvidia-smi on the host and inside the container:", "a"], ["", ""], id="both"),
        pytest.param(["host:", "a", "", "container:", "b"], ["host"] * 3 + ["container"] * 2, id="labels"),
        pytest.param(["inside docker:", "$ a", "ann@box:/w$ b"], ["container"] * 3, id="a host name of one's own"),
        pytest.param(["root@train-6d5f7c9b8-x2x4z:/# a", "b"], ["container"] * 2, id="a pod"),
        pytest.param(["ann@h:~$ docker run -it img bash", "b"], ["host"] * 2, id="a shell in the container"),
        pytest.param(["宿主机：", "a", "容器内：", "b"], ["host", "host", "container", "container"], id="Chinese"),
        pytest.param(["on the host:", "a", "# Logs", "b"], ["host", "host", "", ""], id="another heading"),
        pytest.param(["This happens when I run the training inside the container every single time."], [""], id="prose"),
    ],
)  # fmt: skip
def test_places(text: list[str], expected: list[str]) -> None:
    found = places([Line(number, one) for number, one in enumerate(text)])
    assert found == expected
    assert are_mixed(found) == ({"host", "container"} <= set(expected))
