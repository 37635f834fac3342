"""Everything that a dead run leaves behind can be read: folders, streams, packings, encodings,
prefixes, the envelopes of log shippers."""

from __future__ import annotations

import gzip
import importlib
import json
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.logs import ReadError, Source, diagnose, diagnose_paths, find_sources, signatures_of
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.prefixes import strip_prefixes
from dsdoctor.logs.scan import Scanner
from dsdoctor.model.diagnosis import Diagnosis
from tests.support.diagnosing import diagnose_command

SIGNATURES = signatures_of(packs.load(builtin_only=True))
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
STEP = "step 7 loss 2.31"


def read(data: bytes) -> Diagnosis:
    return diagnose([Source(name="log", data=data)], SIGNATURES)


def found(data: bytes) -> tuple[str, int, int | None]:
    """Condition, line and rank of the first cause."""
    cause = read(data).causes[0]
    return cause.condition, cause.evidence[0].line, cause.evidence[0].rank


# -- folders -------------------------------------------------------------------------------------


def _folder(root: Path, names: dict[int, str], bad: int) -> Path:
    for rank, name in names.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{STEP}\n" + (f"{OOM}\n" if rank == bad else ""))
    (root / "model.pt").write_bytes(b"CUDA out of memory\n")
    return root


@pytest.mark.parametrize(
    "name",
    [
        "none_x1y2/attempt_0/{}/stderr.log",  # torchrun --log-dir --redirects 3
        "20261121070910_rank{}.log",  # deepspeed --enable_each_rank_log
        "slurm-4711_{}.out",  # srun --output slurm-%j_%t.out
        "logs/rank_{}.txt",
        "job.{}.stderr.gz",
    ],
)
def test_the_rank_is_told_by_the_name_of_its_file(name: str, tmp_path: Path) -> None:
    if name.endswith(".gz"):
        for rank in range(12):
            text = OOM if rank == 11 else STEP
            (tmp_path / f"rank{rank}.log.gz").write_bytes(gzip.compress(text.encode()))
    else:
        _folder(tmp_path, {rank: name.format(rank) for rank in range(12)}, bad=11)
    answer = diagnose_paths([str(tmp_path)], SIGNATURES)
    assert answer.files == 12
    assert answer.causes[0].condition == "gpu-oom"
    assert answer.causes[0].evidence[0].rank == 11


def test_rotated_logs_and_names_of_other_schedulers(tmp_path: Path) -> None:
    for name in ("train.log", "train.log.1", "job.o4711", "stderr"):
        (tmp_path / name).write_text(STEP)
    (tmp_path / "weights.safetensors").write_bytes(b"\0" * 64)
    assert len(find_sources([str(tmp_path)])) == 4


def test_a_folder_without_logs_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"x")
    with pytest.raises(ReadError, match="contains no logs"):
        find_sources([str(tmp_path)])


@pytest.mark.train
def test_a_real_torchrun_log_folder(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, time\nif os.environ['RANK'] == '1':\n    raise KeyError('labels')\ntime.sleep(30)\n"
    )
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
            "29541", "--log-dir", str(tmp_path / "logs"), "--redirects", "3", str(script)]  # fmt: skip
    assert subprocess.run(argv, capture_output=True, timeout=500, check=False).returncode != 0
    answer = diagnose_paths([str(tmp_path / "logs")], SIGNATURES)
    assert answer.outcome.value == "user-code"
    assert answer.first_error is not None
    assert (answer.first_error.rank, answer.first_error.type) == (1, "KeyError")
    assert answer.first_error.line == 3


# -- streams and packings ------------------------------------------------------------------------


def test_standard_input_while_it_is_being_written(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)

    def feed() -> None:
        with fifo.open("wb") as stream:
            for line in (STEP, OOM, STEP):
                stream.write(line.encode() + b"\n")
                stream.flush()

    thread = threading.Thread(target=feed)
    thread.start()
    answer = diagnose_paths([str(fifo)], SIGNATURES)
    thread.join()
    assert answer.causes[0].evidence[0].line == 2


