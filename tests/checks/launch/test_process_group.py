"""What a script surely needs to create torch's process group: a launcher, and a GPU for NCCL."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, RunNeeds
from dsdoctor.job.resolve import resolve
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.driver import no_gpu_visible
from dsdoctor_checks.launch import launched_without_deepspeed
from dsdoctor_checks.torch import cpu_only_torch
from tests.checks import machines as m

START = "import os\nimport torch.distributed as dist\n"
GLOO = f'{START}dist.init_process_group("gloo")\n'
NCCL = f'{START}dist.init_process_group(backend="nccl")\n'


def needs(line: str, text: str) -> RunNeeds:
    host = FakeHost(
        env={"PATH": "/usr/bin"}, files={"/job/t.py": text, "/job/r.sh": "torchrun t.py"}
    )
    return resolve(RunNeeds(command=tuple(line.split()), cwd="/job"), host)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param(GLOO, "fail", id="the variables of a launcher"),
        pytest.param(NCCL.replace("backend=", ""), "fail", id="by position"),
        pytest.param(
            "from torch import distributed\n\n\ndef main():\n    distributed.init_process_group()\n\n\n"
            'if __name__ == "__main__":\n    main()\n',
            "fail",
            id="in a function that is called",
        ),
        pytest.param(
            GLOO.replace("dist.init", "if os.environ.get('RANK'):\n    dist.init"),
            "ok",
            id="only with a launcher",
        ),
        pytest.param(
            GLOO.replace("dist.init", "os.environ['RANK'] = '0'\ndist.init"),
            "ok",
            id="it sets them",
        ),
        pytest.param(
            GLOO.replace("dist.init", "os.environ.setdefault('RANK', '0')\ndist.init"),
            "ok",
            id="it sets a default",
        ),
        pytest.param(
            GLOO.replace("dist.init", "print(os.environ['RANK'])\ndist.init"), "fail", id="it reads"
        ),
        pytest.param(
            GLOO.replace('"gloo"', '"gloo", rank=0, world_size=1, store=dist.HashStore()'),
            "ok",
            id="it passes them",
        ),
        pytest.param(
            GLOO.replace('"gloo"', '"gloo", init_method="tcp://a:1"'), "ok", id="another method"
        ),
        pytest.param(GLOO.replace('"gloo"', "**vars()"), "ok", id="unknown arguments"),
        pytest.param(GLOO.replace("gloo", "mpi"), "ok", id="MPI numbers the ranks"),
        pytest.param(GLOO.replace('"gloo"', "BACKEND"), "ok", id="a computed backend"),
        pytest.param(f"import site_ranks\n{GLOO}", "ok", id="a module that may set them"),
        pytest.param(f"from . import ranks\n{GLOO}", "ok", id="a module of the project"),
        pytest.param(f"{GLOO}dist = None\n", "ok", id="another name"),
        pytest.param("import os as dist\ndist.init_process_group()\n", "ok", id="not of torch"),
    ],
)
def test_a_launcher_is_needed(text: str, status: str) -> None:
    run = needs("python t.py", text)
    judged = judge(
        launched_without_deepspeed.a_launcher_starts_the_ranks,
        launch_command=parse_command(run.command),
        run_needs=run,
        environment=m.NO_ENV,
    )
    assert judged.status == status


def test_a_scheduler_may_give_the_ranks_to_the_script() -> None:
    run = needs("python t.py", GLOO)
    judged = judge(
        launched_without_deepspeed.a_launcher_starts_the_ranks,
        launch_command=parse_command(run.command),
        run_needs=run,
        environment=Environment(variables={"SLURM_JOB_ID": "7"}),
    )
    assert judged.status == "ok"


@pytest.mark.parametrize(
    ("line", "text", "status"),
    [
        pytest.param("torchrun --nproc_per_node gpu t.py", GLOO, "fail", id="processes per GPU"),
        pytest.param("torchrun --nproc_per_node auto t.py", GLOO, "skip", id="or the CPU"),
        pytest.param("torchrun --nproc_per_node 2 t.py", NCCL, "fail", id="NCCL"),
        pytest.param("torchrun --nproc_per_node 2 t.py", GLOO, "skip", id="Gloo"),
        pytest.param(
            "torchrun t.py", f"import torch_npu\n{NCCL}", "skip", id="a plug-in replaces it"
        ),
        pytest.param("bash r.sh", NCCL, "skip", id="a script for another machine"),
        pytest.param("sbatch r.sh", NCCL, "skip", id="on a node of the cluster"),
        pytest.param("srun torchrun t.py", NCCL, "skip", id="on the nodes of a job"),
        pytest.param("ssh n1 torchrun t.py", NCCL, "skip", id="on another machine"),
    ],
)
def test_a_gpu_is_needed(line: str, text: str, status: str) -> None:
    facts: dict[str, Any] = {
        "run_needs": needs(line, text),
        "gpus": m.gpus(),
        "nvidia_kernel": m.NO_GPU,
        "environment": m.NO_ENV,
    }
    judged = judge(cpu_only_torch.torch_has_cuda, torch_build=m.torch("2.13.0+cpu", None), **facts)
    assert judged.status == status
    judged = judge(no_gpu_visible.some_gpu_visible, torch_build=m.torch(), **facts)
    assert judged.status == ("fail" if status == "fail" else "warn")


def test_a_build_for_another_accelerator_is_no_cpu_build() -> None:
    judged = judge(
        cpu_only_torch.torch_has_cuda,
        torch_build=m.torch("2.13.0+xpu", None),
        run_needs=needs("torchrun t.py", NCCL),
        gpus=m.gpus(),
        nvidia_kernel=m.NO_GPU,
        environment=m.NO_ENV,
    )
    assert judged.status == "skip"
