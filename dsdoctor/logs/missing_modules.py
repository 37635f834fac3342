"""Modules that a run did not find: of packages that are not installed, or of the project itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.products import package_of

#: Names that projects give to their own modules. PyPI has packages of most of these names, and
#: nobody means those.
OWN_NAMES = frozenset(
    {
        "args", "arguments", "base", "callbacks", "common", "config", "configs", "conf",
        "constants", "core", "data", "dataloader", "dataloaders", "dataset", "engine",
        "eval", "evaluation", "experiments", "helper", "helpers", "inference", "layers", "lib",
        "libs", "logger", "loss", "losses", "main", "metrics", "misc", "model", "modeling",
        "models", "modules", "net", "network", "networks", "ops", "options", "preprocess",
        "prompts", "pylib", "runner", "schedulers", "scripts", "settings", "src", "tasks", "test",
        "tests", "tokenization", "tools", "train", "trainer", "training", "transform",
        "transforms", "util", "utilities", "utils",
    }
)  # fmt: skip
#: Names that consist of those and another word: `train_utils`, `my_dataset`.
OWN_WORDS = lazy(
    r"^my_|_(?:args|callbacks?|configs?|constants|data(?:loaders?|sets?)?|helpers?|loss(?:es)?"
    r"|metrics|models?|trainers?|utils?)$"
)


def without_own(hits: Sequence[Hit], scans: Sequence[Scan]) -> list[Hit]:
    """The hits without those on modules that another condition names, or that are the project's."""
    named = {(hit.source, hit.rank, hit.line) for hit in hits if not hit.known.signature.module}
    parts = _parts_of_the_project(scans)
    return [
        hit
        for hit in hits
        if not hit.known.signature.module
        or (
            (hit.source, hit.rank, hit.line) not in named
            and not is_own(hit.groups[hit.known.signature.module], parts)
        )
    ]


def is_own(module: str, parts: Collection[str]) -> bool:
    """Whether a module belongs to the project whose paths have these parts.

    >>> is_own("utils", ()), is_own("bertloc", {"bertloc", "train"}), is_own("trixi", {"train"})
    (True, True, False)
    """
    name = module.lower()
    return name in OWN_NAMES or name in parts or OWN_WORDS.search(name) is not None


def _parts_of_the_project(scans: Sequence[Scan]) -> set[str]:
    """Folders and modules in the paths of the frames that are not of a package, lowercase."""
    parts: set[str] = set()
    for scan in scans:
        for error in scan.errors:
            for frame in error.frames:
                if not package_of(frame.file):
                    path = frame.file.replace("\\", "/").lower().removesuffix(".py")
                    parts |= {part.replace("-", "_") for part in path.split("/")}
    return parts
