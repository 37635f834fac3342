"""A file in the job's directory or on PYTHONPATH is imported instead of a package of the same name.

## Why it matters
Python searches the script's directory, or the working directory, first. A `deepspeed.py`, a
`torch.py` or a directory of that name hides the real package. The error mentions a circular import
or a missing attribute, not the file. PYTHONPATH comes next: what is found there hides installed packages
too.

## What to do
Rename the file and delete its `__pycache__`, or remove the directory from PYTHONPATH.

## References
- https://docs.python.org/3/library/sys_path_init.html
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import PurePath

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Finding,
    ImportOutcome,
    Level,
    Missing,
    Packages,
    PythonPath,
    Scope,
    ScriptImports,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)

from ._shadowed_names import FOLLOW
from ._shadowed_names import SIGNATURES as OF_NAMES

CONDITION = Condition(
    "module-shadowed-by-cwd",
    id="DSD912",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("torch-import-broken", "deepspeed-import-broken"),
)


def _installed_there(packages: Packages, module: str, path: str) -> bool:
    """Whether that file is the installed package itself (a checkout, installed editable)."""
    package = packages.packages.get(module)
    folder = PurePath(path).parent
    if package is None or not package.location:
        return False
    location = PurePath(package.location)
    return location in PurePath(path).parents or location == folder


def _of_pythonpath(
    packages: Packages, entries: tuple[str, ...], outcome: ImportOutcome
) -> Iterator[tuple[str, str, str]]:
    """Key modules that PYTHONPATH brings and that lack what is imported: name, file, directory.

    A package on PYTHONPATH is usually meant, so neither an import that works nor one that fails for
    another reason, such as a missing library, is a finding.
    """
    for module, path in sorted(packages.origins.items()):
        entry = next((e for e in entries if PurePath(e) in PurePath(path).parents), None)
        installed = packages.packages.get(module)
        if not path or entry is None or installed is None or not installed.location:
            continue
        lacks = re.search(rf"'{re.escape(module)}(?:\.[\w.]+)?'", outcome.message or "")
        if lacks and PurePath(installed.location) != PurePath(entry):
            yield module, path, entry


#: Modules that torch and DeepSpeed import, besides the key modules of the environment.
_OF_EVERY_JOB = frozenset(
    {"filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "msgpack", "networkx", "pydantic_core",
     "sympy", "typing_extensions"}
)  # fmt: skip
#: Modules that Hugging Face's libraries import: a `requests.py` that nobody imports is harmless.
_OF_HUGGING_FACE = frozenset(
    {"PIL", "anyio", "click", "dill", "huggingface_hub", "multiprocess", "pandas", "pyarrow",
     "regex", "requests", "rich", "xxhash", "yaml"}
)  # fmt: skip
_HUGGING_FACE = frozenset(
    {"accelerate", "datasets", "diffusers", "evaluate", "huggingface_hub", "peft",
     "sentence_transformers", "transformers", "trl"}
)  # fmt: skip


def _is_imported(script: ScriptImports | Missing, module: str) -> bool:
    """Whether something in the job imports a module."""
    if module not in _OF_HUGGING_FACE:
        return True
    found = () if isinstance(script, Missing) else script.found
    return module in found or not _HUGGING_FACE.isdisjoint(found)


def _failed(torch: TorchLive | Missing, deepspeed: DeepSpeedLive | Missing) -> ImportOutcome | None:
    """The import that failed first."""
    for live in (torch, deepspeed):
        if not isinstance(live, Missing) and not live.imported.ok:
            return live.imported
    return None


@check(CONDITION)
def no_file_hides_a_package(
    packages: Packages,
    python_path: PythonPath | Missing,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
    script: ScriptImports | Missing,
) -> Iterator[Finding]:
    """Fails for each key module that a file hides, or PYTHONPATH does and an import then fails."""
    failed = _failed(torch, deepspeed)
    brought = (
        []
        if failed is None or isinstance(python_path, Missing)
        else list(_of_pythonpath(packages, python_path.entries, failed))
    )
    for module, path, entry in brought:
        yield fail(
            f"`import {module}` imports `{path}` by PYTHONPATH instead of the installed package",
            effect="the job stops with an `ImportError` or `AttributeError` that names the package",
            hint=f"remove `{entry}` from PYTHONPATH",
            module=module,
            shadowed_by=path,
            entry=entry,
        )
    hidden = {
        module: path
        for module, path in sorted(packages.shadowed.items())
        if not _installed_there(packages, module, path) and _is_imported(script, module)
    }
    if not hidden and not brought:
        yield ok()
    for module, path in hidden.items():
        file = PurePath(path)
        shown = file.parent if file.name == "__init__.py" else file
        real = packages.origins.get(module)
        instead = f"`{real}`" if real and real != path else "the installed package"
        if module in sys.stdlib_module_names:
            instead = "the module of the standard library"
        sure = module not in _OF_EVERY_JOB | _OF_HUGGING_FACE
        yield (fail if sure else warn)(
            f"`import {module}` imports `{path}` instead of {instead}",
            effect="the job stops with an `ImportError` or `AttributeError` that names the package"
            if sure
            else "a library that imports it stops, often with an error about a name of its own",
            hint=f"rename `{shown}`",
            module=module,
            shadowed_by=path,
            origin=real,
        )


HINT = (
    "rename the file that the error names and delete its `__pycache__`, or remove its directory from"
    " PYTHONPATH"
)

#: Packages that a file next to a script is often named after. A `deepspeed.py` has messages of its own.
_PACKAGES = "torch|transformers|datasets|accelerate|evaluate|numpy|pandas|tokenizers|tqdm|wandb"
_MESSAGE = "`{file}` is imported instead of the package `{m}`"


def _half_imported(module: str) -> Signature:
    """The error of a module that imports itself: the frame above it is in the file of its name.

    The files of installed packages are `__init__.py`, except for modules of others with that name.
    """
    return Signature(
        pattern=rf"partially initialized module '(?P<m>{module})' has no attribute '",
        source="python 3.8-3.12 Objects/moduleobject.c",
        level=Level.STRONG,
        near=(f'/{module}.py", line ', f'\\{module}.py", line '),
        not_near=(f'-packages/safetensors/{module}.py"',),
        message=f"A file `{module}.py` is imported instead of the package `{{m}}`",
        examples=(
            f"AttributeError: partially initialized module '{module}' has no attribute 'x' (most likely due to a circular import)",
        ),
        masks=FOLLOW,
    )


#: Packages, of which none was ever a single file.
_FOLDERS = (
    "accelerate|asyncio|collections|concurrent|ctypes|datasets|deepspeed|diffusers|email|evaluate|http|huggingface_hub|"
    "importlib|json|lightning|logging|multiprocessing|numpy|pandas|peft|safetensors|tokenizers|torch|"
    "transformers|triton|trl|unittest|urllib|wandb|xml|yaml"
)

#: Packages with a folder of their own that torch, DeepSpeed and Hugging Face's libraries import.
_LIBRARIES = (
    "PIL|anyio|click|dill|einops|filelock|fsspec|jinja2|msgpack|multiprocess|networkx|packaging|psutil|"
    "pyarrow|pydantic|regex|requests|rich|sympy|xxhash|yaml"
)

SIGNATURES = (
    *OF_NAMES,
    Signature(
        # a folder of the job; a checkout that is installed has all its parts
        pattern=rf"cannot import name '\w{{1,80}}' from partially initialized module '(?P<m>deepspeed|{_PACKAGES})' \(most likely due to a circular import\) \((?!\S*(?:-packages|[/\\]src|py_src)[/\\])(?P<file>\S{{1,300}}[/\\](?P=m)[/\\]__init__\.py)\)",
        source="python 3.8-3.14 Python/ceval.c",
        level=Level.STRONG,
        message=_MESSAGE,
        hint="start the job in another folder, or rename the folder of `{file}`: only a part of the package is in it",
        examples=tuple(
            f"ImportError: cannot import name 'x' from partially initialized module '{name}' (most likely due to a circular import) (/home/me/job/{name}/__init__.py)"
            for name in f"deepspeed|{_PACKAGES}".split("|")
        ),
        not_examples=(
            "ImportError: cannot import name 'x' from partially initialized module 'deepspeed' (most likely due to a circular import) (/env/lib/python3.11/site-packages/deepspeed/__init__.py)",
        ),
        masks=FOLLOW,
    ),
    Signature(
        # any name: none of these packages is a single file, wherever it is installed
        pattern=rf"cannot import name '\w{{1,80}}' from (?:partially initialized module )?'(?P<m>{_LIBRARIES})' .{{0,60}}?\((?P<file>\S{{1,300}}[/\\](?P=m)\.py)\)",
        source="python 3.8-3.14 Python/ceval.c",
        level=Level.STRONG,
        message="`{file}` is imported instead of the package `{m}`",
        examples=(
            *(
                f"ImportError: cannot import name 'x' from '{name}' (/home/me/project/{name}.py)"
                for name in _LIBRARIES.split("|")
            ),
            "ImportError: cannot import name 'x' from partially initialized module 'yaml' (most likely due to a circular import) (/home/me/yaml.py)",
        ),
        not_examples=(
            "ImportError: cannot import name 'x' from 'yaml' (/env/lib/python3.11/site-packages/yaml/__init__.py)",
        ),
        masks=FOLLOW,
    ),
    Signature(
        pattern=rf"No module named '(?P<m>{_FOLDERS})\.[\w.]{{1,100}}'; '(?P=m)' is not a package",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py: _find_and_load_unlocked",
        level=Level.STRONG,
        message="A file `{m}.py` is imported instead of the package `{m}`",
        hint="rename `{m}.py` in the folder of the script or on PYTHONPATH, and delete its `__pycache__`",
        examples=tuple(
            f"ModuleNotFoundError: No module named '{name}.utils'; '{name}' is not a package"
            for name in _FOLDERS.split("|")
        ),
        not_examples=("No module named 'helpers.utils'; 'helpers' is not a package",),
        masks=(*FOLLOW, "script-module-missing"),
    ),
    *(_half_imported(name) for name in _PACKAGES.split("|")),
    Signature(
        pattern=rf"from partially initialized module '(?P<m>{_PACKAGES})' \(most likely due to a circular import\) \((?P<file>\S{{1,300}}[/\\](?P=m)\.py)\)",
        source="python 3.8-3.14 Python/ceval.c",
        level=Level.STRONG,
        message=_MESSAGE,
        examples=tuple(
            f"ImportError: cannot import name 'x' from partially initialized module '{name}' (most likely due to a circular import) (/home/me/project/{name}.py)"
            for name in _PACKAGES.split("|")
        ),
        not_examples=(
            "ImportError: cannot import name 'x' from partially initialized module 'torch' (most likely due to a circular import) (/opt/env/lib/python3.11/site-packages/torch/__init__.py)",
        ),
        masks=FOLLOW,
    ),
    Signature(
        # of a library it is only likely, so the file has to bear the name of one
        pattern=rf"\(consider renaming '(?P<file>[^']{{1,300}}[/\\](?P<m>{_PACKAGES})\.py)' if it has the same name as a (?:third-party module|library) you intended to import\)",
        source="python 3.13-3.14 Objects/moduleobject.c, Python/ceval.c",
        level=Level.STRONG,
        message=_MESSAGE,
        examples=tuple(
            f"AttributeError: module '{name}' has no attribute 'x' (consider renaming '/home/me/{name}.py' if it has the same name as a {kind} you intended to import)"
            for name in _PACKAGES.split("|")
            for kind in ("third-party module", "library")
        ),
        not_examples=(
            "AttributeError: module 'helpers' has no attribute 'x' (consider renaming '/home/me/helpers.py' if it has the same name as a library you intended to import)",
        ),
        masks=FOLLOW,
    ),
    Signature(
        pattern=r"\(consider renaming '(?P<file>[^']{1,300})' since it has the same name as the standard library module named '(?P<m>\w{1,60})'",
        source="python 3.13-3.14 Objects/moduleobject.c, Python/ceval.c",
        level=Level.STRONG,
        message="`{file}` is imported instead of `{m}` of the standard library",
        examples=(
            "AttributeError: module 'random' has no attribute 'seed' (consider renaming '/home/me/random.py' since it has the same name as the standard library module named 'random' and the import system gives it precedence)",
        ),
        not_examples=(
            "(consider renaming 'it' since it has the same name as the standard library module named ''",
        ),
        masks=FOLLOW,
    ),
    Signature(
        # modules of the standard library that torch and DeepSpeed import, from another file than their own
        pattern=r"cannot import name '\w+' from '(?P<m>random|types|logging|inspect|queue|select|string|copy|enum|json|code|tokenize|typing|platform|numbers|signal|profile)' \((?!\S*[/\\](?:python3\.\d{1,2}|[Ll]ib)[/\\](?P=m)(?:\.py|[/\\]))(?P<file>\S{1,200})\)",
        source="python 3.7-3.14 Objects/moduleobject.c, Python/ceval.c",
        level=Level.STRONG,
        message="`{file}` is imported instead of `{m}` of the standard library",
        examples=tuple(
            f"ImportError: cannot import name 'X' from '{name}' (/home/me/project/{name}.py)"
            for name in (
                "random", "types", "logging", "inspect", "queue", "select", "string", "copy", "enum",
                "json", "code", "tokenize", "typing", "platform", "numbers", "signal", "profile",
            )
        ),
        not_examples=(
            "ImportError: cannot import name 'X' from 'typing' (/usr/lib/python3.8/typing.py)",
            "ImportError: cannot import name 'X' from 'random' (C:\\Python310\\Lib\\random.py)",
            "ImportError: cannot import name 'X' from 'json' (/opt/env/lib/python3.10/json/__init__.py)",
        ),
        masks=("dependency-version-conflict",),
    ),
)  # fmt: skip
