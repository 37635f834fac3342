"""Modules that the training script imports, looked for by the interpreter that is examined."""

from __future__ import annotations

import ast
import itertools
import posixpath
import re
from collections.abc import Collection

from dsdoctor.api import LaunchCommand, Missing, RunNeeds, ScriptImports, probe
from dsdoctor.framework import syntax_of
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.command_tables import RUNNERS
from dsdoctor.scripts.prepares import prepared_by

#: Nothing is imported, but a cold network disk answers slowly.
SECONDS = 30.0
#: More modules than any script imports by itself.
MOST = 200
#: What changes where modules are looked for.
_CHANGES = re.compile(
    r"\bsys\s*\.\s*(?:path|meta_path|modules)\b|\baddsitedir\b|\bos\.exec|\bpip\b"
)
#: Packages whose imports are tried: they fail on other releases of each other or of what they were
#: compiled for, and importing them starts nothing. What loads an engine, such as vllm, is left out.
TRIED = frozenset(
    {"accelerate", "datasets", "diffusers", "evaluate", "h5py", "huggingface_hub", "lightning",
     "matplotlib", "numba", "numpy", "optimum", "pandas", "peft", "pyarrow", "pytorch_lightning",
     "safetensors", "scipy", "sentence_transformers", "sklearn", "timm", "tokenizers",
     "torchmetrics", "transformers", "trl"}
)  # fmt: skip
#: Modules of torch that import another package.
_OF_TORCH = ("torch.utils.tensorboard",)
#: More names than any script imports from them.
_MOST_NAMES = 60
#: Programs that start the script with an interpreter that is not examined.
_ELSEWHERE = frozenset(
    {"apptainer", "docker", "enroot", "kubectl", "micromamba", "pixi", "podman", "ray",
     "shifter", "singularity", "ssh", "hatch", "uvx", "pipx"}
)  # fmt: skip


def imports_of(text: str) -> dict[str, int] | None:
    r"""Modules of the top level that a script imports unconditionally, each with its first line.

    An import in `try`, `if`, a function or a class may never run, or be caught. None: the text
    cannot be parsed.

    >>> imports_of("import os, torch.nn as nn\nfrom peft import LoraConfig\nfrom . import x")
    {'os': 1, 'torch': 1, 'peft': 2}
    >>> imports_of("try:\n    import apex\nexcept ImportError:\n    apex = None")
    {}
    """
    tree = syntax_of(text)
    if tree is None:
        return None
    found: dict[str, int] = {}
    for node in tree.body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        for name in names:
            found.setdefault(name.partition(".")[0], node.lineno)
    return found


def _root_of(name: str) -> str:
    """The package of a name, as in `trl:SFTTrainer` or `lightning.pytorch`."""
    return re.split(r"[.:]", name, maxsplit=1)[0]


def relative_of(text: str) -> int:
    r"""The line of the first relative import that surely runs; 0 = none.

    A script that is started by its path belongs to no package, unless it says so itself.

    >>> relative_of("import os\nfrom .net import Net"), relative_of("if x:\n    from . import y")
    (2, 0)
    """
    tree = None if "__package__" in text else syntax_of(text)
    relative = (
        node.lineno
        for node in (() if tree is None else tree.body)
        if isinstance(node, ast.ImportFrom) and node.level
    )
    return min(relative, default=0)


def names_of(text: str) -> dict[str, int]:
    r"""Names that a script imports unconditionally from packages that are tried, with their lines.

    >>> names_of("from trl import SFTTrainer as T, SFTConfig\nimport peft, os, torch")
    {'trl:SFTTrainer': 1, 'trl:SFTConfig': 1, 'peft': 2}
    >>> names_of("from torch.utils.tensorboard import SummaryWriter\nimport torch.nn")
    {'torch.utils.tensorboard:SummaryWriter': 1}
    """
    tree = syntax_of(text)
    found: dict[str, int] = {}
    for node in () if tree is None else tree.body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [f"{node.module}:{name.name}" for name in node.names if name.name != "*"]
        for name in names:
            if _root_of(name) in TRIED or name.startswith(_OF_TORCH):
                found.setdefault(name, node.lineno)
    return dict(itertools.islice(found.items(), _MOST_NAMES))


def starts_elsewhere(command: LaunchCommand) -> bool:
    """Whether another interpreter than the one examined starts the script."""
    # Slurm's plugin for containers, pyxis: `srun --container-image=…`
    inside = any(option.startswith("container") for option in command.outer)
    return inside or has_one_of(command, _ELSEWHERE)


def examined_script(run: RunNeeds, command: LaunchCommand, choice: PatientChoice) -> str:
    """The Python script that a command starts in the environment that is examined.

    Raises:
        HostError: it starts none, a shell decides which, or it runs in another environment.
    """
    script = script_of(command)
    # a runner may bring packages or a Python of its own: `uv run --with peft`
    chosen = choice.chosen_by == "the command" or not has_one_of(command, RUNNERS)
    if not chosen or run.container is not None or starts_elsewhere(command):
        raise HostError(
            Why.UNSUPPORTED, "the environment of the script is chosen by what is around the command"
        )
    return script


def has_one_of(command: LaunchCommand, programs: Collection[str]) -> bool:
    """Whether one of these programs starts the command."""
    before = command.argv[: len(command.argv) - len(command.script_args)]
    return any(posixpath.basename(word) in programs for word in before)


def script_of(command: LaunchCommand) -> str:
    """The Python script that a command starts.

    Raises:
        HostError: it starts none, or a shell decides which.
    """
    script = command.script or ""
    if not script.endswith(".py") or "$" in script:
        raise HostError(Why.ABSENT, "the command starts no Python script that can be read")
    return script


@probe
def script_imports(
    host: Host, run: RunNeeds, command: LaunchCommand, choice: PatientChoice
) -> ScriptImports | Missing:
    """Parses the script; a child finds the modules and imports none of them."""
    script = script_of(command)
    if run.followed or run.batch or starts_elsewhere(command) or has_one_of(command, RUNNERS):
        raise HostError(
            Why.UNSUPPORTED, "the wrapper in the command chooses the environment of the script"
        )
    path = posixpath.normpath(posixpath.join(run.cwd, script))
    text = read_text(host, path)
    modules = imports_of(text)
    if modules is None:
        raise HostError(Why.UNSUPPORTED, f"`{script}` could not be parsed")
    relative = relative_of(text)
    if not modules:
        return ScriptImports(script=script, relative=relative)
    names = list(modules)[:MOST]
    env = {"PYTHONPATH": command.env["PYTHONPATH"]} if "PYTHONPATH" in command.env else None
    records, result = run_child(
        host,
        choice.executable,
        "find_modules",
        [posixpath.dirname(path) or ".", *names],
        timeout=SECONDS,
        cwd=run.cwd,
        env=env,
    )
    if len(records) < len(names):
        why = Why.TIMEOUT if result.timed_out else Why.BROKEN
        return Missing(why=why, detail=f"`{choice.executable}` did not look for all modules")
    there = {r["module"] for r in records if r.get("found") and not r.get("own")}
    return ScriptImports(
        script=script,
        names={name: line for name, line in names_of(text).items() if _root_of(name) in there},
        missing={r["module"]: modules[r["module"]] for r in records if not r.get("found")},
        found=tuple(r["module"] for r in records if r.get("found")),
        bare={r["module"]: modules[r["module"]] for r in records if r.get("bare")},
        own=min((modules[r["module"]] for r in records if r.get("own")), default=0),
        relative=relative,
        changes_path=_CHANGES.search(text) is not None,
        prepared=prepared_by(text),
    )
