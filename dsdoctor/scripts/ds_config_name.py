"""The DeepSpeed config whose file a script names itself.

Sources, read 2026-11-29: deepspeed 0.9.0 to 0.19.8 `initialize`; transformers 4.30 to 5.24
`TrainingArguments.deepspeed`; accelerate 0.20 to 1.15 `DeepSpeedPlugin.hf_ds_config`; lightning 2.0
to 2.5 `DeepSpeedStrategy.config`.
"""

from __future__ import annotations

import ast

from dsdoctor.scripts.reach import bindings, dotted, parsed, sure_calls

#: What is called, by the end of its name, and its argument that is the config.
_USES = (
    ("deepspeed.initialize", "config"),
    ("deepspeed.initialize", "config_params"),
    ("Arguments", "deepspeed"),
    ("Config", "deepspeed"),  # of trl: SFTConfig, DPOConfig
    ("DeepSpeedPlugin", "hf_ds_config"),
    ("DeepSpeedStrategy", "config"),
)
_ENDINGS = (".json", ".hjson")
#: What writes the file first, or changes where it is looked for.
_CHANGES = ("json.dump(", ".write_text(", "chdir(")


def config_named_in(text: str) -> tuple[str, int] | None:
    r"""The file and the line that names it; None if there is none, or several.

    >>> config_named_in("import deepspeed\nc = 'ds.json'\ndeepspeed.initialize(config=c)")
    ('ds.json', 3)
    >>> config_named_in("deepspeed.initialize(config=args.config)")
    """
    if not any(map(text.__contains__, _ENDINGS)) or any(map(text.__contains__, _CHANGES)):
        return None
    tree = parsed(text)
    if tree is None:
        return None
    found: dict[str, int] = {}
    texts = _literal_names(tree)
    for call in sure_calls(tree):
        name = dotted(call.func)
        for keyword in call.keywords:
            if any(name.endswith(end) and keyword.arg == argument for end, argument in _USES):
                path = _text(keyword.value) or texts.get(dotted(keyword.value), "")
                if path.endswith(_ENDINGS):
                    found.setdefault(path, call.lineno)
    return next(iter(found.items())) if len(found) == 1 else None


def _literal_names(tree: ast.Module) -> dict[str, str]:
    """Variables that are one literal text and nothing else."""
    counts = bindings(tree)
    return {
        name: text
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1
        if (name := dotted(node.targets[0])) and (text := _text(node.value)) and counts[name] == 1
    }


def _text(node: ast.expr) -> str:
    """A literal text; "" for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
