"""Helm chart and kustomize folders: valid, the same, and with no more rights than are used."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import helm_python
import jsonschema
import kubernetes_validate
import pytest

from dsdoctor.hook import agent, nodeapi
from dsdoctor.hook.agent import Agent, Options
from dsdoctor.version import __version__
from tests.deploy import rendered
from tests.hook.apiserver import Cluster, served

VERSIONS = ("1.30", "1.34")
FOLDERS = ("agent", "taint", "monitoring")
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": properties,
    }


TEXT = {"type": "string", "minLength": 1}
#: The fields that we use of prometheus-operator's resources (monitoring.coreos.com/v1, its API
#: reference of v0.75, 2024); the operator publishes no schema in a package.
OPERATOR = {
    "ServiceMonitor": _object(
        ("selector", "endpoints"),
        selector=_object(matchLabels=LABELS),
        endpoints={
            "type": "array",
            "items": _object(
                port=TEXT,
                path=TEXT,
                interval={"type": "string", "pattern": "^[0-9]+(ms|s|m)$"},
                honorLabels={"type": "boolean"},
                relabelings={
                    "type": "array",
                    "items": _object(
                        sourceLabels={"type": "array", "items": TEXT}, targetLabel=TEXT
                    ),
                },
            ),
        },
    ),
    "PrometheusRule": _object(
        ("groups",),
        groups={
            "type": "array",
            "items": _object(
                ("name", "rules"),
                name=TEXT,
                rules={
                    "type": "array",
                    "items": _object(
                        ("alert", "expr"),
                        alert=TEXT,
                        expr=TEXT,
                        **{"for": {"type": "string", "pattern": "^[0-9]+[smh]$"}},
                        labels=LABELS,
                        annotations=LABELS,
                    ),
                },
            ),
        },
    ),
}


def everything() -> list[Any]:
    return [
        *(pytest.param(o, id=f"helm-{'-'.join(rendered.key(o))}") for o in helm_all()),
        *(pytest.param(o, id=f"kustomize-{'-'.join(rendered.key(o))}") for o in kustomize_all()),
    ]


def helm_all() -> list[dict[str, Any]]:
    return rendered.helm(rendered.EVERYTHING)


def kustomize_all() -> list[dict[str, Any]]:
    return rendered.kustomize(*FOLDERS)


def found(kind: str, objects: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    return [o for o in objects or kustomize_all() if o["kind"] == kind]


@pytest.mark.parametrize("one", everything())
def test_every_object_keeps_its_schema(one: dict[str, Any]) -> None:
    if one["kind"] in OPERATOR:
        assert one["apiVersion"] == "monitoring.coreos.com/v1"
        jsonschema.validate(one["spec"], OPERATOR[one["kind"]])
        return
    for version in VERSIONS:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_notice_a_wrong_word() -> None:
    (daemon,) = found("DaemonSet")
    wrong = copy.deepcopy(daemon)
    wrong["spec"]["template"]["spec"]["runtimeClass"] = "nvidia"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)
    (rule,) = found("PrometheusRule")
    wrong = copy.deepcopy(rule)
    wrong["spec"]["groups"][0]["rules"][0]["expression"] = "1"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong["spec"], OPERATOR["PrometheusRule"])


def test_chart_and_kustomize_are_the_same() -> None:
    chart = {rendered.key(o): rendered.plain(o) for o in helm_all()}
    plain = {rendered.key(o): rendered.plain(o) for o in kustomize_all()}
    del plain["Namespace", "dsdoctor"]  # `helm --create-namespace` makes it
    assert sorted(chart) == sorted(plain)
    for name, wanted in plain.items():
        assert chart[name] == wanted, name


def test_by_default_the_chart_sets_no_taint_and_needs_no_operator() -> None:
    kinds = {rendered.key(o) for o in rendered.helm()}
    assert kinds == {rendered.key(o) for o in rendered.kustomize("agent")} - {
        ("Namespace", "dsdoctor")
    }


def test_helm_finds_nothing_wrong() -> None:
    report = helm_python.lint(rendered.CHART, rendered.EVERYTHING, strict=True)
    assert report["errors"] == []
    assert [m for m in report["messages"] if m["severity"] > 1] == []


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"image": {"repository": "x", "digest": "sha256:1"}}, id="a digest that is too short"
        ),
        pytest.param({"interval": "often"}, id="an interval without a number"),
        pytest.param({"tolerate": []}, id="a misspelled value"),
        pytest.param(
            {"taint": {"enabled": True, "effect": "NoExecute"}},
            id="a taint with an effect of its own",
        ),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    with (
        helm_python.Chart.load(rendered.CHART) as chart,
        pytest.raises(helm_python.HelmError),
    ):
        chart.validate_schema(chart.merge_values(values))


def test_values_reach_the_objects() -> None:
    digest = "sha256:" + "a" * 64
    values: dict[str, Any] = {
        "image": {"repository": "r.example/d", "digest": digest},
        "runtimeClassName": "",
        "ignore": ["power-capped"],
        "imagePullSecrets": [{"name": "key"}],
        "priorityClassName": "high",
        "taint": {"enabled": True, "key": "example.com/gpu"},
    }
    objects = rendered.helm(values, name="west")
    (daemon,) = found("DaemonSet", objects)
    spec = daemon["spec"]["template"]["spec"]
    assert daemon["metadata"]["name"] == "west-dsdoctor"
    assert spec["containers"][0]["image"] == f"r.example/d@{digest}"
    assert "--ignore=power-capped" in spec["containers"][0]["args"]
    assert "runtimeClassName" not in spec
    assert spec["imagePullSecrets"] == [{"name": "key"}]
    assert {"key": "example.com/gpu", "operator": "Exists"} in spec["tolerations"]
    (settings,) = found("ConfigMap", objects)
    assert settings["data"] == {"key": "example.com/gpu"}
    reference = [e for e in spec["containers"][0]["env"] if e["name"] == "DSDOCTOR_TAINT"]
    assert reference[0]["valueFrom"]["configMapKeyRef"]["name"] == settings["metadata"]["name"]
    (policy,) = found("ValidatingAdmissionPolicy", objects)
    (account,) = found("ServiceAccount", objects)
    assert policy["spec"]["matchConditions"][0]["expression"].endswith(
        f':{account["metadata"]["name"]}"'
    )


@pytest.mark.parametrize("objects", [helm_all(), kustomize_all()], ids=["helm", "kustomize"])
def test_pods_are_restricted(objects: list[dict[str, Any]]) -> None:
    specs = [spec for one in objects for spec in rendered.pod_specs(one)]
    assert len(specs) == 1
    assert rendered.restricted(specs[0]) == []
    (container,) = specs[0]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda spec: spec.update(hostPID=True), id="the host's processes"),
        pytest.param(
            lambda spec: spec["volumes"].append({"name": "dev", "hostPath": {"path": "/dev"}}),
            id="a folder of the host",
        ),
        pytest.param(
            lambda spec: spec["securityContext"].pop("seccompProfile"), id="no seccomp profile"
        ),
        pytest.param(lambda spec: spec["securityContext"].update(runAsUser=0), id="root"),
        pytest.param(
            lambda spec: spec["containers"][0]["securityContext"].update(privileged=True),
            id="privileged",
        ),
        pytest.param(
            lambda spec: spec["containers"][0]["securityContext"].pop("allowPrivilegeEscalation"),
            id="privileges can be escalated",
        ),
        pytest.param(
            lambda spec: spec["containers"][0]["securityContext"]["capabilities"].update(drop=[]),
            id="capabilities that stay",
        ),
        pytest.param(
            lambda spec: spec["containers"][0]["securityContext"]["capabilities"].update(
                add=["BPF"]
            ),
            id="a capability more",
        ),
        pytest.param(
            lambda spec: spec["containers"][0]["ports"][0].update(hostPort=9464),
            id="a port of the host",
        ),
    ],
)
def test_the_rule_of_restricted_pods_notices(change: Any) -> None:
    (daemon,) = found("DaemonSet")
    spec = copy.deepcopy(daemon["spec"]["template"]["spec"])
    change(spec)
    assert len(rendered.restricted(spec)) == 1


def rights(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """(verb, resource) that the roles allow."""
    return {
        (verb, resource)
        for role in objects
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def used(requests: list[str]) -> set[tuple[str, str]]:
    verbs = {"GET": "get", "PATCH": "patch", "POST": "create"}
    found = set()
    for line in requests:
        method, path = line.split()[:2]
        parts = path.removeprefix("/api/v1/").split("/")
        resource = parts[2] if parts[0] == "namespaces" else "/".join([parts[0], *parts[2:]])
        found.add((verbs[method], resource))
    return found


@pytest.mark.parametrize("folders", [("agent",), ("agent", "taint")])
def test_the_agent_has_the_rights_that_it_uses_and_no_more(
    folders: tuple[str, ...], tmp_path: Path
) -> None:
    cluster = Cluster()
    verdict = {
        "verdict": "faulty",
        "reason": "dsdoctor: x",
        "findings": [{"status": "fail", "condition": "gpu-lost", "hint": ""}],
    }
    taint = "dsdoctor/unhealthy" if "taint" in folders else ""
    options = Options("gpu-1", tmp_path, taint=taint, device=tmp_path)
    with served(cluster) as url:
        assert Agent(options, nodeapi.Api(url), lambda: verdict).round()
    assert used(cluster.requests) == rights(rendered.kustomize(*folders))


def test_the_pod_starts_the_agent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    (daemon,) = found("DaemonSet")
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    assert container["command"][1:] == ["-m", agent.__name__]
    monkeypatch.setenv("NODE_NAME", "gpu-1")
    (settings,) = found("ConfigMap", rendered.kustomize("taint"))
    (variable,) = [
        e["name"] for e in container["env"] if "configMapKeyRef" in e.get("valueFrom", {})
    ]
    monkeypatch.setenv(variable, settings["data"]["key"])
    options, _ = agent.parsed(container["args"])
    assert options.port == container["ports"][0]["containerPort"]
    assert options.taint == settings["data"]["key"]
    tolerated = [t["key"] for t in daemon["spec"]["template"]["spec"]["tolerations"]]
    assert options.taint in tolerated  # or it would evict itself
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(options.folder) in mounts  # the root file system is read-only
    probe = container["livenessProbe"]
    assert probe["initialDelaySeconds"] + 3 * probe["periodSeconds"] > options.budget


def test_versions_are_ours() -> None:
    with helm_python.Chart.load(rendered.CHART) as chart:
        assert (chart.version, chart.metadata["appVersion"]) == (__version__, __version__)
    for objects in (kustomize_all(), helm_all()):
        (daemon,) = found("DaemonSet", objects)
        image = daemon["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image == f"registry.example/dsdoctor:{__version__}"
