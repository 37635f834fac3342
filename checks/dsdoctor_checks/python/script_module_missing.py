"""The training script imports a module that is not installed.

## Why it matters
Every rank stops at the import with `ModuleNotFoundError`, often after the job has waited in a queue.

## What to do
Install the package that provides the module into the environment of the job, or start the job in the
environment that has it. The name of the package may differ from that of the module: `cv2` is in
`opencv-python`, `yaml` in `PyYAML`.

`flash-attn` and other packages whose setup imports torch need `pip install --no-build-isolation`.

## References
- Python documentation, "The import system"
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    ScriptImports,
    Signature,
    check,
    fail,
    skip,
)
from dsdoctor_checks._pip import pip, pip_build
from dsdoctor_checks._util import listed

CONDITION = Condition("script-module-missing", id="DSD914", scope=Scope.USER_ENV, since="0.1")
#: Modules of training scripts, and the packages that provide them (their names on PyPI, 2026-11-28).
PACKAGES = {
    **{name: name for name in (
        "accelerate", "datasets", "diffusers", "einops", "evaluate", "fire", "lightning", "loguru",
        "matplotlib", "nltk", "omegaconf", "pandas", "peft", "safetensors", "scipy",
        "sentencepiece", "tensorboard", "tiktoken", "timm", "tokenizers", "torchmetrics", "tqdm",
        "transformers", "trl", "wandb", "webdataset",
    )},
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "huggingface_hub": "huggingface-hub",
    "hydra": "hydra-core",
    "pytorch_lightning": "pytorch-lightning",
    "rouge_score": "rouge-score",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "PyYAML",
}  # fmt: skip
#: Those whose setup imports torch: an isolated build of them fails (2026-11-28).
BUILT = {
    "causal_conv1d": "causal-conv1d",
    "flash_attn": "flash-attn",
    "mamba_ssm": "mamba-ssm",
    "torch_scatter": "torch-scatter",
    "transformer_engine": "transformer-engine[pytorch]",
}
#: Modules whose absence is recognized in logs: those of training itself.
_IN_LOGS = tuple(sorted(PACKAGES.keys() - {"bs4", "evaluate", "fire", "skimage", "webdataset"}))
#: Conditions of their own report these.
_REPORTED = frozenset({"deepspeed", "torch"})


@check(CONDITION)
def modules_are_installed(
    imports: ScriptImports, patient: Patient | Missing, packages: Packages | Missing
) -> Iterator[Finding]:
    """Fails on unconditional imports that the interpreter cannot find.

    Where the script, or a module next to it, may change the search path, only modules that packages
    provide are judged.
    """
    moved = 1 if imports.changes_path else imports.own
    lacking = {
        name: line
        for name, line in imports.missing.items()
        if name not in _REPORTED
        and (not moved or line < moved or name in PACKAGES or name in BUILT)
    }
    unjudged = imports.missing.keys() - lacking.keys() - _REPORTED
    if unjudged and not lacking:
        yield skip(
            f"`{imports.script}` changes where modules are looked for, so it is not known whether it"
            f" finds {listed([f'`{name}`' for name in sorted(unjudged)])}",
            modules=sorted(unjudged),
        )
    if not lacking:
        return
    named = [f"`{name}` (line {line})" for name, line in lacking.items()]
    one = len(lacking) == 1
    wanted = [PACKAGES[name] for name in lacking if name in PACKAGES]
    built = [BUILT[name] for name in lacking if name in BUILT]
    rest = [f"`{name}`" for name in lacking if name not in PACKAGES and name not in BUILT]
    hints = [f"run `{pip(patient, packages, 'install ' + ' '.join(wanted))}`"] if wanted else []
    if built:
        hints.append(f"run `{pip_build(patient, packages, *map(shlex.quote, built))}`")
    if rest:
        hints.append(f"install what provides {listed(rest)}")
    yield fail(
        f"`{imports.script}` imports {listed(named)}, but the interpreter does not find"
        f" {'that module' if one else 'these modules'}",
        effect="every rank stops with `ModuleNotFoundError`",
        hint=f"{' and '.join(hints)}, or start the job in the environment that has"
        f" {'it' if one else 'them'}",
        script=imports.script,
        modules=lacking,
    )


HINT = "install the package into the environment of the job; `dsdoctor check -- CMD` lists all that the script needs"

SIGNATURES = (
    Signature(
        # only whole modules: a part that is missing is another release of the package
        pattern=r"^ModuleNotFoundError: No module named '(?P<name>" + "|".join(_IN_LOGS) + r")'$",
        source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
        level=Level.STRONG,
        message="the package of the module `{name}` is not installed",
        examples=tuple(f"ModuleNotFoundError: No module named '{name}'" for name in _IN_LOGS),
        not_examples=("ModuleNotFoundError: No module named 'transformers.deepspeed'",),
    ),
    *(
        Signature(
            pattern=rf"^ModuleNotFoundError: No module named '{name}'$",
            source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
            level=Level.STRONG,
            message=f"the package of the module `{name}` is not installed",
            hint=f"install it into the environment of the job, after torch: `python -m pip install"
            f" --no-build-isolation {shlex.quote(package)}`; an isolated build does not find torch",
            examples=(f"ModuleNotFoundError: No module named '{name}'",),
            not_examples=(f"ModuleNotFoundError: No module named '{name}' (optional)",),
        )
        for name, package in BUILT.items()
    ),
)
