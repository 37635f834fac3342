"""Hostile configs cost linear time, and `--timeout` bounds parsing and judging too."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor import framework, language, packs
from dsdoctor.api import Condition, Finding, RunNeeds, Scope, check, warn
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, examine
from dsdoctor.fleet import names, nodes, replay
from dsdoctor.framework import framework_of
from dsdoctor.host import LocalHost
from dsdoctor.job.followed import follow
from dsdoctor.judge import MOST_FINDINGS, Policy, judge
from dsdoctor.lint import Linter
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Verdict
from dsdoctor.model.snapshot import of
from dsdoctor.packs.registry import Registry, Unit
from dsdoctor.probes.config import LONGEST, parse_config
from dsdoctor.probes.shell_lines import launches
from dsdoctor.recommend import releases
from tests.attack.test_node import RECORDING
from tests.support.command import clean_environment, dsdoctor

UNITS = {
    "words in one line": ("a,", '{"x":[', "]}"),
    "a bare text": ("a", "{x: ", ""),
    "lists": ("[", "", ""),
    "objects": ("{a:", "", ""),
    "comments": ("/*", "{", ""),
    "comment lines": ("#\n", "{", ""),
    "the same key": ('"a":1,', "{", "}"),
    "the same key in lines": ("a:1\n", "{", "}"),
    "digits": ("9", '{"a":', "}"),
    "many numbers": ("1,", '{"a":[', "]}"),
    "quotes": ('"', "{", ""),
    "escapes": ("\\", '{"', ""),
    "lines": ("\n", "{", ""),
    "colons": (":", "{", ""),
    "triple quotes": ("'''", "{a:", ""),
}


def seconds(size: int, unit: str, head: str, tail: str) -> float:
    text = (head + unit * size)[: size - len(tail)] + tail
    begun = time.process_time()
    found = parse_config(text)
    spent = time.process_time() - begun
    assert found.parsed is not None or found.error
    assert len(found.error or "") < 600
    return spent


@pytest.mark.parametrize("shape", UNITS.values(), ids=UNITS)
def test_a_config_is_parsed_in_linear_time(shape: tuple[str, str, str]) -> None:
    short = min(seconds(12_000, *shape) for _ in range(2))
    long = min(seconds(96_000, *shape) for _ in range(2))
    # eight times the text: linear is eight times the time, quadratic sixty-four
    assert long < max(24 * short, 0.1)


def test_a_config_has_a_size() -> None:
    found = parse_config('{"a": "' + "x" * LONGEST + '"}')
    assert found.parsed is None
    assert "larger than 256 KiB" in str(found.error)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("9" * 4000, id="4,000 digits"),
        pytest.param("-" + "9" * 30, id="30 digits below zero"),
        pytest.param("1e400", id="a float beyond a double"),
        pytest.param('{"a": 1' + "0" * 25 + "}", id="an object with a long integer"),
    ],
)
def test_a_number_beyond_all_bounds_is_an_error(raw: str) -> None:
    found = parse_config(f'{{"train_batch_size": {raw}}}')
    assert found.parsed is None
    assert found.error


def test_thousands_of_unknown_keys_are_judged_within_the_limit(tmp_path: Path) -> None:
    keys = {f"train_batch_sizes_{number}": number for number in range(6_000)}
    (tmp_path / "ds.json").write_text(json.dumps(keys, indent=1))
    done = dsdoctor(
        "check", "--quick", "--config", "ds.json", "--format", "json", "--timeout", "200",
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.status in (0, 1, 3), done.err
    named = [f for f in done.report["findings"] if f["condition"] == "ds-config-invalid-key"]
    assert len(named) == MOST_FINDINGS + 1
    assert "further findings" in named[-1]["message"]


def many(run: RunNeeds) -> Iterator[Finding]:
    """Finds something without end."""
    while True:
        yield warn("again", effect="none", hint="none", cwd=run.cwd)


def test_a_check_without_end_ends() -> None:
    condition = Condition("without-end", id="DSD999", scope=Scope.JOB, since="0.1")
    unit = Unit(
        condition=condition, title="x", page="", check=check(condition)(many), pack="t", family="t"
    )
    report = judge(of([RunNeeds()]), [unit], Registry([]))
    assert len(report.findings) == MOST_FINDINGS + 1
    late = judge(of([RunNeeds()]), [unit], Registry([]), deadline=time.monotonic() - 1)
    assert [finding.status for finding in late.findings] == [Status.UNKNOWN]
    assert late.findings[0].condition == "without-end"


def test_judging_always_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, preflight, recommend, fix, diff and `--from` name none."""
    registry = packs.load(())
    monkeypatch.setattr("dsdoctor.judge.JUDGE_SECONDS", -1.0)
    report = judge(of([RunNeeds(quick=True)]), list(registry), registry)
    assert {finding.status for finding in report.findings} == {Status.UNKNOWN}
    assert report.verdict is Verdict.UNKNOWN


