"""The collector on all nodes of a Ray cluster, through `ray job submit`."""

from __future__ import annotations

import base64
import functools
import json
import re
import tempfile
import time
from pathlib import Path

from dsdoctor import files, process
from dsdoctor.errors import UsageError
from dsdoctor.fleet import frames
from dsdoctor.fleet.fanout import Answer, OnAnswer, Order, recording
from dsdoctor.interpreter import CHILDREN
from dsdoctor.model.host_name import is_host_name
from dsdoctor.model.plain import one_line
from dsdoctor.model.redact import mask

#: Time to upload the working folder and to start a driver.
_JOB_SECONDS = 60.0
_NODES = re.compile(rb"(?m)^dsdoctor-nodes (.*)$")
_REASON = re.compile(rb"(?m)^([^\s:]{1,300}): dsdoctor-reason (.*)$")
#: Host and port of the dashboard, or a URL; with `auto`, Ray finds it.
_ADDRESS = re.compile(r"auto|(?:https?://|ray://)?[A-Za-z0-9_.\[\]:-]{1,255}(?:/[\w./-]*)?")
#: Colors of Ray's command line.
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def address(text: str) -> str:
    """The address of a cluster, as `ray job submit` expects it.

    Raises:
        UsageError: it is not one.
    """
    if not _ADDRESS.fullmatch(text) or text.startswith("-"):
        raise UsageError(
            f"`--ray {one_line(text)[:80]}`: expected the address of the dashboard, such as "
            "`http://head:8265`"
        )
    return text if "://" in text or text == "auto" else f"http://{text}"


def collect(order: Order, on_answer: OnAnswer | None) -> dict[str, Answer]:
    """Recordings of all nodes of the cluster.

    Raises:
        UsageError: `ray` is missing, or started nothing.
    """
    options = {
        "arguments": list(order.arguments),
        "python": "" if order.python == "python3" else order.python,
        "timeout": order.timeout,
    }
    word = base64.urlsafe_b64encode(json.dumps(options).encode()).decode()
    words = frames.Kept()
    said = frames.Channels(other=words.take_line)
    with tempfile.TemporaryDirectory(prefix="dsdoctor-ray-") as folder:
        files.write(Path(folder, "collector.py"), order.collector)
        files.write(Path(folder, "ray_job.py"), (CHILDREN / "ray_job.py").read_bytes())
        argv = ["ray", "job", "submit", "--address", str(order.address), "--working-dir", folder]
        argv += ["--", "python", "ray_job.py", word]
        try:
            done = process.run(argv, timeout=order.timeout + _JOB_SECONDS, on_stdout=said.take)
        except OSError as error:
            raise UsageError(
                f"`ray` cannot be run ({error.strerror}); install the cluster's version with "
                "`pip install 'ray[default]'`"
            ) from None
    said.end()
    return _answers(order, done, words.whole(), said, on_answer)


def _answers(
    order: Order,
    done: process.Result,
    printed: bytes,
    said: frames.Channels,
    on_answer: OnAnswer | None,
) -> dict[str, Answer]:
    listed = _NODES.search(printed)
    if listed is None:
        raise UsageError(_why_no_job_ran(order, done, printed))
    names = [name for name in listed[1].decode("utf-8", "replace").split() if is_host_name(name)]
    reasons = {
        found[1].decode("utf-8", "replace"): mask(one_line(found[2].decode("utf-8", "replace")))[
            :300
        ]
        for found in _REASON.finditer(printed)
    }
    answers: dict[str, Answer] = {}
    for name in names:
        document, reason = recording(functools.partial(said.document, name))
        received = said.received(name) if document is not None else time.time()
        if document is None:
            reason = reason or reasons.get(name) or f"no answer within {order.timeout:g} s"
        answers[name] = (document, reason, received)
        if on_answer is not None:
            on_answer(name)
    return answers


def _why_no_job_ran(order: Order, done: process.Result, printed: bytes) -> str:
    """Why no job ran, from the last message of Ray."""
    if done.timed_out:
        return (
            f"`ray job submit` started nothing within {order.timeout + _JOB_SECONDS:g} s; "
            f"see `ray job list --address {order.address}`"
        )
    text = _COLOR.sub("", printed.decode("utf-8", "replace") + "\n" + done.error_text)
    lines = [one_line(line) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    last = mask((errors or lines or ["no message"])[-1])[:300]
    return (
        f"`ray job submit` started nothing: {last}; expected a dashboard that answers at "
        f"`{order.address}`, and Ray of the cluster's version here"
    )
