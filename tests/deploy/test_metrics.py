"""Dashboard and alerts ask for metrics that we export, with labels that these have."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dsdoctor.hook import gatelog, outputs
from dsdoctor.hook.decide import Decision, Fault
from dsdoctor.hook.request import Request
from tests.deploy import rendered

#: What Prometheus itself, and the relabeling of our ServiceMonitor, adds.
ADDED = {"node", "job", "instance", "namespace", "pod"}


def exported() -> dict[str, set[str]]:
    """Metric to its labels, from the text that the hooks write."""
    fault = Fault("DSD601", "gpu-lost", "GPU 1 is lost")
    decision = Decision(block=True, verdict="faulty", faults=(fault,))
    text = outputs.prometheus(Request("npd"), decision, {"timeout": 1}, 0.5, 1.0)
    day = gatelog.Summary("gpu-1", "npd")
    day.ran, day.seconds = 3, [0.5]
    day.unjudged, day.blocked = {"timeout": 1}, {"gpu-lost": 1}
    text += "\n".join(gatelog.metrics([day]))
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels = re.fullmatch(r"(\w+)\{(.*)\} \S+", line).groups()  # type: ignore[union-attr]
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def expressions() -> dict[str, str]:
    """Name of an alert, panel or variable to what it asks for."""
    (rule,) = [o for o in rendered.kustomize("monitoring") if o["kind"] == "PrometheusRule"]
    asked = {
        f"alert {r['alert']}": r["expr"] for group in rule["spec"]["groups"] for r in group["rules"]
    }
    asked |= {
        f"panel {panel['title']}, query {target['refId']}": target["expr"]
        for panel in dashboard()["panels"]
        for target in panel["targets"]
    }
    return asked | {
        f"variable {variable['name']}": variable["query"]["query"]
        for variable in dashboard()["templating"]["list"]
        if variable["type"] == "query"
    }


def dashboard() -> dict[str, Any]:
    path = rendered.DEPLOY / "kustomize" / "monitoring" / "dashboard.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def problems(expression: str) -> list[str]:
    """What an expression asks for and nobody exports."""
    known = exported()
    names = re.findall(r"\bdsdoctor_\w+", expression)
    wrong = [f"{name} is not exported" for name in names if name not in known]
    for name, selector in re.findall(r"\b(dsdoctor_\w+)\{([^}]*)\}", expression):
        labels = set(re.findall(r"(\w+)\s*[=!]", selector))
        wrong += [f"{name} has no {label}" for label in labels - known.get(name, set()) - ADDED]
    every = set().union(*(known.get(name, set()) for name in names), ADDED)
    for labels in re.findall(r"\bby \(([^)]*)\)", expression):
        wrong += [
            f"no {label.strip()}" for label in labels.split(",") if label.strip() not in every
        ]
    return wrong


@pytest.mark.parametrize(
    "expression", [pytest.param(text, id=name) for name, text in expressions().items()]
)
def test_every_query_asks_for_what_is_exported(expression: str) -> None:
    assert problems(expression) == []
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize(
    "expression",
    [
        "dsdoctor_hook_health",
        'dsdoctor_hook_healthy{kind="npd"}',
        "max by (host) (dsdoctor_gate_seconds)",
    ],
)
def test_the_check_of_queries_notices(expression: str) -> None:
    assert len(problems(expression)) == 1


def test_every_metric_is_shown() -> None:
    shown = set(re.findall(r"\bdsdoctor_\w+", " ".join(expressions().values())))
    assert shown == set(exported())


def test_the_dashboards_of_both_kits_are_one() -> None:
    chart = (rendered.CHART / "files" / "dashboard.json").read_text()
    assert json.loads(chart) == dashboard()
    (settings,) = [
        o
        for o in rendered.helm(rendered.EVERYTHING)
        if o["metadata"]["name"] == "dsdoctor-dashboard"
    ]
    assert json.loads(settings["data"]["dashboard.json"]) == dashboard()
    assert settings["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        assert panel["description"]
        cells |= own
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)


def test_a_scrape_is_labelled_with_the_node() -> None:
    (monitor,) = [o for o in rendered.kustomize("monitoring") if o["kind"] == "ServiceMonitor"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert [r["targetLabel"] for r in endpoint["relabelings"]] == ["node"]
    (service,) = [o for o in rendered.kustomize("monitoring") if o["kind"] == "Service"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
