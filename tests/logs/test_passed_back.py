"""Exceptions that a worker or a library passes on, so that their own frames do not show whose."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
LIB = "/opt/env/lib/python3.11/"
SITE = f"{LIB}site-packages/"
HEAD = "Traceback (most recent call last):\n"
CHAINED = "\nThe above exception was the direct cause of the following exception:\n\n"


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    return found.causes[0].condition if found.outcome is Outcome.CAUSE else found.outcome.value


def frame(file: str, function: str) -> str:
    return f'  File "{file}", line 7, in {function}\n    return f(*args)\n'


def pool(error: str, worker: str = "") -> str:
    """What `Pool.starmap` prints of an exception in a worker."""
    inside = frame(f"{LIB}multiprocessing/pool.py", "worker") + worker
    outside = frame("/home/me/rows.py", "<module>") + frame(
        f"{LIB}multiprocessing/pool.py", "starmap"
    )
    return (
        f'multiprocessing.pool.RemoteTraceback: \n"""\n{HEAD}{inside}{error}\n"""\n{CHAINED}'
        f"{HEAD}{outside}{error}\n"
    )


def test_a_worker_that_calls_a_function_of_the_script_wrongly() -> None:
    assert (
        said(pool("TypeError: read() missing 1 required positional argument: 'n'")) == "user-code"
    )


def test_a_worker_in_which_a_library_failed() -> None:
    inside = frame(f"{SITE}transformers/modeling_utils.py", "load")
    assert said(pool("TypeError: load() takes 2 arguments", inside)) == "unrecognised"


FETCH = frame(f"{SITE}torch/utils/data/_utils/fetch.py", "fetch")
SAMPLE = frame("/home/me/rows.py", "__getitem__")
LIBRARY = frame(f"{SITE}transformers/image_transforms.py", "group_images")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(
            FETCH + SAMPLE + LIBRARY + "IndexError: list index out of range\n", "user-code",
            id="its sample",
        ),
        pytest.param(
            FETCH + LIBRARY + "IndexError: list index out of range\n", "unrecognised",
            id="no dataset of its own",
        ),
        pytest.param(
            SAMPLE + LIBRARY + "IndexError: list index out of range\n", "unrecognised",
            id="not for a sample",
        ),
        pytest.param(
            FETCH + SAMPLE + LIBRARY + "AttributeError: 'A' object has no attribute 'b'\n",
            "unrecognised",
            id="parts of a library that do not fit",
        ),
    ],
)  # fmt: skip
def test_a_library_that_a_dataset_calls(text: str, outcome: str) -> None:
    assert said(f"{HEAD}{frame('/home/me/train.py', '<module>')}{text}") == outcome


def test_a_scaler_for_fp16_that_gets_gradients_in_bf16() -> None:
    trains = frame("/home/me/train.py", "<module>") + frame(f"{SITE}torch/amp/grad_scaler.py", "f")
    words = "RuntimeError: \"{}_and_unscale_cuda\" not implemented for 'BFloat16'\n"
    assert said(HEAD + trains + words.format("_amp_foreach_non_finite_check")) == "user-code"
    assert said(HEAD + trains + words.format("foreach_check")) == "bf16-unsupported"


def test_the_configuration_of_deepspeed_lacks_what_its_engine_reads() -> None:
    reads = frame("/home/me/train.py", "<module>") + frame(
        f"{SITE}deepspeed/runtime/engine.py", "step_mode"
    )
    error = "AttributeError: '{}' object has no attribute 'step_mode'\n"
    assert said(HEAD + reads + error.format("DeepSpeedConfig")) == "unrecognised"
    assert said(HEAD + reads + error.format("HfDeepSpeedConfig")) == (
        "transformers-deepspeed-incompatible"
    )


def loader(signal: str) -> str:
    """What the main thread raises, wherever it is, when a loader's process has ended."""
    where = frame("/home/me/train.py", "<module>") + frame("/home/me/losses.py", "intent")
    handler = frame(f"{SITE}torch/utils/data/_utils/signal_handling.py", "handler")
    words = f"RuntimeError: DataLoader worker (pid 4711) is killed by signal: {signal}. \n"
    return HEAD + where + handler + words


def test_a_process_of_a_loader_that_was_sent_a_signal() -> None:
    found = diagnose([Source(name="log", data=loader("Terminated").encode())], KNOWN)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith("SIGTERM from outside ended a data loader's process")
    assert said(loader("Killed")) == "dataloader-worker-killed"


def test_a_broken_connection_far_below_the_exception_of_a_worker() -> None:
    scheduler = HEAD + frame(f"{SITE}sglang/srt/managers/scheduler.py", "run")
    failed = f"{scheduler}RuntimeError: CUDA error: invalid argument\n"
    peer = HEAD + frame(f"{SITE}torch/distributed/distributed_c10d.py", "barrier")
    broke = (
        f"{peer}RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:525] Read "
        "error [10.0.0.7]:11153: Connection reset by peer\n"
    )
    between = "".join(f"request {n} is in the queue\n" for n in range(60))
    assert said(broke) == "peer-connection-lost"
    assert said(failed + between + broke) == "unrecognised"
    assert said(failed + broke) == "peer-connection-lost"


def test_a_report_whose_form_has_headings_in_bold_type() -> None:
    text = (
        "# Strategy crashing on more than one node\n**Describe the bug**\nThe strategy crashes if "
        "it is run on more than one node. The message that arises is: `RuntimeError: Expected all "
        "tensors to be on the same device, but found at least two devices, cuda:1 and cuda:0!`.\n"
        "\n**To Reproduce**\nRun the tutorial on two nodes.\n"
    )
    assert said(text) == "user-code"
    assert said(text.replace("**", "")) == "clean"
