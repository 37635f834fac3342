"""Files of an installed package are missing, empty or cut off.

## Why it matters
A disk that filled up, a copy that broke off, or a machine that lost power leaves an environment whose
packages are listed as installed, while some of their files are gone or hold nothing. The import then
fails with an error that looks as if releases did not match. pip does not notice: to it, the package is
installed.

## What to do
Install the same release again with `--force-reinstall --no-deps`. Check first that the file system has
free space and free inodes. If several packages are damaged, create the environment again.

dsdoctor compares only the packages that an import that failed involves, with the file list that the
installer wrote (`RECORD`).

## References
- https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DamagedPackage,
    DamagedPackages,
    Finding,
    Level,
    Missing,
    Observation,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import is_version, listed

CONDITION = Condition(
    "package-damaged",
    id="DSD924",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("reinstall-package",),
    names=(Observation.PACKAGE_INCOMPLETE,),
)
#: More files than this are only counted.
_NAMED = 2
_WHAT = (
    ("missing", "does not exist", "do not exist"),
    ("empty", "is empty", "are empty"),
    ("cut", "is cut off or overwritten", "are cut off or overwritten"),
)


def reported(damaged: DamagedPackages | Missing) -> str:
    """The packages reported here, for a check whose finding follows from them; "" = none is."""
    if isinstance(damaged, Missing):
        return ""
    return ", ".join(package.name for package in damaged.packages if package.name != "torch")


def described(package: DamagedPackage) -> str:
    """What is wrong with the files, with some of their names."""
    parts = []
    for kind, one, several in _WHAT:
        files: tuple[str, ...] = getattr(package, kind)
        if files:
            names = listed([f"`{name}`" for name in files[:_NAMED]])
            more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
            parts.append(f"{names}{more} {one if len(files) == 1 else several}")
    return "; ".join(parts)


@check(CONDITION)
def files_are_those_installed(
    damaged: DamagedPackages, patient: Patient | Missing, packages: Packages | Missing
) -> Iterator[Finding]:
    """Fails for each package of an import that failed whose files are not those installed."""
    others = [package for package in damaged.packages if package.name != "torch"]
    if not others:  # torch-import-broken reports a damaged torch, which a fix installs again
        yield ok()
        return
    for package in others:
        exact = f"=={package.version.partition('+')[0]}" if is_version(package.version) else ""
        again = pip(patient, packages, f"install --force-reinstall --no-deps {package.name}{exact}")
        yield fail(
            f"{package.name} {package.version} is installed, but {described(package)}",
            effect="the import fails in every rank, with an error that may look like two releases that"
            " do not match",
            hint=f"check that the file system is not full, then run `{again}`",
            package=package.name,
            version=package.version,
            missing=list(package.missing),
            empty=list(package.empty),
            cut=list(package.cut),
            files=package.files,
        )


HINT = "check that the file system has free space and free inodes, then install the package again: `python -m pip install --force-reinstall --no-deps NAME==VERSION`"

SIGNATURES = (
    Signature(
        pattern=r"[/\\](?:site|dist)-packages[/\\](?!torch[/\\]lib[/\\]|nvidia[/\\])(?P<package>\w{1,60})\S{0,300}\.so[\d.]{0,20}: (?:file too short|invalid ELF header)",
        source="glibc 2.17-2.41 elf/dl-load.c",
        message="A compiled file of the package `{package}` is empty, cut off or overwritten",
        level=Level.CERTAIN,
        examples=(
            "ImportError: /env/lib/python3.11/site-packages/tokenizers/tokenizers.abi3.so: file too short",
            "ImportError: /usr/lib/python3/dist-packages/yaml/_yaml.so: invalid ELF header",
        ),
        not_examples=(
            "ImportError: /env/lib/python3.11/site-packages/torch/lib/libc10.so: file too short",
            "ImportError: /home/me/.cache/torch_extensions/py311_cpu/utils/utils.so: file too short",
        ),
        masks=("script-import-broken", "script-module-missing"),
    ),
    Signature(
        pattern=r"^(?:SyntaxError|ValueError): source code (?:string )?cannot contain null bytes$",
        source="python 3.5-3.14 Python/pythonrun.c, Python/bltinmodule.c",
        message="A Python file consists of NUL bytes, as a power failure or a full disk leaves it",
        hint="run the import that the traceback ends at with `python -v -c 'import NAME'`: the last file that it names is the damaged one; restore it, or install its package again with `--force-reinstall --no-deps`",
        level=Level.STRONG,
        examples=(
            "SyntaxError: source code string cannot contain null bytes",
            "ValueError: source code string cannot contain null bytes",
            "ValueError: source code cannot contain null bytes",
        ),
        not_examples=("SyntaxError: source code string cannot contain null bytes in a name",),
    ),
)
