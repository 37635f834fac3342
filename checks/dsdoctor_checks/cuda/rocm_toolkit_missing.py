"""There is no ROCm compiler (hipcc) to build ops and extensions with.

## Why it matters
The ROCm wheels of torch include the libraries but no compiler. DeepSpeed builds ops such as
`fused_adam` and, with offload, `cpu_adam` at first use, for which torch calls `hipcc`. Where torch
finds no ROCm folder at all, DeepSpeed mistakes torch's build for a CUDA build, and `import
deepspeed` fails with `MissingCUDAException`.

## What to do
Install the ROCm development packages (`hip-dev` or `rocm-hip-sdk`) of torch's ROCm release, use AMD's
image, which has them, or set `ROCM_HOME` to where they are. Or use an optimizer that needs no op
(`"torch_adam": true`).

## References
- torch 2.13.0 utils/cpp_extension.py: `_find_rocm_home`
- DeepSpeed 0.17.6 and 0.19.8 op_builder/builder.py: `is_rocm_pytorch`; fp_quantizer.py: `is_compatible`
- https://rocm.docs.amd.com/projects/install-on-linux/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    Environment,
    Finding,
    ImportOutcome,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "rocm-toolkit-missing",
    id="DSD209",
    scope=Scope.USER_ENV,
    since="0.1",
    leads_to=("cpu-adam-unbuilt",),
)


_INSTALL = "install `rocm-hip-sdk` of torch's ROCm release, or set `ROCM_HOME` to where ROCm is"


def misses_cuda(outcome: ImportOutcome) -> bool:
    """Whether DeepSpeed did not import because it looked for a CUDA toolkit."""
    return not outcome.ok and outcome.error_type == "MissingCUDAException"


@check(CONDITION)
def rocm_compiler_is_there(
    torch: TorchBuild,
    compilers: Compilers,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    env: Environment | Missing,
    live: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges the import, and the ops that the config needs and that are not pre-built."""
    if torch.hip is not None and isinstance(live, DeepSpeedLive) and misses_cuda(live.imported):
        yield fail(
            f"`import deepspeed` asks for CUDA, although torch {torch.version} is built for ROCm:"
            " torch finds no ROCm folder in `ROCM_HOME`, on PATH or in `/opt/rocm`",
            effect="every rank fails in the same way when it starts",
            hint=_INSTALL,
            torch=torch.version,
            rocm=torch.hip,
            hipcc=compilers.hipcc,
            error=live.imported.message,
        )
        return
    if torch.hip is None or run.config is None or isinstance(deepspeed, Missing):
        yield skip("torch is not a ROCm build, or no config says which ops are built")
        return
    built = deepspeed.prebuilt
    needed = [op.name for op in _ops.needed_ops(run.config, deepspeed.version, env)]
    lacking = [name for name in needed if name not in built]
    if compilers.hipcc is not None or not lacking:
        yield ok(hipcc=compilers.hipcc, ops=lacking)
        return
    named = ", ".join(f"`{name}`" for name in lacking)
    yield fail(
        f"`hipcc` is neither in `ROCM_HOME`, nor on PATH, nor in `/opt/rocm`, but building {named} for"
        f" torch {torch.version} needs it",
        effect=f"the build of {named} fails when the engine starts",
        hint=_INSTALL,
        torch=torch.version,
        rocm=torch.hip,
        ops=lacking,
    )


HINT = "install `rocm-hip-sdk` of torch's ROCm release, or set `ROCM_HOME` to where ROCm is"

SIGNATURES = (
    Signature(
        pattern="MissingCUDAException: CUDA_HOME does not exist",
        source="deepspeed 0.10-0.19 ops/op_builder/builder.py, with a torch for ROCm",
        message="DeepSpeed asks for CUDA although torch is built for ROCm: torch finds no ROCm folder",
        examples=("MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)",),
        requires=("+rocm",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "deepspeed-import-broken"),
    ),
    Signature(
        pattern=r"\bhipcc: (?:command )?not found$|\bNo such file or directory: '[^']{0,200}\bhipcc'",
        source="bash 3.2-5.2, dash 0.5; CPython 3.8-3.14 Lib/subprocess.py",
        message="The ROCm compiler `hipcc` is not where the build looks for it",
        examples=(
            "/bin/sh: 1: /opt/rocm/bin/hipcc: not found",
            "bash: hipcc: command not found",
            "FileNotFoundError: [Errno 2] No such file or directory: '/opt/rocm/bin/hipcc'",
        ),
        not_examples=("hipcc: not found in the list", "No such file or directory: 'hipcc.md'"),
        level=Level.STRONG,
        masks=("launch-file-missing", "cpu-adam-unbuilt"),
    ),
)
