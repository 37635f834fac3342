"""Starts of a script that only its own first lines, or the names of its children, tell apart."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


BANNER = "======== segmenter ========\npatch size: 256\ndevice: cuda\n"
SETUP = "".join(f"setting {name}: on\n" for name in "abcdefghijklmnopqrst")


def dies(line: int, text: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "/home/me/proj/segment.py", line {line}, in <module>\n'
        "    report(model)\n"
        f"{text}\n"
    )


FIRST = BANNER + SETUP + dies(80, "KeyError: 'path'")
SECOND = (
    BANNER + SETUP + dies(84, "TypeError: report() missing 1 required positional argument: 'n'")
)


def test_a_start_below_the_last_exception_is_known_by_its_first_lines() -> None:
    text = FIRST + SECOND + BANNER + SETUP + "score: 0.64\n"
    assert said(text) == "clean"
    found = read("proj/unet.py:7: UserWarning: slow convolution\n" + text)
    assert found.outcome is Outcome.CLEAN
    assert found.summary.endswith("and the script was started again below it")


def test_a_short_last_start_has_hardly_begun() -> None:
    """It ended above the place at which the start before it had failed."""
    assert said(FIRST + SECOND + BANNER + SETUP[:200]) == "user-code"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FIRST + SECOND, id="nothing follows"),
        pytest.param(FIRST + SECOND + BANNER, id="a few lines that any process may print last"),
        pytest.param(
            FIRST + SECOND + "another\nprogram\nhas begun\n" + SETUP, id="another program"
        ),
        pytest.param(SECOND + BANNER + SETUP + "score: 0.64\n", id="no earlier start to compare"),
        pytest.param(
            (FIRST + SECOND + BANNER + SETUP).replace("======== segmenter", "wandb: view run"),
            id="the summary of W&B",
        ),
        pytest.param(
            "nohup: ignoring input\n" + (FIRST.replace("'path'", "no such\n" + BANNER) + SETUP) * 3,
            id="a text of several lines",
        ),
        pytest.param(
            (FIRST + SECOND + BANNER + SETUP).replace("Traceback", "[rank1]: Traceback"),
            id="a rank",
        ),
    ],
)
def test_without_such_lines_the_last_exception_counts(text: str) -> None:
    assert said(text) == "user-code"


def child(name: str, line: int, text: str) -> str:
    return (
        f"Process {name}:\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap\n'
        "    self.run()\n"
        '  File "/opt/env/lib/python3.11/multiprocessing/process.py", line 108, in run\n'
        "    self._target(*self._args, **self._kwargs)\n"
        f'  File "/home/me/proj/main.py", line {line}, in work\n'
        "    fit(args)\n"
        f"{text}\n"
    )


WORK = "".join(f"loaded shard {n}\n" for n in range(30))
MEMORY = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
WRONG = "TypeError: 'NoneType' object is not iterable"


def test_a_child_with_the_name_of_an_earlier_one_is_of_another_start() -> None:
    assert said(WORK + child("Process-1", 50, MEMORY) + WORK + child("Process-1", 51, WRONG)) == (
        "user-code"
    )
    again = WORK + child("SpawnProcess-2", 50, WRONG) + WORK + child("SpawnProcess-2", 51, MEMORY)
    assert said(again) == "gpu-oom"


def test_children_of_one_process_have_different_names() -> None:
    text = WORK + child("Process-1", 50, MEMORY) + WORK + child("Process-2", 51, WRONG)
    assert said(text) == "gpu-oom"


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        pytest.param("Training failed: loss is not finite", Outcome.UNRECOGNISED, id="a sentence"),
        pytest.param("3 failed: 0 in all", Outcome.CLEAN, id="a count"),
        pytest.param(
            "the lookup of a row in the cache failed: reading it", Outcome.CLEAN, id="a remark"
        ),
    ],
)
def test_what_a_script_says_last_of_its_failure(last: str, outcome: Outcome) -> None:
    assert read(WORK + last + "\n").outcome is outcome
    assert read(WORK + last + "\n" + WORK).outcome is Outcome.CLEAN


BROKEN = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/proj/main.py", line 7, in <module>\n'
    '    model = AutoModel.from_pretrained("acme/small")\n'
    f'  File "{SITE}{{}}/file_download.py", line 540, in http_get\n'
    "    for chunk in r.iter_content(chunk_size=CHUNK):\n"
    f'  File "{SITE}urllib3/response.py", line 763, in _error_catcher\n'
    '    raise ProtocolError(f"Connection broken: {{e!r}}", e) from e\n'
    "urllib3.exceptions.ProtocolError: (\"Connection broken: ConnectionResetError(104, 'x')\", x)\n"
)


def test_a_download_of_the_hub_that_breaks_off_names_no_address() -> None:
    assert said(BROKEN.format("huggingface_hub")) == "hub-unreachable"
    assert said(BROKEN.format("acme_client")) != "hub-unreachable"


def test_a_quoted_line_in_bold_is_read_like_any_other() -> None:
    text = (
        "# Training stops\n\n```\nstep 7 loss 1.5\n"
        "terminate called after throwing an instance of 'c10::Error'\n"
        "  **what():  CUDA error: an illegal memory access was encountered**\n"
        "frame #0: c10::Error::Error(std::string) + 0x42 (0x7f5f in /opt/env/lib/libc10.so)\n```\n"
    )
    assert said(text) == "cuda-kernel-failed"


def test_sizes_that_a_script_prints_are_no_weights_that_were_not_gathered() -> None:
    printed = "module.2.weight:\n torch.Size([0]) \n tensor([], device='cuda:1')\n"
    assert said(WORK + printed) == "clean"


REQUEST = '10.0.0.7 - - [06/Nov/2023 15:39:17] "GET /score?set=a HTTP/1.1" {} -\n'
CAUGHT = (
    "[2023-11-06 15:39:17,127] ERROR in app: Exception on /score [GET]\n"
    "Traceback (most recent call last):\n"
    f'  File "{SITE}flask/app.py", line 1455, in {{}}\n'
    "    response = self.full_dispatch_request()\n"
    '  File "/home/me/proj/service.py", line 257, in score\n'
    "    rows = rows.to(device)\n"
    "AttributeError: 'tuple' object has no attribute 'to'\n"
)


def test_a_server_of_flask_outlives_the_exceptions_of_its_requests() -> None:
    caught = CAUGHT.format("wsgi_app") + REQUEST.format(500)
    assert said(REQUEST.format(200) + caught + REQUEST.format(200) * 2) == "clean"
    assert said(REQUEST.format(200) + caught) == "user-code"
    others = CAUGHT.format("run") + REQUEST.format(500)
    assert said(REQUEST.format(200) + others + REQUEST.format(200) * 2) == "user-code"
