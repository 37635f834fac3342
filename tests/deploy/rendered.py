"""The deployment kit as the real tools render it: Helm's own engine, and `kubectl kustomize`."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import yaml

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CHART = DEPLOY / "helm" / "dsdoctor"
EVERYTHING = {
    "taint": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}
#: Labels that only one of the two tools writes.
_OWN_LABELS = (
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
)


def helm(values: dict[str, Any] | None = None, name: str = "dsdoctor") -> list[dict[str, Any]]:
    """Objects of the chart under some values."""
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values, name=name, namespace="dsdoctor")
    texts = [text for path, text in sorted(files.items()) if path.endswith(".yaml")]
    return [found for text in texts for found in yaml.safe_load_all(text) if found]


@functools.cache
def _kustomize(folder: str) -> str:
    kubectl = shutil.which("kubectl")
    assert kubectl is not None, "tests/system-deps.sh installs `kubectl`"
    done = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY / "kustomize" / folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kustomize(*folders: str) -> list[dict[str, Any]]:
    """Objects of some of the folders of `deploy/kustomize`."""
    return [found for folder in folders for found in yaml.safe_load_all(_kustomize(folder))]


def key(found: dict[str, Any]) -> tuple[str, str]:
    return found["kind"], found["metadata"]["name"]


def plain(found: dict[str, Any]) -> dict[str, Any]:
    """An object without what only one of the tools writes."""
    copy: dict[str, Any] = json.loads(json.dumps(found))
    for meta in _metadata(copy):
        for label in _OWN_LABELS:
            meta.get("labels", {}).pop(label, None)
    if copy["kind"] == "DaemonSet":  # the tool's default, written by one of them
        for container in copy["spec"]["template"]["spec"]["containers"]:
            container.pop("imagePullPolicy", None)
    return copy


def _metadata(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "metadata" and isinstance(inner, dict):
                yield inner
            yield from _metadata(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _metadata(inner)


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec in an object, wherever its kind keeps it."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_specs(inner)


def restricted(spec: dict[str, Any]) -> list[str]:
    """What the level `restricted` of Kubernetes' Pod Security Standards (1.30) refuses in a spec."""
    wrong = [f"{name} is set" for name in ("hostPID", "hostIPC", "hostNetwork") if spec.get(name)]
    allowed = {
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
        "projected", "secret",
    }  # fmt: skip
    for volume in spec.get("volumes", ()):
        wrong += [f"volume {kind}" for kind in set(volume) - {"name"} - allowed]
    pod = spec.get("securityContext", {})
    for container in [*spec.get("initContainers", ()), *spec["containers"]]:
        own = container.get("securityContext", {})
        both = {**pod, **own}
        name = container["name"]
        if own.get("privileged"):
            wrong.append(f"{name} is privileged")
        if own.get("allowPrivilegeEscalation") is not False:
            wrong.append(f"{name} may escalate")
        capabilities = own.get("capabilities", {})
        if capabilities.get("drop") != ["ALL"]:
            wrong.append(f"{name} keeps capabilities")
        if set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
            wrong.append(f"{name} adds capabilities")
        if both.get("runAsNonRoot") is not True or both.get("runAsUser") == 0:
            wrong.append(f"{name} may be root")
        if both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            wrong.append(f"{name} has no seccomp profile")
        if any(port.get("hostPort") for port in container.get("ports", ())):
            wrong.append(f"{name} has a port of the host")
    return wrong
