"""This release of DeepSpeed does not work with this release of torch.

## Why it matters
DeepSpeed uses private parts of torch, and those change between releases. Some torch releases broke
all older DeepSpeed releases, either at import or when ops are built. New DeepSpeed releases need
parts that older torch does not have, which their metadata do not say, so pip installs them beside it.

## What to do
If DeepSpeed is the older of the two, upgrade it to the release named in the finding, or a newer one.
If torch is the older, upgrade torch, or install the DeepSpeed named in the finding.

## References
- https://github.com/deepspeedai/DeepSpeed/pull/2863, 5346, 5654, 8238
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Checkpoint,
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    DsConfig,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import at_least
from dsdoctor_checks.config._tables import stage_of

from ._tables import DEEPSPEED_TORCH, deepspeed_for, floors_of
from ._torch_too_old_signatures import SIGNATURES as TOO_OLD

CONDITION = Condition(
    "deepspeed-torch-incompatible",
    id="DSD903",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
)


@check(CONDITION)
def deepspeed_suits_torch(
    deepspeed: DeepSpeedInstall,
    torch: TorchBuild,
    live: DeepSpeedLive | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
    checkpoint: Checkpoint | Missing,
    command: LaunchCommand | Missing,
    config: DsConfig | Missing,
) -> Iterator[Finding]:
    """Looks the pair up; an import that succeeded overrides the table."""
    if deepspeed.version is None or torch.version is None:
        yield skip("torch or deepspeed is not installed")
        return
    works = isinstance(live, DeepSpeedLive) and live.imported.ok
    for row in DEEPSPEED_TORCH:
        if not at_least(torch.version, row.since) or at_least(deepspeed.version, row.fixed):
            continue
        if (row.at_import and works) or (row.at_load and not _loads(checkpoint, command)):
            continue
        upgrade = pip(patient, packages, f"install -U 'deepspeed>={row.fixed}'")
        yield (fail if row.at_import else warn)(
            f"deepspeed {deepspeed.version} is installed with torch {torch.version}, but torch "
            f"{row.since} and newer need deepspeed {row.fixed} or newer",
            effect=row.effect,
            hint=f"run `{upgrade}`",
            deepspeed=deepspeed.version,
            torch=torch.version,
            torch_since=row.since,
            needed=row.fixed,
            source=row.source,
        )
        return
    stage = None if isinstance(config, Missing) else stage_of(config.section("zero_optimization"))
    floors = [
        row
        for row in floors_of(deepspeed.version, torch.version)
        if not (row.at_import and works)
        and (not row.stages or stage is None or stage in row.stages)
    ]
    if not floors:
        yield ok(deepspeed=deepspeed.version, torch=torch.version)
        return
    floor = floors[0]
    older = pip(patient, packages, f"install {shlex.quote(deepspeed_for(torch.version))}")
    what = "ZeRO" if floor.stages else "training"
    yield (warn if floor.stages and stage is None else fail)(
        f"{what} with deepspeed {deepspeed.version} needs torch {floor.torch} or newer, but torch"
        f" {torch.version} is installed",
        effect=floor.effect,
        hint=f"install torch {floor.torch} or newer, or run `{older}`",
        deepspeed=deepspeed.version,
        torch=torch.version,
        torch_needed=floor.torch,
        source=floor.source,
    )


def _loads(checkpoint: Checkpoint | Missing, command: LaunchCommand | Missing) -> bool:
    """Whether the run is to go on from a checkpoint."""
    if isinstance(checkpoint, Checkpoint):
        return not any(file.role == "weights" for file in checkpoint.files)
    return isinstance(command, LaunchCommand) and command.has_script_option("resume_from")


UPGRADE = "upgrade DeepSpeed: `python -m pip install -U deepspeed`"
TORCH = "install a newer torch, or an older DeepSpeed"
HINT = (
    "if torch is the newer of the two, upgrade DeepSpeed: `python -m pip install -U deepspeed`; if it is"
    " the older, upgrade torch or install an older DeepSpeed"
)

SIGNATURES = (
    *TOO_OLD,
    Signature(
        pattern=r"No module named 'torch\._six'|cannot import name '\w+' from 'torch\._six'",
        hint=UPGRADE,
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py, python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "ModuleNotFoundError: No module named 'torch._six'",
            "ImportError: cannot import name 'inf' from 'torch._six' (unknown location)",
        ),
        not_examples=(
            "ImportError: cannot import name '_get_socket_with_port' from 'torch.distributed.elastic.agent.server.api' (/opt/env/lib/python3.10/site-packages/torch/distributed/elastic/agent/server/api.py)",
        ),
        level=Level.CERTAIN,
        near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        # alone, without the file that imports it, which may be DeepSpeed's (before 0.8.2)
        pattern=r"ModuleNotFoundError: No module named 'torch\._six'",
        hint=UPGRADE,
        source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
        examples=("ModuleNotFoundError: No module named 'torch._six'",),
        level=Level.WEAK,
        not_near=("File ", "deepspeed", "DeepSpeed"),
    ),
    Signature(
        pattern=r"cannot import name '\w+' from 'torch\.distributed\.elastic",
        hint=UPGRADE,
        source="python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "ImportError: cannot import name 'log' from 'torch.distributed.elastic.agent.server.api'",
            "ImportError: cannot import name '_get_socket_with_port' from 'torch.distributed.elastic.agent.server.api'",
        ),
        not_examples=("import name 'log' from 'torch.distributed.elastic.agent.server.api'",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"#error \x22?C\+\+17 or later compatible compiler is required|C\+\+17 or later compatible compiler is required|You need C\+\+17 to compile",
        hint=UPGRADE,
        source=(
            "torch 2.1-2.13 include/torch/csrc/api/include/torch/all.h, include/ATen/ATen.h, "
            "include/c10/util/C++17.h"
        ),
        examples=(
            "x/all.h:4:2: error: #error C++17 or later compatible compiler is required to use PyTorch.",
            'c10/util/C++17.h:13:2: error: #error "C++17 or later compatible compiler is required to use ATen."',
            "/e/torch/include/c10/util/C++17.h:27:2: error: #error You need C++17 to compile PyTorch",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"C\+\+20 or (?:later|newer) (?:compatible compiler )?is required",
        hint=UPGRADE,
        source="torch 2.10-2.13 include/torch/csrc/api/include/torch/all.h, include/ATen/ATen.h",
        examples=(
            "error: #error C++20 or later compatible compiler is required to use PyTorch.",
            'torch/all.h:4:2: error: #error "C++20 or newer is required to use PyTorch."',
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"(?:cannot import name '\w+' from 'torch\.|module 'torch\.?[\w.]*' has no attribute ')",
        source="python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "ImportError: cannot import name 'ReduceOp' from 'torch.distributed'",
            "AttributeError: module 'torch.distributed' has no attribute 'get_process_group_ranks'",
        ),
        not_examples=("AttributeError: module 'deepspeed' has no attribute 'initialize'",),
        near=("/deepspeed/",),
    ),
    Signature(
        pattern=r"^ImportError: cannot import name '\w{1,80}'\s*$",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'log'",
            "ImportError: cannot import name '_get_socket_with_port'",
        ),
        not_examples=("ImportError: cannot import name 'load' from 'src.data'",),
        level=Level.HINT,
        near=("from torch.distributed", "from torch._six", "from torch._C"),
        not_near=("transformers/", "torchvision/"),
    ),
    Signature(
        pattern=r"fatal error: THC/THC\w*\.(?:h|cuh): No such file|THCState_getCurrentStream\W.{0,20}was not declared|AT_CHECK\W.{0,20}was not declared",
        hint=UPGRADE,
        source=(
            "gcc 4.8-14 libcpp/files.cc, cp/name-lookup.cc: names that torch 1.5 and 1.11 dropped"
        ),
        examples=(
            "fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such file or directory",
            "x.cpp:12:10: fatal error: THC/THCGeneral.h: No such file or directory",
            "x.cu:3:10: fatal error: THC/THCDeviceUtils.cuh: No such file or directory",
            "error: 'THCState_getCurrentStream' was not declared in this scope",
            "error: 'AT_CHECK' was not declared in this scope",
        ),
        not_examples=("fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such",),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "build-dependency-missing",
        ),
        near=("deepspeed",),
    ),
    Signature(
        pattern="Current torch version does not have",
        hint=TORCH,
        source="deepspeed 0.19.8 comm/torch.py",
        examples=(
            "RuntimeError: Current torch version does not have all_reduce_coalesced api (torch.__version__: 1.10.0)",
        ),
    ),
    Signature(
        pattern=r"Torch version must be \d[\d.]* or higher to use symm",
        hint=TORCH,
        source="deepspeed 0.19.8 comm/torch.py",
        examples=("Torch version must be 77 or higher to use symm",),
        not_examples=("Torch version must be 77 or higher to use",),
    ),
    Signature(
        pattern="not available in this PyTorch build",
        source="deepspeed 0.19.8 moe/ep_experts.py",
        examples=("not available in this PyTorch build",),
    ),
    Signature(
        pattern="Leaf module requires PyTorch >=",
        hint=TORCH,
        source="deepspeed 0.19.8 runtime/zero/stage3.py",
        examples=("AssertionError: Leaf module requires PyTorch >= 1.8",),
    ),
    Signature(
        pattern="compile is not supported in your version of PyTorch",
        hint=TORCH,
        source="deepspeed 0.19.8 runtime/engine.py, inference/engine.py",
        examples=("RuntimeError: compile is not supported in your version of PyTorch.",),
    ),
    Signature(
        pattern=r"No module named 'torch\.(?!_six)[\w.]{1,80}'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'torch.distributed.elastic'",
            "ModuleNotFoundError: No module named 'torch.distributed.fsdp._flat_param'",
        ),
        not_examples=("ModuleNotFoundError: No module named 'torch.'",),
        near=("/deepspeed/", "\\deepspeed\\"),
    ),
    Signature(
        pattern="error: .{0,160}DeprecatedTypeProperties",
        hint=UPGRADE,
        source="gcc 4.8-14, nvcc 10-13 cudafe++ (EDG): a conversion that torch 2.8 dropped",
        examples=(
            'csrc/x_kernel.cu(12): error: no suitable conversion function from "const at::DeprecatedTypeProperties" to "c10::ScalarType" exists',
            "csrc/y.cpp:41:9: error: cannot convert 'at::DeprecatedTypeProperties' to 'c10::ScalarType'",
        ),
        not_examples=(
            "warning: 'at::DeprecatedTypeProperties& at::Tensor::type() const' is deprecated",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        pattern=r"TypeError: .{0,80}\(\) got an unexpected keyword argument '\w{1,60}'",
        source="python 3.3-3.14 Python/ceval.c",
        examples=(
            "TypeError: __init__() got an unexpected keyword argument 'sequence_data_parallel_group'",
            "TypeError: initialize() got an unexpected keyword argument 'mesh_param'",
        ),
        not_examples=(
            "__init__() got an unexpected keyword argument 'sequence_data_parallel_group'",
        ),
        level=Level.HINT,
        near=(
            "deepspeed.zero.Init(",
            "deepspeed.initialize(",
            "deepspeed.init_inference(",
            "deepspeed.init_distributed(",
        ),
    ),
    Signature(
        pattern="NameError: name '_(?:disable_dynamo_if_unsupported|use_grad_for_differentiable|default_to_fused_or_foreach|get_capturable_supported_devices|get_scalar_dtype|stack_if_compiling|dispatch_sqrt|view_as_real|device_dtype_check_for_fused|get_socket_with_port|flatten_dense_tensors|unflatten_dense_tensors)' is not defined",
        source="python 3.3-3.14 Python/ceval.c: names of torch that other releases do not have",
        examples=(
            "NameError: name '_disable_dynamo_if_unsupported' is not defined",
            "[rank2]: NameError: name '_use_grad_for_differentiable' is not defined",
            "NameError: name '_default_to_fused_or_foreach' is not defined",
            "NameError: name '_get_capturable_supported_devices' is not defined",
            "NameError: name '_get_scalar_dtype' is not defined",
            "NameError: name '_stack_if_compiling' is not defined",
            "NameError: name '_dispatch_sqrt' is not defined",
            "NameError: name '_view_as_real' is not defined",
            "NameError: name '_device_dtype_check_for_fused' is not defined",
            "NameError: name '_get_socket_with_port' is not defined",
            "NameError: name '_flatten_dense_tensors' is not defined",
            "NameError: name '_unflatten_dense_tensors' is not defined",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Unsupported (?:global: GLOBAL|class) deepspeed\.",
        source="torch 2.0-2.3 (`class`) and 2.4-2.15 (`global`) _weights_only_unpickler.py, of checkpoints of DeepSpeed 0.3-0.15",
        message="A DeepSpeed checkpoint contains more than weights, which `torch.load` refuses by default since torch 2.6",
        hint="upgrade DeepSpeed to 0.16 or later, which loads its own checkpoints; in your own code, pass `weights_only=False` for a file that you trust",
        examples=(
            "\tWeightsUnpickler error: Unsupported global: GLOBAL deepspeed.runtime.fp16.loss_scaler.LossScaler was not an allowed global by default.",
            "WeightsUnpickler error: Unsupported class deepspeed.runtime.zero.config.ZeroStageEnum",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict", "weights-file-corrupt"),
    ),
)
