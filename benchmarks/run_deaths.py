"""Every way to die under every launcher, with DeepSpeed's engines, as `dsdoctor run` tells it.

    python benchmarks/run_deaths.py [--light] [--only hang,disk] [--launchers python]

Two CPU ranks (ZeRO-1 over Gloo; with `--light` torch.distributed alone). Needs root: a control
group with a memory limit, and a small file system. Prints a table; the last one is in
`benchmarks/run_deaths.md`. The suite runs one launcher for each death with an engine, the others
with `--light`'s job.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from dsdoctor.host import free_port
from tests.run.deaths import DEATHS, LAUNCHERS, die, wrong


def cell(how: str, launcher: str, job: Path) -> tuple[str, bool]:
    """A row of the table, and whether all was as it should be."""
    port, begun = str(free_port()), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dsdoctor-deaths-") as place:
        folder = Path(place)
        script = folder / "train.py"
        shutil.copy(job, script)
        try:
            ended = die(how, launcher, folder, port, str(script))
        finally:
            for path in Path("/dev/shm").glob(f"deepspeed_*_{port}_*"):
                path.unlink()
        missing = wrong(how, ended)
        told = [line.removeprefix("dsdoctor: ") for line in ended.said]
        words = ended.cause or next(iter(told), "")
        words = words.replace(str(folder), "…").replace("|", "\\|")
    if missing:
        print(f"--- {how} under {launcher}: {missing}", *told, sep="\n    ", file=sys.stderr)
    seconds = time.monotonic() - begun
    seen = "yes" if not missing else "**no**: " + ", ".join(missing)
    return (
        f"| {how} | {launcher} | {ended.status} | {words} | {seen} | {seconds:.0f} |",
        not missing,
    )


def main() -> int:
    """Prints the table; 1 if any death was not reported."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--only", default=",".join(DEATHS))
    parser.add_argument("--launchers", default=",".join(LAUNCHERS))
    given = parser.parse_args()
    os.environ["DS_ACCELERATOR"] = "cpu"
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    name = "light_job.py" if given.light else "engine_job.py"
    job = Path(__file__).parent.parent / "tests" / "run" / name
    print("| death | launcher | status | what `dsdoctor run` says | as it should be | s |")
    print("|---|---|---|---|---|---|", flush=True)
    good = True
    for how in given.only.split(","):
        for launcher in given.launchers.split(","):
            row, fine = cell(how, launcher, job)
            print(row, flush=True)
            good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
