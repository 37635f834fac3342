"""`lint` judges the containers of Kubernetes manifests and Compose files with their commands."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from dsdoctor.judge import Policy
from dsdoctor.lint import Linter
from dsdoctor.model.finding import Status
from dsdoctor.packs import load

REGISTRY = load(builtin_only=True)
ROOT = Path(__file__).parent.parent.parent
SHM = (
    "        volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
    "      volumes: [{name: shm, emptyDir: {medium: Memory}}]\n"
)


def by_stem(path: Path) -> str:
    return path.stem


class Said(NamedTuple):
    """A finding of a test."""

    status: Status
    condition: str
    line: int
    message: str


def lint(tmp_path: Path, text: str, name: str = "job.yaml") -> list[Said]:
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    linter = Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy())
    report = linter.lint(path, name)
    return [
        Said(one.status, one.condition, one.evidence.get("line", 0), one.message)
        for one in (report.findings if report else [])
    ]


def pod(command: str, gpus: str = "nvidia.com/gpu: 4", rest: str = SHM) -> str:
    return (
        "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
        f"      - name: train\n        image: train:1\n        command: {command}\n"
        f"        resources: {{limits: {{{gpus}}}}}\n{rest}"
    )


def pytorch_job(command: str, *, workers: int = 1, gpus: str = "8", **more: str) -> str:
    role = (
        "      replicas: {}\n      template:\n        spec:\n          hostIPC: true\n"
        "          containers:\n          - name: {}\n            command: {}\n"
        "            resources: {{limits: {{nvidia.com/gpu: {}}}}}\n"
    )
    name = more.get("name", "pytorch")
    top = "".join(f"  {key}: {value}\n" for key, value in more.items() if key != "name")
    return (
        f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: a}}\nspec:\n{top}"
        f"  pytorchReplicaSpecs:\n    Master:\n{role.format(1, name, command, gpus)}"
        f"    Worker:\n{role.format(workers, name, command, gpus)}"
    )


def test_ranks_are_compared_with_the_gpus_of_the_container(tmp_path: Path) -> None:
    found = lint(tmp_path, pod("[torchrun, --nproc_per_node=8, t.py]"))
    assert [one.condition for one in found] == ["invalid-device-ordinal"]
    assert found[0].status is Status.FAIL
    assert "in this container, but it gets 4 GPUs (`nvidia.com/gpu: 4`)" in found[0].message
    assert found[0].line == 9


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(pod("[torchrun, --nproc_per_node=4, t.py]"), id="as many ranks"),
        pytest.param(pod("[torchrun, --nproc_per_node=gpu, t.py]"), id="a rank a GPU"),
        pytest.param(pod("[deepspeed, t.py]"), id="deepspeed counts"),
        pytest.param(pod("[python, t.py]"), id="no launcher"),
        pytest.param(pod("[torchrun, --nproc_per_node=8, t.py]", "nvidia.com/gpu: $N"), id="shell"),
        pytest.param(
            pod("[torchrun, --nproc_per_node=32, t.py]", "aws.amazon.com/neuroncore: 32"),
            id="another accelerator",
        ),
        pytest.param(pod("[torchrun, --nproc_per_node=2, t.py]", "cpu: 8"), id="ranks on CPUs"),
        pytest.param(
            pod("[torchrun, --nproc_per_node=1, t.py]", "nvidia.com/gpu: 1", ""), id="one rank"
        ),
        pytest.param(
            pod("[torchrun, --nproc_per_node=4, t.py]", rest="      hostIPC: true\n"), id="hostIPC"
        ),
        pytest.param(pytorch_job("[torchrun, t.py]", nprocPerNode='"8"'), id="nprocPerNode"),
        pytest.param(pytorch_job("[torchrun, t.py]"), id="the operator's own default"),
        pytest.param(pod("[python, t.py]", 'nvidia.com/gpu: "4.0"'), id="a whole number"),
        pytest.param(pod("[python, t.py]", 'nvidia.com/gpu: "<gpus>"'), id="to be filled in"),
        pytest.param(
            pod("[torchrun, t.py]", "kubernetes.io/batch-cpu: 4000").replace("limits", "requests"),
            id="a resource of Kubernetes",
        ),
        pytest.param(
            pytorch_job("[torchrun, --nnodes=2, --nproc_per_node=8, t.py]"), id="PyTorchJob"
        ),
        pytest.param(
            pytorch_job(
                "[torchrun, --nnodes=2, --nproc_per_node=8, t.py]",
                elasticPolicy="{minReplicas: 1, maxReplicas: 64}",
            ),
            id="elastic",
        ),
    ],
)
def test_a_right_manifest_is_clean(tmp_path: Path, text: str) -> None:
    assert lint(tmp_path, text) == []


def test_ranks_share_no_default_memory(tmp_path: Path) -> None:
    found = lint(tmp_path, pod("[torchrun, --nproc_per_node=4, t.py]", rest=""))
    assert [(one.status, one.condition) for one in found] == [(Status.WARN, "shm-too-small")]
    assert "the pod mounts no volume at /dev/shm, so it has 64 MiB" in found[0].message


def test_torchrun_alone_starts_one_rank(tmp_path: Path) -> None:
    found = lint(tmp_path, pod("[torchrun, t.py]"))
    assert [(one.status, one.condition) for one in found] == [
        (Status.WARN, "manifest-request-mismatch")
    ]
    assert "torchrun starts one rank, but the container gets 4 GPUs" in found[0].message


def test_ranks_of_the_job_count_if_the_command_states_none(tmp_path: Path) -> None:
    found = lint(tmp_path, pytorch_job("[torchrun, t.py]", gpus="4", nprocPerNode='"8"'))
    assert {(one.status, one.condition) for one in found} == {
        (Status.FAIL, "manifest-request-mismatch")
    }
    assert "the job starts 8 ranks in each pod (`nprocPerNode: 8`)" in found[0].message


@pytest.mark.parametrize(
    ("nodes", "status", "words"),
    [
        (4, Status.FAIL, "waits for 4 nodes (`--nnodes`), but the job has 3 pods"),
        (2, Status.WARN, "3 pods (`Master` 1 + `Worker` 2), but the command uses 2"),
    ],
)
def test_nodes_are_compared_with_pods(
    tmp_path: Path, nodes: int, status: Status, words: str
) -> None:
    command = f"[torchrun, --nnodes={nodes}, --nproc_per_node=8, t.py]"
    found = lint(tmp_path, pytorch_job(command, workers=2))
    assert {(one.status, one.condition) for one in found} == {(status, "manifest-request-mismatch")}
    assert words in found[0].message


def test_standalone_runs_know_nothing_of_each_other(tmp_path: Path) -> None:
    found = lint(tmp_path, pytorch_job("[torchrun, --standalone, --nproc_per_node=8, t.py]"))
    assert "starts a run of its own in each of the 2 pods" in found[0].message


def test_pods_that_meet_nowhere_train_alone(tmp_path: Path) -> None:
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec:\n  tasks:\n  - name: worker\n"
        "    replicas: 2\n    template: {spec: {hostIPC: true, containers: [{command: [sh, -c,\n"
        "      'sh gate.sh && exec \"$@\"', gate,\n      torchrun, --nproc_per_node=2, t.py]}]}}\n"
    )
    (found,) = lint(tmp_path, text)
    assert (found.condition, found.line) == ("manifest-request-mismatch", 9)
    assert "torchrun without `--nnodes` starts a run of its own in each of the 2" in found.message
    meeting = text.replace("torchrun,", "torchrun, --nnodes=2, --rdzv-endpoint=a:1,")
    assert lint(tmp_path, meeting) == []


@pytest.mark.parametrize("path", sorted((ROOT / "deploy" / "examples").iterdir()), ids=by_stem)
def test_the_examples_are_clean(path: Path) -> None:
    linter = Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy())
    report = linter.lint(path, path.name, named=path.stem != "rayjob")
    assert report is None or report.findings == []


def test_the_operator_tells_torchrun_where_to_meet(tmp_path: Path) -> None:
    command = "[torchrun, --nnodes=2, --nproc_per_node=4, t.py]"
    assert lint(tmp_path, pytorch_job(command, gpus="4")) == []
    job = pod(command).replace("spec:\n  template", "spec:\n  parallelism: 2\n  template", 1)
    assert {one.condition for one in lint(tmp_path, job)} == {"rendezvous-timeout"}


def test_a_refusal_is_found_beside_a_command_that_a_shell_completes(tmp_path: Path) -> None:
    text = pod("[torchrun, --nnodes=$N, t.py]").replace("limits", "requests")
    assert [one.condition for one in lint(tmp_path, text)] == ["manifest-refused"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            pod("[python, t.py]").replace("limits", "requests"),
            "`nvidia.com/gpu` is requested, but not limited",
            id="a request alone",
        ),
        pytest.param(
            pod("[python, t.py]", "nvidia.com/gpu: 4}, requests: {nvidia.com/gpu: 2"),
            "the request for `nvidia.com/gpu` differs from its limit",
            id="another request",
        ),
        pytest.param(
            pod("[python, t.py]", 'nvidia.com/gpu: "0.5"'), "is no whole number", id="half a GPU"
        ),
        pytest.param(
            pytorch_job("[python, t.py]", name="train"),
            "no container of this part of the PyTorchJob is named `pytorch`",
            id="its name",
        ),
        pytest.param(
            pytorch_job("[python, t.py]").replace("replicas: 1", "replicas: 2", 1),
            "`Master` of the PyTorchJob has several replicas",
            id="two masters",
        ),
        pytest.param(
            pytorch_job("[python, t.py]", nprocPerNode="8", elasticPolicy="{nProcPerNode: 8}"),
            "are both set",
            id="stated twice",
        ),
    ],
)
def test_what_kubernetes_refuses_is_reported(tmp_path: Path, text: str, words: str) -> None:
    found = lint(tmp_path, text)
    assert {(one.status, one.condition) for one in found} == {(Status.FAIL, "manifest-refused")}
    assert words in found[0].message


def mpi_job(ranks: str, slots: int = 4, gpus: int = 4, **more: str) -> str:
    top = "".join(f"  {key}: {value}\n" for key, value in more.items())
    return (
        f"kind: MPIJob\nspec:\n  slotsPerWorker: {slots}\n{top}  mpiReplicaSpecs:\n    Launcher:\n"
        "      replicas: 1\n      template:\n        spec:\n          containers:\n"
        f"          - name: a\n            command: [mpirun, {ranks}, python, t.py]\n    Worker:\n"
        "      replicas: 2\n      template:\n        spec:\n          containers:\n"
        f"          - name: b\n            resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}\n"
    )


def test_an_mpi_job_has_slots_for_its_ranks(tmp_path: Path) -> None:
    assert lint(tmp_path, mpi_job('-np, "8"')) == []
    assert lint(tmp_path, mpi_job('-np, "9", --oversubscribe')) == []
    assert lint(tmp_path, mpi_job('-np, "9"', mpiImplementation="Intel")) == []
    (many,) = lint(tmp_path, mpi_job('-np, "9"'))
    assert "to start 9 ranks, but the job has 8 slots (2 workers with `slotsPer" in many.message
    (wide,) = lint(tmp_path, mpi_job('-np, "8"', slots=8))
    assert "starts 8 ranks on each worker, which gets 4 GPUs" in wide.message
    assert {many.status, wide.status} == {Status.FAIL}


def compose(rest: str, command: str = "deepspeed --num_gpus 2 t.py") -> str:
    return f"services:\n  train:\n    image: train:1\n    command: {command}\n{rest}"


DEVICES = (
    "    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: %s, "
    "capabilities: [gpu]}]}}}\n"
)


def test_services_of_compose_files_are_judged(tmp_path: Path) -> None:
    assert lint(tmp_path, compose(DEVICES % 2 + "    shm_size: 8gb\n")) == []
    assert lint(tmp_path, compose(DEVICES % "all" + "    ipc: host\n")) == []
    few = lint(tmp_path, compose(DEVICES % 1 + "    ipc: host\n"))
    assert [(one.condition, one.line) for one in few] == [("invalid-device-ordinal", 4)]
    none = lint(tmp_path, compose("    ipc: host\n"))
    assert [one.condition for one in none] == ["manifest-request-mismatch"]
    assert "asks for no GPU, but its command uses `deepspeed --num_gpus 2`" in none[0].message
    assert lint(tmp_path, compose("    ipc: host\n    runtime: nvidia\n")) == []
    small = lint(tmp_path, compose(DEVICES % 2))
    assert [one.condition for one in small] == ["shm-too-small"]
    assert "sets neither `shm_size` nor `ipc: host`" in small[0].message


def test_files_of_a_config_map_are_judged_at_their_lines(tmp_path: Path) -> None:
    text = (
        "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  ds.json: |\n    {\n"
        '      "train_micro_batch_size_per_gpu": 1,\n'
        '      "zero_optimization": {"stage": 7}\n    }\n'
        "  run.sh: |\n    true\n    torchrun --nproc_per_nodes=2 t.py\n"
        "  other.txt: hello\n"
    )
    found = lint(tmp_path, text)
    assert [(one.condition, one.line) for one in found] == [
        ("ds-config-wrong-type", 7),
        ("launch-option-refused", 11),
    ]
    assert "(line 7)" in found[0].message
    broken = text.replace('"stage": 7}', '"stage": ]}')
    assert [one.line for one in lint(tmp_path, broken)][:1] == [7]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "kind: Pod\nspec: {containers: [{command: [torchrun, {a: b}]}]}\n", id="words"
        ),
        pytest.param(
            "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: [1]}\ncontainers: deepspeed t.py\n",
            id="parts",
        ),
        pytest.param(
            "kind: MPIJob\nspec: {mpiReplicaSpecs: {Worker: 3}}\n# containers: torchrun t.py\n",
            id="a role",
        ),
        pytest.param("services: {a: torchrun t.py, b: {command: 3, deploy: [1]}}\n", id="services"),
        pytest.param(
            "kind: List\nitems: [1, {kind: 2}, {kind: Job, spec: torchrun t.py containers:}]\n",
            id="a list",
        ),
        pytest.param("kind: &a Pod\nspec: &b {containers: [*b], x: torchrun t.py}\n", id="a loop"),
        pytest.param("? [1, 2]\n: torchrun t.py\nkind: Pod\ncontainers: 1\n", id="a key"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n{{- if x }}\ncontainers: torchrun t.py\n{{ end }}\n",
            id="a template",
        ),
        pytest.param(
            "kind: ConfigMap\ndata: {ds.json: 3, a.yaml: 'kind: ConfigMap', b: [torchrun]}\n",
            id="values",
        ),
    ],
)
def test_odd_manifests_are_no_findings_and_no_crash(tmp_path: Path, text: str) -> None:
    assert lint(tmp_path, text) == []


def test_words_of_a_template_are_filled_in_later(tmp_path: Path) -> None:
    text = pod('[deepspeed, --num_gpus, "{{inputs.parameters.gpus}}", t.py]')
    assert lint(tmp_path, text) == []