def test_an_examination_judges_within_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = packs.load(())
    monkeypatch.setattr("dsdoctor.examine.LEAST_SECONDS", -1.0)
    request = Request(
        run=RunNeeds(quick=True), timeout=1e-9, python=sys.executable, host=LocalHost()
    )
    _, report = examine(request, registry, list(registry))
    assert {finding.message for finding in report.findings} == {
        "not judged: the time limit was reached"
    }


def test_a_file_is_linted_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text(
        '{"train_batch_size": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": "yes"}}'
    )
    registry = packs.load(())
    monkeypatch.setattr("dsdoctor.lint.JUDGE_SECONDS", -1.0)
    found = Linter(registry, list(registry), None, Policy()).lint(path, "ds_config.json")
    assert found is not None
    assert {finding.status for finding in found.findings} == {Status.CRASH}


def test_a_node_is_judged_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = packs.load(())
    monkeypatch.setattr("dsdoctor.fleet.nodes.JUDGE_SECONDS", -1.0)
    snapshot = replay.snapshot_of(RECORDING).to_json()
    report = nodes.Judge(registry, list(registry), Policy()).report("gpu1", snapshot)
    assert report.verdict == "unknown"
    assert {finding.message for finding in report.findings} == {
        "not judged: the time limit was reached"
    }


def test_a_text_with_a_name_of_somebody_elses_is_translated_in_bounded_time() -> None:
    english = "{one} and {two} and {three} of `{four}`"
    catalogue = language.Catalogue({"x": {english: "{four}: {one}, {two}, {three}"}})
    assert catalogue.translate("x", "a and b and c of `d`") == "d: a, b, c"
    begun = time.process_time()
    for text in (" and " * 20_000, "a and b and c of `" + " and " * 20_000 + "`"):
        assert catalogue.translate("x", text) is None
    longest = (" and " * language.LONGEST)[: language.LONGEST]
    assert catalogue.translate("x", longest) is None
    assert time.process_time() - begun < 5.0


def test_names_of_two_widths_are_folded_in_time_linear_in_their_number() -> None:
    """Half a minute before: the names that move from one width to the other were searched for each."""
    given = names.expand("n[00-1152]1[001-152]")
    begun = time.process_time()
    assert names.fold(given)
    assert time.process_time() - begun < 10.0


