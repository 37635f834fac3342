"""Looks for modules as a script of a folder would; run as a script in a process of its own.

    python find_modules.py FOLDER NAME…

Stdlib only, Python 3.8 and later. Prints one record for each name:
{"module": name, "found": bool, "own": bool}; `own` = in the folder itself. Nothing is imported:
modules of the top level are only looked for.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys


def look(name: str, folder: str) -> dict[str, object]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # a finder of the environment failed: nothing is known
        return {"module": name, "found": True, "own": False}
    origin = getattr(spec, "origin", None) or ""
    if not os.path.isabs(origin):  # `built-in`, `frozen`
        return {"module": name, "found": spec is not None, "own": False}
    place = os.path.dirname(os.path.realpath(origin))
    if os.path.basename(origin).startswith("__init__."):
        place = os.path.dirname(place)
    return {"module": name, "found": spec is not None, "own": bool(origin) and place == folder}


def main() -> None:
    folder = os.path.realpath(sys.argv[1])
    sys.path[0] = folder  # where Python looks first for what a script imports
    for name in sys.argv[2:]:
        record = look(name, folder)
        os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("ascii"))


main()
