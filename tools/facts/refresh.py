"""Compares tables of facts with their authorities, and prints what differs.

    python tools/facts/refresh.py            # with what is installed: no network
    python tools/facts/refresh.py --index    # also with the metadata of torch's wheels, through pip
    python tools/facts/refresh.py --supported README.md    # also with NVIDIA's list of products

The list is README.md of github.com/NVIDIA/open-gpu-kernel-modules.

Exit status 1 if a table differs. It writes nothing: a person reads the difference, changes the row,
and enters the day in tables.json. Tables without a program to compare them are listed with their
age. Nothing of this is in the wheel.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import functools
import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dsdoctor.model.capabilities import capability
from dsdoctor.paste.pip_show import PYPI_CUDA
from dsdoctor_checks.cuda._tables import SAME_FAMILY
from dsdoctor_checks.ops._tables import NEWEST_GCC, STANDARDS
from dsdoctor_checks.python._tables import OLDEST_PYTHON
from dsdoctor_checks.torch._tables import PYTHONS, archs

TABLES = Path(__file__).with_name("tables.json")
SITE = Path(sysconfig.get_path("purelib"))


def tables() -> list[dict[str, Any]]:
    """The rows of tables.json."""
    found: list[dict[str, Any]] = json.loads(TABLES.read_text(encoding="utf-8"))["tables"]
    return found


def expired(table: dict[str, Any], today: dt.date) -> bool:
    """Whether a table is older than its stated life.

    >>> expired({"read": "2026-01-01", "life_days": 30}, dt.date(2026, 2, 1))
    True
    """
    read = dt.date.fromisoformat(table["read"])
    return (today - read).days > table["life_days"]


def release_of(distribution: str) -> tuple[int, int]:
    """Major and minor version of what is installed."""
    major, minor = importlib.metadata.version(distribution).split(".")[:2]
    return int(major), int(minor)


def literal(path: Path, name: str) -> Any:
    """The value of a constant in a source file, which is not run; None if there is none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is not None and any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return ast.literal_eval(value)
    return None


def torch_architectures() -> Iterator[str]:
    """What the installed torch says of the builds of its own release (torch 2.12 and later)."""
    told = literal(SITE / "torch/cuda/__init__.py", "PYTORCH_RELEASES_CODE_CC") or {}
    release = release_of("torch")
    for cuda, machines in told.items():
        for machine, codes in machines.items():
            known = archs(release, cuda, machine)
            have = {int(arch[3:]) for arch in known or () if arch.startswith("sm_")}
            if known is not None and have != codes:
                yield f"torch {release}, CUDA {cuda}, {machine}: torch {codes}, table {have}"


def torch_gcc() -> Iterator[str]:
    """The C++ standard, and the gcc for CUDA 11.0 to 11.6, of the installed torch."""
    source = (SITE / "torch/utils/cpp_extension.py").read_text(encoding="utf-8")
    row = next(row for row in STANDARDS if release_of("torch") >= _pair(row[0]))
    for standard in sorted(set(re.findall(r"'-std=c\+\+(\d\d)'", source))):
        if f"C++{standard}" != row[1]:
            yield f"torch compiles with C++{standard}, the table says {row[1]}"
    bounds = source[source.index("CUDA_GCC_VERSIONS") :]
    for cuda, above in re.findall(
        r"'(11\.[0-6])': \(.*\((\d+), 0\)\)", bounds[: bounds.index("}")]
    ):
        known = NEWEST_GCC.get(_pair(cuda))
        if known != int(above) - 1:
            yield f"torch takes gcc before {above} for CUDA {cuda}, the table says {known}"


def deepspeed_cuda() -> Iterator[str]:
    """The CUDA versions that the installed DeepSpeed builds with each other."""
    told = literal(SITE / "deepspeed/ops/op_builder/builder.py", "cuda_minor_mismatch_ok") or {}
    if {major: tuple(versions) for major, versions in told.items()} != SAME_FAMILY:
        yield f"DeepSpeed {importlib.metadata.version('deepspeed')} has {told}"


def python_floors() -> Iterator[str]:
    """The oldest Python of what is installed: `Requires-Python`, else the classifiers."""
    for name in sorted({name for name, _, _ in OLDEST_PYTHON}):
        try:
            data = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        words = [data.get("Requires-Python") or "", *(data.get_all("Classifier") or ())]
        found = re.findall(r">= ?3\.(\d+)", words[0]) or re.findall(
            r"Python :: 3\.(\d+)", "\n".join(words[1:])
        )
        rows = [row for row in OLDEST_PYTHON if row[0] == name]
        known = next((row[2] for row in rows if release_of(name) >= _pair(row[1])), None)
        if found and known is not None and known != (3, min(map(int, found))):
            yield f"{name} {data['Version']} needs Python 3.{min(map(int, found))}, table {known}"


