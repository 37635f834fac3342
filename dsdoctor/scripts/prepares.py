"""Optimizers and schedulers that a script creates itself and passes to `prepare` of Accelerate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dsdoctor.scripts.reach import dotted, is_main, parsed

#: A script with one of these decides by the config what it creates.
_DECIDES = re.compile(
    r"Dummy(?:Optim|Scheduler)|[Dd]eepspeed_?(?:config|plugin)|DeepSpeedPlugin|HfDeepSpeedConfig"
)
#: Subclasses of torch's `Optimizer`, also those of transformers, bitsandbytes and deepspeed.
_OPTIMIZERS = frozenset(
    {"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "Adam8bit", "AdamW", "AdamW8bit", "Adamax",
     "DeepSpeedCPUAdam", "FusedAdam", "Lion8bit", "NAdam", "PagedAdamW", "PagedAdamW8bit", "RAdam",
     "RMSprop", "SGD"}
)  # fmt: skip
#: What returns one of torch's schedulers (transformers 4.20-5.24 optimization.py).
_SCHEDULERS = frozenset(
    {"CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LambdaLR", "LinearLR",
     "MultiStepLR", "OneCycleLR", "StepLR", "get_constant_schedule",
     "get_constant_schedule_with_warmup", "get_cosine_schedule_with_warmup",
     "get_linear_schedule_with_warmup", "get_polynomial_decay_schedule_with_warmup",
     "get_scheduler"}
)  # fmt: skip
#: Packages that these are imported from.
_PACKAGES = frozenset({"bitsandbytes", "deepspeed", "diffusers", "torch", "transformers"})


def prepared_by(text: str) -> dict[str, int]:
    r"""`optimizer` and `scheduler`, if the script creates one and prepares it, with the line.

    What stands in a branch or a loop may never run, and what is created elsewhere is not known.

    >>> head = "import torch\nfrom accelerate import Accelerator\naccelerator = Accelerator()\n"
    >>> prepared_by(head + "o = torch.optim.AdamW(p)\nm, o = accelerator.prepare(m, o)")
    {'optimizer': 4}
    >>> prepared_by(head + "if a: o = torch.optim.AdamW(p)\nm, o = accelerator.prepare(m, o)")
    {}
    """
    if ".prepare(" not in text or _DECIDES.search(text):
        return {}
    tree = parsed(text)
    if tree is None:
        return {}
    roots = _imported(tree)
    found: dict[str, int] = {}
    for body in _scopes(tree):
        for kind, line in _of_scope(body, roots):
            found.setdefault(kind, line)
    return found


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names that the script imports, each with the package."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = name.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                found[name.asname or name.name] = node.module.partition(".")[0]
    return found


def _scopes(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Statements that run one after the other: of the module, and of each function."""
    yield list(_unconditional(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield list(_unconditional(node.body))


def _unconditional(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.With) or (isinstance(node, ast.If) and is_main(node.test)):
            yield from _unconditional(node.body)


def _of_scope(body: list[ast.stmt], roots: dict[str, str]) -> Iterator[tuple[str, int]]:
    created: dict[str, tuple[str, int]] = {}
    for node in body:
        names = _assigned(node)
        if call := _call(node):
            if dotted(call.func).endswith(".prepare") and _is_accelerator(call.func, body, roots):
                for word in call.args:
                    if isinstance(word, ast.Name) and word.id in created:
                        yield created[word.id]
                continue
            kind = _kind(dotted(call.func), roots)
            if kind and len(names) == 1:
                created[names.pop()] = (kind, node.lineno)
                continue
        for name in names:  # also in a branch: the object may be another one then
            created.pop(name, None)


def _call(node: ast.stmt) -> ast.Call | None:
    value = node.value if isinstance(node, (ast.Assign, ast.Expr, ast.Return)) else None
    return value if isinstance(value, ast.Call) else None


def _assigned(node: ast.stmt) -> set[str]:
    """Names that a statement may bind."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With)):
        return set()
    if isinstance(node, ast.If) and is_main(node.test):
        return set()
    return {
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }


def _kind(name: str, roots: dict[str, str]) -> str:
    root, _, _ = name.partition(".")
    if roots.get(root) not in _PACKAGES:
        return ""
    last = name.rpartition(".")[2]
    if last in _OPTIMIZERS:
        return "optimizer"
    return "scheduler" if last in _SCHEDULERS else ""


def _is_accelerator(func: ast.expr, body: list[ast.stmt], roots: dict[str, str]) -> bool:
    """Whether this is the method of an `Accelerator` that the same scope creates."""
    owner = dotted(func).rpartition(".")[0]
    return any(
        owner in _assigned(node)
        and (call := _call(node)) is not None
        and dotted(call.func).rpartition(".")[2] == "Accelerator"
        and roots.get(dotted(call.func).partition(".")[0]) == "accelerate"
        for node in body
    )
