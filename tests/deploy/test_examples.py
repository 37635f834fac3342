"""One job of each kind behind the gate: fields that the kinds have, statuses that they act on.

The shapes below are the fields that the examples use, taken by hand from the projects' own custom
resource definitions and sources (November 2026); the projects publish no schemas in a package.
"""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from dsdoctor.hook import install
from dsdoctor.hook.outputs import K8S_JOB_FAULT, K8S_NODE_FAULT
from tests.deploy import rendered

EXAMPLES = {
    path.stem: yaml.safe_load(path.read_text())
    for path in sorted((rendered.DEPLOY / "examples").glob("*.yaml"))
}
#: Those whose controller reads the exit status of an init container.
BY_POLICY = ("jobset", "kueue-job")
#: Those whose controller reads the exit status of the training container alone.
IN_FRONT = ("pytorchjob", "volcano-job")
#: Those whose controller only knows that a pod failed.
UNREAD = ("rayjob", "skypilot-task")
NUMBER = {"type": "integer", "minimum": 0}
TEXT = {"type": "string", "minLength": 1}
ANY = {"type": "object"}


def shape(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "additionalProperties": False,
        "properties": properties,
    }


def items(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": of}


POD_TEMPLATE = shape("spec", metadata=ANY, spec=ANY)
REPLICA = shape(
    "template",
    replicas=NUMBER,
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template=POD_TEMPLATE,
)
#: batch.volcano.sh_jobs.yaml; actions from pkg/apis/bus/v1alpha1/actions.go
VOLCANO_POLICY = shape(
    "action",
    action={"enum": ["AbortJob", "RestartJob", "RestartTask", "RestartPod", "TerminateJob"]},
    event={"enum": ["*", "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed"]},
    exitCode={"type": "integer", "not": {"const": 0}},
)
VOLCANO_POLICY["oneOf"] = [{"required": ["event"]}, {"required": ["exitCode"]}]
SHAPES: dict[str, dict[str, Any]] = {
    # kubernetes-sigs/jobset api/jobset/v1alpha2
    "jobset": shape(
        "replicatedJobs",
        failurePolicy=shape(
            maxRestarts=NUMBER,
            rules=items(
                shape(
                    "name action",
                    name={"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
                    action={
                        "enum": [
                            "FailJobSet",
                            "RestartJobSet",
                            "RestartJobSetAndIgnoreMaxRestarts",
                        ]
                    },
                    targetReplicatedJobs=items(TEXT),
                    onJobFailureReasons=items(
                        {"enum": ["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy"]}
                    ),
                )
            ),
        ),
        replicatedJobs=items(shape("name template", name=TEXT, replicas=NUMBER, template=ANY)),
    ),
    # kubeflow/training-operator pkg/apis/kubeflow.org/v1
    "pytorchjob": shape(
        "pytorchReplicaSpecs",
        runPolicy=shape(
            cleanPodPolicy={"enum": ["None", "Running", "All"]},
            backoffLimit=NUMBER,
            activeDeadlineSeconds=NUMBER,
        ),
        pytorchReplicaSpecs=shape("Master", Master=REPLICA, Worker=REPLICA),
    ),
    # volcano-sh/volcano config/crd/volcano/bases/batch.volcano.sh_jobs.yaml
    "volcano-job": shape(
        "tasks",
        schedulerName=TEXT,
        queue=TEXT,
        minAvailable=NUMBER,
        maxRetry=NUMBER,
        policies=items(VOLCANO_POLICY),
        plugins={"type": "object", "additionalProperties": {"type": "array"}},
        tasks=items(
            shape(
                "name template",
                name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                replicas=NUMBER,
                policies=items(VOLCANO_POLICY),
                template=POD_TEMPLATE,
            )
        ),
    ),
    # ray-project/kuberay ray-operator/config/crd/bases/ray.io_rayjobs.yaml
    "rayjob": shape(
        "entrypoint rayClusterSpec",
        entrypoint=TEXT,
        shutdownAfterJobFinishes={"type": "boolean"},
        activeDeadlineSeconds=NUMBER,
        rayClusterSpec=shape(
            "headGroupSpec",
            headGroupSpec=shape(
                "template",
                rayStartParams={"type": "object", "additionalProperties": {"type": "string"}},
                template=POD_TEMPLATE,
            ),
            workerGroupSpecs=items(
                shape(
                    "groupName template",
                    groupName=TEXT,
                    replicas=NUMBER,
                    minReplicas=NUMBER,
                    maxReplicas=NUMBER,
                    rayStartParams={"type": "object", "additionalProperties": {"type": "string"}},
                    template=POD_TEMPLATE,
                )
            ),
        ),
    ),
}
#: skypilot-org/skypilot sky/utils/schemas.py
SKYPILOT = shape(
    "resources run config",
    name=TEXT,
    num_nodes=NUMBER,
    resources=shape("infra", infra=TEXT, image_id=TEXT, accelerators=TEXT),
    run=TEXT,
    config=shape("kubernetes", kubernetes=shape("pod_config", pod_config=shape("spec", spec=ANY))),
)
KINDS = {
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "kueue-job": ("batch/v1", "Job"),
    "pytorchjob": ("kubeflow.org/v1", "PyTorchJob"),
    "rayjob": ("ray.io/v1", "RayJob"),
    "volcano-job": ("batch.volcano.sh/v1alpha1", "Job"),
}


def specs(name: str) -> list[dict[str, Any]]:
    """Pod specs with GPUs; SkyPilot's lacks the containers, which SkyPilot itself adds."""
    if name == "skypilot-task":
        spec = EXAMPLES[name]["config"]["kubernetes"]["pod_config"]["spec"]
        sane = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        return [{**spec, "containers": [], "securityContext": sane}]
    return list(rendered.pod_specs(EXAMPLES[name]))


def gpus(container: dict[str, Any]) -> int:
    return int(container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0))


def test_there_is_one_for_each_kind() -> None:
    assert sorted(EXAMPLES) == sorted([*BY_POLICY, *IN_FRONT, *UNREAD])
    for name, kind in KINDS.items():
        assert (EXAMPLES[name]["apiVersion"], EXAMPLES[name]["kind"]) == kind


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_fields_are_those_of_the_kind(name: str) -> None:
    if name == "skypilot-task":
        jsonschema.validate(EXAMPLES[name], SKYPILOT)
    elif name == "kueue-job":
        kubernetes_validate.validate(EXAMPLES[name], "1.34", strict=True)
        assert EXAMPLES[name]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    else:
        assert set(EXAMPLES[name]) == {"apiVersion", "kind", "metadata", "spec"}
        jsonschema.validate(EXAMPLES[name]["spec"], SHAPES[name])
    for spec in specs(name):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x"},
            "spec": {**spec, "containers": spec["containers"] or spec["initContainers"]},
        }
        kubernetes_validate.validate(pod, "1.34", strict=True)
    if name == "jobset":
        for replicated in EXAMPLES[name]["spec"]["replicatedJobs"]:
            job = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "x"},
                "spec": replicated["template"]["spec"],
            }
            kubernetes_validate.validate(job, "1.34", strict=True)


