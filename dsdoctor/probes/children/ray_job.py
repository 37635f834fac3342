"""Runs the collector once on every node of a Ray cluster, as the entry point of a Ray job.

    python3 ray_job.py OPTIONS      # base64 of {"arguments": [...], "python": "", "timeout": 60}

Runs in the cluster, on any Python of 3.8 or newer, with the standard library and the cluster's own
Ray; `collector.py` is in the same folder. Prints the names of the nodes, then the lines of each,
prefixed with its name.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NODES = "dsdoctor-nodes "
REASON = "dsdoctor-reason "


def on_node(collector: bytes, options: dict[str, Any]) -> tuple[bytes, str]:
    """The collector's output, or why there is none; runs as a task of Ray."""
    env = dict(os.environ)
    # Ray hides the GPUs from a task that reserves none; the collector only looks at them
    if not env.get("CUDA_VISIBLE_DEVICES", "x"):
        del env["CUDA_VISIBLE_DEVICES"]
    try:
        done = subprocess.run(
            [options["python"] or sys.executable, "-", *options["arguments"]],
            input=collector,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            timeout=options["timeout"],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b"", f"no answer within {options['timeout']:g} s"
    except OSError as error:
        return b"", f"`{options['python']}`: {error.strerror}"
    if done.stdout:
        return done.stdout, ""
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return b"", f"exit status {done.returncode}: {' '.join(last)}"


def names_of(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """The name of each node by ID: its host name, with part of the ID if two nodes share it."""
    hosts = [node["NodeManagerHostname"] for node in nodes]
    return {
        node["NodeID"]: host if hosts.count(host) == 1 else f"{host}-{node['NodeID'][:8]}"
        for node, host in zip(nodes, hosts)
    }


def say(text: str) -> None:
    """Prints a line to the job's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(argument: str) -> None:
    """Runs the collector on all nodes."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options = json.loads(base64.urlsafe_b64decode(argument))
    collector = (Path(__file__).resolve().parent / "collector.py").read_bytes()
    ray.init(log_to_driver=False)
    names = names_of([node for node in ray.nodes() if node["Alive"]])
    say(NODES + " ".join(names.values()))
    task = ray.remote(num_cpus=0, max_retries=0)(on_node)
    begun = {
        task.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        ).remote(collector, options): name
        for node, name in names.items()
    }
    deadline = time.monotonic() + options["timeout"] + 10
    waiting = list(begun)
    while waiting and time.monotonic() < deadline:
        done, waiting = ray.wait(waiting, timeout=max(0.1, deadline - time.monotonic()))
        for one in done:
            try:
                printed, reason = ray.get(one)
            except Exception as error:  # anything may end a task of Ray
                printed, reason = b"", f"{type(error).__name__}: {error}".split("\n")[0]
            for line in printed.decode("utf-8", "replace").split("\n"):
                say(f"{begun[one]}: {line}")
            if reason:
                say(f"{begun[one]}: {REASON}{' '.join(reason.split())}")
    for one in waiting:
        ray.cancel(one, force=True)


if __name__ == "__main__":
    main(sys.argv[1])
