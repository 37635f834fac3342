"""Where runs are stored: one folder each, readable only by this user, pruned by size."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import re
import stat
import tarfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.model import decode
from dsdoctor.model.run_record import SCHEMA, VERSION, RunRecord
from dsdoctor.run.elsewhere import died

#: Maximum size of all stored runs together, bytes on disk.
KEPT_BYTES = 2 << 30
RECORD = "run.json"
#: The report of the preflight check (`run/preflight.py`).
CHECK_REPORT = "report.json"
#: How much is read from folders that another account may have created. dsdoctor stores 200 MiB of
#: output in segments of 16 MiB, some other files, and at most one level of folders.
_RECORD_BYTES = 16 << 20
_TEXT_BYTES = 32 << 20
_ALL_TEXT_BYTES = 256 << 20
#: After this no further text is masked: 10 MB usually take a second, hostile text 20 times as long
#: (2026-11-23, a busy machine).
_MASKING_SECONDS = 60
_MOST_TEXTS = 4096
_DEEPEST = 4
#: `PID_MAX_LIMIT` of Linux on 64 bits.
_LARGEST_PID = 1 << 22
#: In a bundle: what was left out.
LEFT_OUT = "left-out.txt"


def base_folder(given: str | None = None) -> Path:
    """The folder of all runs: the given one, `DSDOCTOR_RUNS`, or the user's state folder."""
    path = given or os.environ.get("DSDOCTOR_RUNS")
    return Path(path).absolute() if path else Path(platformdirs.user_state_dir("dsdoctor"), "runs")


def create(base: Path, command: Sequence[str]) -> Path:
    """A new folder `TIME-NAME` that no other account can read.

    Raises:
        UsageError: it cannot be created.
    """
    stamp = dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    scripts = [word for word in command if word.endswith((".py", ".sh"))]
    word = Path((scripts or list(command))[0]).stem
    name = f"{stamp}-{re.sub(r'[^A-Za-z0-9_.]+', '-', word)[:40] or 'run'}"
    try:
        files.make_folder(base, mode=0o700)
        for extra in range(1000):
            folder = base / (f"{name}-{extra + 1}" if extra else name)
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                return folder
    except OSError as error:
        raise unusable(base, error) from None
    raise UsageError(f"`{base}` already contains a thousand runs of this second")


def unusable(base: Path, error: OSError) -> UsageError:
    """The error for a folder without space or permissions, before a job has been started."""
    return UsageError(
        f"`{base}` cannot store the records of runs ({error.strerror}); pass another folder with "
        "`--runs-dir`"
    )


def begin(folder: Path, record: RunRecord) -> None:
    """Writes the first record of a new folder, and removes the folder if that fails.

    Raises:
        UsageError: there is no space.
    """
    try:
        save(folder, record)
    except OSError as error:
        with contextlib.suppress(OSError):
            files.remove(folder, tree=True)
        raise unusable(folder.parent, error) from None


def save(folder: Path, record: RunRecord) -> None:
    """Writes `run.json` atomically."""
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    files.write(folder / RECORD, data, mode=0o600)


def load(folder: Path) -> RunRecord:
    """Reads `run.json`.

    Raises:
        UsageError: there is none, or it is not a record of this version.
    """
    try:
        record = decode.typed(files.read(folder / RECORD, limit=_RECORD_BYTES), RunRecord)
    except OSError as error:
        raise UsageError(f"`{folder / RECORD}` cannot be read: {error.strerror}") from None
    except decode.DecodeError as error:
        raise UsageError(f"`{folder / RECORD}` is not a record of a run: {error}") from None
    if record.schema != SCHEMA or record.version > VERSION:
        raise UsageError(f"`{folder / RECORD}` was written by a newer dsdoctor; upgrade dsdoctor")
    return record


def check_report(folder: Path) -> dict[str, Any]:
    """The report of the preflight check, as from `check --format json`; empty without one."""
    with contextlib.suppress(OSError, ValueError):
        found = msgspec.json.decode(files.read(folder / CHECK_REPORT, limit=_RECORD_BYTES))
        return found if isinstance(found, dict) else {}
    return {}


