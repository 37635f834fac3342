"""Reports of nodes that were collected earlier: a folder with one file per node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from dsdoctor import process, reading
from dsdoctor.errors import UsageError
from dsdoctor.fleet import frames, replay
from dsdoctor.fleet.nodes import Judge, NodeReport, silent
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.host_name import is_host_name

#: With fewer files, one core finishes before a second one has started.
_MANY = 500
#: What the workers of `judge_files` use; they are forks of this process.
_judge: list[Judge] = []


def snapshot_bytes(file: Path) -> bytes:
    """A snapshot from a file with a snapshot or with a collector's output.

    Raises:
        UsageError: the file contains neither.
        OSError: it cannot be read.
    """
    try:
        data = reading.read(file)
        if not data.strip():
            raise UsageError(f"`{file}` is empty; expected a report")
        if frames.MARK not in data[:100_000]:
            return data
        recording = frames.document(data.split(b"\n"))
    except (DecodeError, frames.BrokenFramesError) as error:
        raise UsageError(f"`{file}` cannot be used: {error}; expected a report") from None
    if recording is None:
        raise UsageError(
            f"`{file}` contains a collector's report that is cut off; collect it again"
        )
    return msgspec.json.encode(replay.snapshot_of(recording))


def files_of(folder: Path, warn: Callable[[str], None]) -> list[Path]:
    """The reports in a folder, by name.

    The name of a file becomes that of its node, which reports print and scripts read, so a file
    whose name is not that of a host is left out, and the others are judged without it.

    Args:
        folder: contains one file per node.
        warn: is told of what is left out.

    Raises:
        UsageError: there is none.
    """
    found = [*folder.glob("*.json"), *folder.glob("*.txt")] if folder.is_dir() else []
    named = sorted(file for file in found if is_host_name(file.stem))
    misnamed = sorted(set(found).difference(named))
    if not named and misnamed:
        raise UsageError(
            f"`{misnamed[0]}` is not named after a host; expected, for example, `gpu001.json`"
        )
    if not named:
        raise UsageError(
            f"`{folder}` is not a folder with reports (*.json of `--save` or `snapshot -o`, "
            "or *.txt that a collector printed)"
        )
    if misnamed:
        more = f" and {len(misnamed) - 1} more" if len(misnamed) > 1 else ""
        warn(
            f"left out `{misnamed[0]}`{more}: not named after a host; "
            "expected, for example, `gpu001.json`"
        )
    return named


def judge_files(files: Sequence[Path], judge: Judge) -> list[NodeReport]:
    """Reports on all files; an unusable file counts as a silent node."""
    _judge[:] = [judge]
    return list(process.parallel(_some, files, least=_MANY))


def _some(files: Sequence[Path]) -> list[NodeReport]:
    reports = []
    for file in files:
        try:
            reports.append(_judge[0].report(file.stem, snapshot_bytes(file), str(file)))
        except UsageError as error:
            reports.append(silent(file.stem, str(error)))
        except OSError as error:
            reports.append(silent(file.stem, f"`{file}` cannot be read: {error.strerror}"))
    return reports
