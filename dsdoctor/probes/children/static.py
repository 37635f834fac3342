r"""Read what an environment is made of, importing none of it; run as a script in its interpreter.

    python static.py

Every record is written at once, as one line on stdout:

    \x1edsdoctor:{json}

    {"fact": "patient", "value": {...}}
    {"fact": "packages", "value": {"packages": {...}, "requires": {...}}}
    {"fact": "modules", "value": {"origins": {...}, "shadowed": {...}}}
    {"fact": "torch", "value": {...}}
    {"fact": "deepspeed", "value": {...}}
    {"error": "packages", "text": "..."}           instead of a fact that could not be read
    {"done": true}

No code of the environment is executed: packages are found by folder names, modules are files, and
constants are read from source text. Standard library only, Python 3.8 and later.

Over 400 lines because it runs as one script, in an interpreter that cannot import dsdoctor.
"""

from __future__ import annotations

import os
import sys

#: sys.path as a job in this folder has it.
JOB_PATH = list(sys.path)
#: Modules that the interpreter loads when it starts; no file of a job can shadow these.
PRELOADED = frozenset(sys.modules)

STDLIB = os.path.dirname(os.__file__)


def _is_stdlib(entry: str) -> bool:
    if entry.endswith(".zip") or os.path.basename(entry) == "DLLs":
        return True
    return entry.startswith(STDLIB) and "-packages" not in entry


# from here on only the standard library itself: neither PYTHONPATH nor the folder may shadow it
sys.path[:] = [entry for entry in sys.path if _is_stdlib(entry)] or sys.path

import ast
import json
import re
import site
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

SENTINEL = "\x1edsdoctor:"

#: Modules whose file is reported.
KEY_MODULES = (
    "torch", "deepspeed", "transformers", "accelerate", "peft", "trl", "datasets", "bitsandbytes",
    "flash_attn", "numpy", "pydantic", "triton", "ninja", "mpi4py", "pynvml", "psutil", "packaging",
    "hjson", "tqdm", "einops", "safetensors", "tokenizers", "setuptools", "torchvision", "xformers",
)  # fmt: skip
#: Distributions whose requirements are reported.
KEY_PACKAGES = (
    "torch", "deepspeed", "transformers", "accelerate", "peft", "trl", "datasets", "bitsandbytes",
    "flash-attn", "numpy", "pandas", "pydantic", "triton", "torchvision", "torchaudio", "xformers",
)  # fmt: skip
#: Further modules that those import as they start: what torch 2.13, DeepSpeed 0.19, transformers
#: 5.24, datasets 5.2, accelerate 1.15 and trl 1.16 have loaded after `import`, 2026-11-30, and what
#: older releases of them did (requests, click).
LIBRARY_MODULES = frozenset(
    (
        "PIL", "anyio", "click", "dill", "filelock", "fsspec", "huggingface_hub", "jinja2",
        "markupsafe", "mpmath", "msgpack", "multiprocess", "networkx", "pandas", "pyarrow",
        "pydantic_core", "regex", "requests", "rich", "sympy", "typing_extensions", "xxhash",
        "yaml",
    )
)  # fmt: skip
#: Parts of the standard library that no training job imports: a file of that name is harmless.
HARMLESS = frozenset(
    (
        "antigravity", "curses", "dbm", "ensurepip", "idlelib", "lib2to3", "msilib", "pydoc_data",
        "sqlite3", "test", "this", "tkinter", "turtle", "turtledemo", "venv", "wsgiref", "zipapp",
    )
)  # fmt: skip
#: A larger file is not a source file of constants.
READ_LIMIT = 1 << 20


def emit(record: dict[str, Any]) -> None:
    """Write one record, past all buffers."""
    data = (SENTINEL + json.dumps(record) + "\n").encode("ascii")
    while data:
        data = data[os.write(1, data) :]


def read_text(path: str) -> str | None:
    """A file's text; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(READ_LIMIT)
    except OSError:
        return None


def constants(text: str) -> dict[str, Any]:
    """Names to which a source text assigns literal values, with the values."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                try:
                    found[target.id] = ast.literal_eval(value)
                except ValueError:
                    continue
    return found


def job_path() -> list[str]:
    """sys.path of a job: `python train.py` in the working folder."""
    path = list(JOB_PATH)
    if not getattr(sys.flags, "safe_path", False):
        try:
            path[0] = os.getcwd()
        except OSError:  # it has been deleted
            del path[0]
    return path


