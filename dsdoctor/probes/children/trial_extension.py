"""Builds a trivial C++ extension as DeepSpeed builds its ops, and calls it.

Runs in the interpreter of the environment.

    python trial_extension.py

Stdlib and torch, Python 3.8 and later. Prints {"step": "build"}, then {"ok": bool, "error": text}.
The build uses a temporary folder, so no cache is changed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from typing import Any

SOURCE = """
#include <torch/extension.h>
torch::Tensor twice(const torch::Tensor& x) { return x * 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""


def say(**record: Any) -> None:
    os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("utf-8", "replace"))


def error_in(text: str) -> str:
    """The lines of a compiler's output that contain errors."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if re.search(r"error|not found|cannot find|undefined", line)]
    wrong = [line for line in wrong if not line.startswith(("raise ", "ninja: build stopped"))]
    return "\n".join((wrong or lines)[:5])[:1000]


def main() -> None:
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    say(step="import")
    try:
        import torch
        from torch.utils import cpp_extension

        source = os.path.join(folder, "trial.cpp")
        with open(source, "w") as file:
            file.write(SOURCE)
        say(step="build")
        built = cpp_extension.load(
            name="dsdoctor_trial", sources=[source], build_directory=folder, verbose=False
        )
        say(step="call")
        got = built.twice(torch.arange(4)).tolist()
        say(ok=got == [0, 2, 4, 6], error=None if got == [0, 2, 4, 6] else "it gave %r" % got)
    except Exception as error:
        say(ok=False, error=error_in(str(error)) or type(error).__name__)
    finally:
        sys.stdout.flush()
        shutil.rmtree(folder, ignore_errors=True)


main()
