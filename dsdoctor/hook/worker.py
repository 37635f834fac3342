"""Reads and judges the machine for a hook, in a process that may outlive the hook.

    python -I -m dsdoctor.hook.worker '{"mode": "node", …}'

Modes: `node` reads and judges the node, and stores snapshot and verdict for every hook in the next
minute; `judge` judges that snapshot for some GPUs; `full` reads and judges for one job; `ended`
reads and judges the node after a job. Stdout shows which probe has begun (`+nvml`) and which has
ended (`-nvml`).

The node is read in the background while the checks are imported, which takes about as long as the
driver does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.hook.node_reading import NodeReading
from dsdoctor.model.facts.job_end import JobEnd

#: Status of a worker whose task contains a mistake of the user; its last line says which.
MISUSE = 2


def _stopped(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    process.kill_all()
    os._exit(128 + number)


def main(task: Mapping[str, Any]) -> int:
    """Performs one task; its result is a file in the run folder."""
    signal.signal(signal.SIGTERM, _stopped)
    if task.get("lock") is not None:
        os.set_inheritable(int(task["lock"]), False)  # the lock ends with this process
    try:
        reading = _begin(task)
        from dsdoctor.hook import judging  # noqa: PLC0415  # while the node is being read

        return judging.perform(task, reading)
    except BaseException:
        process.kill_all()  # children that the reading still waits for
        raise


def _begin(task: Mapping[str, Any]) -> NodeReading | None:
    """Begins to read the node, for tasks that need that."""
    if task["mode"] == "node":
        return NodeReading()
    if task["mode"] == "ended":
        return NodeReading(msgspec.convert(task["ended"], JobEnd))
    return None


def _main() -> int:
    gc.disable()  # the process ends within a minute; collecting during imports takes 20 ms
    try:
        return main(json.loads(sys.argv[1]))
    except UsageError as error:
        sys.stdout.write(f"{' '.join(str(error).split())}\n")
        return MISUSE


if __name__ == "__main__":
    sys.exit(_main())
