"""What a broken or malicious node sends is a silent node or a broken fact, for itself alone."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.fleet import bundle, frames, replay
from dsdoctor.model import decode
from tests.support.command import clean_environment, dsdoctor

DIGITS = "9" * 6000
DEEP = "[" * 100_000 + "]" * 100_000
RECORDING = {
    "schema": "dsdoctor/recording",
    "version": 1,
    "dsdoctor": "0",
    "system": "Linux",
    "env": {"NCCL_DEBUG": "INFO"},
    "answers": {'["query", "release"]': {"ok": "6.1"}},
    "patient": "/usr/bin/python3",
    "children": {"static": {"argv": ["x"], "returncode": 0, "stdout": "", "stderr": ""}},
    "node": {"interfaces": {"eth0": "up"}, "addresses": ["10.0.0.1"]},
    "clock": 1_700_000_000.0,
}


def framed(text: str | bytes, name: str = "gpu1") -> bytes:
    """Lines of a collector."""
    data = text.encode() if isinstance(text, str) else text
    packed = base64.b64encode(zlib.compress(data, 1)).decode()
    pieces = [packed[start : start + 4000] for start in range(0, len(packed), 4000)]
    return b"".join(
        f"\x1edsdoctor-node {name} {number}/{len(pieces)} {piece}\n".encode()
        for number, piece in enumerate(pieces, 1)
    )


def recording(**fields: Any) -> dict[str, Any]:
    return {**RECORDING, **fields}


def with_raw(field: str, raw: str) -> str:
    """The recording with a value that json.dumps would not write."""
    return json.dumps(recording(**{field: "@@"})).replace('"@@"', raw)


TEXTS = {
    "6,000 digits": with_raw("clock", DIGITS),
    "deep": with_raw("answers", DEEP),
    "deep objects": with_raw("node", '{"a":' * 100_000 + "1" + "}" * 100_000),
    "clock=1e300": with_raw("clock", "1e300"),
    "clock=-1": with_raw("clock", "-1"),
    "clock=1e999": with_raw("clock", "1e999"),
    "clock is text": with_raw("clock", '"now"'),
    "children is a list": with_raw("children", "[1]"),
    "a child is a number": with_raw("children", '{"nvml": 1}'),
    "a child's output is no base64": with_raw("children", '{"nvml": {"stdout": "é!"}}'),
    "a huge status": with_raw("children", '{"nvml": {"returncode": 99999999999999999999}}'),
    "env of numbers": with_raw("env", '{"A": 1}'),
    "answers of lists": with_raw("answers", '{"x": [1]}'),
    "node of numbers": with_raw("node", '{"resolved": {"a": 7}}'),
    "not an object": "[1, 2]",
    "another schema": '{"schema": "x"}',
    "not JSON": "hello",
    "no text": "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_hostile_recording_is_one_error(text: str) -> None:
    try:
        found = frames.document(framed(text).split(b"\n"))
        assert found is not None
        snapshot = replay.snapshot_of(found, time.time())
    except (frames.BrokenFramesError, UsageError) as error:
        said = str(error)
    else:
        said = snapshot.facts["patient_choice"]["chosen_by"]
    assert 0 < len(said) < 1000


def test_a_bomb_is_not_inflated() -> None:
    packer = zlib.compressobj(9)
    zeros = bytes(1 << 20)
    packed = b"".join(packer.compress(zeros) for _ in range(1024)) + packer.flush()
    assert len(packed) < 2 << 20
    before = peak_kib()
    with pytest.raises(decode.DecodeError, match="larger than 64 MiB"):
        decode.inflate(packed)
    assert peak_kib() - before < 256 << 10


def peak_kib() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


@pytest.mark.parametrize(
    "value",
    [10**30, -(10**30), float("inf"), float("nan"), {"a": [10**25]}],
)
def test_numbers_have_a_limit(value: Any) -> None:
    with pytest.raises(decode.DecodeError, match="number that is too large"):
        decode.check(value)


def test_what_dsdoctor_writes_is_far_from_the_limits() -> None:
    deep: Any = 1
    for _ in range(decode.DEPTH - 1):
        deep = {"a": [deep]} if not isinstance(deep, dict) else [deep]
    decode.check({"a": 1 << 63, "b": [1e18, -5.5, True, None, "x" * 10_000]})
    with pytest.raises(decode.DecodeError, match="nested more than"):
        decode.json("[" * 70 + "]" * 70)
    decode.json("[" * 60 + "]" * 60)


# ---- folders of reports --------------------------------------------------------------------------


def good_report() -> bytes:
    return replay.snapshot_of(RECORDING).to_json()


def test_a_folder_of_hostile_reports(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "good.json").write_bytes(good_report())
    for number, text in enumerate(TEXTS.values()):
        (reports / f"a{number}.txt").write_bytes(framed(text))
        (reports / f"b{number}.json").write_text(text.replace("recording", "snapshot"))
    (reports / "c.json").write_bytes(bytes(range(256)))
    (reports / "\x1b]52;c;QUJD\x07.json").write_text("{}")
    (reports / "zero.json").symlink_to("/dev/zero")
    (reports / "self").mkdir()
    (reports / "folder.json").mkdir()
    done = dsdoctor(
        "fleet",
        "check",
        "--from",
        "reports",
        "--format",
        "json",
        env=clean_environment(tmp_path),
        cwd=tmp_path,
    )
    assert done.status == 1
    assert "Traceback" not in done.out + done.err
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err
    silent = [
        f["message"] for f in done.report["findings"] if f["condition"] == "fleet-node-silent"
    ]
    assert any("it is a device" in message for message in silent)
    assert done.report["counts"]["healthy"] == 0, "a report without facts is not healthy"
    shown = dsdoctor(
        "fleet", "check", "--from", "reports", "-v", env=clean_environment(tmp_path), cwd=tmp_path
    )
    assert not set("\x1b\x07").intersection(shown.out + shown.err)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/dev/zero", "it is a device"),
        ("/dev/null", "it is a device"),
    ],
)
@pytest.mark.parametrize("command", ["check --from", "triage", "lint"])
def test_what_is_no_file_is_one_line(command: str, path: str, words: str, tmp_path: Path) -> None:
    done = dsdoctor(*command.split(), path, env=clean_environment(tmp_path), cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_a_pipe_is_read_but_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dsdoctor import reading

    monkeypatch.setattr(reading, "PIPE_SECONDS", 0.3)
    pipe = tmp_path / "report.json"
    os.mkfifo(pipe)
    silent = os.open(pipe, os.O_RDWR)  # a writer that never writes
    try:
        with pytest.raises(decode.DecodeError, match="did not end"):
            reading.read(pipe)
    finally:
        os.close(silent)
    monkeypatch.setattr(reading, "WRITER_SECONDS", 0.1)
    with pytest.raises(decode.DecodeError, match="nobody writes"):
        reading.read(pipe)
    monkeypatch.setattr(reading, "PIPE_SECONDS", 30.0)
    monkeypatch.setattr(reading, "WRITER_SECONDS", 30.0)
    writer = subprocess.Popen(["sh", "-c", f"sleep 0.2; printf hello > {pipe}"])
    try:
        assert reading.read(pipe) == b"hello"
    finally:
        writer.wait(30)


def test_a_report_from_a_pipe_of_the_shell(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(good_report())
    line = f"{sys.executable} -m dsdoctor diff <(cat good.json) good.json"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# ---- engines -------------------------------------------------------------------------------------

#: Plays ssh, pdsh or srun on a host without a network: each node's words are in a file.
ENGINE = """\
#!{python}
import os, sys
name = os.path.basename(sys.argv[0])
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(folder, "asked"), "a") as log:
    log.write(name + " " + repr(sys.argv[1:]) + chr(10))
