"""Pages of `diagnose`: a log with the output of tools, and an error of the script's own."""

from __future__ import annotations

import re
from pathlib import Path

from dsdoctor.cli import main
from dsdoctor.model.diagnosis import Line
from dsdoctor.report.html.diagnosis import RADIUS, Event, graph

LOG = """\
NVRM: Xid (PCI:0000:3b:00): 79, pid=7184, GPU has fallen off the bus.
Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system \
to recover this GPU
Thu Nov 19 10:00:00 2026
| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05     CUDA Version: 12.2     |
PyTorch version: 2.11.0+cu130
Is debug build: False
CUDA used to build PyTorch: 13.0
Nvidia driver version: 535.104.05
"""


def test_the_environment_of_the_text_is_shown_and_no_fault_twice(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG)
    made = tmp_path / "page.html"
    assert main.run(["diagnose", str(log), "-o", str(made)]) == 1
    text = made.read_text()
    assert "The environment that the text describes" in text
    assert "driver 535.104.05 supports up to CUDA 12.2" in text
    assert "rests on the same lines as </bdi><code>gpu-hardware-fault</code>" in text
    assert "GPU_IS_LOST" not in text
    assert "Cause and consequences" not in text, "nothing followed"


def test_what_follows_from_an_error_of_the_script_is_drawn_from_its_rank(tmp_path: Path) -> None:
    timeout = (
        "[rank{0}]:[E506 07:18:09.5 ProcessGroupNCCL.cpp:633] [Rank {0}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=841, OpType=ALLREDUCE, NumelIn=1, "
        "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
    )
    log = tmp_path / "train.log"
    log.write_text(
        "[rank3]: Traceback (most recent call last):\n"
        '[rank3]:   File "/home/me/train.py", line 30, in main\n[rank3]:     batch["labels"]\n'
        "[rank3]: KeyError: 'labels'\n" + timeout.format(0) + timeout.format(1)
    )
    made = tmp_path / "page.html"
    assert main.run(["diagnose", str(log), "-o", str(made)]) == 0
    text = made.read_text()
    assert "First error and consequences" in text
    assert "3 lines on 3 ranks, in the order of the log" in text
    assert "<b>first error</b></span> <bdi>KeyError</bdi>" in text


def test_the_answer_of_the_error_index_is_on_the_page(tmp_path: Path) -> None:
    site = "/opt/env/lib/python3.11/site-packages/"
    told = {
        f'  File "{site}transformers/trainer.py", line 2325, in training_step\n'
        f'  File "{site}torch/autograd/graph.py", line 823, in _engine_run_backward\n'
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n": (
            "refused",
            "enable_input_require_grads",
        ),
        "IndexError: index out of range in self\n": ("own error", "resize_token_embeddings"),
    }
    for error, (word, answer) in told.items():
        log = tmp_path / "train.log"
        log.write_text(
            f'Traceback (most recent call last):\n  File "/u/train.py", line 8, in <module>\n{error}'
        )
        made = tmp_path / "page.html"
        main.run(["diagnose", str(log), "-o", str(made)])
        text = made.read_text()
        assert word in text
        assert "What torch asks" in text
        assert " ," not in re.sub(r"<[^>]+>", "", text.split("<main>")[1])
        assert answer in text


def test_no_arrow_crosses_a_point_of_another_rank() -> None:
    """Points whose places form a line: straight arrows would run through those between."""
    shown = [
        Event(
            n,
            "x",
            "consequence" if n > 1 else "cause",
            Line(file="a.log", line=n, text=f"line {n}", rank=8 - n),
        )
        for n in range(1, 8)
    ]
    drawing = graph(shown)
    assert drawing is not None
    points = [
        (float(one.attributes["cx"]), float(one.attributes["cy"]))
        for one in drawing.shapes
        if one.tag == "circle"
    ]
    ways = [one.attributes["d"] for one in drawing.shapes if one.attributes["class"] == "arrow"]
    assert len(points) == 7
    assert len(ways) == 6
    for way in ways:
        x, _, y, end = map(float, re.fullmatch(r"M(\S+) (\S+)V(\S+)H(\S+)", way).groups())  # type: ignore[union-attr]  # it is a way
        assert x == points[0][0], "up or down at the place of the cause"
        near = [p for p in points if p[1] == y and abs(p[0] - end) < 2 * RADIUS]
        assert len(near) == 1, "then along the row of one point, to its edge"