def is_running(record: RunRecord) -> bool:
    """Whether a run continues, as far as this host can know: dsdoctor may have been killed."""
    if record.status is not None:
        return False
    if not 0 < record.pid < _LARGEST_PID or record.host != platform.node():
        return True
    try:
        os.kill(record.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def all_runs(base: Path) -> list[tuple[Path, RunRecord]]:
    """Stored runs, the oldest first; folders without a record are skipped."""
    found: list[tuple[Path, RunRecord]] = []
    with contextlib.suppress(OSError):
        for folder in sorted(base.iterdir()):
            with contextlib.suppress(UsageError):
                found.append((folder, load(folder)))
    return sorted(found, key=lambda row: (row[1].started, row[0].name))


def find(base: Path, name: str | None) -> tuple[Path, RunRecord]:
    """A run by its folder, its id, the beginning of its id, or `last`.

    Raises:
        UsageError: none or several match.
    """
    if name and ("/" in name or Path(name, RECORD).is_file()):
        return Path(name), load(Path(name))
    runs = all_runs(base)
    if not runs:
        raise UsageError(f"no run is saved in `{base}`; start one with `dsdoctor run -- CMD`")
    if name in (None, "last"):
        return runs[-1]
    exact = [row for row in runs if row[0].name == name]
    fitting = exact or [row for row in runs if row[0].name.startswith(str(name))]
    if len(fitting) != 1:
        what = f"{len(fitting)} runs in `{base}` begin" if fitting else f"no run in `{base}` begins"
        raise UsageError(f"{what} with `{name}`; `dsdoctor run list` lists all")
    return fitting[0]


def size_of(folder: Path) -> int:
    """Bytes that a folder takes."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def _is_own(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return not hasattr(os, "geteuid") or folder.lstat().st_uid == os.geteuid()
    return False


def prune(base: Path, *, kept: int = KEPT_BYTES) -> list[str]:
    """Removes the oldest runs until the rest fits; never a running one or the last failed one.

    In a folder that several accounts share, runs of others neither count nor are removed.
    """
    runs = [row for row in all_runs(base) if _is_own(row[0])]
    failed = [folder for folder, record in runs if died(record)]
    protected = set(failed[-1:]) | {folder for folder, _ in runs[-1:]}
    sizes = {folder: size_of(folder) for folder, _ in runs}
    removed: list[str] = []
    for folder, record in runs:
        if sum(sizes.values()) <= kept:
            break
        if folder not in protected and not is_running(record):
            with contextlib.suppress(OSError):
                files.remove(folder, tree=True)
            sizes.pop(folder)
            removed.append(folder.name)
    return removed


def bundle(folder: Path, output: Path, texts: Mapping[str, bytes]) -> None:
    """Packs what can be shared: masked texts, no binary dumps.

    Raises:
        UsageError: the archive cannot be written.
    """
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in sorted(texts.items()):
            info = tarfile.TarInfo(f"{folder.name}/{name}")
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, BytesIO(data))
    if output.exists():
        raise UsageError(f"`{output}` already exists; pass another file")
    try:
        files.write(output, packed.getvalue())
    except OSError as error:
        raise UsageError(
            f"`{output}` cannot be written: {error.strerror}; pass another file"
        ) from None


def texts_of(folder: Path) -> dict[str, bytes]:
    """Every text of a run by its name in the archive, without secrets, users, hosts and homes.

    `left-out.txt` lists what is not a regular file or exceeds a limit.
    """
    from dsdoctor.model.redact import redactor  # noqa: PLC0415  # for bundles only

    users, hosts = _names(folder)
    redacted = redactor(users=users, hosts=hosts)
    found: dict[str, str] = {}
    left_out: list[str] = []
    room = _ALL_TEXT_BYTES
    end = time.monotonic() + _MASKING_SECONDS
    for path in sorted(_files_in(folder), key=_output_last):
        name = path.relative_to(folder).as_posix()
        if path.suffix in (".pickle", ".bin"):
            continue
        if len(found) >= _MOST_TEXTS or room <= 0:
            left_out.append(f"{name}: the bundle would be too large")
            continue
        if time.monotonic() > end:
            left_out.append(f"{name}: masking the others took {_MASKING_SECONDS} s")
            continue
        try:
            data = files.read(path, limit=min(room, _TEXT_BYTES))
            if path.suffix == ".gz":
                data, name = _unpacked(data, min(room, _TEXT_BYTES)), name.removesuffix(".gz")
        except (OSError, decode.DecodeError) as error:
            left_out.append(f"{name}: {getattr(error, 'strerror', None) or error}")
            continue
        if b"\0" in data[:4096]:
            continue
        room -= len(data)
        # the whole text: a private key is one secret of many lines
        found |= redacted({name: data.decode("utf-8", "replace")})
    if left_out:
        more = len(left_out) - _MOST_TEXTS
        rows = left_out[:_MOST_TEXTS] + ([f"and {more} more"] if more > 0 else [])
        found |= redacted({LEFT_OUT: "\n".join(rows) + "\n"})
    return {name: text.encode("utf-8", "replace") for name, text in found.items()}


def _output_last(path: Path) -> tuple[bool, int, str]:
    """Sort key: the job's output is last, because it is large, and its newest part first."""
    number = re.fullmatch(r"(?:output|after-stop)-(\d{1,9})\.log(?:\.gz)?", path.name)
    return (True, -int(number[1]), path.name) if number else (False, 0, str(path))


def _names(folder: Path) -> tuple[set[str], set[str]]:
    """Accounts and hosts of a run."""
    users, hosts = {Path.home().name}, {platform.node()}
    with contextlib.suppress(OSError, KeyError):
        users.add(folder.owner())
    with contextlib.suppress(UsageError):
        hosts.add(load(folder).host)
    return users, hosts | {host.partition(".")[0] for host in hosts}


def _files_in(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Files, and entries that are neither file nor folder; links are skipped."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(OSError):
                kind = path.lstat().st_mode
                if stat.S_ISDIR(kind) and depth < _DEEPEST:
                    yield from _files_in(path, depth + 1)
                elif not stat.S_ISLNK(kind) and not stat.S_ISDIR(kind):
                    yield path


def _unpacked(data: bytes, limit: int) -> bytes:
    """A segment of output; one that was incomplete when dsdoctor was killed ends early.

    Raises:
        DecodeError: it is not compressed, or has more bytes than the limit.
    """
    try:
        found = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, limit + 1)
    except zlib.error as error:
        raise decode.DecodeError(f"its compressed data is broken ({error})") from None
    return decode.bounded(found, limit)
