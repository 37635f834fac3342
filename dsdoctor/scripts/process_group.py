"""Where a script surely creates torch's process group, and what that needs.

torch 1.8-2.13 distributed/distributed_c10d.py (`init_process_group`), rendezvous.py
(`_env_rendezvous_handler`), run.py (`determine_local_world_size`); read 2026-11-30.
"""

from __future__ import annotations

import ast
import sys
from typing import NamedTuple

from dsdoctor.framework import packages_in
from dsdoctor.scripts.reach import dotted, imported_from, parsed, sure_calls

_CALLED = "torch.distributed.init_process_group"
#: Arguments that replace the variables of a launcher.
_OWN = frozenset({"init_method", "rank", "store", "world_size"})
#: Packages that set no such variable when they are imported.
_QUIET = sys.stdlib_module_names | {
    "PIL", "datasets", "einops", "numpy", "pandas", "peft", "safetensors", "tokenizers", "torch",
    "torchaudio", "torchvision", "tqdm", "transformers", "wandb", "yaml",
}  # fmt: skip


class ProcessGroup(NamedTuple):
    """The call that creates it.

    Attributes:
        line: its line.
        backend: as written; "" = none is, or it is computed.
        of_launcher: it reads the variables of a launcher, and nothing in the script sets them.
        only_torch: no imported package may replace the backend, as plug-ins of other accelerators
            do.
    """

    line: int
    backend: str
    of_launcher: bool
    only_torch: bool


def process_group(text: str) -> ProcessGroup | None:
    r"""The first call that surely runs; None if there is none.

    >>> process_group("import torch.distributed as dist\ndist.init_process_group('nccl')")
    ProcessGroup(line=2, backend='nccl', of_launcher=True, only_torch=True)
    >>> process_group("import torch.distributed as d\nif x:\n    d.init_process_group()") is None
    True
    """
    tree = parsed(text) if "init_process_group" in text else None
    if tree is None:
        return None
    names = imported_from(tree, {"torch"})
    for call in sure_calls(tree):
        first, _, rest = dotted(call.func).partition(".")
        if first not in names or ".".join(filter(None, (names[first], rest))) != _CALLED:
            continue
        given = {one.arg: one.value for one in call.keywords}
        backend = given.get("backend", call.args[0] if call.args else None)
        value = backend.value if isinstance(backend, ast.Constant) else None
        quiet = packages_in(tree) <= _QUIET
        own = bool(_OWN & given.keys()) or None in given or len(call.args) > 1
        return ProcessGroup(
            line=call.lineno,
            backend=value if isinstance(value, str) else "",
            # MPI numbers the ranks itself, and a computed name may be its
            of_launcher=(backend is None or (isinstance(value, str) and "mpi" not in value.lower()))
            and not own
            and quiet
            and not _changes_environment(tree),
            only_torch=quiet,
        )
    return None


def _changes_environment(tree: ast.Module) -> bool:
    """Whether the script may set a variable: it does more with `os.environ` than read it."""
    read = {
        id(node.value)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr == "get")
    }
    return any(
        dotted(node).rpartition(".")[2] in ("environ", "putenv") and id(node) not in read
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Name))
    )
