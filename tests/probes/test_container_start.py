"""How a command starts a container, and what the machine's own settings add."""

from __future__ import annotations

import json

import pytest

from dsdoctor.api import ContainerRuntimes, Missing, RunNeeds, Why
from dsdoctor.job.resolve import resolve
from dsdoctor.probes.container_runtimes import container_runtimes
from dsdoctor.probes.container_start import container_start
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost, read


@pytest.mark.parametrize(
    ("line", "gpus", "shm"),
    [
        pytest.param("docker run img torchrun t.py", "", "", id="nothing is passed on"),
        pytest.param(
            "docker run --gpus all --ipc=host img torchrun t.py",
            "--gpus all", "--ipc host", id="GPUs and the IPC namespace of the host",
        ),
        pytest.param(
            "sudo docker container run --runtime=nvidia --shm-size 8g img deepspeed t.py",
            "--runtime nvidia", "--shm-size 8g", id="an old runtime and a size",
        ),
        pytest.param(
            "docker run --runtime runc img torchrun t.py", "", "", id="a runtime without GPUs"
        ),
        pytest.param(
            "podman run --device nvidia.com/gpu=all -v /dev/shm:/dev/shm img torchrun t.py",
            "--device nvidia.com/gpu=all", "-v /dev/shm:/dev/shm", id="CDI and a mount of Podman",
        ),
        pytest.param(
            "docker run --device=/dev/kfd --device=/dev/dri img torchrun t.py",
            "--device /dev/kfd", "", id="AMD GPUs",
        ),
        pytest.param("docker run --device /dev/fuse img torchrun t.py", "", "", id="another device"),
        pytest.param(
            "docker run --privileged --ipc=private img torchrun t.py",
            "--privileged", "", id="every device, and an IPC namespace of its own",
        ),
        pytest.param(
            "docker run -e NVIDIA_VISIBLE_DEVICES=0 img torchrun t.py",
            "-e NVIDIA_VISIBLE_DEVICES=0", "", id="a variable that the default runtime may read",
        ),
        pytest.param("apptainer exec --nv a.sif torchrun t.py", "--nv", "", id="Apptainer"),
        pytest.param("singularity run -B /d:/d a.sif python t.py", "", "", id="Singularity"),
        pytest.param("srun -N2 singularity exec --rocm a.sif python t.py", "--rocm", "", id="srun"),
    ],
)  # fmt: skip
def test_options(line: str, gpus: str, shm: str) -> None:
    found = container_start(line.split())
    assert found is not None
    assert (found.gpus, found.shm, found.unknown) == (gpus, shm, False)


@pytest.mark.parametrize(
    ("line", "program", "launcher", "script"),
    [
        pytest.param(
            "docker run img deepspeed --num_gpus 2 t.py", "docker run", "deepspeed", "t.py", id="a"
        ),
        pytest.param(
            "apptainer exec a.sif python3 -u t.py", "apptainer exec", "python", "t.py", id="b"
        ),
        pytest.param(
            "srun --container-image=nvcr.io#nvidia/pytorch:24.05-py3 torchrun t.py",
            "srun --container-image", "torchrun", "t.py", id="pyxis",
        ),
        pytest.param("nerdctl run --gpus all img nvidia-smi", "nerdctl run", "", "", id="no job"),
    ],
)  # fmt: skip
def test_what_is_started(line: str, program: str, launcher: str, script: str) -> None:
    found = container_start(line.split())
    assert found is not None
    assert (found.program, found.launcher, found.script) == (program, launcher, script)


@pytest.mark.parametrize(
    ("options", "network"),
    [
        pytest.param("--gpus all", "", id="the default"),
        pytest.param("--network=host", "--network host", id="the host's"),
        pytest.param("--net host", "--net host", id="the old name"),
        pytest.param("--network bridge", "", id="the default by its name"),
        pytest.param("--network overlay1", "--network overlay1", id="a network of the user"),
    ],
)
def test_the_network_and_the_nodes(options: str, network: str) -> None:
    found = container_start(f"docker run {options} img torchrun --nnodes=2 t.py".split())
    assert found is not None
    assert (found.network, found.nodes) == (network, 2)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("deepspeed --num_gpus 2 t.py --run docker", id="no container"),
        pytest.param("docker exec box torchrun t.py", id="a container that runs already"),
        pytest.param("docker compose up", id="a compose file decides"),
        pytest.param("srun -N2 torchrun t.py", id="a job step without a container"),
    ],
)
def test_no_start(line: str) -> None:
    assert container_start(line.split()) is None


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("docker run $OPTS img torchrun t.py", id="options that a shell fills in"),
        pytest.param("apptainer exec instance://box python t.py", id="an instance"),
    ],
)
def test_what_only_another_knows(line: str) -> None:
    found = container_start(line.split())
    assert found is not None
    assert found.unknown


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("docker run -e DS_ACCELERATOR=cpu img deepspeed t.py", id="of DeepSpeed"),
        pytest.param("docker run img accelerate launch --cpu t.py", id="of accelerate"),
        pytest.param("docker run --env=CUDA_VISIBLE_DEVICES= img python t.py", id="no device"),
        pytest.param("docker run img python t.py --no_cuda", id="of the script"),
    ],
)
def test_on_the_cpu(line: str) -> None:
    found = container_start(line.split())
    assert found is not None
    assert found.on_cpu


