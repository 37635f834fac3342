"""Stores the last output of a job, compressed, in segments that can be read while it runs."""

from __future__ import annotations

import os
import queue
import threading
import time
import zlib
from pathlib import Path

from dsdoctor import files

#: Maximum of the stored output, bytes before compression.
KEPT_BYTES = 200 << 20
SEGMENT_BYTES = 16 << 20
#: After this many seconds the output can be read, even if dsdoctor is killed.
FLUSH_SECONDS = 2.0
#: Chunks that may wait for the compressor. If there are more, the job waits, and memory stays flat.
WAITING_CHUNKS = 256
#: Names of segments: output of the job, and output after dsdoctor had begun to end it, which is no
#: evidence of a cause.
OUTPUT, AFTER_STOP = "output", "after-stop"

_GZIP = 16 + zlib.MAX_WBITS


class OutputKeeper:
    """Segments of gzip; the first one and the newest ones are kept.

    The first segment contains the setup of the job, which a post-mortem needs as often as the end.

    Attributes:
        total: bytes that were added.
        dropped: bytes whose segment was removed.
    """

    def __init__(
        self, folder: Path, *, kept: int = KEPT_BYTES, segment: int = SEGMENT_BYTES
    ) -> None:
        self.total = 0
        self.dropped = 0
        self._folder = folder
        self._kept = kept
        self._segment = segment
        self._sizes: list[tuple[Path, int]] = []
        self._file: int | None = None
        self._packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        self._in_segment = 0
        self._flushed = time.monotonic()
        self._failed = False
        self._name = OUTPUT
        self._queue: queue.Queue[bytes | str | None] = queue.Queue(WAITING_CHUNKS)
        self._thread = threading.Thread(target=self._write_queue, daemon=True)
        self._thread.start()

    def add(self, data: bytes) -> None:
        """Stores a chunk; waits if the compressor is far behind."""
        self.total += len(data)
        if not self._failed:
            self._queue.put(data)

    def continue_as(self, name: str) -> None:
        """Later chunks go into segments of another name."""
        if not self._failed:
            self._queue.put(name)

    def close(self) -> None:
        """Writes the remaining chunks."""
        self._queue.put(None)
        self._thread.join()

    def _write_queue(self) -> None:
        while True:
            try:
                data = self._queue.get(timeout=FLUSH_SECONDS)
            except queue.Empty:
                data = b""
            try:
                if data is None:
                    self._end_segment()
                    return
                if isinstance(data, str):
                    self._end_segment()
                    self._name = data
                else:
                    self._write(data)
            except OSError:
                # a full disk must not stop the job: nothing more is stored
                self._failed = True
                self._drain()
                return

    def _drain(self) -> None:
        while self._queue.get() is not None:
            pass

    def _write(self, data: bytes) -> None:
        if data:
            if self._file is None:
                self._begin_segment()
            self._write_all(self._packer.compress(data))
            self._in_segment += len(data)
        now = time.monotonic()
        if self._file is not None and now - self._flushed > FLUSH_SECONDS:
            self._write_all(self._packer.flush(zlib.Z_SYNC_FLUSH))
            self._flushed = now
        if self._in_segment >= self._segment:
            self._end_segment()

    def _write_all(self, packed: bytes) -> None:
        rest = memoryview(packed)
        while rest and self._file is not None:
            rest = rest[os.write(self._file, rest) :]

    def _begin_segment(self) -> None:
        path = self._folder / f"{self._name}-{len(self._sizes) + 1:06}.log.gz"
        self._file = files.open_new(path)
        self._packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        self._sizes.append((path, 0))

    def _end_segment(self) -> None:
        if self._file is None:
            return
        self._write_all(self._packer.flush())
        os.close(self._file)
        self._file = None
        self._sizes[-1] = (self._sizes[-1][0], self._in_segment)
        self._in_segment = 0
        self._drop_old()

    def _drop_old(self) -> None:
        """Removes the oldest segments except the first until the rest fits."""
        while sum(size for _, size in self._sizes) > self._kept:
            for place in range(1, len(self._sizes) - 1):
                path, size = self._sizes[place]
                if size:
                    files.remove(path)
                    self._sizes[place] = (path, 0)
                    self.dropped += size
                    break
            else:
                return
