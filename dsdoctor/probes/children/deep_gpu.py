"""Runs a kernel on a GPU, takes most of its memory, or copies between GPUs.

Runs in the interpreter of the environment.

    python deep_gpu.py one            the GPU that CUDA_VISIBLE_DEVICES leaves
    python deep_gpu.py pairs          every ordered pair of those that it leaves

Stdlib and torch, Python 3.8 and later. Prints one record for each outcome, and one before each
step, which shows where a hung child was.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

COUNT = 1 << 16
SIDE = 256
#: Share of the free memory that is allocated: the rest is for the context's own growth.
SHARE = 0.9
PATTERN = 165
COPIED = 1 << 18


def say(**record: Any) -> None:
    os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode("utf-8", "replace"))


def attempt(step: str, function: Callable[[], dict[str, Any]], **names: Any) -> None:
    """Reports that a step begins, and then how it ended."""
    say(step=step, **names)
    try:
        say(did=step, **{"ok": True, "error": None, **function()}, **names)
    except Exception as error:
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        say(did=step, ok=False, error=words[:300], **names)


def kernel(torch: Any) -> dict[str, Any]:
    numbers = torch.arange(COUNT, dtype=torch.int64, device="cuda:0")
    got = int((numbers * 3 + 1).sum().item())
    wanted = 3 * COUNT * (COUNT - 1) // 2 + COUNT
    ones = torch.ones(SIDE, SIDE, device="cuda:0")
    product = float((ones @ ones).sum().item())
    torch.cuda.synchronize(0)
    if got != wanted:
        return {"ok": False, "error": "a sum gave %d, expected %d" % (got, wanted)}
    if product != float(SIDE**3):
        return {"ok": False, "error": "a product gave %r, expected %d" % (product, SIDE**3)}
    return {}


def allocation(torch: Any) -> dict[str, Any]:
    free, _ = torch.cuda.mem_get_info(0)
    size = int(free * SHARE)
    sizes = {"free": int(free), "size": size}
    try:
        block = torch.empty(size, dtype=torch.uint8, device="cuda:0")
        block.fill_(PATTERN)
        read = [int(block[place].item()) for place in (0, size // 2, size - 1)]
    except Exception as error:
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        return dict(sizes, ok=False, error=words[:300])
    if read != [PATTERN] * 3:
        return dict(sizes, ok=False, error="memory returned %s, expected %d" % (read, PATTERN))
    return sizes


def copy(torch: Any, source: int, target: int) -> dict[str, Any]:
    peer = bool(torch.cuda.can_device_access_peer(source, target))
    wanted = torch.arange(COPIED, dtype=torch.int32)
    there = wanted.to("cuda:%d" % source).to("cuda:%d" % target)
    torch.cuda.synchronize(target)
    if not torch.equal(there.cpu(), wanted):
        return {
            "peer": peer,
            "ok": False,
            "error": "the data that arrived differs from the data that was sent",
        }
    return {"peer": peer}


def main() -> None:
    import torch

    if sys.argv[1] == "one":
        attempt("kernel", lambda: kernel(torch))
        attempt("allocation", lambda: allocation(torch))
    else:
        count = torch.cuda.device_count()
        for source in range(count):
            for target in range(count):
                if source != target:
                    names = {"a": source, "b": target}
                    attempt("copy", lambda s=source, t=target: copy(torch, s, t), **names)  # type: ignore[misc]  # defaults bind
    say(done=True)


main()
