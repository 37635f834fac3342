"""Every error a user can cause: one clear line, exit status 2, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import clean_environment, dsdoctor


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("check", "--gpus", "x"), "`--gpus x` is not a GPU; expected"),
        (("check", "--gpus", ""), "`--gpus` is empty"),
        (("check", "--gpus", "0,0"), "contains `0` twice"),
        (("check", "--expect-gpus", "many"), "--expect-gpus"),
        (("check", "--from", "nowhere.json"), "`nowhere.json` cannot be read"),
        (("check", "--from", "empty.json"), "is not a snapshot: it is empty;"),
        (("check", "--from", "other.json"), "its `schema` is not `dsdoctor/snapshot`"),
        (("check", "--from", "newer.json"), "is a snapshot of version 999"),
        (("check", "--from", "newer.json", "--gpus", "0"), "is a snapshot of version 999"),
        (("check", "--config", "nowhere.json"), "`--config nowhere.json` is not a file"),
        (("check", "--select", "nonsense"), "`--select nonsense` selects nothing"),
        (("check", "--select", "gpuu"), "did you mean `gpu`?"),
        pytest.param(
            ("check", "--jsn"),
            "`--jsn` is not an option of `dsdoctor check`; did you mean `--json`?",
            id="a misspelled option",
        ),
        (("smoke", "--device", "cpu"), "is not an option of `dsdoctor smoke`; `dsdoctor smoke"),
        (("check", "--gpus", "4xA100-80GB"), "take a machine type as `--like`"),
        (("check", "--gpus", "first"), "expected indices or UUIDs such as `0,1` or `GPU-…`\n"),
        (("run", "--hang-aftr", "5"), "did you mean `--hang-after`? `dsdoctor run --help`"),
        pytest.param(
            ("fleet", "chek"),
            "`chek` is not a command of `dsdoctor fleet`; did you mean `check`?",
            id="a misspelled command of fleet",
        ),
        (("explain", "DSD9999"), "no condition is called `DSD9999`; `dsdoctor explain` lists"),
        (("check", "--ignore", "driver-to-old"), "did you mean `driver-too-old`"),
        (("check", "--checks-dir", "nowhere"), "is not a folder"),
        (("check", "--quick", "--deep"), "mutually exclusive"),
        (
            ("check", "--select", "ops", "--ignore", "DSD4"),
            "no check is left to run; select more, ignore less",
        ),
        (
            ("check", "--select", "gpu-oom"),
            "`gpu-oom` is recognized only in logs; no check predicts it",
        ),
        (("check", "--select", "DSD401", "--scope", "node"), "no check is left to run"),
        (("profile",), "did you mean `check --profile`?"),
        pytest.param(
            ("sing",),
            "`sing` is not a command of dsdoctor; `dsdoctor --help` lists all",
            id="a command that resembles none",
        ),
        (("check", "--python", "/nowhere/python"), "/nowhere/python"),
        (("check", "--no-such-option"), "--no-such-option"),
        (("check", "--timeout", "inf"), "expected a finite number"),
        (("diagnose", "--timeout", "1e400", "x.log"), "expected a finite number"),
        (("explain", "cuda-toolkit-mising"), "did you mean `cuda-toolkit-missing`?"),
        (("diff", "newer.json", "newer.json"), "upgrade dsdoctor"),
        (("nonsense",), "nonsense"),
        (("check", "--json=3"), "`--json` takes no value; pass it alone"),
        (("check", "--config"), "dsdoctor: option `--config` requires an argument"),
        (("check", "--timeout", "0"), "`--timeout 0`: expected 1 or more"),
        (("check", "--timeout", "x"), "`--timeout x`: expected a number"),
        (("check", "--format", "xml"), "`--format xml`: expected one of `text`, `json`, "),
        (("recommend", "--micro-batch", "0"), "`--micro-batch 0`: expected 1 to 1000000"),
        (("recommend", "--micro-batch", "x"), "`--micro-batch x`: expected a whole number"),
        pytest.param(
            ("recommend",),
            "`dsdoctor recommend` requires `--model`; `dsdoctor recommend --help`",
            id="recommend without a model",
        ),
        pytest.param(
            ("diff", "a"),
            "`dsdoctor diff` requires `AFTER`; `dsdoctor diff --help` shows",
            id="diff with one argument",
        ),
        (
            ("diff", "a", "b", "c"),
            ": unexpected argument `c`; `dsdoctor diff --help` shows",
        ),
        (("completion", "tcsh"), "`tcsh`: expected one of `bash`, `zsh`, `fish`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_one_line_and_status_2(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "other.json").write_text("{}")
    newer = {"schema": "dsdoctor/snapshot", "version": 999}
    (tmp_path / "newer.json").write_text(json.dumps(newer))
    done = dsdoctor(*argv, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 2
    assert done.out == ""
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err


def test_a_broken_pack_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    (folder / "bad.py").write_text("import nothing_of_the_kind\n")
    env = clean_environment(tmp_path)
    argv = ("check", "--quick", "--select", "driver", "--checks-dir", str(folder))
    done = dsdoctor(*argv, env=env, cwd=tmp_path)
    assert done.status == 2
    assert "bad.py" in done.err
    assert "ModuleNotFoundError" in done.err
    assert "Traceback" not in done.err
    listed = dsdoctor("packs", "--checks-dir", str(folder), env=env, cwd=tmp_path)
    assert listed.status == 1
    assert "builtin" in listed.out
    where = ("--checks-dir", str(folder))
    for words in (("packs", "list", *where), ("packs", *where, "list")):
        again = dsdoctor(*words, env=env, cwd=tmp_path)
        assert (again.status, again.out, again.err) == (1, listed.out, listed.err)


@pytest.mark.parametrize(
    "command", ["check", "snapshot", "fix --dry-run", "run -- true", "smoke --cpu 2"]
)
def test_a_working_folder_that_is_gone(tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && {sys.executable} -m dsdoctor {command} --quick"
    done = subprocess.run(
        ["/bin/sh", "-c", line.removesuffix(" --quick") if command != "check" else line],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 2
    assert "the working folder has been removed" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_locale_without_utf_8(tmp_path: Path, colour: str) -> None:
    env = clean_environment(tmp_path, LC_ALL="POSIX", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    done = dsdoctor("check", "--quick", env={**env, "FORCE_COLOR": colour}, cwd=tmp_path)
    assert "Traceback" not in done.err
    assert " \N{MIDDLE DOT} " in done.out


def test_a_config_of_a_pack_that_is_gone_warns_and_stops_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('ignore = ["cuda-toolkit-mising"]\n[limits.gone-pack]\nmax_x = 1\n')
    (tmp_path / "empty.json").write_text('{"schema": "dsdoctor/snapshot", "version": 1}')
    done = dsdoctor(
        *("check", "--from", "empty.json", "--select", "memlock-low"),
        cwd=tmp_path,
        env=clean_environment(tmp_path, DSDOCTOR_CONFIG=str(config)),
    )
    assert done.status == 3, done.err  # an empty snapshot: nothing is certain
    first, second = done.err.splitlines()
    assert first == (
        "dsdoctor: `[limits.gone-pack]` of the configuration matches no condition and is ignored"
    )
    assert second.endswith("is ignored; did you mean `cuda-toolkit-missing`?")


@pytest.mark.parametrize("group", ["hook", "fleet", "run"])
def test_a_group_without_a_command_shows_its_commands(tmp_path: Path, group: str) -> None:
    done = dsdoctor(group, env=clean_environment(tmp_path))
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith(f"Usage: dsdoctor {group}")
    assert "\nCommands:\n" in done.err


@pytest.mark.parametrize(
    ("argv", "name", "first"),
    [
        pytest.param(("check", "--quick"), "a.json", "{", id="a report in JSON"),
        pytest.param(("check", "--quick"), "a.xml", "<?xml", id="a report for JUnit"),
        pytest.param(("check", "--quick"), "a.txt", "", id="a text stays a text"),
        pytest.param(
            ("check", "--quick", "--format", "text"), "a.json", "", id="a format that is passed"
        ),
        pytest.param(("lint", "ds.json"), "a.sarif", "{", id="lint for code scanning"),
        pytest.param(("lint", "ds.json"), "a.xml", "1 file", id="lint has no JUnit"),
        pytest.param(("diagnose", "run.log"), "a.json", "{", id="a diagnosis in JSON"),
        pytest.param(("triage", "run.log"), "a.json", "{", id="an issue in JSON"),
    ],
)
def test_the_name_of_the_file_says_the_format(
    tmp_path: Path, argv: tuple[str, ...], name: str, first: str
) -> None:
    (tmp_path / "ds.json").write_text('{"train_batch_size": 8, "bf16": {"enabled": true}}')
    (tmp_path / "run.log").write_text("RuntimeError: CUDA error: out of memory\n")
    dsdoctor(*argv, "-o", name, env=clean_environment(tmp_path), cwd=tmp_path)
    written = (tmp_path / name).read_text()
    if first:
        assert written.startswith(first)
    else:
        assert "healthy: " in written or "faulty: " in written
        assert not written.startswith(("{", "<"))
