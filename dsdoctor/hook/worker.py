"""Reads and judges the machine for a hook, in a process that may be left behind.

    python -I -m dsdoctor.hook.worker '{"mode": "node", …}'

Modes: `node` reads the node, judges it and leaves snapshot and verdict for every hook of the next
minute; `judge` judges that snapshot for some GPUs; `full` reads and judges for one job; `ended`
reads and judges the node after one. Stdout says which probe has begun (`+nvml`) and which has ended
(`-nvml`).

A node is read first and in the background, and what judges it is imported meanwhile: to load the
checks takes about as long as the driver's answer.
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

#: Status of a worker whose task names what does not exist; its last line says why.
MISUSE = 2


def _stopped(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    process.kill_all()
    os._exit(128 + number)


def main(task: Mapping[str, Any]) -> int:
    """Does one task; its result is a file in the run folder."""
    signal.signal(signal.SIGTERM, _stopped)
    if task.get("lock") is not None:
        os.set_inheritable(int(task["lock"]), False)  # the lock ends with this process
    try:
        reading = _begin(task)
        from dsdoctor.hook import judging  # noqa: PLC0415  # while the driver answers

        return judging.perform(task, reading)
    except BaseException:
        process.kill_all()  # whom the reading still waits for
        raise


def _begin(task: Mapping[str, Any]) -> NodeReading | None:
    """The reading of the node, for tasks that need one."""
    if task["mode"] == "node":
        return NodeReading()
    if task["mode"] == "ended":
        return NodeReading(msgspec.convert(task["ended"], JobEnd))
    return None


def _main() -> int:
    gc.disable()  # it ends within a minute; to look for cycles while modules are loaded takes 20 ms
    try:
        return main(json.loads(sys.argv[1]))
    except UsageError as error:
        sys.stdout.write(f"{' '.join(str(error).split())}\n")
        return MISUSE


if __name__ == "__main__":
    sys.exit(_main())