def folders(path: list[str]) -> list[str]:
    """Folders of sys.path that exist, each once."""
    found: dict[str, str] = {}
    for entry in path:
        place = os.path.abspath(entry)
        if os.path.isdir(place):
            found.setdefault(os.path.realpath(place), place)
    return list(found.values())


# --- the interpreter -----------------------------------------------------------------------------


def read_patient(path: list[str]) -> dict[str, Any]:
    """What the interpreter reports about itself."""
    if sys.prefix != sys.base_prefix:
        kind = "venv"
    elif os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        kind = "conda"
    else:
        kind = "system"
    # the scheme that torch's extension builder asks for
    scheme = "nt" if os.name == "nt" else "posix_prefix"
    include = sysconfig.get_path("include", scheme)
    return {
        "version": "%d.%d.%d" % sys.version_info[:3] + _pre_release(),
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
            sys.implementation.name, sys.implementation.name
        ),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "kind": kind,
        "made_by_uv": _made_by_uv(sys.prefix),
        "left_by_python": _left_by_python(sys.prefix) if kind == "venv" else None,
        "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else None,
        "include_dir": include,
        "has_headers": bool(include) and os.path.isfile(os.path.join(include, "Python.h")),
        "sys_path": path,
        "bin_dir": sysconfig.get_path("scripts"),
    }


def _left_by_python(prefix: str) -> str | None:
    """The other Python for which torch lies in a venv, as after an upgrade of its interpreter."""
    own = "python%d.%d" % sys.version_info[:2]
    try:
        names = sorted(os.listdir(os.path.join(prefix, "lib")))
    except OSError:
        return None
    for name in names:
        torch = os.path.join(prefix, "lib", name, "site-packages", "torch", "__init__.py")
        if re.match(r"python\d+\.\d+$", name) and name != own and os.path.isfile(torch):
            return name[len("python") :]
    return None


def _made_by_uv(prefix: str) -> bool:
    """Whether `uv venv` made this environment: it writes its version into pyvenv.cfg."""
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            return any(
                line.partition("=")[0].strip() == "uv" for line in file.read(65536).split("\n")
            )
    except OSError:
        return False


def _pre_release() -> str:
    kind, serial = sys.version_info[3], sys.version_info[4]
    return "" if kind == "final" else "%s%d" % ({"candidate": "rc"}.get(kind, kind[0]), serial)


# --- distributions -------------------------------------------------------------------------------


def normalized(name: str) -> str:
    """The normalized name, as in package indexes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def headers(path: str) -> str:
    """The header part of a distribution's metadata."""
    for name in ("METADATA", "PKG-INFO", ""):
        text = read_text(os.path.join(path, name) if name else path)
        if text:
            return text.split("\n\n", 1)[0]
    return ""


def header(text: str, name: str) -> list[str]:
    """All values of a header."""
    return re.findall(r"(?m)^%s:[ \t]*(.+?)[ \t\r]*$" % name, text)


def distribution(folder: str, entry: str) -> tuple[str, str] | None:
    """Name and version by the name of a metadata folder, None if it is not one."""
    if entry.startswith(("~", ".")):  # remnants of a package that pip could not remove
        return None
    if entry.endswith(".dist-info"):
        name, _, version = entry[: -len(".dist-info")].partition("-")
    elif entry.endswith(".egg-info"):
        stem = re.sub(r"-py\d+(\.\d+)?.*$", "", entry[: -len(".egg-info")])
        name, _, version = stem.partition("-")
        if not version:
            version = "".join(header(headers(os.path.join(folder, entry)), "Version")[:1])
    elif entry == "EGG-INFO":
        text = headers(os.path.join(folder, entry))
        name = "".join(header(text, "Name")[:1])
        version = "".join(header(text, "Version")[:1])
    else:
        return None
    return (normalized(name), version) if name and version else None


def complete(path: str) -> bool:
    """Whether a metadata folder is more than a remnant."""
    return not path.endswith(".dist-info") or os.path.exists(os.path.join(path, "METADATA"))


