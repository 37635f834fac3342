"""Jobs that do not use DeepSpeed: what they lack of it is no fault."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    Compilers,
    DeepSpeedInstall,
    DeepSpeedLive,
    Missing,
    RunNeeds,
    ScriptImports,
    Status,
    TorchBuild,
    Why,
)
from dsdoctor.job.resolve import resolve
from dsdoctor.judge import judge as whole
from dsdoctor.model.facts.toolchain import Compiler
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.ops import jit_build_compiler_missing
from dsdoctor_checks.python import deepspeed_import_broken, deepspeed_missing
from tests.checks.python.support import deepspeed, deepspeed_live, patient, torch_live
from tests.support.composed import machine
from tests.support.described import Described

DDP = "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n"
TRAINER = "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
LIGHTNING = "import lightning as L\ntrainer = L.Trainer({})\n"
ACCELERATE = "accelerate launch t.py"
DEFAULT = "/root/.cache/huggingface/accelerate/default_config.yaml"


def uses(text: str, line: str = "torchrun t.py", **files: str) -> bool | None:
    named = {name.replace("__", "/").replace("_py", ".py"): body for name, body in files.items()}
    host = FakeHost(
        env={"PATH": "/usr/bin", "HOME": "/root"},
        files={"/job/t.py": text, **{f"/job/{name}": body for name, body in named.items()}},
    )
    return resolve(RunNeeds(command=tuple(line.split()), cwd="/job"), host).uses_deepspeed


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        pytest.param(DDP, "torchrun t.py", False, id="torch alone"),
        pytest.param(DDP, "deepspeed t.py", True, id="the launcher"),
        pytest.param(DDP, "srun deepspeed t.py", True, id="the launcher inside another"),
        pytest.param(DDP + "import deepspeed\n", "torchrun t.py", True, id="it imports DeepSpeed"),
        pytest.param(
            DDP + "def f():\n    import deepspeed\n", "torchrun t.py", None, id="maybe, in a function"
        ),
        pytest.param(DDP + "import openrlhf\n", "torchrun t.py", None, id="a package on DeepSpeed"),
        pytest.param(TRAINER, "torchrun t.py", False, id="a trainer that nothing tells to"),
        pytest.param(TRAINER, "torchrun t.py --deepspeed ds.json", None, id="an option tells it"),
        pytest.param(
            TRAINER + "a = TrainingArguments(deepspeed='ds.json')\n", "python t.py", None,
            id="an argument tells it",
        ),
        pytest.param(
            TRAINER + "a = TrainingArguments(deepspeed=None)\n", "python t.py", False,
            id="an argument that is empty",
        ),
        pytest.param(
            TRAINER + "class A:\n    deepspeed: str = 'ds.json'\n", "python t.py", None,
            id="a default",
        ),
        pytest.param(
            TRAINER + "class A:\n    deepspeed: str = field(default=None)\n", "python t.py", False,
            id="a default that is empty",
        ),
        pytest.param(
            TRAINER + "if is_deepspeed_zero3_enabled():\n    '''deepspeed and more'''\n",
            "torchrun t.py", False, id="it only asks whether",
        ),
        pytest.param(LIGHTNING.format("devices=2"), "python t.py", False, id="Lightning with DDP"),
        pytest.param(
            LIGHTNING.format("strategy='deepspeed_stage_2'"), "python t.py", None, id="a strategy"
        ),
        pytest.param(
            LIGHTNING.format("strategy=DeepSpeedStrategy()"), "python t.py", None,
            id="the class of a strategy",
        ),
        pytest.param("import torch\nthis is no Python", "python t.py", None, id="not parsed"),
        pytest.param(DDP, "python gone.py", None, id="no script"),
        pytest.param(DDP, "docker run img python t.py", None, id="in a container"),
        pytest.param(DDP, "ACCELERATE_USE_DEEPSPEED=1 python t.py", None, id="a variable"),
        pytest.param(TRAINER, "trl sft --model_name_or_path m", False, id="the command of TRL"),
        pytest.param(
            TRAINER, "trl sft --accelerate_config zero2", None, id="with a config of its own"
        ),
    ],
)  # fmt: skip
def test_uses(text: str, line: str, expected: bool | None) -> None:
    assert uses(text, line) is expected


def test_modules_of_the_project_count() -> None:
    text = DDP + "from net import Net\n"
    assert uses(text, net_py="import torch\n") is False
    assert (
        uses(text, net_py="import torch\ntry:\n    import deepspeed\nexcept ImportError: pass\n")
        is None
    )
    assert uses(text, net_py="from other import x\n") is None, "nobody knows that package"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param("deepspeed: ds.json\n", None, id="tells it"),
        pytest.param("deepspeed: null\nlr: 1.0e-5\n", False, id="an empty key"),
        pytest.param("# deepspeed: examples/ds_z3.json\nlr: 1.0e-5\n", False, id="a comment"),
        pytest.param("trainer: {strategy: deepspeed_stage_3}\n", None, id="a value"),
    ],
)
def test_settings_that_the_command_names(settings: str, expected: bool | None) -> None:
    host = FakeHost(env={"PATH": "/b"}, files={"/job/t.py": TRAINER, "/job/c.yaml": settings})
    command = ("torchrun", "t.py", "--config=c.yaml")
    assert resolve(RunNeeds(command=command, cwd="/job"), host).uses_deepspeed is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("distributed_type: DEEPSPEED\n", None, id="on"),
        pytest.param("distributed_type: MULTI_GPU\ndeepspeed_config: {}\n", False, id="off"),
    ],
)
def test_the_configuration_of_accelerate(content: str, expected: bool | None) -> None:
    files = {"/job/t.py": TRAINER, DEFAULT: content}
    host = FakeHost(env={"PATH": "/b", "HOME": "/root"}, files=files)
    needs = RunNeeds(command=tuple(ACCELERATE.split()), cwd="/job")
    assert resolve(needs, host).uses_deepspeed is expected


def test_what_is_set_in_the_shell_counts() -> None:
    host = FakeHost(env={"ACCELERATE_USE_DEEPSPEED": "true"}, files={"/job/t.py": TRAINER})
    needs = RunNeeds(command=("torchrun", "t.py"), cwd="/job")
    assert resolve(needs, host).uses_deepspeed is None


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(RunNeeds(command=("torchrun", "t.py"), uses_deepspeed=False), "skip", id="no"),
        pytest.param(RunNeeds(command=("torchrun", "t.py")), "warn", id="unknown"),
        pytest.param(RunNeeds(command=("deepspeed", "t.py"), uses_deepspeed=True), "fail", id="yes"),
        pytest.param(
            RunNeeds(command=("torchrun", "t.py"), config_path="ds.json", config={}), "fail",
            id="a config",
        ),
        pytest.param(RunNeeds(), "fail", id="no command"),
    ],
)  # fmt: skip
def test_deepspeed_that_is_missing(run: RunNeeds, expected: str) -> None:
    judged = judge(
        deepspeed_missing.deepspeed_is_installed,
        deep_speed_install=deepspeed(None),
        torch_build=TorchBuild(version="2.13.0"),
        patient=patient(),
        run_needs=run,
    )
    assert judged.status == expected
    fixes = [finding.fixes for finding in judged.bad]
    assert fixes == ([("install-deepspeed",)] if expected == "fail" else [()] * len(fixes))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(("torch",), "skip", id="nothing imports it"),
        pytest.param(("torch", "transformers"), "fail", id="Accelerate does where it is installed"),
    ],
)
def test_deepspeed_that_cannot_be_imported(found: tuple[str, ...], expected: str) -> None:
    judged = judge(
        deepspeed_import_broken.deepspeed_imports,
        deep_speed_live=deepspeed_live("no module"),
        torch_live=torch_live(),
        deep_speed_install=deepspeed(),
        run_needs=RunNeeds(command=("torchrun", "t.py"), uses_deepspeed=False),
        script_imports=ScriptImports(script="t.py", found=found),
    )
    assert judged.status == expected


@pytest.mark.parametrize(("use", "expected"), [(False, "ok"), (None, "warn")])
def test_tools_that_only_ops_need(use: bool | None, expected: str) -> None:
    none = Compiler(command="c++", path=None, kind=None, version=None)
    judged = judge(
        jit_build_compiler_missing.compiler_is_found,
        compilers=Compilers(cxx=none, cc=none),
        run_needs=RunNeeds(command=("torchrun", "t.py"), uses_deepspeed=use),
    )
    assert judged.status == expected


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Described(gpus="2xNVIDIA A100 80GB PCIe", torch="2.6.0+cu124"), id="server"),
        pytest.param(
            Described(gpus="NVIDIA GeForce RTX 4090", torch="2.8.0", container="docker"), id="pod"
        ),
    ],
)
def test_a_machine_with_torch_alone_is_sound(said: Described) -> None:
    """No DeepSpeed, no CUDA toolkit, no compiler, no ninja: torch's wheels need none of them."""
    snapshot = machine(said)
    snapshot.put(DeepSpeedInstall())
    absent = Missing(why=Why.ABSENT, detail="deepspeed is not installed")
    snapshot.lack(DeepSpeedLive, absent)
    none = Compiler(command="c++", path=None, kind=None, version=None)
    snapshot.put(Compilers(cxx=none, cc=none))
    snapshot.put(parse_command(("torchrun", "--nproc_per_node", "1", "t.py")))
    snapshot.put(RunNeeds(command=("torchrun", "t.py"), uses_deepspeed=False))
    registry = packs.load(builtin_only=True)
    report = whole(snapshot, registry, registry)
    bad = [f for f in report.findings if f.status in (Status.WARN, Status.FAIL)]
    assert bad == []
