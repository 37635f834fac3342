"""Looks for modules as a script of a folder would; run as a script in a process of its own.

    python find_modules.py FOLDER NAME…

Stdlib only, Python 3.8 and later. Prints one record for each name:
{"module": name, "found": bool, "own": bool, "bare": bool}; `own` = in the folder itself; `bare` =
only a folder without code, in that folder or in the working one. Nothing is imported: modules of
the top level are only looked for.
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
    places = list(getattr(spec, "submodule_search_locations", None) or ())
    if spec is not None and spec.origin is None and len(places) == 1:
        above = os.path.dirname(os.path.realpath(places[0]))
        if above in (folder, os.path.realpath(".")) and not has_code(places[0]):
            return {"module": name, "found": True, "own": False, "bare": True}
    origin = getattr(spec, "origin", None) or ""
    if not os.path.isabs(origin):  # `built-in`, `frozen`
        return {"module": name, "found": spec is not None, "own": False}
    place = os.path.dirname(os.path.realpath(origin))
    if os.path.basename(origin).startswith("__init__."):
        place = os.path.dirname(place)
    return {"module": name, "found": spec is not None, "own": bool(origin) and place == folder}


def has_code(folder: str) -> bool:
    """Whether a folder, or one in it, holds modules: then it may well be what is imported."""
    inside = [folder]
    try:
        inside += [entry.path for entry in os.scandir(folder) if entry.is_dir()]
        return any(
            name.endswith((".py", ".pyc", ".so")) for one in inside for name in os.listdir(one)
        )
    except OSError:  # not known
        return True


def main() -> None:
    folder = os.path.realpath(sys.argv[1])
    sys.path[0] = folder  # where Python looks first for what a script imports
    for name in sys.argv[2:]:
        record = look(name, folder)
        os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("ascii"))


main()
