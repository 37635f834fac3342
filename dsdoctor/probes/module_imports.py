"""Imports packages with compiled extensions in a child of the examined environment."""

from __future__ import annotations

import re
from collections.abc import Collection

from dsdoctor.api import (
    ImportOutcome,
    Missing,
    ModuleImports,
    Packages,
    RunNeeds,
    ScriptImports,
    TorchLive,
    probe,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.child_records import Records, values_of
from dsdoctor.probes.torch_live import (
    GRACE_SECONDS,
    LIVE_SECONDS,
    STEP_SECONDS,
    end_of,
    outcome_of,
)
from dsdoctor.process import Result

#: Distribution to module: those whose import loads libraries that were compiled for one torch or
#: CUDA. Trainers and models import them, most of them as soon as they are installed.
EXTENSIONS = {
    "flash-attn": "flash_attn",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "bitsandbytes": "bitsandbytes",
    "torch-npu": "torch_npu",
}
#: The same for those that matter only to a script that imports them. A name with a dot is the
#: library itself, which the package loads only where it is used: setup.py of pytorch3d 0.7, of
#: detectron2 0.6 and of mmcv 1 and 2, 2026-11-29. A build of mmcv without it is a choice.
OF_SCRIPTS = {
    "opencv-python": "cv2",
    "opencv-python-headless": "cv2",
    "opencv-contrib-python": "cv2",
    "decord": "decord",
    "av": "av",
    "soundfile": "soundfile",
    "sentencepiece": "sentencepiece",
    "xformers": "xformers",
    "apex": "apex",
    "transformer-engine": "transformer_engine",
    "mamba-ssm": "mamba_ssm",
    "causal-conv1d": "causal_conv1d",
    "torch-scatter": "torch_scatter",
    "torch-sparse": "torch_sparse",
    "torch-cluster": "torch_cluster",
    "pytorch3d": "pytorch3d._C",
    "detectron2": "detectron2._C",
    "mmcv": "mmcv._ext",
    "mmcv-full": "mmcv._ext",
}
#: Those of them that were not compiled for a torch or CUDA: who requires one may never load it.
WITHOUT_TORCH = frozenset({"cv2", "decord", "av", "soundfile", "sentencepiece"})
#: The name in a requirement that holds without an extra.
_REQUIRED = re.compile(r"(?m)^Requires-Dist:[ \t]*([\w.-]+)(?!.*;.*\bextra\b)")


@probe
def module_imports(
    host: Host,
    run: RunNeeds,
    choice: PatientChoice,
    packages: Packages,
    live: TorchLive | Missing,  # noqa: ARG001
    script: ScriptImports | Missing,
) -> ModuleImports | Missing:
    """Imports those that are installed; one that hangs or dies does not touch what torch does.

    Waits until torch has been tried: bitsandbytes asks CUDA for the GPUs, and one in exclusive mode
    would seem to be busy.
    """
    if run.quick:
        raise HostError(Why.NOT_ASKED, "nothing is imported (`--quick`)")
    modules = [module for name, module in EXTENSIONS.items() if name in packages.packages]
    wanted = script.found if isinstance(script, ScriptImports) else ()
    of_script = [name for name in OF_SCRIPTS if name in packages.packages]
    required = _required_by(host, packages, wanted) if of_script else frozenset()
    modules += dict.fromkeys(
        OF_SCRIPTS[name]
        for name in of_script
        if OF_SCRIPTS[name].partition(".")[0] in wanted
        or (name in required and OF_SCRIPTS[name] not in WITHOUT_TORCH)
    )
    names = () if isinstance(script, Missing) else _names(script)
    if not (modules or names) or "torch" not in packages.packages:
        return ModuleImports()
    limit = STEP_SECONDS * float(getattr(host, "scale", 1.0))
    records, result = run_child(
        host,
        choice.executable,
        "torch_live",
        [
            "--step-seconds",
            f"{limit:g}",
            "--modules",
            ",".join(modules),
            "--names",
            ",".join(names),
        ],
        timeout=LIVE_SECONDS,
        idle_timeout=limit + GRACE_SECONDS,
        cwd=run.cwd,
    )
    return parse_imports(records, result, names)


def _required_by(host: Host, packages: Packages, roots: Collection[str]) -> frozenset[str]:
    """Distributions that those of the script's modules require, where they have the same name."""
    found: set[str] = set()
    for root in roots:
        package = packages.packages.get(root.replace("_", "-").lower())
        if package is None:
            continue
        folder = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
        try:
            text = read_text(host, f"{package.location}/{folder}/METADATA")
        except HostError:  # older tools write the name otherwise
            continue
        header = text.partition("\n\n")[0]
        found |= {re.sub(r"[-_.]+", "-", name).lower() for name in _REQUIRED.findall(header)}
    return frozenset(found)


def _names(script: ScriptImports) -> tuple[str, ...]:
    """What the script imports before it, or a module next to it, may change where is looked."""
    if script.changes_path:
        return ()
    return tuple(n for n, line in script.names.items() if not script.own or line < script.own)


def parse_imports(
    records: Records, result: Result, names: Collection[str] = ()
) -> ModuleImports | Missing:
    """Turns the records of the child into the fact; a module in whose import it died counts.

    Args:
        records: of the child.
        result: how it ended.
        names: those of the script.
    """
    values = values_of(records)
    if not (values.get("torch_import") or {}).get("ok"):
        return Missing(why=Why.NOT_ASKED, detail="not imported: `import torch` failed")
    outcomes: dict[str, ImportOutcome] = {}
    for name, value in values.items():
        if name.startswith("import ") and not value.get("absent"):
            outcomes[name.removeprefix("import ")] = outcome_of(value)
    end = end_of(records, result)
    if end is not None and end.step.startswith("import "):
        outcomes.setdefault(end.step.removeprefix("import "), end.outcome)
    return ModuleImports(
        outcomes={name: one for name, one in outcomes.items() if name not in names},
        names={name: one for name, one in outcomes.items() if name in names},
    )
