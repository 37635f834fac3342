"""Pure parts of the hooks: requests, decisions, what schedulers are told."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.cli.hook import command as hook_command
from dsdoctor.hook import outputs, request, supervise
from dsdoctor.hook.decide import Decision, Fault, decide, unknown
from dsdoctor.hook.request import KINDS, Request, configured, expanded, gpu_selectors, parse
from dsdoctor.hook.rundir import RunFolder


def row(condition: str = "gpu-lost", status: str = "fail", **more: Any) -> dict[str, Any]:
    return {
        "id": "DSD601",
        "condition": condition,
        "status": status,
        "message": "GPU 3 is lost",
        "hint": "restart the node",
        "scope": "node",
        "family": "gpu",
        "confirmed": True,
        **more,
    }


def test_a_confirmed_fault_blocks() -> None:
    found = decide({"findings": [row()]})
    assert found.block
    assert found.verdict == "faulty"
    assert found.reason == "dsdoctor: DSD601 gpu-lost: GPU 3 is lost"


def test_a_failure_that_rests_on_a_timeout_passes() -> None:
    found = decide({"findings": [row(confirmed=False)], "unsure": ["gpu-lost: late"]})
    assert (found.block, found.verdict, found.cause) == (False, "unknown", "unread")
    assert decide({"findings": [row(confirmed=False)], "unsure": ["x"]}, fail_closed=True).block


@pytest.mark.parametrize(
    "judged",
    [
        pytest.param({"findings": []}, id="no finding"),
        pytest.param({"findings": [row(status="warn")]}, id="a warning"),
    ],
)
def test_warnings_and_health_pass(judged: dict[str, Any]) -> None:
    found = decide(judged, fail_closed=True)
    assert (found.block, found.verdict, found.cause) == (False, "healthy", None)


def test_a_job_without_gpus_is_not_blocked_by_gpus() -> None:
    judged = {"findings": [row(), row("host-x", family="host")], "unsure": ["nvml: late"]}
    assert [f.condition for f in decide(judged, wants_gpu=False).faults] == ["host-x"]
    assert not decide({"findings": [row()]}, wants_gpu=False).block


def test_dry_run_blocks_nothing() -> None:
    for found in (
        decide({"findings": [row()]}, dry_run=True),
        unknown("timeout", "x", fail_closed=True, dry_run=True),
    ):
        assert not found.block
        assert found.would_block


def test_a_second_fault_is_counted_in_the_reason() -> None:
    assert decide({"findings": [row(), row()]}).reason.endswith("(and 1 more)")


@pytest.mark.parametrize(
    ("kind", "env", "expected"),
    [
        ("slurm-prolog", {"SLURM_JOB_GPUS": "0,3", "CUDA_VISIBLE_DEVICES": "9"}, ("0", "3")),
        ("slurm-prolog", {"SLURM_JOB_GPUS": "0-2"}, ("0", "1", "2")),
        ("slurm-prolog", {"CUDA_VISIBLE_DEVICES": "GPU-1a,GPU-2b"}, ("GPU-1a", "GPU-2b")),
        ("slurm-prolog", {"SLURM_JOB_ID": "5"}, ()),
        ("slurm-prolog", {}, None),
        (
            "slurm-prolog",
            {"SLURM_JOB_GPUS": "0,1", "CUDA_VISIBLE_DEVICES": "GPU-5a,GPU-6b"},
            ("GPU-5a", "GPU-6b"),
        ),
        ("slurm-health", {"SLURM_JOB_GPUS": "0"}, None),
        ("slurm-task-prolog", {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,5"}, ("0", "1")),
        ("slurm-task-prolog", {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ("slurm-task-prolog", {"CUDA_VISIBLE_DEVICES": "MIG-GPU-1/2/0"}, ("MIG-GPU-1/2/0",)),
        ("npd", {}, None),
    ],
)
def test_gpu_ids(kind: str, env: dict[str, str], expected: tuple[str, ...] | None) -> None:
    assert gpu_selectors(Request(kind), env) == expected


def test_gpus_given_on_the_command_line_win() -> None:
    assert gpu_selectors(Request("slurm-prolog", gpus="all"), {"SLURM_JOB_GPUS": "1"}) is None
    assert gpu_selectors(Request("slurm-prolog", gpus="none"), {"SLURM_JOB_GPUS": "1"}) == ()
    assert expanded("3-1") == ()


def test_the_fast_parser_and_click_agree() -> None:
    """Everything that the fast parser takes, click takes to the same request."""
    from dsdoctor.hook import entry

    seen: list[Request] = []

    def note(given: Request) -> int:
        seen.append(given)
        return 0

    lines = [
        ["slurm-prolog"],
        ["slurm-prolog", "--budget", "4", "--gpus", "0,1", "--json", "/x", "--fail-closed"],
        ["npd", "--budget=3", "--dry-run", "--ignore", "gpu,a", "--ignore", "b"],
        ["k8s", "--live", "--python", "/p", "--config", "c", "--termination-log", "/t"],
        ["slurm-task-prolog", "--enforce", "--token", "t", "--run-folder", "/r"],
        ["nagios", "--max-age", "0", "--textfile", "/m"],
        ["slurm-prolog", "--reason-from-prolog"],
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "run", note)
        for line in lines:
            hook_command.main(line, standalone_mode=False)
            assert parse(line) == seen[-1], line
    assert set(KINDS) <= set(hook_command.commands)


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["unknown"],
        ["npd", "--help"],
        ["npd", "extra"],
        ["npd", "--budget"],
        ["npd", "--budget", "soon"],
        ["npd", "--budget", "nan"],
        ["npd", "--budget", "0.5"],
        ["npd", "--gpus", "--json"],
        ["npd", "--no-such"],
        ["npd", "--dry-run=yes"],
    ],
)
def test_what_is_doubtful_is_left_to_click(line: list[str]) -> None:
    assert parse(line) is None


def test_configuration_is_a_default_not_an_order() -> None:
    table = {"budget": 3.0, "dry_run": True, "ignore": ["memlock-low"], "nonsense": 1}
    found = configured(Request("npd", budget=4.0, ignore=("a",)), table)
    assert (found.budget, found.dry_run, found.ignore) == (4.0, True, ("a", "memlock-low"))


FAULT = Fault("DSD601", "gpu-lost", "GPU 3 is\nlost \x1b[31m" + "x" * 100, "restart | now")
FAULTY = Decision(block=True, verdict="faulty", faults=(FAULT,), counts={"ok": 3})
JOB_FAULT = Decision(
    block=True, verdict="faulty", faults=(Fault("DSD1", "x", "y", scope="user-env"),)
)
UNKNOWN = unknown("timeout", "no answer")
HEALTHY = Decision(verdict="healthy")
WARNED = Decision(verdict="healthy", warnings=(Fault("DSD9", "w", "warm"),))


@pytest.mark.parametrize(
    ("kind", "decision", "status"),
    [
        pytest.param("slurm-prolog", HEALTHY, 0, id="slurm-prolog: healthy"),
        pytest.param("slurm-prolog", FAULTY, 1, id="slurm-prolog: faulty"),
        pytest.param("slurm-prolog", UNKNOWN, 0, id="slurm-prolog: inconclusive"),
        pytest.param("slurm-task-prolog", FAULTY, 0, id="slurm-task-prolog: faulty"),
        pytest.param("k8s", FAULTY, 1, id="k8s: a faulty node"),
        pytest.param("k8s", JOB_FAULT, 4, id="k8s: a faulty job"),
        pytest.param("k8s", UNKNOWN, 0, id="k8s: inconclusive"),
        pytest.param(
            "k8s",
            unknown("timeout", "x", fail_closed=True),
            1,
            id="k8s: inconclusive and fail-closed",
        ),
        pytest.param("npd", HEALTHY, 0, id="npd: healthy"),
        pytest.param("npd", FAULTY, 1, id="npd: faulty"),
        pytest.param("npd", UNKNOWN, 2, id="npd: inconclusive"),
        pytest.param("nagios", HEALTHY, 0, id="nagios: healthy"),
        pytest.param("nagios", WARNED, 1, id="nagios: a warning"),
        pytest.param("nagios", FAULTY, 2, id="nagios: faulty"),
        pytest.param("nagios", UNKNOWN, 3, id="nagios: inconclusive"),
    ],
)
def test_exit_statuses(kind: str, decision: Decision, status: int) -> None:
    assert ended(Request(kind), decision)[0] == status


def test_a_task_prolog_ends_tasks_only_when_told_to() -> None:
    told, enforced = Request("slurm-task-prolog"), Request("slurm-task-prolog", enforce=True)
    node, environment = FAULTY.faults[0], JOB_FAULT.faults[0]
    job = dataclasses.replace(environment, scope="job")
    for fault in (node, environment, job):
        assert ended(told, dataclasses.replace(FAULTY, faults=(fault,))) == (0, "pass")
    assert ended(enforced, JOB_FAULT) == (0, "pass")  # its environment may not be active yet
    for faults in ((job,), (node,), (environment, job)):
        assert ended(enforced, dataclasses.replace(FAULTY, faults=faults)) == (1, "block")
    assert ended(enforced, UNKNOWN) == (0, "pass")


def ended(request: Request, decision: Decision) -> tuple[int, str]:
    """Exit status, and the word in the verdict file."""
    decision = outputs.settle(request, decision)
    return outputs.exit_status(request, decision), outputs.record(request, decision, {})["decision"]


def test_monitors_block_nothing() -> None:
    assert ended(Request("npd"), FAULTY) == (1, "pass")
    assert ended(Request("nagios"), FAULTY) == (2, "pass")
    assert ended(Request("slurm-prolog"), FAULTY) == (1, "block")


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(HEALTHY, id="healthy"),
        pytest.param(FAULTY, id="faulty"),
        pytest.param(UNKNOWN, id="inconclusive"),
    ],
)
def test_npd_gets_one_line_of_80_characters(decision: Decision) -> None:
    text = outputs.stdout(Request("npd"), decision, 0.1)
    assert text.count("\n") == 1
    assert len(text.strip()) <= 80
    assert text.startswith("dsdoctor:")


def test_nagios_has_perfdata_and_one_bar() -> None:
    text = outputs.stdout(Request("nagios"), FAULTY, 0.25)
    head, _bar, perf = text.partition(" | ")
    assert head.startswith("DSDOCTOR CRITICAL - dsdoctor: DSD601")
    assert "|" not in head
    assert perf.split() == ["failed=1;;0", "warnings=0;0", "ok=3", "time=0.250s;;5;0"]


def test_the_task_prolog_speaks_slurms_language() -> None:
    lines = outputs.stdout(Request("slurm-task-prolog"), FAULTY, 0.1).splitlines()
    assert all(line.startswith(("print ", "export ")) for line in lines)
    assert lines[-1] == "export DSDOCTOR_VERDICT=faulty"
    assert "\x1b" not in "".join(lines)


def test_a_termination_message_fits() -> None:
    many = Decision(verdict="faulty", faults=tuple(FAULT for _ in range(100)))
    assert len(outputs.termination(many).encode()) <= 4096


def test_metrics_are_prometheus_text() -> None:
    text = outputs.prometheus(Request("npd"), FAULTY, {"timeout": 3}, 0.5, 1000)
    names = {line.split("{")[0] for line in text.splitlines() if not line.startswith("#")}
    declared = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert names == declared
    assert 'dsdoctor_hook_fail_open_total{cause="timeout"} 3' in text
    assert 'dsdoctor_condition_failed{condition="gpu-lost",id="DSD601"} 1' in text


def test_the_verdict_file_is_one_line_of_json_with_the_token(tmp_path: Path) -> None:
    from dsdoctor.hook.rundir import write_json

    record = outputs.record(Request("slurm-prolog", token="t1"), FAULTY, {"job": "5"})
    assert write_json(tmp_path / "v.json", record)
    text = (tmp_path / "v.json").read_text()
    assert text.count("\n") == 1
    # the order that the shell's pattern relies on
    assert text.index('"decision": "block"') < text.index('"token": "t1"')
    assert json.loads(text)["findings"][0]["condition"] == "gpu-lost"


def test_requests_know_their_scopes() -> None:
    assert Request("slurm-prolog").scopes == ("node",)
    assert not Request("k8s").shared
    assert request.BUDGET == 5.0


def test_the_decisive_fault_comes_first() -> None:
    judged = {
        "findings": [
            row("torch-missing", scope="user-env", family="torch"),
            row("memlock-low", family="nccl"),
            row("driver-x", family="driver"),
            row("slurm-cpus-few", scope="job", family="cluster"),
            row("gpu-lost"),
        ]
    }
    found = decide(judged)
    order = ["gpu-lost", "driver-x", "memlock-low", "slurm-cpus-few", "torch-missing"]
    assert [fault.condition for fault in found.faults] == order
    assert found.reason.endswith("gpu-lost: GPU 3 is lost (and 4 more)")
    assert "gpu-lost" in outputs.stdout(Request("npd"), found, 0.1)
    record = outputs.record(Request("k8s"), found, {})
    assert record["findings"][0]["condition"] == "gpu-lost"


def test_a_hint_never_comes_without_its_problem() -> None:
    faults = [
        Fault("DSD1", "one", "the first", hint="do one"),
        Fault("DSD2", "two", "the second"),
        Fault("DSD3", "three", "the third", hint="do three"),
    ]
    decision = Decision(block=True, verdict="faulty", faults=tuple(faults))
    lines = outputs.termination(decision).splitlines()
    assert lines == [
        "dsdoctor: DSD1 one: the first (and 2 more)",
        "  hint: do one",
        "DSD2 two: the second",
        "DSD3 three: the third",
        "  hint: do three",
    ]
    assert [
        line.strip() for line in outputs.stdout(Request("k8s"), decision, 0.1).splitlines()
    ] == [line.strip() for line in lines]


def test_a_termination_message_ends_between_problems() -> None:
    faults = tuple(Fault("DSD1", f"c{n}", "x" * 500, hint="y" * 500) for n in range(9))
    text = outputs.termination(Decision(block=True, verdict="faulty", faults=faults))
    assert len(text.encode()) <= outputs.TERMINATION_BYTES
    for line in text.splitlines():
        assert line.endswith(("x" * 500, "y" * 500, "(and 8 more)")), line
    long = (Fault("DSD1", "c", "é" * 5000),)
    text = outputs.termination(Decision(block=True, verdict="faulty", faults=long))
    assert 4000 < len(text.encode()) <= outputs.TERMINATION_BYTES


def test_a_verdict_from_within_a_job_is_that_jobs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PrologFlags=RunInJob, NVML lists the GPUs of the job whose cgroup it is called in."""
    files = {
        "v2": "0::/system.slice/slurmstepd.scope/job_7/step_extern/slurm\n",
        "v1": "5:devices:/slurm/uid_1000/job_7/step_extern\n4:memory:/\n",
        "outside": "0::/system.slice/slurmd.service\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert [supervise.is_in_job(tmp_path / name) for name in files] == [True, True, False]
    assert not supervise.is_in_job(tmp_path / "none")

    def key(kind: str, job: str) -> str:
        folder = RunFolder(tmp_path / "run")
        return supervise.Supervisor(Request(kind), folder, {"SLURM_JOB_ID": job}, 0.0).key

    assert key("slurm-prolog", "7") == key("slurm-prolog", "8")
    monkeypatch.setattr(supervise, "is_in_job", lambda: True)
    assert key("slurm-prolog", "7") != key("slurm-prolog", "8")
    assert key("slurm-health", "7") == key("slurm-health", "8")
