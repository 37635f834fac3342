"""Compares files of packages with what was installed; run as a script in the environment.

    python installed_files.py TOP_LEVEL_NAME…

Stdlib only, Python 3.8 and later. Nothing is imported of the environment. One record for each
distribution that owns one of these modules and has damaged files:

    {"package": "accelerate", "version": "1.15.0", "missing": [...], "empty": [...], "cut": [...]}

Names are relative to the folder of the distribution. `cut` = a compiled file of another size than
the installer recorded, or a source file that begins with a NUL byte.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys

#: More than this many are not named.
MOST = 20
#: A larger list of files is not one that an installer wrote.
READ_LIMIT = 1 << 26
ENDINGS = (".py", ".so", ".pyd", ".dll")
#: Parts of packages that slim images leave out, and that no import needs.
SPARE = re.compile(r"(?:^|/)(?:tests?|testing|benchmarks?|examples?|docs?)/|\.(?:dist-info|data)/")
#: Installers that write files as the wheel has them; conda changes libraries afterwards.
EXACT = ("pip", "uv", "poetry", "pdm")


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(READ_LIMIT)
    except OSError:
        return ""


def damage(place: str, rows: list[list[str]], exact: bool) -> dict[str, list[str]]:
    """The damaged files of one distribution, by what is wrong with them."""
    found: dict[str, list[str]] = {"missing": [], "empty": [], "cut": []}
    for row in rows:
        name = row[0] if row else ""
        if not name.endswith(ENDINGS) or name.startswith(("/", "..")) or SPARE.search(name):
            continue
        recorded = int(row[-1]) if re.fullmatch("[0-9]{1,15}", row[-1]) else None
        path = os.path.join(place, name)
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            found["missing"].append(name)
            continue
        except OSError:  # not known
            continue
        if not recorded:
            continue
        if size == 0:
            found["empty"].append(name)
        elif name.endswith(".py"):
            if size == recorded and begins_with_nul(path):
                found["cut"].append(name)
        elif exact and size != recorded:
            found["cut"].append(name)
    return found


def begins_with_nul(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(1) == b"\0"
    except OSError:
        return False


def main() -> None:
    tops = set(sys.argv[1:])
    done = set()
    for place in sys.path[1:]:
        try:
            entries = sorted(os.listdir(place or "."))
        except OSError:
            continue
        for entry in entries:
            meta = os.path.join(place, entry)
            if not entry.endswith(".dist-info") or entry.startswith("~") or entry in done:
                continue
            record = text_of(os.path.join(meta, "RECORD"))
            if not any(record.startswith(top + "/") or "\n" + top + "/" in record for top in tops):
                continue
            done.add(entry)
            exact = text_of(os.path.join(meta, "INSTALLER")).strip() in EXACT
            try:
                found = damage(place, list(csv.reader(record.splitlines())), exact)
            except (csv.Error, ValueError):  # damaged itself: nothing can be compared
                continue
            if any(found.values()):
                name, _, version = entry[: -len(".dist-info")].partition("-")
                row: dict[str, object] = {kind: names[:MOST] for kind, names in found.items()}
                row["package"] = re.sub(r"[-_.]+", "-", name).lower()
                row["version"] = version
                row["files"] = sum(map(len, found.values()))
                os.write(1, ("\x1edsdoctor:" + json.dumps(row) + "\n").encode("ascii"))
    os.write(1, b'\x1edsdoctor:{"done": true}\n')


main()