def host(**more: object) -> FakeHost:
    fields: dict[str, object] = {
        "env": {"PATH": "/usr/bin", "HOME": "/home/user"},
        "queries": {"hostname": "n1", "home": "/home/user"},
    }
    return FakeHost(**{**fields, **more})  # type: ignore[arg-type]


def of(line: str, machine: FakeHost) -> ContainerRuntimes | Missing:
    run = resolve(RunNeeds(command=tuple(line.split())), machine)
    found = read(container_runtimes, machine, run_needs=run)
    assert isinstance(found, (ContainerRuntimes, Missing))
    return found


def test_a_script_next_to_the_command_is_read() -> None:
    machine = host(
        files={"./t.py": "import os\n\nif os.name:\n    from transformers import Trainer\n"}
    )
    line = "docker run -v .:/w img python t.py"
    run = resolve(RunNeeds(command=tuple(line.split())), machine)
    assert run.container is not None
    assert run.container.uses_torch
    other = resolve(RunNeeds(command=tuple(line.split())), host(files={"./t.py": "import csv\n"}))
    assert other.container is not None
    assert not other.container.uses_torch


DOCKER = {"/usr/bin/docker": ""}
DENIED = Result(argv=("docker",), returncode=1, stderr=b"permission denied")


def test_docker_is_asked() -> None:
    answer = '"nvidia" {"nvidia": {}, "runc": {}}\n'
    machine = host(files=DOCKER, commands={"/usr/bin/docker info": answer})
    found = of("docker run img torchrun t.py", machine)
    assert found == ContainerRuntimes(names=("nvidia", "runc"), default="nvidia")


def test_an_account_that_may_not_ask_docker() -> None:
    text = json.dumps({"default-runtime": "nvidia", "default-shm-size": "16G"})
    machine = host(
        files={**DOCKER, "/etc/docker/daemon.json": text}, commands={"/usr/bin/docker info": DENIED}
    )
    found = of("docker run img torchrun t.py", machine)
    shm = "`default-shm-size` in /etc/docker/daemon.json"
    assert found == ContainerRuntimes(default="nvidia", shm_by=shm)
    unread = of(
        "docker run img torchrun t.py",
        host(files=DOCKER, commands={"/usr/bin/docker info": DENIED}),
    )
    assert isinstance(unread, Missing)
    assert unread.why is Why.DENIED


@pytest.mark.parametrize(
    ("files", "env", "expected"),
    [
        pytest.param({}, {}, "", id="nothing set"),
        pytest.param({}, {"SINGULARITY_NV": "1"}, "SINGULARITY_NV", id="a variable"),
        pytest.param({}, {"APPTAINER_NV": "0"}, "", id="a variable that is off"),
        pytest.param(
            {"/etc/apptainer/apptainer.conf": "# a\nalways use nv = yes\n"},
            {}, "`always use nv = yes` in /etc/apptainer/apptainer.conf", id="the administrator",
        ),
        pytest.param(
            {"/etc/apptainer/apptainer.conf": "#always use nv = yes\nalways use nv = no\n"},
            {}, "", id="the default",
        ),
    ],
)  # fmt: skip
def test_settings_of_apptainer(files: dict[str, str], env: dict[str, str], expected: str) -> None:
    machine = host(files=files, env={"PATH": "/usr/bin", **env})
    found = of("apptainer exec a.sif torchrun t.py", machine)
    assert found == ContainerRuntimes(gpus_by=expected)


def test_settings_of_podman() -> None:
    hook = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json"
    conf = "/home/user/.config/containers/containers.conf"
    machine = host(files={hook: "{}", conf: '[containers]\nshm_size = "8g"\n'})
    found = of("podman run img torchrun t.py", machine)
    assert found == ContainerRuntimes(gpus_by=hook, shm_by=f'`shm_size = "8g"` in {conf}')


def test_the_hook_of_enroot() -> None:
    hook = {"/etc/enroot/hooks.d/98-nvidia.sh": ""}
    line = "srun --container-image=img torchrun t.py"
    assert of(line, host(files=hook)) == ContainerRuntimes(enroot_hook=True)
    files = {**hook, "/usr/bin/nvidia-container-cli": ""}
    assert of(line, host(files=files)) == ContainerRuntimes(enroot_hook=True, container_cli=True)


def test_a_command_without_a_container() -> None:
    found = of("torchrun t.py", host())
    assert isinstance(found, Missing)
    assert found.why is Why.NOT_ASKED
