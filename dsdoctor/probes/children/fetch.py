"""Fetches a file over HTTP; prints it, or compares its checksum and unpacks it.

    python fetch.py URL SHA256|- FOLDER|- SIZE

Stdlib only, Python 3.8 and later. The last line on stderr says what went wrong. The archive's top
folder is left off; nothing is unpacked before the checksum was compared, and nothing outside of
FOLDER.
"""

import errno
import hashlib
import os
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from typing import Callable, Iterator

SILENT_SECONDS = 60
#: Errors of the disk that is written to, not of the line.
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
        stop("`%s` answers %d (%s); choose another mirror or way" % (url, error.code, error.reason))
    except urllib.error.URLError as error:
        stop("`%s` cannot be reached (%s); check the network and the proxy" % (url, error.reason))
    except OSError as error:
        if error.errno in DISK:
            raise
        stop("`%s` was cut off after %d bytes (%s); run this fix again" % (url, got, error))
    except Exception as error:  # IncompleteRead and its like
        stop("`%s` was cut off after %d bytes (%s); run this fix again" % (url, got, error))
    if total and got != total:
        stop("`%s` was cut off: %d of %d bytes came; run this fix again" % (url, got, total))
    return got


def members(archive: tarfile.TarFile, folder: str) -> Iterator[tarfile.TarInfo]:
    """Members without their top folder; whatever would leave `folder` is refused."""
    root = os.path.realpath(folder)
    for member in archive:
        parts = member.name.strip("/").split("/")[1:]
        if not parts:
            continue
        member.name = "/".join(parts)
        if member.islnk():
            member.linkname = "/".join(member.linkname.strip("/").split("/")[1:])
        place = os.path.normpath(os.path.join(root, member.name))
        if ".." in parts or not place.startswith(root + os.sep):
            stop("the archive holds `%s`, which is outside of its folder" % member.name)
        if member.issym():
            target = os.path.normpath(os.path.join(os.path.dirname(place), member.linkname))
            if os.path.isabs(member.linkname) or not (target + os.sep).startswith(root + os.sep):
                stop("the archive links `%s` to `%s`" % (member.name, member.linkname))
        if member.isdev():
            stop("the archive holds a device, `%s`" % member.name)
        yield member


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
                "`%s` has the checksum %s, but the manifest says %s; nothing of it was unpacked"
                % (url, digest.hexdigest()[:16], wanted[:16])
            )
        with tarfile.open(part) as archive:
            for member in members(archive, folder):
                try:
                    archive.extract(member, folder, set_attrs=not member.issym(), filter="tar")
                except TypeError:  # before Python 3.8.17
                    archive.extract(member, folder, set_attrs=not member.issym())
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            stop("the disk is full at `%s`; free some space, then run this fix again" % folder)
        if error.errno == errno.EFBIG:
            stop("`%s`: a file may not become that large here (`ulimit -f`); raise it" % folder)
        stop("`%s`: %s" % (folder, error))
    except tarfile.TarError as error:
        stop("`%s` is no archive that can be unpacked (%s)" % (url, error))
    finally:
        if os.path.exists(part):
            os.unlink(part)


main()
