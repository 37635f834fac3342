"""Which DeepSpeed ops a run needs, and whether nvcc builds them.

The CPU optimizers, async_io and how each is built: DeepSpeed 0.19.8, op_builder/. Which op an optimizer
uses: `_configure_basic_optimizer` and `get_optimizer_configuration` in its runtime/engine.py, read
2026-11-21.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from dsdoctor.api import (
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    RunNeeds,
    TorchBuild,
    Why,
    ok,
    skip,
)
from dsdoctor_checks._util import at_least, gpu_expected, variable
from dsdoctor_checks.cuda import _tables

_CPU_OPS = ("cpu_adam", "cpu_adagrad", "cpu_lion")
#: Ops that are built without nvcc.
_NO_TOOLKIT = ("utils", "ccl_comm", "shm_comm", "pin_memory")
#: What almost every GPU run builds; assumed if there is no config.
_USUAL = "fused_adam"


class Op(msgspec.Struct, frozen=True):
    """An op of DeepSpeed.

    Attributes:
        name: as in `installed_ops` (`fused_adam`).
        toolkit: it is compiled or linked with the CUDA toolkit.
    """

    name: str
    toolkit: bool


def _section(config: Mapping[str, object] | None, *path: str) -> Mapping[str, object]:
    found: object = config
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _offload(config: Mapping[str, object], part: str) -> str:
    device = _section(config, "zero_optimization", part).get("device", "none")
    legacy = _section(config, "zero_optimization").get("cpu_offload") is True
    name = str(device).lower()
    return "cpu" if legacy and part == "offload_optimizer" and name == "none" else name


def _optimizer_op(config: Mapping[str, object]) -> str | None:
    on_cpu = _offload(config, "offload_optimizer") in ("cpu", "nvme")
    kind = str(_section(config, "optimizer").get("type", "")).lower()
    if not kind:
        return "cpu_adam" if on_cpu else None
    if kind in ("adam", "adamw"):
        if _section(config, "optimizer", "params").get("torch_adam") is True:
            return None
        return "cpu_adam" if on_cpu else "fused_adam"
    on_gpu = {"lamb": "fused_lamb", "lion": "fused_lion"}
    in_ram = {"lion": "cpu_lion", "adagrad": "cpu_adagrad", "lamb": "fused_lamb"}
    return (in_ram if on_cpu else on_gpu).get(kind)


def op_of(name: str, deepspeed: str | None) -> Op:
    """An op by name, and whether this release builds it with the toolkit."""
    if name in _CPU_OPS:
        return Op(name, not at_least(deepspeed, _tables.CPU_OPS_PLAIN))
    return Op(name, name not in _NO_TOOLKIT)


def needed_ops(
    config: Mapping[str, object], deepspeed: str | None, env: Environment | Missing
) -> tuple[Op, ...]:
    """The ops that a run with this config builds or loads at start."""
    if variable(env, "DS_ACCELERATOR") not in (None, "cuda"):
        return ()
    names = [_optimizer_op(config)]
    if "nvme" in (_offload(config, "offload_optimizer"), _offload(config, "offload_param")):
        names.append("async_io")
    zero = _section(config, "zero_optimization")
    if any(zero.get(key) is True for key in ("zero_quantized_weights", "zero_quantized_gradients")):
        names.append("quantizer")
    if _section(config, "hybrid_engine").get("enabled") is True:
        names.append("transformer_inference")
    if _section(config, "compile").get("deepcompile") is True:
        names.append("dc")
    return tuple(op_of(name, deepspeed) for name in names if name)


class Use(enum.Enum):
    """What this run uses the toolkit for."""

    PREBUILD = "pre-built"
    JIT = "JIT-built"
    UNKNOWN = "no config"
    NONE = "not used"


class Need(msgspec.Struct, frozen=True):
    """Why the toolkit is judged, or why not.

    Attributes:
        use: what it is used for.
        ops: the ops in question.
        reason: for `NONE`, why the toolkit is not judged.
        inapplicable: the question does not arise (skip), rather than being answered (ok).
    """

    use: Use
    ops: tuple[str, ...] = ()
    reason: str = ""
    inapplicable: bool = False

    def settled(self) -> Finding | None:
        """The finding, if this alone decides a check of the toolkit; None = look at nvcc."""
        if self.inapplicable:
            return skip(self.reason)
        if self.use is Use.NONE:
            return ok(f"nvcc is not needed: {self.reason}", need=self.use.value)
        return None

    @property
    def certain(self) -> bool:
        """Whether the run certainly compiles something."""
        return self.use in (Use.PREBUILD, Use.JIT)

    @property
    def words(self) -> str:
        """What cannot be built without the toolkit, for an effect line."""
        if not self.ops:
            return "DeepSpeed's CUDA ops"
        named = ", ".join(self.ops)
        return f"the ops `{named}`" if len(self.ops) > 1 else f"the op `{named}`"


def loadable(torch: TorchBuild, deepspeed: DeepSpeedInstall | Missing) -> tuple[str, ...]:
    """Pre-built ops that DeepSpeed loads on a GPU: they match this torch, its CUDA, and GPUs."""
    if isinstance(deepspeed, Missing):
        return ()
    same_torch = deepspeed.built_for_torch in (None, _major_minor(torch.version))
    same_cuda = deepspeed.built_for_cuda in (None, _major_minor(torch.cuda))
    for_gpus = deepspeed.built_for_accelerator in (None, "cuda")
    return deepspeed.prebuilt if same_torch and same_cuda and for_gpus else ()


def _major_minor(version: str | None) -> str:
    return ".".join((version or "").split("+")[0].split(".")[:2])


def toolkit_need(
    torch: TorchBuild,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Need:
    """What this run needs the CUDA toolkit for."""
    if not torch.installed:
        return Need(Use.NONE, reason="torch is not installed", inapplicable=True)
    if torch.hip is not None:
        return Need(
            Use.NONE, reason="torch is a ROCm build, which needs no nvcc", inapplicable=True
        )
    if torch.cuda is None:
        return Need(Use.NONE, reason="torch is a CPU build, which needs no nvcc", inapplicable=True)
    version = None if isinstance(deepspeed, Missing) else deepspeed.version
    asked = [op_of(_op_name(name), version) for name in run.build_ops]
    building = tuple(op.name for op in asked if op.toolkit)
    if building:
        return Need(Use.PREBUILD, building)
    # if GPUs were not looked for (a paste of `ds_report`), a CUDA build is judged as for one
    unasked = isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED
    looked = not (unasked and isinstance(kernel, Missing))
    if looked and not gpu_expected(run, kernel, gpus, env):
        reason = "no GPU is present or requested, so DeepSpeed builds no CUDA ops"
        return Need(Use.NONE, reason=reason, inapplicable=True)
    ready = loadable(torch, deepspeed)
    if run.without_deepspeed:
        reason = "the script of the command does not use DeepSpeed, which would build ops"
        return Need(Use.NONE, reason=reason, inapplicable=True)
    if run.config is None:
        if _USUAL in ready:
            return Need(Use.NONE, reason="the CUDA ops are already built")
        return Need(Use.UNKNOWN)
    needed = [op for op in needed_ops(run.config, version, env) if op.name not in ready]
    compiled = tuple(op.name for op in needed if op.toolkit)
    if compiled:
        return Need(Use.JIT, compiled)
    return Need(Use.NONE, reason="this config needs no op that is built with nvcc")


def _op_name(variable_part: str) -> str:
    name = variable_part.lower().removeprefix("ds_build_")
    return {"ops": "ops", "aio": "async_io", "deep_compile": "dc"}.get(name, name)