def torch_cuda() -> Iterator[str]:
    """The CUDA that torch's wheels on the package index require, one question to pip a release."""
    for release, cuda in PYPI_CUDA.items():
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet",
                "--ignore-installed", "--only-binary", ":all:", "--report", "-",
                "--python-version", "3.11", "--target", "unused", f"torch=={release}.*",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            print(f"torch {release}: not on this index")
            continue
        needs = json.loads(done.stdout)["install"][0]["metadata"].get("requires_dist", [])
        pins = r"(?:nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit)(?:\[[^]]*\])?\s*\(?==(\d+\.\d+)"
        found = re.search(pins, "\n".join(needs))
        if found and found[1] != cuda:
            yield f"torch {release} on the index requires CUDA {found[1]}, the table says {cuda}"
        elif found is None:
            print(f"torch {release}: its metadata names no CUDA")


def torch_pythons() -> Iterator[str]:
    """The versions of Python that torch's wheels for Linux on the package index are for."""
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--no-deps", "-vvv", "--dest", "unused",
            "torch==0",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    there: dict[tuple[int, int], set[int]] = {}
    wheels = r"torch-(\d+\.\d+)[\d.]*-cp3(\d+)-cp3\d+-manylinux\w*x86_64"
    for release, minor in re.findall(wheels, done.stdout + done.stderr):
        there.setdefault(_pair(release), set()).add(int(minor))
    for release, minors in sorted(there.items()):
        known = PYTHONS.get(release)
        if release >= min(PYTHONS) and known != (min(minors), max(minors)):
            yield f"torch {release} on the index: Python 3.{sorted(minors)}, the table says {known}"
    if not there:
        print("torch: no wheel on this index")


#: First two digits of a PCI device id to the capability of that family of chips (pci.ids).
CHIPS = {
    "1E": (7, 5), "1F": (7, 5), "21": (7, 5), "20": (8, 0), "22": (8, 6), "24": (8, 6),
    "25": (8, 6), "26": (8, 9), "27": (8, 9), "28": (8, 9), "23": (9, 0), "29": (10, 0),
    "31": (10, 3), "2B": (12, 0), "2C": (12, 0), "2D": (12, 0), "2F": (12, 0), "2E": (12, 1),
}  # fmt: skip
#: Products in NVIDIA's list that are not GPUs to train on.
_NOT_FOR_US = re.compile(r"Matrox|NVIDIA (?:DGX Display|DRIVE P)")


def products(listed: str) -> Iterator[str]:
    """What NVIDIA's list of supported GPUs says of a product's capability.

    Args:
        listed: the README.md of NVIDIA's open kernel modules.
    """
    rows = re.findall(r"^\| ([^|]+?) *\| ([0-9A-F]{2})[0-9A-F]{2}\b[^|]*\|$", listed, re.MULTILINE)
    if not rows:
        yield "the file lists no product"
    for name, chip in dict.fromkeys(rows):
        if _NOT_FOR_US.match(name):
            continue
        if chip not in CHIPS:
            yield f"{name}: no chip is known for device ids {chip}xx"
        elif capability(name) != CHIPS[chip]:
            yield f"{name}: its chip has {CHIPS[chip]}, the table says {capability(name)}"


OFFLINE: dict[str, Callable[[], Iterator[str]]] = {
    "torch-architectures": torch_architectures,
    "torch-gcc": torch_gcc,
    "deepspeed-cuda": deepspeed_cuda,
    "python-floors": python_floors,
}


def _pair(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def main() -> int:
    """Prints each difference and each table that is too old."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--index", action="store_true", help="ask the package index as well")
    parser.add_argument("--supported", type=Path, help="NVIDIA's list of supported GPUs as well")
    asked = parser.parse_args()
    comparisons = dict(OFFLINE)
    if asked.index:
        comparisons["torch-cuda"] = torch_cuda
        comparisons["torch-pythons"] = torch_pythons
    if asked.supported:
        listed = asked.supported.read_text(encoding="utf-8")
        comparisons["products"] = functools.partial(products, listed)
    today = dt.datetime.now(dt.timezone.utc).date()
    wrong = 0
    for name, compare in comparisons.items():
        differences = list(compare())
        wrong += len(differences)
        print(f"{name}: {'; '.join(differences) or 'as its authority says'}")
    for table in tables():
        old = expired(table, today)
        wrong += old
        how = table["compared_by"] or "by hand"
        print(f"{table['file']}: as of {table['read']} ({how}){'; TOO OLD' if old else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