def _zstd(data: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "zstandard"
    return bytes(importlib.import_module(name).compress(data))


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(lzma.compress, id="xz"),
        pytest.param(_zstd, id="zstd"),
    ],
)
@pytest.mark.parametrize("by", ["file", "stdin", "two members"])
def test_packed(pack: object, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(pack)
    text = f"{STEP}\n" * 50_000
    data = pack((text + OOM + "\n").encode())
    if by == "two members":  # `cat a.gz b.gz`
        data = pack(text.encode()) + pack((OOM + "\n").encode())
    path = tmp_path / "packed"
    path.write_bytes(data)
    name, stdin = ("-", data) if by == "stdin" else (str(path), b"")
    result = diagnose_command(monkeypatch, name, "--format", "json", stdin=stdin)
    assert result.status == 1
    assert result.report["causes"][0]["evidence"][0]["line"] == 50_001


def test_zstd_without_its_library_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _zstd(OOM.encode())
    for module in ("compression.zstd", "backports.zstd", "pyzstd", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / "a.log.zst"
    path.write_bytes(data)
    result = diagnose_command(monkeypatch, path)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "zstandard`, or `zstd -dc" in result.err


@pytest.mark.parametrize(
    "pack",
    [
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(lzma.compress, id="xz"),
        pytest.param(_zstd, id="zstd"),
    ],
)
def test_a_packed_log_that_is_cut_off_gives_what_can_be_had(pack: object) -> None:
    assert callable(pack)
    # fewer lines than a run prints that goes on after a failure
    noise = "".join(f"{n * 7919 % 99991} tokens" + "\n" * (n % 200 == 0) for n in range(99_999))
    data = pack((OOM + "\n" + noise).encode())
    assert found(data[: len(data) // 2])[0] == "gpu-oom"


# -- encodings -----------------------------------------------------------------------------------

CHINESE = "训练失败: 显存不足"


@pytest.mark.parametrize(
    "data",
    [
        f"{CHINESE}\n{OOM}\n".encode(),
        b"\xef\xbb\xbf" + f"{STEP}\n{OOM}\n".encode(),
        f"{CHINESE}\n{OOM}\n".encode("utf-16"),
        b"\xfe\xff" + f"{CHINESE}\n{OOM}\n".encode("utf-16-be"),
        f"{STEP}\n{OOM}\n".encode("utf-16-le"),
        f"{CHINESE}\n{OOM}\n".encode("gbk"),
        f"{CHINESE}\n".encode("gbk") + f"{CHINESE} {OOM}\n".encode(),
        b"\xff\xc3\x28\xf0\x90 broken\n" + OOM.encode() + b"\xff\n",
        b"\x00\x00\x00a\n" + OOM.replace(" ", "\x00 \x00").encode() + b"\n",
        f"{STEP}\r\n{OOM}\r\n".encode(),
    ],
    ids=["utf8", "bom", "utf16", "utf16be", "utf16le-no-mark", "gbk", "mixed", "broken", "nul", "crlf"],
)  # fmt: skip
def test_encodings(data: bytes) -> None:
    assert found(data) == ("gpu-oom", 2, None)


def test_a_gbk_line_is_shown_as_it_was_written() -> None:
    answer = read(f"KeyError: '{CHINESE}'\n".encode("gbk"))
    assert answer.first_error is not None
    assert CHINESE in answer.first_error.message


# -- colours, progress bars, prefixes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        pytest.param(f"\x1b[31m{OOM}\x1b[0m", None, id="color around the line"),
        pytest.param(
            "torch.\x1b[1mOutOfMemoryError\x1b[0m: CUDA \x1b[31mout of memory\x1b[0m. Tried",
            None,
            id="color within the line",
        ),
        pytest.param(
            f" 12%|##      | 12/99 [00:01<00:09]\r 13%|##     | 13/99\r{OOM}",
            None,
            id="a progress bar before it",
        ),
        pytest.param(f"[rank3]: {OOM}", 3, id="torchrun's rank"),
        pytest.param(f"[default5]:{OOM}", 5, id="torchrun's default rank"),
        pytest.param(f"node-a: [rank1]: {OOM}", 1, id="pdsh and torchrun"),
        pytest.param(f"node-a: {OOM}", None, id="pdsh"),
        pytest.param(f"10.0.0.7: {OOM}", None, id="pdsh with an address"),
        pytest.param(f"6: {OOM}", 6, id="srun's task"),
        pytest.param(f"[1,4]<stderr>:{OOM}", 4, id="Open MPI"),
        pytest.param(f"(RayTrainWorker pid=17, ip=10.0.0.1) [rank2]: {OOM}", 2, id="Ray"),
        pytest.param(f"2026-05-06T07:08:09.123456789Z {OOM}", None, id="a time in nanoseconds"),
        pytest.param(f"2026-05-06T07:08:09.123Z stderr F [rank9]: {OOM}", 9, id="containerd"),
        pytest.param(f"2026-05-06 07:08:09,123 [rank0]: {OOM}", 0, id="Python's logging"),
        pytest.param(
            json.dumps(
                {"log": f"[rank3]: {OOM}\n", "stream": "stderr", "time": "2026-05-06T07:08:09Z"}
            ),
            3,
            id="Docker's JSON",
        ),
        pytest.param(
            json.dumps({"MESSAGE": f"[rank8]: {OOM}", "_HOSTNAME": "node-a", "PRIORITY": "6"}),
            8,
            id="the journal's JSON",
        ),
        pytest.param(
            json.dumps({"message": OOM, "kubernetes": {"pod_name": "train-0"}}),
            None,
            id="Fluent Bit's JSON",
        ),
        pytest.param(
            json.dumps({"log": f"\x1b[31m[rank4]:\x1b[0m {OOM}"}), 4, id="JSON with color"
        ),
        pytest.param(f"May 06 07:08:09 node-a python[4711]: [rank7]: {OOM}", 7, id="syslog"),
        pytest.param(
            f"2026-05-06T07:08:09+0200 node-a torchrun[4711]: {OOM}",
            None,
            id="syslog with an ISO time",
        ),
        pytest.param(
            f"<30>1 2026-05-06T07:08:09.000Z node-a python[7]: {OOM}", None, id="syslog of RFC 5424"
        ),
        pytest.param(
            "2026-05-06 07:08:09.000000000 +0000 kube.train: "
            + json.dumps({"log": f"[rank6]: {OOM}"}),
            6,
            id="Fluentd",
        ),
        pytest.param(
            '[0] kube.train: [1715000000.123, {"log"=>"[rank6]: ' + OOM + '", "stream"=>"stderr"}]',
            6,
            id="Fluent Bit on stdout",
        ),
        pytest.param(f"worker-1  | [rank5]: {OOM}", 5, id="Docker Compose"),
        pytest.param(f"[pod/train-0/main] [rank5]: {OOM}", 5, id="kubectl with a prefix"),
    ],
)
def test_prefixes_and_envelopes(line: str, rank: int | None) -> None:
    assert found(f"{STEP}\n{line}\n{STEP}\n".encode()) == ("gpu-oom", 2, rank)


@pytest.mark.parametrize(
    "line",
    ["ValueError: {'log': 1}", "{'loss': 2.0}", '{"loss": 2.0}', "12:30 started", "[1] + [2]"],
)
def test_what_is_no_prefix_stays(line: str) -> None:
    assert strip_prefixes(line) == (line, None)


TRACE = (
    "Traceback (most recent call last):",
    '  File "/home/u/train{}.py", line {}, in main',
    "    batch['x']",
    "KeyError: 'x{}'",
)


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank{}]: ",
        "node-a: [rank{}]: ",
        "{}: ",
        "2026-05-06T07:08:09.123Z stderr F [rank{}]: ",
        "May 06 07:08:09 node-a python[7]: [rank{}]: ",
    ],
)
def test_tracebacks_of_interleaved_ranks_are_taken_apart(prefix: str) -> None:
    lines = [
        prefix.format(rank) + text.format(rank, 10 + rank) for text in TRACE for rank in (2, 0, 1)
    ]
    scan = Scanner([Known(*row) for row in SIGNATURES]).scan(
        Source(name="x", data="\n".join(lines).encode())
    )
    assert [(e.rank, e.file, e.file_line, e.message) for e in scan.errors] == [
        (rank, f"/home/u/train{rank}.py", 10 + rank, f"'x{rank}'") for rank in (2, 0, 1)
    ]


