"""Alerts and dashboard in Prometheus' own engine (`promtool`), fed with what the hooks export."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsdoctor.hook import gatelog, outputs
from dsdoctor.hook.decide import Decision, Fault, unknown
from dsdoctor.hook.request import Request
from tests.deploy import rendered, test_metrics

FAULT = Fault("DSD601", "gpu-lost", "GPU 1 is lost")
HEALTHY = Decision(verdict="healthy")
FAULTY = Decision(verdict="faulty", faults=(FAULT,))
BLIND = unknown("timeout", "no verdict within 30 s")
#: Longer than each `for` of the rules.
MINUTES = 60


def rules() -> dict[str, Any]:
    (rule,) = [o for o in rendered.kustomize("monitoring") if o["kind"] == "PrometheusRule"]
    found: dict[str, Any] = rule["spec"]
    return found


def promtool(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    assert program is not None, "tests/system-deps.sh installs `promtool`"
    return subprocess.run(
        [program, *argv], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def series(
    node: str, decision: Decision, *, seconds: float = 0.5, unjudged: int = 0, stuck: bool = False
) -> Iterator[dict[str, str]]:
    """What the agent of a node exports for an hour, as Prometheus stores it."""
    day = gatelog.Summary(node, "npd", ran=60, passed=60 - unjudged, seconds=[seconds])
    day.unjudged = {"timeout": unjudged} if unjudged else {}
    day.blocked = {"gpu-lost": 1} if decision.faults else {}
    text = outputs.prometheus(Request("npd"), decision, {"timeout": unjudged}, seconds, 0.0)
    text += "\n".join([*gatelog.metrics([day]), ""])
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()  # type: ignore[union-attr]
        if 'node="' not in labels:  # which the relabeling of our ServiceMonitor adds
            labels = f'node="{node}",{labels}'
        grows = name == "dsdoctor_hook_timestamp_seconds" and not stuck
        values = f"0+60x{MINUTES}" if grows else f"{value}x{MINUTES}"
        yield {"series": f"{name}{{{labels}}}", "values": values}


#: Node to what it exports: one for each alert, and one for none.
NODES = {
    "sound": list(series("sound", HEALTHY)),
    "lost": list(series("lost", FAULTY)),
    "blind": list(series("blind", BLIND, unjudged=21)),
    "slow": list(series("slow", HEALTHY, seconds=21.0)),
    "stuck": list(series("stuck", HEALTHY, stuck=True)),
}
FIRING = {
    ("DsdoctorNodeFaulty", "lost"),
    ("DsdoctorNodeInconclusive", "blind"),
    ("DsdoctorGateBlind", "blind"),
    ("DsdoctorCheckSlow", "slow"),
    ("DsdoctorCheckStale", "stuck"),
}


def ask(tmp_path: Path, questions: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Lets Prometheus answer questions about an hour of the nodes."""
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules()))
    test = {
        "interval": "1m",
        "input_series": [row for rows in NODES.values() for row in rows],
        "promql_expr_test": questions,
    }
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))
    return promtool("test", "rules", "test.yml", cwd=tmp_path)


def firing(minute: int, alerts: set[tuple[str, str]]) -> dict[str, Any]:
    return {
        "expr": 'count by (alertname, node) (ALERTS{alertstate="firing"})',
        "eval_time": f"{minute}m",
        "exp_samples": [
            {"labels": f'{{alertname="{alert}", node="{node}"}}', "value": 1}
            for alert, node in sorted(alerts)
        ],
    }


def test_each_fault_has_its_alert_and_a_sound_node_has_none(tmp_path: Path) -> None:
    done = ask(tmp_path, [firing(4, set()), firing(MINUTES - 1, FIRING)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert {alert for alert, _ in FIRING} == {
        rule["alert"] for group in rules()["groups"] for rule in group["rules"]
    }, "a rule without a test"


def test_this_test_notices(tmp_path: Path) -> None:
    done = ask(tmp_path, [firing(MINUTES - 1, FIRING | {("DsdoctorCheckStale", "sound")})])
    assert done.returncode != 0


def test_the_panels_show_what_the_nodes_export(tmp_path: Path) -> None:
    """No query of the dashboard is empty on a cluster that has every fault."""
    asked = [
        target["expr"].replace("$node", ".*")
        for panel in test_metrics.dashboard()["panels"]
        for target in panel["targets"]
        # a monitor blocks nothing
        if "dsdoctor_hook_blocked" not in target["expr"]
    ]
    counted = [f"count({expression}) > bool 0" for expression in asked]
    counts = {
        "== 1) or vector(0)": 3,
        "== 0) or vector(0)": 1,
        "== -1) or vector(0)": 1,
    }
    questions = [
        {"expr": text, "eval_time": "59m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for text in counted
    ] + [
        {"expr": text, "eval_time": "59m", "exp_samples": [{"labels": "{}", "value": count}]}
        for ending, count in counts.items()
        for text in asked
        if text.endswith(ending)
    ]
    assert len(questions) == len(asked) + len(counts)
    done = ask(tmp_path, questions)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kit", ["kustomize", "helm"])
def test_prometheus_reads_the_rules(kit: str, tmp_path: Path) -> None:
    objects = (
        rendered.kustomize("monitoring")
        if kit == "kustomize"
        else rendered.helm(rendered.EVERYTHING)
    )
    (rule,) = [o for o in objects if o["kind"] == "PrometheusRule"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]))
    done = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]).replace("max by", "most by"))
    assert promtool("check", "rules", "rules.yml", cwd=tmp_path).returncode != 0
