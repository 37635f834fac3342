"""`dsdoctor run` whose output goes to a disk that is full."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

from tests.run.support import RUN, environment, folder_of, python, record


def test_a_job_outlives_a_full_disk_and_its_output_is_kept(tmp_path: Path) -> None:
    text = "import os\nfor i in range(5): os.write(1, b'step %d\\n' % i)\nos.write(2, b'end\\n')"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*RUN, "--preflight", "off", "-q", "--", *python(text)],
            env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, timeout=500,
        )  # fmt: skip
    assert done.returncode == 1
    assert record(tmp_path)["status"] == 0
    assert "end\n" in done.stderr
    assert done.stderr.count("could not be written: No space left on device") == 1
    kept = b"".join(
        gzip.decompress(path.read_bytes())
        for path in sorted(folder_of(tmp_path).glob("output-*.gz"))
    )
    assert b"step 0\n" in kept
    assert b"step 4\n" in kept
