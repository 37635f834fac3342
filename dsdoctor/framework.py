"""Which library passes the DeepSpeed config to DeepSpeed, as far as the training script shows it.

That library fills in "auto", may supply batch sizes and the optimizer, and determines how
strictly the file is parsed. Sources, read 2026-11-22: accelerate 1.15 utils/deepspeed.py
(`HfDeepSpeedConfig`), transformers 5 integrations/deepspeed.py, lightning 2.5
pytorch/strategies/deepspeed.py, deepspeed 0.19.8 runtime/config.py.
"""

from __future__ import annotations

import ast
import functools
import io
import sys
import warnings

from dsdoctor import reading
from dsdoctor.model.decode import DecodeError

HF = "hf"
LIGHTNING = "lightning"
ACCELERATE = "accelerate"
NATIVE = "native"
#: Values of `--framework`.
FRAMEWORKS = (HF, LIGHTNING, ACCELERATE, NATIVE)

_LIGHTNING_PACKAGES = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
#: Packages whose trainers and arguments are those of transformers.
_TRAINERS = frozenset({"transformers", "trl"})
_ARGUMENTS = "TrainingArguments"
#: Characters of a script that are parsed.
_LONGEST = 1 << 20
#: Most operators of one statement in Python 3.10, which survives 20,000 nested ones.
_MOST_OPERATORS = 10_000


def framework_of(text: str) -> str:
    r"""The framework that a script imports or calls; "" if it is none or several.

    >>> framework_of("from transformers import AutoModel, Trainer")
    'hf'
    >>> framework_of("import transformers, deepspeed\nengine = deepspeed.initialize()")
    'native'
    >>> framework_of("import transformers")
    ''
    """
    tree = syntax_of(text)
    if tree is None:
        return ""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(_of_import(name.name, ()) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(_of_import(node.module or "", tuple(name.name for name in node.names)))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(_of_attribute(node.value.id, node.attr))
    found.discard("")
    if found == {HF, ACCELERATE}:  # the Trainer is built on Accelerate
        return HF
    return found.pop() if len(found) == 1 else ""


def fills_training_arguments(text: str) -> bool:
    r"""Whether a script fills transformers' own `TrainingArguments` from its command line.

    A class derived from it, or `set_defaults`, may change defaults.

    >>> head = "from transformers import HfArgumentParser, TrainingArguments\n"
    >>> fills_training_arguments(head + "p = HfArgumentParser((Mine, TrainingArguments))")
    True
    >>> fills_training_arguments(head + "a = TrainingArguments(output_dir='o', bf16=True)")
    False
    """
    tree = syntax_of(text)
    own, filled = False, False
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "transformers":
            own |= any(name.name == _ARGUMENTS and not name.asname for name in node.names)
        elif isinstance(node, ast.Attribute) and node.attr == "set_defaults":
            return False
        elif isinstance(node, ast.Call) and node.args and _called(node) == "HfArgumentParser":
            given = node.args[0]
            parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
            filled |= any(isinstance(part, ast.Name) and part.id == _ARGUMENTS for part in parts)
    return own and filled


def _called(node: ast.Call) -> str:
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


#: Packages that need torch, or start it.
_ON_TORCH = frozenset(
    {"torch", "torchvision", "transformers", "trl", "peft", "accelerate", "deepspeed", "diffusers",
     *_LIGHTNING_PACKAGES}
)  # fmt: skip


def imports_torch(text: str) -> bool:
    r"""Whether a script imports torch, or a library on top of it.

    >>> imports_torch("import os\nfrom torch.nn import Linear"), imports_torch("import numpy")
    (True, False)
    """
    return bool(_packages_of(text) & _ON_TORCH)


def _packages_of(text: str) -> set[str]:
    tree = syntax_of(text)
    return set() if tree is None else packages_in(tree)


def packages_in(tree: ast.Module) -> set[str]:
    """Top-level packages that a script imports anywhere; "" for one of its own folder."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("" if node.level else (node.module or "").partition(".")[0])
    return found


@functools.lru_cache(maxsize=1)  # a check asks several things about one script
def syntax_of(text: str) -> ast.Module | None:
    """The syntax tree of a script, not to be changed; None where this Python cannot parse it."""
    if len(text) > _LONGEST or (sys.version_info < (3, 11) and _is_too_deep(text)):
        return None
    try:
        with warnings.catch_warnings():  # about a script's `"\d"`, which is not judged here
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_too_deep(text: str) -> bool:
    """Whether a statement has so many operators that Python before 3.11 may crash on it.

    It converts a syntax tree to objects without a limit of depth: `a.a.a…` ends the process.
    """
    if sum(map(text.count, ".[(+-*/%&|^@<>=")) <= _MOST_OPERATORS:
        return False
    import tokenize  # noqa: PLC0415  # few scripts are so long

    found = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                found = 0
            elif token.type == tokenize.OP:
                found += 1
            if found > _MOST_OPERATORS:
                return True
    except (tokenize.TokenError, SyntaxError):
        return True
    return False


def of_script(path: str) -> str:
    """The framework of a script; "" if it cannot be read or is not Python."""
    if not path.endswith(".py"):
        return ""
    try:
        return framework_of(reading.read_text(path, size=_LONGEST))
    except (OSError, DecodeError):
        return ""


def _of_import(module: str, names: tuple[str, ...]) -> str:
    package = module.partition(".")[0]
    if package in _LIGHTNING_PACKAGES:
        return LIGHTNING
    if package in _TRAINERS and any(_is_trainer(name) for name in names):
        return HF
    if package == "accelerate" and "Accelerator" in names:
        return ACCELERATE
    return NATIVE if package == "deepspeed" and "initialize" in names else ""


def _of_attribute(package: str, name: str) -> str:
    if package == "deepspeed" and name == "initialize":
        return NATIVE
    if package == "accelerate" and name == "Accelerator":
        return ACCELERATE
    return HF if package in _TRAINERS and _is_trainer(name) else ""


def _is_trainer(name: str) -> bool:
    return name.endswith(("Trainer", "TrainingArguments"))