SCRIPTS = {
    "values that double": "A0=xxxxxxxxxx\n"
    + "".join(f'A{n + 1}="$A{n}$A{n}"\n' for n in range(60))
    + "deepspeed $A60 t.py\n",
    "a value that grows": 'A="$A x"\n' * 30_000 + "deepspeed t.py\n",
    "a value that is appended to": "A=x\n" + f"A+={'x' * 1000}\n" * 3_000 + "deepspeed t.py\n",
    "an array that doubles": "A=(x)\n"
    + 'A+=("${A[@]}" "${A[@]}")\n' * 60
    + 'deepspeed "${A[@]}"\n',
    "one value many times": f"A={'x' * 100_000}\ndeepspeed {'$A' * 100_000}\n",
    "an array without an end": "A=(\n" + "x y z\n" * 30_000,
    "quotes that never close": "torchrun t.py\n" + "'\"\n" * 100_000,
    "long lines with quotes that never close": "torchrun\n" + ("'\"" + "x" * 2500 + "\n") * 400,
    "blocks below many variables": "".join(f"V{n}=1\n" for n in range(40_000))
    + "if a; then b; fi\n" * 40_000
    + "torchrun t.py\n",
    "an array that grows": "A=(x)\n" + "A+=(x)\n" * 130_000 + "torchrun ${A[@]} t.py\n",
    "functions that never end": "torchrun t.py\n" + "f() {\n" * 30_000,
    "functions that call each other": "".join(
        f"f{n}() {{\n" + f"f{n + 1}\n" * 50 + "}\n" for n in range(50)
    )
    + "f49() {\ntorchrun t.py\n}\n"
    + "f0\n" * 5_000,
    "heredocs in heredocs": "".join(f"bash <<E{n}\n" for n in range(20_000)) + "torchrun t.py\n",
    "arguments of functions": "f() {\n"
    + 'torchrun "$@" "$@"\n' * 500
    + "}\n"
    + f"f {'x ' * 5_000}\n" * 200,
    "sums": "torchrun " + "$((1+1)) " * 60_000,
    "redirections": "torchrun " + "> " * 60_000 + "t.py " + "2>&1 " * 60_000,
    "many words of the shell": "torchrun t.py; " + "if " * 300_000,
    "a long line with a command": "deepspeed $(x) " + "y" * 1_000_000,
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_launch_script_is_read_in_bounded_time_and_memory(kind: str) -> None:
    begun = time.process_time()
    found = launches(SCRIPTS[kind])
    assert time.process_time() - begun < 20
    assert sum(len(word) for command in found for word in command.words) < 20 << 20


def test_a_release_of_thousands_of_digits_is_misuse() -> None:
    for text in ("9" * 5000, "0.9." + "9" * 5000):
        with pytest.raises(UsageError, match="is not a version"):
            releases.parse_option(text)


DEEP = {
    "attributes": "a" + ".a" * 300_000,
    "items": "a" + "[0]" * 200_000,
    "calls": "f" + "()" * 200_000,
    "sums over lines": "(a\n" + "+a\n" * 200_000 + ")",
    "signs": "-" * 300_000 + "1",
    "conditions": "x if y else " * 60_000 + "1",
    "brackets": "[" * 100_000,
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_training_script_that_is_nested_deeply_ends_nothing(kind: str) -> None:
    """Python 3.10 itself dies of four of them; a process of its own, since nothing catches that."""
    code = (
        "import sys; from dsdoctor.framework import framework_of as f; print(f(sys.stdin.read()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=DEEP[kind], capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def test_warnings_about_a_script_are_not_printed() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert framework_of('from transformers import Trainer\nx = "\\d"') == "hf"
    assert said == []


def test_a_long_script_is_not_called_deep() -> None:
    text = "from transformers import Trainer\n" + "x = a.b.c[0](1 + 2)\n" * 20_000
    assert not framework._is_too_deep(text)
    assert framework._is_too_deep("a" + ".a" * 20_000)


XML = "<nvidia_smi_log>\n"
HOSTILE_XML = {
    "GPUs": XML + '<gpu id="00000000:01:00.0">\n' * 60_000,
    "depth": XML + "<a>\n" * 100_000 + "<b>x</b>\n" * 60_000,
}


@pytest.mark.any_user
@pytest.mark.parametrize("what", HOSTILE_XML)
def test_an_xml_report_is_read_in_linear_time(tmp_path: Path, what: str) -> None:
    path = tmp_path / "paste"
    path.write_text(HOSTILE_XML[what])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = dsdoctor("check", "--from-report", str(path), env=clean_environment(tmp_path))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.status in (0, 1, 3), done.err
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15


def test_the_variables_of_a_script_cost_no_more_than_its_launches(tmp_path: Path) -> None:
    registry = packs.load(builtin_only=True)
    linter = Linter(registry, list(registry), None, Policy())
    path = tmp_path / "run.sh"

    def spent(head: str) -> float:
        path.write_text(head + "torchrun t.py\n" * 800)
        begun = time.process_time()
        assert linter.lint(path, "run.sh") is not None
        return time.process_time() - begun

    bare = min(spent("") for _ in range(2))
    assert spent("".join(f"export NCCL_A{n}=1\n" for n in range(150))) < max(8 * bare, 1.0)


def test_scripts_that_a_script_starts_are_followed_in_bounded_time(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("torchrun t.py\n")
    (tmp_path / "all.sh").write_text("bash x.sh\n" * 300 + "A=1\n" * 100_000)
    begun = time.process_time()
    found = follow(("bash", "all.sh"), LocalHost({"PATH": "/usr/bin"}), str(tmp_path))
    assert "commands that launch a job" in found.reason
    assert time.process_time() - begun < 20
