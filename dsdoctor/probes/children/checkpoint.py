"""Examines the files of a checkpoint without unpickling any of them.

    python checkpoint.py FOLDER [--whole] [--universal]

Stdlib only, Python 3.8 and later. Prints a record for the folder, then one for each file. Numbers
(world size, ZeRO stage) are taken from the pickle's opcodes, none of which is executed. With
--whole every byte is read and compared with the checksums of the archive. With --universal the tag
is the one that a run which loads universal checkpoints takes.
"""

from __future__ import annotations

import errno
import json
import os
import pickletools
import re
import stat
import struct
import sys
import zipfile
from typing import IO, Any

SHARD = re.compile(r"(model|optim)_states\.pt$")
#: Keys that DeepSpeed 0.19.8 writes (runtime/engine.py `_save_checkpoint`, zero/stage*.py).
NUMBERS = ("dp_world_size", "mp_world_size", "zero_stage", "partition_count", "global_steps")
#: How many opcodes after its key a number may be: an enum is a class, a number and a call.
REACH = 6
#: The pickle of a shard refers to tensors and contains none; a larger one is not examined.
PICKLE_LIMIT = 64 << 20
LFS = b"version https://git-lfs"
#: Size of the field with the header's length in a safetensors file.
LENGTH = 8
#: More links than this on one path are a loop (Linux's own limit).
MAX_LINKS = 40
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


def open_file(path: str) -> IO[bytes]:
    """Opens a regular file; as root, not a private one that another account's link leads to.

    The path is walked by descriptor, so the file that was checked is the one that is opened. A
    device is not even opened: that alone starts a watchdog or rewinds a tape.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb")
    handle, laid_out = walk(path)
    info = os.fstat(handle)
    foreign = laid_out - {0, os.stat("/").st_uid, info.st_uid}
    if foreign and not info.st_mode & 0o004:
        os.close(handle)
        raise PermissionError(13, "a link to a private file of another account", path)
    return os.fdopen(handle, "rb")


def walk(path: str) -> tuple[int, set[int]]:
    """A descriptor of a regular file, and the owners of its folder and of links on the path."""
    laid_out: set[int] = set()
    todo = os.path.abspath(path).split("/")[::-1]
    links = 0
    here = os.open("/", FOLDER)
    try:
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            info = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                laid_out.add(info.st_uid)
                target = os.readlink(name, dir_fd=here)
                todo += target.split("/")[::-1]
                fresh = os.open("/" if target.startswith("/") else ".", FOLDER, dir_fd=here)
            elif stat.S_ISREG(info.st_mode) and not any(todo):
                laid_out.add(os.fstat(here).st_uid)
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
                return os.open(name, flags, dir_fd=here), laid_out
            else:
                fresh = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = fresh
    finally:
        os.close(here)
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def say(record: dict[str, Any]) -> None:
    os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("utf-8", "replace"))


def numbers_of(pickled: bytes) -> dict[str, Any]:
    """The numbers after known keys, from the pickle's opcodes."""
    found: dict[str, Any] = {}
    key: str | None = None
    distance = 0
    section: str | None = None
    for op, arg, _ in pickletools.genops(pickled):
        if op.name in ("BINPUT", "LONG_BINPUT", "MEMOIZE", "PUT"):
            continue
        if "UNICODE" in op.name:
            if key == "ds_version" and key not in found:
                found[key] = arg
                key = None
                continue
            if arg in NUMBERS or arg == "ds_version":
                key, distance = arg, 0
            elif arg == "stage" and section == "zero_optimization":
                key, distance = "config_stage", 0
            else:
                key = None
            if arg == "zero_optimization":
                section = arg
            continue
        distance += 1
        if key and distance <= REACH and op.name.startswith(("BININT", "INT", "LONG")):
            if isinstance(arg, int) and not isinstance(arg, bool):
                found.setdefault(key, arg)
                section = None
            key = None
        elif distance > REACH:
            key = None
    return found