def read_packages(path: list[str]) -> dict[str, Any]:
    """All distributions; of several with one name, the first on sys.path, as for imports."""
    found: dict[str, dict[str, Any]] = {}
    source_trees = []
    remnants: dict[str, str] = {}
    for folder in folders(path):
        try:
            entries = sorted(os.listdir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.startswith("~") and entry.endswith(".dist-info"):
                remnants.update(remnant(os.path.join(folder, entry)))
        source = "setup.py" in entries or "pyproject.toml" in entries
        for entry in entries:
            known = distribution(folder, entry)
            if known is None:
                continue
            meta = os.path.join(folder, entry)
            row = {"name": known[0], "version": known[1], "location": folder, "meta": meta}
            if source and entry.endswith(".egg-info"):
                # next to an editable install, it is the same package again
                source_trees.append(row)
            else:
                add(found, row)
    for row in source_trees:
        found.setdefault(row["name"], dict(row, duplicates=[]))
    requires = {}
    for name in KEY_PACKAGES:
        if name in found:
            requires[name] = header(headers(found[name]["meta"]), "Requires-Dist")
    for row in found.values():
        del row["meta"]
    for name in set(remnants) & set(found):  # installed again since: what is left is harmless
        del remnants[name]
    return {"packages": found, "requires": requires, "remnants": remnants}


def remnant(path: str) -> dict[str, str]:
    """Name and version of a package that pip moved out of the way and never removed.

    pip 9-26 moves a folder to a name that begins with `~` while it replaces a package, and back if
    that fails: `AdjacentTempDirectory` in utils/temp_dir.py. Who kills it in between is left
    without the package.
    """
    text = headers(path)
    name, version = header(text, "Name")[:1], header(text, "Version")[:1]
    return {normalized(name[0]): version[0]} if name and version else {}


def add(found: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Add one distribution."""
    before = found.get(row["name"])
    if before is None:
        found[row["name"]] = dict(row, duplicates=[])
    elif not complete(row["meta"]):
        return
    elif before["location"] == row["location"] and not complete(before["meta"]):
        found[row["name"]] = dict(row, duplicates=before["duplicates"])
    else:
        before["duplicates"].append(row["location"])


# --- modules -------------------------------------------------------------------------------------


def suffixes() -> tuple[str, ...]:
    """Endings of module files, in the order of the import system."""
    from importlib import machinery

    return (*machinery.EXTENSION_SUFFIXES, ".py", ".pyc")


def module_in(folder: str, name: str, endings: tuple[str, ...]) -> str | None:
    """The file that a module would be imported from in one folder."""
    package = os.path.join(folder, name)
    for ending in endings:
        if os.path.isfile(os.path.join(package, "__init__" + ending)):
            return os.path.join(package, "__init__" + ending)
    for ending in endings:
        if os.path.isfile(package + ending):
            return package + ending
    return None


def editable(path: list[str]) -> dict[str, str]:
    """Modules that finders of editable installs know: name to folder or file."""
    found = {}
    for folder in folders(path):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in sorted(entries):
            if entry.startswith("__editable__") and entry.endswith("_finder.py"):
                try:
                    known = constants(read_text(os.path.join(folder, entry)) or "")
                except (SyntaxError, ValueError):
                    continue
                mapping = known.get("MAPPING")
                if isinstance(mapping, dict):
                    found.update(mapping)
    return found


def origin(name: str, places: list[str], endings: tuple[str, ...], finders: dict[str, str]) -> str:
    """The file that `import name` loads, "" if there is none."""
    for folder in places:
        found = module_in(folder, name, endings)
        if found:
            return found
    target = finders.get(name)
    if target:
        found = module_in(os.path.dirname(target), os.path.basename(target), endings)
        return found or (target if os.path.isfile(target) else "")
    return ""


def standard_modules() -> frozenset[str]:
    """Modules of the standard library that a file could shadow."""
    names = getattr(sys, "stdlib_module_names", None)
    if names is None:
        names = {entry.split(".")[0] for entry in os.listdir(STDLIB)} - {"site-packages"}
    return frozenset(names) - frozenset(sys.builtin_module_names) - PRELOADED - HARMLESS


def on_purpose(name: str, file: str, folder: str, entries: list[str]) -> bool:
    """Whether a package in the working folder is a checkout that its owner works on."""
    if os.path.dirname(file) == folder:
        return False
    if "setup.py" not in entries and "pyproject.toml" not in entries:
        return False
    if name != "torch":
        return True
    # torch runs from its source tree only when built there
    return any(entry.startswith("_C.") for entry in os.listdir(os.path.dirname(file)))


def read_modules(path: list[str], finders: dict[str, str]) -> dict[str, Any]:
    """Where key modules come from, and which files in the working folder shadow one."""
    endings = suffixes()
    places = folders(path)
    origins = {name: origin(name, places, endings, finders) for name in KEY_MODULES}
    shadowed = {}
    here = os.path.abspath(path[0]) if path else ""
    rest = folders([entry for entry in path[1:] if entry])
    elsewhere = {os.path.realpath(entry) for entry in rest}
    safe = getattr(sys.flags, "safe_path", False)
    if not safe and os.path.isdir(here) and os.path.realpath(here) not in elsewhere:
        try:
            entries = os.listdir(here)
        except OSError:
            entries = []
        standard = standard_modules()
        for name in sorted({entry.split(".")[0] for entry in entries}):
            if name not in standard and name not in origins and name not in LIBRARY_MODULES:
                continue
            file = module_in(here, name, endings)
            if file is None or on_purpose(name, file, here, entries):
                continue
            if name in standard or origin(name, rest, endings, finders):
                shadowed[name] = file
    return {"origins": origins, "shadowed": shadowed}


def package_folder(name: str, mark: str, path: list[str], finders: dict[str, str]) -> str | None:
    """The folder of the installed package, even if a file of the job shadows it.

    It is the first that contains `mark` (a file of every real installation), or else the first.
    """
    candidates = [os.path.join(folder, name) for folder in folders(path)]
    target = finders.get(name)
    if target:
        candidates.append(target)
    known = [entry for entry in candidates if os.path.isfile(os.path.join(entry, "__init__.py"))]
    marked = [entry for entry in known if os.path.isfile(os.path.join(entry, mark))]
    return next(iter(marked + known), None)


# --- torch and DeepSpeed -------------------------------------------------------------------------


def read_torch(path: list[str], finders: dict[str, str]) -> dict[str, Any]:
    """The literal values in torch/version.py."""
    folder = package_folder("torch", "version.py", path, finders)
    if folder is None:
        return {}
    value: dict[str, Any] = {"path": folder}
    file = os.path.join(folder, "version.py")
    text = read_text(file)
    if text is None:
        value["error"] = "`%s` could not be read" % file
        return value
    try:
        known = constants(text)
    except (SyntaxError, ValueError):
        value["error"] = "`%s` is not Python" % file
        return value
    for key in ("cuda", "hip"):
        value[key] = str(known[key]) if known.get(key) else None
    value["debug"] = bool(known.get("debug"))
    if known.get("__version__"):
        value["version"] = str(known["__version__"])
    else:
        value["error"] = "`%s` contains no `__version__`" % file
    return value


def read_deepspeed(path: list[str], finders: dict[str, str]) -> dict[str, Any]:
    """What DeepSpeed's setup recorded when it was installed."""
    folder = package_folder("deepspeed", "git_version_info.py", path, finders)
    if folder is None:
        return {}
    value: dict[str, Any] = {"path": folder}
    file = os.path.join(folder, "git_version_info_installed.py")
    text = read_text(file)
    if text is None:
        # a checkout that was never installed
        version = read_text(os.path.join(os.path.dirname(folder), "version.txt"))
        value["version"] = version.strip() if version and version.strip() else None
        return value
    try:
        known = constants(text)
    except (SyntaxError, ValueError):
        value["error"] = "`%s` is not Python" % file
        return value
    value["version"] = known.get("version")
    value["installed_ops"] = known.get("installed_ops") or {}
    value["torch_info"] = known.get("torch_info") or {}
    value["accelerator_name"] = known.get("accelerator_name")
    return value


def main() -> int:
    """Run the script."""
    path = job_path()
    finders: dict[str, str] = {}
    parts: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("patient", lambda: read_patient(path)),
        ("torch", lambda: read_torch(path, finders)),
        ("deepspeed", lambda: read_deepspeed(path, finders)),
        ("modules", lambda: read_modules(path, finders)),
        ("packages", lambda: read_packages(path)),
    ]
    try:
        finders.update(editable(path))
    except Exception as error:
        emit({"error": "editable", "text": "%s: %s" % (type(error).__name__, error)})
    for name, read in parts:
        try:
            value = read()
        except Exception as error:
            emit({"error": name, "text": "%s: %s" % (type(error).__name__, error)})
        else:
            emit({"fact": name, "value": value})
    emit({"done": True})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError:  # nobody reads the output any more
        sys.exit(1)
