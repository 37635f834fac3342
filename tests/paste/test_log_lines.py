"""Log lines in a paste: `check --from-report` names what they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor import logs
from dsdoctor.cli import pasted
from dsdoctor.cli.main import group
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.paste.lines import Line
from tests.paste import texts

BF16 = (
    "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with"
    " cuda>=11.0\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"


def checked(text: str, *options: str) -> tuple[int, dict[str, Any]]:
    arguments = ["check", "--from-report", "-", "--format", "json", *options]
    result = CliRunner().invoke(group, arguments, input=text, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, json.loads(result.output)


def failed(report: dict[str, Any]) -> list[str]:
    return [one["condition"] for one in report["findings"] if one["status"] == "fail"]


def test_a_cause_in_a_log_line_is_named_with_its_line() -> None:
    code, report = checked(texts.PIP_LIST + BF16)
    assert (code, report["verdict"], failed(report)) == (1, "faulty", ["bf16-unsupported"])
    (found,) = (one for one in report["findings"] if one["condition"] == "bf16-unsupported")
    lines = [row["line"] for row in found["evidence"]["stated_at"]]
    assert lines == [texts.PIP_LIST.count("\n") + 1]
    assert report["counts"]["fail"] == 1


def test_the_same_text_without_that_line_has_no_failure() -> None:
    code, report = checked(texts.PIP_LIST)
    assert (code, failed(report)) == (3, [])


def test_lines_that_a_check_rests_on_are_reported_once() -> None:
    _, report = checked(MISMATCH)
    assert failed(report) == ["driver-library-mismatch"]


@pytest.mark.parametrize("option", ["--ignore", "--select"])
def test_a_condition_that_is_not_selected_is_not_added(option: str) -> None:
    name = "bf16-unsupported" if option == "--ignore" else "driver-too-old"
    _, report = checked(texts.PIP_LIST + BF16, option, name)
    assert failed(report) == []


def test_a_log_without_a_cause_is_referred_to_the_command_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("step 1: loss 2.1\nstep 2: loss 2.0\n", encoding="utf-8")
    with pytest.raises(Exception, match="dsdoctor triage"):
        CliRunner().invoke(
            group,
            ["check", "--from-report", str(path)],
            standalone_mode=False,
            catch_exceptions=False,
        )


TOO_NEW = (
    "ImportError: deepspeed>=0.10.0,<=0.16.9 is required for a normal functioning of this module,"
    " but found deepspeed==0.17.2.\nTo fix: run `pip install deepspeed>=0.10.0,<=0.16.9`.\n"
)


def test_only_the_first_cause_is_a_failure() -> None:
    _, report = checked(texts.LLAMAFACTORY + TOO_NEW)
    assert failed(report) == ["transformers-deepspeed-incompatible"]


def test_a_scope_that_is_not_asked_for_is_not_added() -> None:
    _, report = checked(texts.PIP_LIST + BF16, "--scope", "node")
    assert failed(report) == []


REGISTERING = "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory\n"
MANY = "".join(f"[pip3] package{number}==1.{number}\n" for number in range(60))


def test_a_report_of_the_machine_below_an_error_is_not_the_run_going_on() -> None:
    head, _, _ = texts.COLLECT_ENV_VLLM.partition("Versions of relevant libraries:")
    environment = f"{head}Versions of relevant libraries:\n{MANY}"
    _, report = checked(f"```\n{REGISTERING}```\n\n```\n{environment}```\n")
    assert failed(report) == ["memlock-low"]


def test_a_run_that_goes_on_below_a_warning_did_not_fail() -> None:
    steps = "".join(f"loaded shard {number}\n" for number in range(60))
    _, report = checked(f"```\n{REGISTERING}{steps}```\n\n```\n{texts.COLLECT_ENV_VLLM}```\n")
    assert "memlock-low" not in failed(report)


def test_a_log_is_diagnosed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts_diagnosed = []
    real = pasted.diagnosed

    def counted(name: str, lines: list[Line], known: logs.Knowledge) -> Diagnosis:
        texts_diagnosed.append(lines)
        return real(name, lines, known)

    monkeypatch.setattr(pasted, "diagnosed", counted)
    code, report = checked(BF16)
    assert (code, failed(report)) == (1, ["bf16-unsupported"])
    assert len(texts_diagnosed) == 1