def zip_problem(path: str, whole: bool) -> tuple[str | None, str | None, dict[str, Any]]:
    """(problem, detail, numbers) of a file that begins like a zip archive."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            size = os.fstat(file.fileno()).st_size
            for entry in archive.infolist():
                if entry.header_offset + entry.compress_size > size:
                    return "truncated", entry.filename + "ends beyond the end of the file", {}
            if whole:
                bad = archive.testzip()
                if bad is not None:
                    return "damaged", "checksum of " + bad + " does not match", {}
            pickles = [e for e in archive.infolist() if e.filename.endswith("data.pkl")]
            if not pickles:
                return "no checkpoint file", "the archive contains no data.pkl", {}
            if pickles[0].file_size > PICKLE_LIMIT:
                return None, None, {}
            return None, None, numbers_of(archive.read(pickles[0]))
    except zipfile.BadZipFile as error:
        words = str(error)
        if "central directory" in words or "not a zip" in words:
            return "truncated", "the archive's directory, at the end of the file, is missing", {}
        return "damaged", words, {}
    except (ValueError, EOFError, struct.error) as error:
        return "damaged", str(error), {}


def safetensors_problem(path: str, size: int) -> tuple[str | None, str | None]:
    with open_file(path) as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == LENGTH else 0
        if not LENGTH <= length <= min(size, 100 << 20):
            return "truncated", "the header does not fit into the file"
        try:
            header = json.loads(file.read(length).decode("utf-8"))
            ends = [v["data_offsets"][1] for k, v in header.items() if k != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "damaged", "the header is not JSON"
    wanted = LENGTH + length + max([*ends, 0])
    if wanted > size:
        return "truncated", "%d bytes, but its header states %d" % (size, wanted)
    return None, None


def look(path: str, name: str, whole: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "file": name,
        "size": 0,
        "problem": None,
        "detail": None,
        "numbers": {},
    }
    try:
        with open_file(path) as file:
            size = record["size"] = os.fstat(file.fileno()).st_size
            head = file.read(64)
        if size == 0:
            record["problem"] = "empty"
        elif head.startswith(LFS):
            record["problem"] = "git-lfs pointer"
        elif name.endswith(".safetensors"):
            record["problem"], record["detail"] = safetensors_problem(path, size)
        elif head.startswith(b"PK\x03\x04"):
            problem, detail, numbers = zip_problem(path, whole)
            record.update(problem=problem, detail=detail, numbers=numbers)
        elif head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
            record["detail"] = "legacy format, only the beginning of which can be checked"
        elif not head.strip(b"\0"):
            record["problem"] = "damaged"
            record["detail"] = "it begins with zeros"
        else:
            record["problem"] = "no checkpoint file"
            record["detail"] = "it begins with neither an archive nor a pickle"
    except OSError as error:
        record["problem"] = "unreadable"
        record["detail"] = error.strerror or str(error)
    return record


def is_shard(name: str) -> bool:
    return bool(SHARD.search(name))


def is_weights(name: str) -> bool:
    return name.endswith(".safetensors") or re.match(r"pytorch_model.*\.bin$", name) is not None


def main() -> None:
    folder, whole = sys.argv[1], "--whole" in sys.argv[2:]
    head: dict[str, Any] = {
        "folder": folder,
        "error": None,
        "latest": None,
        "tags": [],
        "tag": None,
    }
    try:
        entries = sorted(os.listdir(folder))
    except OSError as error:
        head["error"] = error.strerror or str(error)
        say(head)
        return
    head["trainer_state"] = "trainer_state.json" in entries
    head["latest"] = latest_of(folder, universal="--universal" in sys.argv[2:])
    for name in entries:
        inner = os.path.join(folder, name)
        try:
            names = os.listdir(inner) if os.path.isdir(inner) else []
        except OSError:
            names = []
        if any(is_shard(entry) for entry in names):
            head["tags"].append(name)
    if any(is_shard(name) for name in entries):
        head["tag"] = ""
    elif head["latest"]:
        head["tag"] = head["latest"]
    elif head["tags"]:
        head["tag"] = newest(head["tags"])
    elif any(is_weights(name) for name in entries):
        head["tag"] = ""
    place = os.path.join(folder, head["tag"] or "")
    head["tag_exists"] = head["tag"] is not None and os.path.isdir(place)
    head["universal"] = os.path.isdir(os.path.join(place, "zero"))
    say(head)
    if not head["tag_exists"]:
        return
    for name in sorted(os.listdir(place)):
        if is_shard(name) or is_weights(name):
            say(look(os.path.join(place, name), name, whole))
    say({"done": True})


def latest_of(folder: str, universal: bool) -> str | None:
    """The tag that a run takes (DeepSpeed 0.19.8 runtime/engine.py `load_checkpoint`)."""
    pointers = ["latest", "latest_universal"]
    for name in reversed(pointers) if universal else pointers:
        try:
            with open_file(os.path.join(folder, name)) as file:
                return file.read(4096).decode("utf-8", "replace").strip()
        except OSError:
            continue
    return None


def newest(tags: list[str]) -> str:
    def number(tag: str) -> tuple[int, str]:
        digits = re.findall(r"\d+", tag)
        return (int(digits[-1]) if digits else -1, tag)

    return max(tags, key=number)


main()