nodes = sorted(entry[:-4] for entry in os.listdir(folder) if entry.endswith(".out"))
if name == "ssh":
    words = sys.argv[1:]
    nodes = [node for node in nodes if node in words]
for number, node in enumerate(nodes):
    label = {{"ssh": "", "pdsh": node + ": ", "srun": "%d: " % number}}[name].encode()
    if name == "srun":
        sys.stderr.write("srun: launching StepId=7.0 on host %s, 1 tasks: %d\\n" % (node, number))
        sys.stderr.flush()
    for stream, end in ((1, ".out"), (2, ".err")):
        path = os.path.join(folder, node + end)
        if os.path.exists(path):
            with open(path, "rb") as file:
                for line in file.read().splitlines():
                    os.write(stream, label + line + b"\\n")
"""


@pytest.fixture
def engines(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ssh", "pdsh", "srun"):
        path = folder / name
        path.write_text(ENGINE.format(python=sys.executable))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def fleet(engines: Path, tmp_path: Path, *argv: str) -> Any:
    env = clean_environment(tmp_path, SLURM_JOB_NODELIST="gpu[1-3]")
    env["PATH"] = f"{engines}:{env['PATH']}"
    return dsdoctor("fleet", *argv, env=env, cwd=tmp_path)


@pytest.mark.parametrize("engine", ["clustershell", "pdsh", "srun"])
def test_a_report_counts_for_the_node_whose_channel_brought_it(
    engines: Path, tmp_path: Path, engine: str
) -> None:
    """gpu2 prints reports of gpu1 and gpu3; gpu3 is silent, and stays so."""
    own = json.dumps(recording(env={"NCCL_DEBUG": "INFO"}))
    forged = json.dumps(recording(env={"NCCL_DEBUG": "TRACE"}))
    (engines / "gpu1.out").write_bytes(framed(own, "gpu1"))
    (engines / "gpu2.out").write_bytes(
        b"gpu1: " + framed(forged, "gpu1") + b"0: " + framed(forged, "gpu3")
        + b"gpu3: " + framed(forged, "gpu3")
    )  # fmt: skip
    (engines / "gpu3.err").write_bytes(b"\x1b]52;c;QUJD\x07 token=x \x9b31m no\n")
    (engines / "gpu3.out").write_bytes(b"")
    done = fleet(
        engines, tmp_path, "check", "--nodes", "gpu[1-3]", "--engine", engine,
        "--save", "kept", "--timeout", "20", "--format", "json",
    )  # fmt: skip
    assert "Traceback" not in done.err
    assert not set("\x1b\x07\x9b").intersection(done.out + done.err)
    silent = [f for f in done.report["findings"] if f["condition"] == "fleet-node-silent"]
    assert [f["nodes"] for f in silent] == ["gpu3"], done.out
    kept = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "kept").iterdir()}
    assert set(kept) == {"gpu1", "gpu2"}
    first = kept["gpu1"]["facts"]["environment"]["variables"]
    assert first == {"NCCL_DEBUG": "INFO"}


def test_words_of_nodes_do_not_steer_the_terminal(engines: Path, tmp_path: Path) -> None:
    for node in ("gpu1", "gpu2"):
        (engines / f"{node}.out").write_bytes(b"\x1b]52;c;QUJD\x07\n")
        (engines / f"{node}.err").write_bytes(b"\x1b]52;c;QUJD\x07\x1b[2J bad HF_TOKEN=hunter2x\n")
    done = fleet(engines, tmp_path, "check", "--nodes", "gpu[1-2]", "--timeout", "20")
    assert done.status == 1
    assert "bad" in done.out
    assert "\x1b" not in done.out + done.err
    assert "hunter2x" not in done.out + done.err


def test_ssh_gets_host_names_after_the_options(engines: Path, tmp_path: Path) -> None:
    (engines / "gpu1.out").write_bytes(b"\x1b]52;c;QUJD\x07\n")
    (engines / "gpu1.err").write_bytes(b"\x1b]52;c;QUJD\x07 no\n")
    (tmp_path / "hosts").write_text("gpu1 slots=1\n")
    done = fleet(engines, tmp_path, "smoke", "--hostfile", "hosts", "--cpu", "1", "--timeout", "5")
    assert done.status == 3
    assert "\x1b" not in done.out + done.err
    asked = (engines / "asked").read_text()
    assert "'--', 'gpu1', " in asked


@pytest.mark.parametrize(
    "name",
    [
        "@all",
        "-oProxyCommand=x",
        "a b",
        "a\x1b[2Jb",
        pytest.param("9" * 200, id="a name of 200 characters"),
    ],
)
def test_files_are_named_after_hosts(name: str, tmp_path: Path) -> None:
    """Their names become those of nodes, which reports print and scripts read."""
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / f"{name}.json").write_text("{}")
    done = dsdoctor(
        "fleet", "check", "--from", "reports", env=clean_environment(tmp_path), cwd=tmp_path
    )
    assert (done.status, done.err.count("\n")) == (2, 1), done
    assert "is not named after a host" in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/x", "-oProxyCommand=touch${IFS}owned", "@all", "a/b", "..", "a\x1b[2Jb", "a;b",
        pytest.param("9" * 200, id="a name of 200 characters"),
    ],
)  # fmt: skip
def test_names_are_judged_where_they_enter(name: str, engines: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(f"gpu1 slots=1\n{name} slots=1\n")
    for argv in (
        ("check", "--nodes", name, "--save", "kept"),
        ("check", "--hostfile", "hosts", "--save", "kept"),
        ("smoke", "--hostfile", "hosts"),
    ):
        done = fleet(engines, tmp_path, *argv)
        assert done.status == 2, argv
        assert len(done.err.splitlines()) == 1
        assert "\x1b" not in done.err
    env = clean_environment(tmp_path, SLURM_JOB_NODELIST=name)
    assert dsdoctor("fleet", "check", "--slurm", env=env, cwd=tmp_path).status == 2
    assert not (engines / "asked").exists()
    assert not (tmp_path / "owned").exists()


def test_the_real_collector_passes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-"],
        input=bundle.collector().encode(),
        env=clean_environment(tmp_path),
        capture_output=True,
        check=True,
        timeout=500,
    )
    found = frames.document(done.stdout.split(b"\n"))
    assert found is not None
    assert replay.snapshot_of(found, time.time()).facts["resources"]["cpus_logical"] >= 1
