"""Kubernetes or the operator of the job refuses the manifest.

## Why it matters
`kubectl apply` fails, or the object is created and its job never gets pods.

## What to do
Change the manifest as the finding says. `kubectl apply --dry-run=server` asks the cluster itself.

## References
- https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
- kubeflow training-operator 1.3 to 1.9 pkg/webhooks/pytorch, mpi-operator pkg/apis/kubeflow/validation
- kubernetes 1.20 to 1.34 pkg/apis/core/validation, apimachinery pkg/api/errors and pkg/api/meta
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition("manifest-refused", id="DSD1106", scope=Scope.JOB, since="0.1")

#: Each rule: what is wrong, and what to do.
_RULES = {
    "device-without-limit": (
        "{devices} is requested, but not limited",
        "the API server refuses the pod: a device needs a limit",
        "write it below `resources.limits`; the request is then the same",
    ),
    "device-request-differs": (
        "the request for {devices} differs from its limit",
        "the API server refuses the pod: the two must be equal for a device",
        "write the number below `resources.limits` only",
    ),
    "device-not-whole": (
        "the limit of {devices} is no whole number",
        "the API server refuses the pod: a device cannot be divided",
        "ask for whole devices; for parts of a GPU, the cluster has to offer MIG or time slices",
    ),
    "variable-not-text": (
        "the value of `{about}` in `env` is no text",
        "the API server refuses the object: it cannot make a number, or a word such as `true`, a string",
        'put the value into quotes: `value: "1"`',
    ),
    "container-named-pytorch": (
        "no container of this part of the PyTorchJob is named `pytorch`",
        "the training-operator refuses the job, or starts no pod",
        "name the container of the training `pytorch`",
    ),
    "one-master": (
        "`Master` of the PyTorchJob has several replicas",
        "the training-operator refuses the job",
        "set `replicas: 1` for `Master`, and add pods to `Worker`",
    ),
    "one-launcher": (
        "`Launcher` of the MPIJob has several replicas",
        "the mpi-operator refuses the job",
        "set `replicas: 1` for `Launcher`, and add pods to `Worker`",
    ),
    "elastic-without-workers": (
        "`elasticPolicy` is set, but the PyTorchJob has no `Worker`",
        "the training-operator refuses the job",
        "add `Worker`, or remove `elasticPolicy`",
    ),
    "ranks-stated-twice": (
        "`nprocPerNode` and `elasticPolicy.nProcPerNode` are both set",
        "the training-operator refuses the job",
        "remove `elasticPolicy.nProcPerNode`, which is deprecated",
    ),
}


@check(CONDITION)
def manifest_is_valid(run: RunNeeds) -> Iterator[Finding]:
    """Reports the rules that the object in the file breaks."""
    container = run.manifest
    if container is None:
        yield skip("the command is in no manifest")
        return
    names = " and ".join(f"`{name}`" for name in sorted({*container.limits, *container.requests}))
    for one in container.refused:
        rule, _, about = one.partition(":")
        what, effect, hint = _RULES[rule]
        yield fail(
            what.format(devices=names, about=about),
            effect=effect,
            hint=hint,
            container=container.name,
            kind=container.kind,
            rule=rule,
        )
    if not container.refused:
        yield ok(container=container.name)


HINT = "change what the message names; `kubectl explain KIND.spec --recursive` lists the keys, and `dsdoctor lint FILE` judges the GPUs and pods of the manifest"

SIGNATURES = (
    Signature(
        pattern=r"(?:Required value: Limit must be set for non overcommitable resources|must be equal to (?P<device>[\w.-]{1,100}/[\w.-]{1,60}) limit of \d)",
        source="kubernetes 1.9-1.34 pkg/apis/core/validation/validation.go",
        message="Kubernetes refuses the pod: a device needs a limit, and a request for it must be equal to the limit",
        hint="write the number of GPUs below `resources.limits` only",
        examples=(
            'The Job "ft" is invalid: spec.template.spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources',
            'The Pod "ft" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be equal to nvidia.com/gpu limit of 4',
        ),
        not_examples=("the request must be equal to the limit",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"^(?:.{0,80}: )?The (?P<kind>[A-Z]\w{1,60}) \x22(?P<name>[^\x22]{1,253})\x22 is invalid: ?(?P<why>.{0,300})",
        source="kubernetes 1.9-1.34 apimachinery pkg/api/errors NewInvalid, as kubectl prints it",
        message="Kubernetes refuses the {kind} `{name}`: {why}",
        examples=(
            'The PyTorchJob "ft" is invalid: spec.pytorchReplicaSpecs[Master].template.spec.containers: Required value: must have at least one container with name pytorch',
            'The Job "ft" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        not_examples=('the value "x" is invalid: expected a number',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bno matches for kind \x22(?P<kind>\w{1,80})\x22 in version \x22(?P<version>[^\x22]{1,120})\x22",
        source="kubernetes 1.9-1.34 apimachinery pkg/api/meta/errors.go NoKindMatchError",
        message="the cluster does not know the kind `{kind}` of `{version}`",
        hint="install the operator that brings it (`kubectl api-resources` lists what there is), or write the version that the cluster has",
        examples=(
            'error: resource mapping not found for name: "ft" namespace: "" from "job.yaml": no matches for kind "PyTorchJob" in version "kubeflow.org/v1"',
            'error: unable to recognize "job.yaml": no matches for kind "MPIJob" in version "kubeflow.org/v2beta1"',
        ),
        not_examples=('no matches for kind "x y" in version "1"',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"error when \w{1,20} \x22[^\x22]{1,300}\x22: admission webhook \x22[^\x22]{1,200}\x22 denied the request: (?P<why>.{1,300})",
        source="kubectl 1.9-1.34 cli-runtime pkg/resource, apiserver pkg/admission/plugin/webhook",
        message="Kubernetes refuses the manifest: {why}",
        examples=(
            'Error from server (Forbidden): error when creating "job.yaml": admission webhook "validator.pytorchjob.training-operator.kubeflow.org" denied the request: spec.pytorchReplicaSpecs[Worker]: Required value: must be configured if elastic policy is used',
        ),
        not_examples=('"a": admission webhook "b" denied the request: c',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Error creating: admission webhook \x22[^\x22]{1,200}\x22 denied the request: (?P<why>.{1,300})",
        source="kubernetes 1.9-1.34 pkg/controller/controller_utils.go, of a pod that a controller creates; apiserver pkg/admission/plugin/webhook",
        message="Kubernetes refuses the pods that the job's controller creates: {why}",
        hint="correct the job as the message says; if it tells of an internal error, ask whoever runs the webhook that it names",
        examples=(
            '  Warning  FailedCreate  9s (x4 over 40s)  job-controller  Error creating: admission webhook "limits.example.org" denied the request: nvidia.com/gpu must be a multiple of 8',
        ),
        not_examples=('Error creating: admission webhook "b" did not answer',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"error when \w{1,20} \x22[^\x22]{1,300}\x22: (?P<why>\w{1,60} in version \x22[^\x22]{1,60}\x22 cannot be handled as a .{1,300})",
        source="kubectl 1.9-1.34 cli-runtime pkg/resource, apimachinery pkg/api/errors",
        message="Kubernetes refuses the manifest: {why}",
        examples=(
            'Error from server (BadRequest): error when creating "job.yaml": Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field "spec.replicas"',
        ),
        not_examples=('version "v1" cannot be handled as a Pod',),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^error: error (?:parsing|validating) (?:\x22[^\x22]{1,300}\x22|\S{1,300}): (?P<why>error (?:converting YAML to JSON|validating data): .{1,300})",
        source="kubectl 1.9-1.34 cli-runtime pkg/resource/visitor.go, pkg/validation",
        message="kubectl cannot read the manifest: {why}",
        hint="correct the line that it names; YAML allows no tabs, and a template has to be rendered first",
        examples=(
            "error: error parsing job.yaml: error converting YAML to JSON: yaml: line 9: mapping values are not allowed in this context",
            'error: error validating "job.yaml": error validating data: unknown object type "nil" in Pod.spec; if you choose to ignore these errors, turn validation off with --validate=false',
        ),
        not_examples=("W0811 error validating data: the schema is missing",),
        level=Level.STRONG,
    ),
)
