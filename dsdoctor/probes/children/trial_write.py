"""Writes, syncs and removes a small file in each folder, as saving a checkpoint would.

    python trial_write.py FOLDER…

Stdlib only, Python 3.8 and later. Prints one record for each: {"folder": path, "error": text|null}.
No folder is created: if one does not exist, its nearest existing parent is tried.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile

SIZE = 1 << 20


def attempt(folder: str) -> str | None:
    try:
        handle, path = tempfile.mkstemp(prefix=".dsdoctor-trial-", dir=folder)
    except OSError as error:
        return error.strerror or str(error)
    try:
        try:
            left = SIZE
            while left > 0:
                left -= os.write(handle, b"\xa5" * left)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        return error.strerror or str(error)
    else:
        return None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def main() -> None:
    for folder in sys.argv[1:]:
        place = os.path.abspath(folder)
        while not os.path.isdir(place) and place != os.path.dirname(place):
            place = os.path.dirname(place)
        record = {"folder": folder, "error": attempt(place)}
        os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("utf-8", "replace"))


main()