def test_the_shapes_notice_a_wrong_word() -> None:
    wrong = copy.deepcopy(EXAMPLES["volcano-job"]["spec"])
    wrong["policies"][0]["exitcode"] = wrong["policies"][0].pop("exitCode")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SHAPES["volcano-job"])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_pods_are_restricted(name: str) -> None:
    assert specs(name)
    for spec in specs(name):
        assert rendered.restricted(spec) == []


@pytest.mark.parametrize("name", [*BY_POLICY, *UNREAD])
def test_the_init_container_is_that_of_hook_install(name: str) -> None:
    options = install.InstallOptions(into=Path("x"), python="python3")
    files = install.plan("kubernetes", options).files
    job = next(yaml.safe_load(t) for p, (t, _) in files.items() if p.name == "job.yaml")
    (ours,) = job["spec"]["template"]["spec"]["initContainers"]
    config = next(yaml.safe_load(t) for p, (t, _) in files.items() if "configmap" in p.name)
    gated = [spec for spec in specs(name) if spec.get("initContainers")]
    assert len(gated) == 1
    (gate,) = gated[0]["initContainers"]
    script, shm = gate["volumeMounts"]
    assert shm["name"] == ("dshm" if name == "skypilot-task" else "shm")
    gate["volumeMounts"] = [script, {**shm, "name": "shm"}]
    assert {k: v for k, v in gate.items() if k != "securityContext"} == ours
    (volume,) = [v for v in gated[0]["volumes"] if v["name"] == script["name"]]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    for container in gated[0]["containers"]:
        assert shm in container["volumeMounts"], "the gate would judge another /dev/shm"
        assert gpus(container) == gpus(gate), "the gate would look at other GPUs"
        assert container["image"] == gate["image"], "the gate would judge another environment"


