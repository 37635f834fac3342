"""Released packages, as the harvest of the error index reads them."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
INDEXES = ROOT / "checks" / "dsdoctor_checks" / "_error_index"


def load() -> ModuleType:
    sys.path.append(str(ROOT / "tools"))
    try:
        return importlib.import_module("released")
    finally:
        sys.path.pop()


RELEASED = load()


def test_every_index_can_be_made_again() -> None:
    """Each file of an index is among those that the harvest reads of that product."""
    for path in INDEXES.glob("*.index"):
        scope = RELEASED.SCOPES[path.stem]
        files = [row[1:] for row in path.read_text().splitlines() if row.startswith(">")]
        assert files
        assert [name for name in files if not name.startswith(scope)] == []


def test_a_wheel_that_calls_itself_binary_has_its_python_in_a_folder_of_data(
    tmp_path: Path,
) -> None:
    wheel = tmp_path / "openrlhf-1.2.3-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("openrlhf-1.2.3.data/purelib/openrlhf/cli/train.py", "x = 1")
        archive.writestr("openrlhf-1.2.3.data/scripts/run.py", "x = 2")
    assert RELEASED.release_of(wheel, "openrlhf") == "1.2.3"
    assert list(RELEASED.sources(wheel, "openrlhf")) == [("openrlhf/cli/train.py", "x = 1")]
