"""`path-missing`: files that the training script reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Missing, MissingPath, RunNeeds, ScriptPaths, Storage, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.host.door import Stat
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_paths import script_paths
from dsdoctor.testing import FakeHost, assert_fail, judge, read
from dsdoctor_checks.storage import path_missing, weights_file_corrupt
from tests.checks.machines import ABSENT
from tests.support.command import clean_environment


def asked(folder: Path, text: str, command: str = "torchrun t.py") -> ScriptPaths | Missing:
    (folder / "t.py").write_text(text)
    (folder / "there.json").write_text("{}")
    words = tuple(command.split())
    found: ScriptPaths | Missing = read(
        script_paths,
        LocalHost(clean_environment(folder)),
        run_needs=RunNeeds(cwd=str(folder), command=words),
        launch_command=parse_command(words),
    )
    return found


def missing(folder: Path, text: str, command: str = "torchrun t.py") -> list[str]:
    found = asked(folder, text, command)
    assert isinstance(found, ScriptPaths)
    return [one.path for one in found.missing]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("load_dataset('json', data_files={'train': ['a.json', 'there.json']})",
                     ["a.json"], id="load_dataset"),
        pytest.param("d = datasets.load_from_disk('data/x')", ["data/x"], id="load_from_disk"),
        pytest.param("with open('a.yaml') as f:\n    pass", ["a.yaml"], id="open"),
        pytest.param("pd.read_csv('./a.csv')", ["./a.csv"], id="pandas"),
        pytest.param("M.from_pretrained('./model')", ["./model"], id="a model"),
        pytest.param("open('there.json')", [], id="it exists"),
        pytest.param("open('a.json', 'w')", [], id="it is written"),
        pytest.param("open(path)", [], id="a variable"),
        pytest.param("M.from_pretrained('org/model')", [], id="a name of the hub"),
        pytest.param("load_dataset('json', data_files='https://h/a.json')", [], id="an address"),
        pytest.param("load_dataset('json', data_files='d/*.json')", [], id="a pattern"),
        pytest.param("os.system('wget h/a.json')\nopen('a.json')", [], id="it is downloaded"),
        pytest.param("T(output_dir='./out')\nM.from_pretrained('./out/last')", [], id="saved before"),
        pytest.param("os.chdir('x')\nopen('a.json')", [], id="another folder"),
        pytest.param("if x:\n    open('a.json')", [], id="perhaps"),
        pytest.param("x = 'a.json'\nopen('a.json')", [], id="mentioned twice"),
    ],
)  # fmt: skip
def test_what_a_script_reads(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert missing(tmp_path, text + "\n") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("--train_file a.json --data_path there.json", ["a.json"], id="a file"),
        pytest.param("--train_file $DATA/a.json", [], id="a shell fills it in"),
        pytest.param("--data_path /data/gpt_text_document", [], id="the beginning of a name"),
        pytest.param("--output_file a.json", [], id="an output"),
    ],
)
def test_options(tmp_path: Path, words: str, expected: list[str]) -> None:
    assert missing(tmp_path, "", f"torchrun t.py {words}") == expected


def test_a_container_has_its_own_files(tmp_path: Path) -> None:
    found = asked(tmp_path, "open('a.json')", "docker run image torchrun t.py")
    assert isinstance(found, Missing)


def judged(**facts: Any) -> Any:
    check = path_missing.paths_are_there
    return judge(check, storage=Storage(), launch_files=ABSENT, script_paths=ScriptPaths(**facts))


def test_the_first_is_named() -> None:
    both = tuple(MissingPath(path=name, read_by="line 3 of `t.py`") for name in ("a", "b"))
    finding = assert_fail(judged(script="t.py", folder="/w", missing=both))
    assert finding.message == (
        "`a` (line 3 of `t.py`) does not exist in `/w`; another file is missing too"
    )
    assert judged(script="t.py").status == "ok"


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 12345678\n"
LOADS = "from transformers import AutoModel\nm = AutoModel.from_pretrained('./model')"


@pytest.mark.parametrize(
    ("text", "command", "content", "expected"),
    [
        pytest.param(LOADS, "torchrun t.py", POINTER, ["./model/a.safetensors"], id="script"),
        pytest.param(
            "import sys", "torchrun t.py --model_name_or_path model", POINTER,
            ["model/a.safetensors"], id="option",
        ),
        pytest.param(LOADS, "torchrun t.py", "weights", [], id="real weights"),
        pytest.param("import sys", "torchrun t.py", POINTER, [], id="nobody loads it"),
    ],
)  # fmt: skip
def test_pointers_of_git_lfs(
    tmp_path: Path, text: str, command: str, content: str, expected: list[str]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    (tmp_path / "model/a.safetensors").write_text(content)
    found = asked(tmp_path, text, command)
    assert isinstance(found, ScriptPaths)
    assert [one.path for one in found.pointers] == expected


def test_a_pointer_is_no_weights_file() -> None:
    pointer = MissingPath(path="./model/a.safetensors", read_by="line 2 of `t.py`")
    (finding,) = judge(
        weights_file_corrupt.files_are_whole,
        script_paths=ScriptPaths(script="t.py", pointers=(pointer, pointer)),
    ).bad
    assert "`./model/a.safetensors`, which line 2 of `t.py` loads" in finding.message
    assert "git lfs pull` in `./model`" in finding.hint


def test_data_that_is_empty_or_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    words = "torchrun t.py --train_file none.jsonl --validation_file there.json"
    found = asked(tmp_path, "", words)
    assert isinstance(found, ScriptPaths)
    assert [(one.path, one.why) for one in found.unusable] == [("none.jsonl", "empty")]
    judged = judge(path_missing.paths_are_there, script_paths=found, storage=Storage())
    assert (judged.status, judged.worst.message) == (
        "warn",
        "`none.jsonl` (`--train_file`) is an empty file",
    )
    denied = MissingPath(path="a.json", read_by="`--train_file`", why="denied")
    paths = ScriptPaths(script="t.py", unusable=(denied,))
    refused = assert_fail(
        judge(path_missing.paths_are_there, script_paths=paths, storage=Storage())
    )
    assert refused.message == "`a.json` (`--train_file`) cannot be read by this account"


def test_a_file_that_is_denied_is_told_from_one_that_is_large() -> None:
    command = parse_command(["torchrun", "t.py", "--train_file", "a.json", "--data_path", "b.json"])
    host = FakeHost(
        files={
            "/job/t.py": "",
            "/job/a.json": HostError(Why.DENIED, "x"),
            "/job/b.json": "{}",
        },
        stats={"/job/a.json": Stat(kind="file", size=9), "/job/b.json": Stat(kind="file", size=2)},
    )
    run = RunNeeds(cwd="/job", command=command.argv)
    found = script_paths.function(host, run, command)
    assert isinstance(found, ScriptPaths)
    assert [(one.path, one.why) for one in found.unusable] == [("a.json", "denied")]