@pytest.mark.parametrize("name", [*BY_POLICY, *IN_FRONT, "rayjob"])
def test_pods_do_not_try_again_on_the_same_node(name: str) -> None:
    for spec in specs(name):
        if any(gpus(container) for container in spec["containers"]):
            # the training operator sets it itself: `ExitCode` becomes Never
            assert spec.get("restartPolicy") == (None if name == "pytorchjob" else "Never")


def policies(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value["podFailurePolicy"]] if "podFailurePolicy" in value else []
        return own + [found for inner in value.values() for found in policies(inner)]
    if isinstance(value, list):
        return [found for inner in value for found in policies(inner)]
    return []


@pytest.mark.parametrize("name", BY_POLICY)
def test_the_policy_acts_on_the_statuses_of_the_gate(name: str) -> None:
    (policy,) = policies(EXAMPLES[name])
    rules = {rule["action"]: rule["onExitCodes"] for rule in policy["rules"]}
    assert {action: on["values"] for action, on in rules.items()} == {
        "Ignore": [K8S_NODE_FAULT],
        "FailJob": [K8S_JOB_FAULT],
    }
    (spec,) = specs(name)
    for on in rules.values():
        assert on["containerName"] == spec["initContainers"][0]["name"]


@pytest.mark.parametrize("name", IN_FRONT)
@pytest.mark.parametrize(
    ("gate", "training", "status"),
    [(0, 0, 0), (0, 7, 7), (K8S_NODE_FAULT, 0, 138), (K8S_JOB_FAULT, 0, 4), (127, 0, 4)],
)
def test_statuses_in_front_of_the_training(
    name: str, gate: int, training: int, status: int, tmp_path: Path
) -> None:
    (tmp_path / "gate.sh").write_text(f"exit {gate}\n")
    (tmp_path / "torchrun").write_text(f'#!/bin/sh\necho "trained $*"\nexit {training}\n')
    (tmp_path / "torchrun").chmod(0o755)
    for spec in specs(name):
        (container,) = spec["containers"]
        words = [w.replace("/dsdoctor/", f"{tmp_path}/") for w in container["command"]]
        done = subprocess.run(
            words,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == status, done.stderr
        begun = f"trained {' '.join(words[words.index('torchrun') + 1 :])}\n"
        assert done.stdout == (begun if gate == 0 else "")


def test_what_the_controllers_make_of_the_statuses() -> None:
    """128 and above is tried again by the training operator; Volcano's rules name both."""
    for replica in EXAMPLES["pytorchjob"]["spec"]["pytorchReplicaSpecs"].values():
        assert replica["restartPolicy"] == "ExitCode"
    rules = {
        rule["exitCode"]: rule["action"]
        for rule in EXAMPLES["volcano-job"]["spec"]["policies"]
        if "exitCode" in rule
    }
    assert rules == {138: "RestartJob", 4: "AbortJob"}