def test_a_traceback_inside_docker_json() -> None:
    text = [json.dumps({"log": line.format(0, 7) + "\n", "time": "t"}) for line in TRACE]
    error = read("\n".join(text).encode()).first_error
    assert error is not None
    assert (error.type, error.file, error.line) == ("KeyError", "/home/u/train0.py", 7)


def test_the_first_rank_by_the_time_of_the_shipper(tmp_path: Path) -> None:
    early = json.dumps({"log": "KeyError: 'early'\n", "time": "2026-05-06T07:08:09.1Z"})
    late = json.dumps({"log": "KeyError: 'late'\n", "time": "2026-05-06T07:08:09.9Z"})
    (tmp_path / "rank0.log").write_text(late)
    (tmp_path / "rank1.log").write_text(early)
    error = diagnose_paths([str(tmp_path)], SIGNATURES).first_error
    assert error is not None
    assert error.message == "'early'"


# -- lines without end ---------------------------------------------------------------------------


@pytest.mark.parametrize("filler", [b"\r 12%|## | 12/99", b"x"], ids=["progress", "binary"])
def test_numbers_of_lines_hold_behind_a_line_of_megabytes(filler: bytes) -> None:
    data = (
        STEP.encode() + b"\n" + filler * (5_000_000 // len(filler)) + b"\n" + OOM.encode() + b"\n"
    )
    assert found(data) == ("gpu-oom", 3, None)
    scan = Scanner([]).scan(Source(name="x", data=data))
    assert scan.lines == 3


def test_an_error_in_a_line_of_megabytes_is_found() -> None:
    bar = b"\r 12%|## | 12/99" * 200_000
    assert found(STEP.encode() + b"\n" + bar + b"\r" + OOM.encode() + bar) == ("gpu-oom", 2, None)
