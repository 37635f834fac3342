"""The training script imports a module that is not installed.

## Why it matters
Every rank stops at the import with `ModuleNotFoundError`, often after the job has waited in a queue.

## What to do
Install the package that provides the module into the environment of the job, or start the job in the
environment that has it. The name of the package may differ from that of the module: `cv2` is in
`opencv-python`, `yaml` in `PyYAML`.

An optimizer of the Trainer, such as `paged_adamw_8bit`, may need a package of its own, and so does
`flash_attention_2`. They are imported when the Trainer or the model is created. Options of the command
are examined, and what the script itself passes in a call that surely runs.

`flash-attn` and other packages whose setup imports torch need `pip install --no-build-isolation`.

## References
- Python documentation, "The import system"
- transformers trainer_optimizer.py, modeling_utils.py
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    ScriptCalls,
    ScriptImports,
    Signature,
    check,
    fail,
    skip,
)
from dsdoctor_checks._pip import pip, pip_build
from dsdoctor_checks._settings import chosen
from dsdoctor_checks._util import listed

from ._modules import BUILT, GROUPS, NOT_IN_LOGS, PACKAGES
from ._optimizer_packages import OPTIMIZERS

CONDITION = Condition("script-module-missing", id="DSD914", scope=Scope.USER_ENV, since="0.1")
#: Conditions of their own report these.
_REPORTED = frozenset({"deepspeed", "torch"})


#: Scripts that import one of these pass `--optim` to the arguments of the Trainer.
_TRAINERS = frozenset({"transformers", "trl", "sentence_transformers"})


#: Any of these lets transformers run FlashAttention-2: its package, the one that loads it from the
#: hub, or an accelerator that has it (4.36 to 5.24 modeling_utils.py, 2026-11-30).
_FLASH_2 = ("flash-attn", "kernels", "torch-npu", "intel-extension-for-pytorch", "torch-mlu")


def _of_settings(
    imports: ScriptImports,
    command: LaunchCommand | Missing,
    calls: ScriptCalls | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """The packages of the optimizer and of the attention that are chosen."""
    if isinstance(packages, Missing) or packages.version("transformers") is None:
        return
    if _TRAINERS.isdisjoint(imports.found):
        return
    for value, said, line in chosen("optim", command, calls):
        package = OPTIMIZERS.get(value)
        if package is None or packages.version(package) is not None:
            continue
        other = "`--optim adamw_torch`" if line is None else '`optim="adamw_torch"`'
        yield fail(
            f"{said}, but `{package}`, which has that optimizer, is not installed",
            effect="every rank stops with an `ImportError` when the Trainer creates the optimizer",
            hint=f"run `{pip(patient, packages, f'install {package}')}`, or choose another optimizer"
            f" ({other})",
            option="optim",
            value=value,
            line=line,
            package=package,
        )
    has_flash = any(packages.version(name) for name in _FLASH_2)
    if has_flash or "xpu" in (packages.version("torch") or ""):
        return
    for value, said, line in chosen("attn_implementation", command, calls):
        if value != "flash_attention_2":
            continue
        other = "`--attn_implementation sdpa`" if line is None else '`attn_implementation="sdpa"`'
        yield fail(
            f"{said}, but `flash-attn` is not installed",
            effect="every rank stops when it creates the model: `FlashAttention2 has been toggled on,"
            " but it cannot be used`",
            hint=f"run `{pip_build(patient, packages, 'flash-attn')}`, or choose {other}",
            option="attn_implementation",
            value=value,
            line=line,
            package="flash-attn",
        )


@check(CONDITION)
def modules_are_installed(
    imports: ScriptImports,
    patient: Patient | Missing,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
    calls: ScriptCalls | Missing,
) -> Iterator[Finding]:
    """Fails on unconditional imports that the interpreter cannot find.

    Where the script, or a module next to it, may change the search path, only modules that packages
    provide are judged.
    """
    yield from _of_settings(imports, command, calls, patient, packages)
    moved = 1 if imports.changes_path else imports.own
    lacking = {
        name: line
        for name, line in imports.missing.items()
        if name not in _REPORTED
        and (not moved or line < moved or name in PACKAGES or name in BUILT)
    }
    # a run leaves a folder `wandb`, and data are in a folder `datasets`: nothing of a package
    bare = {name: line for name, line in imports.bare.items() if name in PACKAGES}
    for name, line in bare.items():
        yield fail(
            f"`{imports.script}` imports `{name}` (line {line}), but the interpreter finds only a folder"
            f" `{name}` without code, and not the package",
            effect="every rank stops with an `ImportError` or `AttributeError` that names it",
            hint=f"run `{pip(patient, packages, f'install {PACKAGES[name]}')}`, or start the job in the"
            " environment that has it",
            script=imports.script,
            module=name,
            line=line,
        )
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


HINT = "install the package into the environment of the job; `dsdoctor check -- CMD` lists all modules that the script needs"


def _in_logs(group: dict[str, str]) -> Signature:
    names = sorted(group.keys() - NOT_IN_LOGS)
    return Signature(
        # only whole modules: a part that is missing is another release of the package
        pattern=rf"^ModuleNotFoundError: No module named '(?P<name>{'|'.join(names)})'$",
        source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
        level=Level.STRONG,
        message=_NOT_INSTALLED,
        examples=tuple(f"ModuleNotFoundError: No module named '{name}'" for name in names),
        not_examples=(f"ModuleNotFoundError: No module named '{names[0]}' (optional)",),
    )


_NOT_INSTALLED = "the package of the module `{name}` is not installed"
#: Modules of Python itself that its build leaves out where a library is missing (CPython 3.10-3.15
#: setup.py and Modules/Setup).
_OF_PYTHON = (
    "_bz2|_ctypes|_curses|_dbm|_hashlib|_lzma|_sqlite3|_ssl|_tkinter|_uuid|_zstd|readline|zlib"
)
_UNBUILT = "this Python was built without its module `{name}`"
_OTHER_PYTHON = (
    "use a Python that has it, from the distribution, conda or uv; or install the headers of its"
    " library (such as `liblzma-dev`, `libffi-dev`, `libsqlite3-dev`) and build Python again"
)

SIGNATURES = (
    *map(_in_logs, GROUPS),
    *(
        Signature(
            pattern=rf"^ModuleNotFoundError: No module named '(?P<name>{name})'$",
            source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
            level=Level.STRONG,
            message=_NOT_INSTALLED,
            hint=f"install it into the environment of the job, after torch: `python -m pip install"
            f" --no-build-isolation {shlex.quote(package)}`; an isolated build does not find torch",
            examples=(f"ModuleNotFoundError: No module named '{name}'",),
            not_examples=(f"ModuleNotFoundError: No module named '{name}' (optional)",),
        )
        for name, package in BUILT.items()
    ),
    Signature(
        pattern=r"You need to install `(?P<package>[\w-]{1,40})` in order to use \w{1,40} optimizers",
        source="transformers 4.39-5.24 trainer.py, trainer_optimizer.py",
        level=Level.CERTAIN,
        message="The optimizer that is chosen needs `{package}`, which is not installed",
        hint="run `python -m pip install {package}`, or choose another optimizer (`--optim adamw_torch`)",
        examples=(
            "ImportError: You need to install `bitsandbytes` in order to use bitsandbytes optimizers: `pip install -U bitsandbytes`",
        ),
        not_examples=("You need to install `x` in order to use them",),
    ),
    Signature(
        pattern=r"^ModuleNotFoundError: No module named 'apex(?:\.\w+)*'$",
        source="python 3.6-3.14 Lib/importlib/_bootstrap.py; apex README",
        level=Level.STRONG,
        message="NVIDIA's apex is not installed",
        hint="build apex from its repository (github.com/NVIDIA/apex): the package `apex` on PyPI is a different project. Or turn off what asks for it, such as fused layer norms and optimizers",
        examples=(
            "ModuleNotFoundError: No module named 'apex'",
            "ModuleNotFoundError: No module named 'apex.normalization'",
        ),
        not_examples=("ModuleNotFoundError: No module named 'apex_C'",),
    ),
    Signature(
        pattern=rf"^ModuleNotFoundError: No module named '(?P<name>{_OF_PYTHON})'$",
        source="python 3.6-3.13 Lib/importlib/_bootstrap.py",
        level=Level.STRONG,
        message=_UNBUILT,
        hint=_OTHER_PYTHON,
        examples=tuple(
            f"ModuleNotFoundError: No module named '{name}'" for name in _OF_PYTHON.split("|")
        ),
        not_examples=("ModuleNotFoundError: No module named '_lzma' (optional)",),
    ),
    Signature(
        pattern=r"^ModuleNotFoundError: Standard library module '(?P<name>\w{1,40})' was not found",
        source="CPython 3.14-3.15 Lib/traceback.py",
        level=Level.STRONG,
        message=_UNBUILT,
        hint=_OTHER_PYTHON,
        examples=("ModuleNotFoundError: Standard library module '_lzma' was not found",),
        not_examples=("ModuleNotFoundError: Standard library module '' was not found",),
    ),
    Signature(
        pattern=r"^ModuleNotFoundError: No module named '(?P<name>[A-Za-z_]\w{0,80})'$",
        source="python 3.6-3.14 Lib/importlib/_bootstrap.py",
        message="the module `{name}` is not installed",
        hint="install the package that provides `{name}` into the environment of the job. If `{name}`"
        " is part of the project, start in its directory, install the project (`pip install -e .`),"
        " or add its directory to PYTHONPATH",
        module="name",
        examples=("ModuleNotFoundError: No module named 'loralib'",),
        not_examples=("ModuleNotFoundError: No module named 'mylib.core'",),
    ),
    Signature(
        pattern=r"^ImportError: No module named (?P<name>[A-Za-z_]\w{0,80})$",
        source="CPython 2.7 Python/import.c, for which torch was released up to 1.4",
        message="the module `{name}` is not installed for Python 2",
        hint="start the job with the Python that has it, or install the package that provides"
        " `{name}`; torch has no release for Python 2 since 1.5",
        module="name",
        examples=("ImportError: No module named matplotlib",),
        not_examples=("ImportError: No module named mylib.core",),
    ),
)
