"""The functions in a real Jupyter kernel: what a cell shows, and that nothing blocks it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

#: Runs the cells in a kernel, in a process of its own: a client leaves its sockets to the end.
CLIENT = """
import json, sys
import nbclient, nbformat

cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
book = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(book, timeout=500, kernel_name="python3").execute()
print(json.dumps([cell.outputs[-1].get("data", {}) if cell.outputs else {} for cell in book.cells]))
"""


def shown(folder: Path, *cells: str) -> list[dict[str, str]]:
    """What each cell shows, by MIME type."""
    env = {
        **os.environ,
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
    }
    done = subprocess.run(
        [sys.executable, "-c", CLIENT], input=json.dumps(cells), capture_output=True, text=True,
        env=env, cwd=folder, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_a_cell_shows_the_report(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 7}}')
    log = (
        "<script>x</script>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"
    )
    (tmp_path / "train.log").write_text(log)
    imported, checked, diagnosed, planned, refused = shown(
        tmp_path,
        "import dsdoctor",
        "dsdoctor.check('ds.json', quick=True, select=['config'])",
        "dsdoctor.diagnose('train.log')",
        "dsdoctor.recommend('gpt2', gpu_memory_gib=80, sequence=1024)",
        "try:\n    dsdoctor.check('nowhere.json')\n"
        "except dsdoctor.UsageError as error:\n    found = str(error)\n"
        "found",
    )
    assert imported == {}
    assert "ds-config-wrong-type" in checked["text/html"]
    assert re.search("<span style='[^']*color:[^']*'>FAIL  ds-config-wrong", checked["text/html"])
    assert checked["text/plain"].startswith("<dsdoctor check: faulty")
    assert "gpu-oom" in diagnosed["text/html"]
    assert "<script>" not in diagnosed["text/html"]
    assert "micro-batch" in planned["text/html"]
    assert "is not a file" in refused["text/plain"]
