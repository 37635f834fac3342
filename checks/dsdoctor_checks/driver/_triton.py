"""Kernels of Triton, whose own `ptxas` may be of a newer CUDA than the driver supports.

A driver loads compiled code of its own CUDA major version and of older ones, whichever CUDA torch
was built for: torch for CUDA 11.8 runs on driver 470, and what Triton compiles beside it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dsdoctor.api import (
    Environment,
    Finding,
    LaunchCommand,
    Missing,
    NotStated,
    Packages,
    RunNeeds,
    warn,
    without_fix,
)
from dsdoctor_checks._util import numbers, pair, variable
from dsdoctor_checks.driver import _tables

#: Triton release to the CUDA versions of its `ptxas`, and of its `ptxas-blackwell`, with which it
#: compiles for compute capability 10.0 and above: `--version` of both in the wheels of PyPI, run
#: 2026-11-30.
_PTXAS: dict[tuple[int, int], tuple[str, str | None]] = {
    (2, 0): ("12.0", None),
    (2, 1): ("12.1", None),
    (2, 2): ("12.3", None),
    (2, 3): ("12.3", None),
    (3, 0): ("12.4", None),
    (3, 1): ("12.4", None),
    (3, 2): ("12.4", None),
    (3, 3): ("12.4", "12.8"),
    (3, 4): ("12.8", None),
    (3, 5): ("12.8", None),
    (3, 6): ("12.8", "12.9"),
    (3, 7): ("12.8", "13.1"),
    (3, 8): ("12.9", "13.3"),
}
_BLACKWELL = 10
#: Packages that compile kernels with Triton wherever they are used.
_USERS = (
    "vllm", "sglang", "lmdeploy", "unsloth", "liger-kernel", "flash-linear-attention", "mamba-ssm",
)  # fmt: skip
#: Options of transformers' Trainer and of LLaMA-Factory.
_OPTIONS = frozenset(
    {"torch_compile", "torch_compile_backend", "use_liger_kernel", "enable_liger_kernel"}
)
#: Of `--torch_compile` and its like, a switch alone turns it on; of backends, these have no Triton.
_OFF = frozenset({"no", "false", "0", "none", "eager", "aot_eager"})


def kernels_load(
    driver: str,
    devices: Collection[tuple[int, int]],
    packages: Packages | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges runs that are known to compile with Triton; most never do."""
    triton = _version(packages, "triton")
    known = _PTXAS.get(pair(triton) or (0, 0))
    user = _user(packages, run, command)
    if triton is None or known is None or user is None:
        return
    own = known[1] if devices and min(devices)[0] >= _BLACKWELL else None
    name, cuda = ("ptxas-blackwell", own) if own else ("ptxas", known[0])
    chosen = f"TRITON_{name.upper().replace('-', '_')}_PATH"
    floor = _tables.floor(pair(cuda) or (0, 0))
    if variable(env, chosen) or floor is None or numbers(driver) >= numbers(floor):
        return
    supported = _tables.supported(driver)
    yield without_fix(
        warn(
            f"Triton {triton} compiles with the `{name}` of CUDA {cuda}, but driver {driver} "
            f"supports up to CUDA {supported}, and {user} uses Triton",
            effect="its kernels stop with `Triton Error [CUDA]: device kernel image is invalid`",
            hint=f"upgrade the driver to {floor} or newer, or set `{chosen}` to the `ptxas` of CUDA"
            f" {supported}",
            triton=triton,
            ptxas=cuda,
            driver=driver,
            serves=supported,
            floor=floor,
        )
    )


def _version(packages: Packages | Missing, name: str) -> str | None:
    """Version of a package; None where it is not known to be installed."""
    try:
        return None if isinstance(packages, Missing) else packages.version(name)
    except NotStated:
        return None


def _user(
    packages: Packages | Missing, run: RunNeeds, command: LaunchCommand | Missing
) -> str | None:
    """What compiles with Triton, for a message; None = nothing is known to."""
    user = next((name for name in _USERS if _version(packages, name)), None)
    if user is not None:
        return f"`{user}`"
    asked = {} if isinstance(command, Missing) else dict(command.script_options())
    for name, value in {**run.trainer_values, **asked}.items():
        if name in _OPTIONS and value.lower() not in _OFF:
            return f"`{name}`"
    dynamo = "no" if isinstance(command, Missing) else command.options.get("dynamo_backend", "no")
    return None if dynamo.lower() in _OFF else "`--dynamo_backend`"
