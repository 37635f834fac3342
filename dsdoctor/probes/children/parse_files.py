"""Parses Python files as an import of them would; run as a script in a process of its own.

    python parse_files.py FILE…

Stdlib only, Python 3.8 and later. Prints one record for each file:
{"file": path, "ok": true}, or with `ok` false and {"error_type", "error", "line"}. Nothing is run.
The text of a line is never printed: the file may be a link to one that others may not read.
"""

from __future__ import annotations

import json
import os
import sys
import warnings


def parse(path: str) -> dict[str, object] | None:
    """What came of it; None if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError:
        return None
    try:
        compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return {
            "file": path,
            "ok": False,
            "error_type": type(error).__name__,
            "error": str(getattr(error, "msg", error)),
            "line": getattr(error, "lineno", None) or 0,
        }
    except (RecursionError, MemoryError):  # the text is odd, and may be well
        return None
    return {"file": path, "ok": True}


def main() -> None:
    warnings.simplefilter("ignore")
    for path in sys.argv[1:]:
        record = parse(path)
        if record is not None:
            os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("ascii"))


main()
