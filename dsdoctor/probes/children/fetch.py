"""Fetches a file over HTTP; prints it, or compares its checksum and unpacks it.

    python fetch.py URL SHA256|- FOLDER|- SIZE

Stdlib only, Python 3.8 and later. The last line on stderr is the error. The archive's top folder is
removed from paths; nothing is unpacked before the checksum was compared, and nothing outside
FOLDER.
"""

import errno
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from typing import IO, Callable, List

DEEPEST = 64  # folders in a path; os.makedirs calls itself once for each
SILENT_SECONDS = 60
#: Errors of the disk, not of the network.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def stop(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.exit(1)


def fetch(url: str, write: Callable[[bytes], object], size: int) -> int:
    got, total, told = 0, 0, time.time()
    try:
        with urllib.request.urlopen(url, timeout=SILENT_SECONDS) as answer:
            total = int(answer.headers.get("Content-Length") or size or 0)
            while True:
                chunk = answer.read(1 << 20)
                if not chunk:
                    break
                write(chunk)
                got += len(chunk)
                if time.time() > told + 5 and total:
                    told = time.time()
                    print("%d of %d MiB" % (got >> 20, total >> 20), flush=True)
    except urllib.error.HTTPError as error:
        advice = "choose another mirror, or install it in another way"
        stop("`%s` answers %d (%s); %s" % (url, error.code, error.reason, advice))
    except urllib.error.URLError as error:
        stop("`%s` cannot be reached (%s); check the network and the proxy" % (url, error.reason))
    except OSError as error:
        if error.errno in DISK:
            raise
        stop("`%s` was cut off after %d bytes (%s); run this fix again" % (url, got, error))
    except Exception as error:  # IncompleteRead and its like
        stop("`%s` was cut off after %d bytes (%s); run this fix again" % (url, got, error))
    if total and got != total:
        stop("`%s` was cut off: %d of %d bytes arrived; run this fix again" % (url, got, total))
    return got


def _inside(root: str, path: str) -> bool:
    return (os.path.realpath(path) + os.sep).startswith(os.path.realpath(root) + os.sep)


def _parts(name: str) -> List[str]:
    """A member's name without the archive's top folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        stop("the archive contains `%s`, which is outside its folder" % name)
    if len(parts) > DEEPEST:
        stop("the archive contains a path of %d folders" % len(parts))
    return parts[1:]


def _make_way(root: str, path: str) -> None:
    """Creates the folder of a file, and removes a file or link at its path."""
    folder = os.path.dirname(path)
    if not _inside(root, folder):
        stop("the archive contains `%s`, which is outside its folder" % path)
    os.makedirs(folder, exist_ok=True)
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)


def _write(source: IO[bytes], path: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # follows no link (open(2))
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        # no owners, no setuid bit, not writable by others
        os.chmod(path, 0o755 if mode & 0o100 else 0o644)


def unpack(archive: tarfile.TarFile, folder: str) -> None:
    """Unpacks files and folders, then links; rejects whatever would leave `folder`.

    No writing function of tarfile is used: its filters are absent before Python 3.10.12, and the
    filter `tar` keeps owners and lets a link leave the folder through another link. As links are
    created last, no file is written through a link of this archive.
    """
    links = []
    for member in archive:
        parts = _parts(member.name)
        if not parts:
            continue
        path = os.path.join(folder, *parts)
        if member.isdir():
            if not _inside(folder, path):
                stop("the archive contains `%s`, which is outside its folder" % member.name)
            os.makedirs(path, exist_ok=True)
        elif member.issym():
            links.append((member, path))
        elif member.isreg() or member.islnk():
            try:
                source = archive.extractfile(member)
            except KeyError:  # a hard link to a file that is not in the archive
                source = None
            if source is None:
                stop("the archive contains `%s`, a dangling link" % member.name)
                return
            _make_way(folder, path)
            _write(source, path, member.mode)
        else:
            stop("the archive contains a device or a pipe, `%s`" % member.name)
    made = []
    for member, path in links:
        _make_way(folder, path)
        os.symlink(member.linkname, path)
        made.append(path)
        # all links again: the last one may change where an earlier one leads
        if os.path.isabs(member.linkname) or not all(_inside(folder, link) for link in made):
            for link in made:
                os.unlink(link)
            stop("the archive links `%s` to `%s`" % (member.name, member.linkname))


def main() -> None:
    url, wanted, folder, size = sys.argv[1], sys.argv[2].lower(), sys.argv[3], int(sys.argv[4])
    if folder == "-":
        fetch(url, sys.stdout.buffer.write, size)
        return
    os.makedirs(folder, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=".dsdoctor-", suffix=".part", dir=folder)
    try:
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:

            def write(chunk: bytes) -> None:
                digest.update(chunk)
                file.write(chunk)

            got = fetch(url, write, size)
            file.flush()
        if size and got != size:
            os.unlink(part)
            stop("`%s` has %d bytes, but the manifest says %d" % (url, got, size))
        if digest.hexdigest() != wanted:
            os.unlink(part)
            stop(
                "`%s` has the checksum %s, but the manifest says %s; nothing was unpacked"
                % (url, digest.hexdigest()[:16], wanted[:16])
            )
        with tarfile.open(part) as archive:
            unpack(archive, folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            stop("the disk is full at `%s`; free some space, then run this fix again" % folder)
        if error.errno == errno.EFBIG:
            stop("`%s`: a file may not grow that large here (`ulimit -f`); raise it" % folder)
        stop("`%s`: %s" % (folder, error))
    except tarfile.TarError as error:
        stop("`%s` is not an archive that can be unpacked (%s)" % (url, error))
    finally:
        if os.path.exists(part):
            os.unlink(part)


main()
