"""What somebody meets first: the bare command, slips of the keyboard, the Python functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dsdoctor
from dsdoctor.errors import UsageError

DSDOCTOR = [sys.executable, "-m", "dsdoctor"]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DSDOCTOR, *words],
        env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def test_the_bare_command_shows_the_machine_and_where_to_go() -> None:
    done = run()
    assert done.returncode == 0
    rows = done.stdout.splitlines()
    assert rows[0].startswith("dsdoctor ")
    assert any(row.startswith("  GPUs") for row in rows)
    assert any(row.startswith("  environment") for row in rows)
    assert sum(row.startswith("  dsdoctor ") for row in rows) == 5
    assert max(map(len, rows[-8:])) <= 80


SLIPS = [
    (("chek",), "did you mean `check`?"),
    (("repair",), "did you mean `fix`?"),
    (("repiar",), "did you mean `fix`?"),
    (("man",), "`man` is not a command of dsdoctor; `dsdoctor --help` lists all"),
    (("xyzzy",), "`xyzzy` is not a command of dsdoctor; `dsdoctor --help` lists all"),
    (("check", "--confg", "x"), "--config"),
    (("check", "--config", "a", "--config=b"), "`--config` is passed 2 times"),
    (("check", "--gpus", "0", "--gpus", "1"), "`--gpus` is passed 2 times"),
]


@pytest.mark.parametrize(("words", "said"), SLIPS, ids=[" ".join(row[0]) for row in SLIPS])
def test_slips_get_a_suggestion(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


COMPLETED = [
    ("dsdoctor rec", "1", "plain,recommend"),
    ("dsdoctor check --gpu", "2", "plain,--gpus"),
    ("dsdoctor explain driver-too", "2", "plain,driver-too-old"),
    ("dsdoctor fix install-torch", "2", "plain,install-torch-build"),
]


@pytest.mark.parametrize(("words", "at", "found"), COMPLETED)
def test_tab_completes_commands_options_and_names(words: str, at: str, found: str) -> None:
    done = run(_DSDOCTOR_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at)
    assert done.stdout.split() == [found]


def test_tab_shows_the_whole_line_of_help() -> None:
    done = run(_DSDOCTOR_COMPLETE="zsh_complete", COMP_WORDS="dsdoctor ", COMP_CWORD="1")
    assert "Check whether a job will start on this machine\n" in done.stdout


def test_no_help_is_wider_than_80_columns() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()  # generated at that width
    assert [row for row in text.splitlines() if len(row) > 80] == []


def test_options_of_the_users_command_may_repeat() -> None:
    done = run(
        "check", "--quick", "--json", "--", "true", "--config", "a", "--config", "b", "--json"
    )
    assert json.loads(done.stdout)["schema"] == "dsdoctor/report"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert "_DSDOCTOR_COMPLETE" in done.stdout


def test_completion_completes() -> None:
    done = run(_DSDOCTOR_COMPLETE="bash_complete", COMP_WORDS="dsdoctor sm", COMP_CWORD="1")
    assert "smoke" in done.stdout


def test_check_as_a_function(tmp_path: Path) -> None:
    config = tmp_path / "ds.json"
    config.write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 7}}')
    found = dsdoctor.check(config, quick=True, select=["config"])
    assert found.exit_status == 1
    assert not found.ok
    assert found.findings[0].condition == "ds-config-wrong-type"
    assert json.loads(found.to_json())["verdict"] == "faulty"
    assert repr(found).startswith("<dsdoctor check: faulty: ")
    assert "ds-config-wrong-type" in str(found)


def test_the_function_judges_what_the_command_judges(tmp_path: Path) -> None:
    config = tmp_path / "ds.json"
    config.write_text('{"train_micro_batch_size_per_gpu": 1}')
    typed = [
        "check", "--quick", "--format", "json", "--select", "storage,memory,config",
        "--config", str(config), "--writable", str(tmp_path / "file" / "out"), "--model", "70B",
        "--finetune", "full", "--expect-gpus", "8",
    ]  # fmt: skip
    (tmp_path / "file").write_text("")
    report = json.loads(run(*typed).stdout)
    found = dsdoctor.check(
        config, quick=True, select=["storage", "memory", "config"], model="70B", finetune="full",
        writable=[tmp_path / "file" / "out"], expect_gpus=8,
    )  # fmt: skip
    told = {(f["condition"], f["status"]) for f in report["findings"]}
    assert told == {(f.condition, f.status.value) for f in found.findings}
    assert "fail" in {status for _, status in told}


def test_a_config_may_be_a_dictionary() -> None:
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 7}}
    found = dsdoctor.check(config, quick=True, select=["config"])
    (bad,) = [one for one in found.findings if one.status.value == "fail"]
    assert bad.condition == "ds-config-wrong-type"
    assert not Path(found.config).parent.exists(), "the file that was examined is left"
    with pytest.raises(dsdoctor.UsageError, match="`config` cannot be written as JSON"):
        dsdoctor.check({"train_batch_size": object()}, quick=True)
    with pytest.raises(dsdoctor.PreflightError, match="ds-config-wrong-type"):
        dsdoctor.preflight(config, quick=True)


def test_this_environment_on_another_machine() -> None:
    found = dsdoctor.check(quick=True, like="2x4090", driver="470.256.02", select=["driver"])
    assert found.gpus == ["2 × NVIDIA GeForce RTX 4090"]
    assert found.driver == "470.256.02"
    with pytest.raises(dsdoctor.UsageError, match="`driver` requires `like`"):
        dsdoctor.check(quick=True, driver="470.256.02")


def test_a_text_is_diagnosed() -> None:
    found = dsdoctor.diagnose(text="torch.OutOfMemoryError: CUDA out of memory.\n")
    assert found.causes[0].condition == "gpu-oom"
    assert "gpu-oom" in str(found)
    with pytest.raises(dsdoctor.UsageError, match="pass one of them"):
        dsdoctor.diagnose("train.log", text="x")


def test_completion_in_a_notebook_lists_the_functions() -> None:
    code = "import dsdoctor; print(*dir(dsdoctor))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"check", "diagnose", "recommend", "smoke"} <= set(done.stdout.split())


def test_diagnose_as_a_function(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "<b>x</b>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    found = dsdoctor.diagnose(log)
    assert found.exit_status == 1
    assert found.causes[0].condition == "gpu-oom"
    page = found._repr_html_()
    assert "gpu-oom" in page
    assert "<b>" not in page


def test_recommend_as_a_function() -> None:
    found = dsdoctor.recommend("gpt2", gpu_memory_gib=80, gpu_count=2, sequence=1024)
    assert found.ok
    assert found.argv
    assert repr(found) == "<dsdoctor recommend: fits>"


MISUSE = [
    pytest.param(
        lambda: dsdoctor.check(quick=True, deep=True), "mutually exclusive", id="two modes"
    ),
    pytest.param(
        lambda: dsdoctor.check("/nowhere.json"),
        "is not a file",
        id="a snapshot that does not exist",
    ),
    pytest.param(lambda: dsdoctor.check(gpus="first"), "is not a GPU", id="a word as a GPU"),
    pytest.param(
        lambda: dsdoctor.check(checkpoint="/nowhere"),
        "does not exist",
        id="a checkpoint that does not exist",
    ),
    pytest.param(
        lambda: dsdoctor.check(select=["nonsense"]), "selects nothing", id="an unknown selection"
    ),
    pytest.param(dsdoctor.diagnose, "no log was passed", id="no log"),
    pytest.param(
        lambda: dsdoctor.diagnose("/nowhere.log"), "does not exist", id="a log that does not exist"
    ),
    pytest.param(
        lambda: dsdoctor.recommend("gpt2", gpu_memory_gib=80, sequenz=1),
        "is not known",
        id="an unknown argument",
    ),
    pytest.param(
        lambda: dsdoctor.recommend("gpt2", like="8xA100", gpus=[0]),
        "different machines",
        id="two machines",
    ),
]


@pytest.mark.parametrize(("call", "said"), MISUSE)
def test_a_wrong_argument_is_a_usage_error(call: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        call()  # type: ignore[operator]


def test_importing_dsdoctor_loads_nothing_heavy() -> None:
    code = "import dsdoctor, sys; print([m for m in ('click', 'msgspec', 'rich', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
