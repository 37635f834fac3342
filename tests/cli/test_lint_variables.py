"""`lint` reads and judges the variables that manifests, Compose files and Dockerfiles set."""

from __future__ import annotations

import random
import re
import textwrap
import time
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.judge import Policy
from dsdoctor.lint import FileReport, Linter
from dsdoctor.model.finding import Finding, Status
from dsdoctor.packs import load

REGISTRY = load(builtin_only=True)
MEANT = "and set `{}` if you meant that"
LINTER = Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy())

POD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  RANKS: "8"
  NCCL_DEBUGG: INFO
---
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      hostIPC: true
      containers:
      - name: train
        image: train:1
        command: COMMAND
        env: [ENV]
        envFrom: [FROM]
        resources: {limits: {nvidia.com/gpu: 4}}
"""
TORCHRUN = '[torchrun, "--nproc_per_node=$(N)", t.py]'
SHELL = '[sh, -c, "torchrun --nproc_per_node=$N t.py"]'
COMPOSE = """\
services:
  train:
    image: train:1
    shm_size: 8gb
    command: COMMAND
    environment:
      # how it is started
      - ONE=1
      - ENV
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: "${COUNT:-4}", capabilities: [gpu]}]
"""


def report(tmp_path: Path, text: str, name: str = "job.yaml", *, named: bool = False) -> FileReport:
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    found = LINTER.lint(path, name, named=named)
    assert found is not None
    return found


def pod(command: str, env: str = "", from_: str = "") -> str:
    return POD.replace("COMMAND", command).replace("ENV", env).replace("FROM", from_)


def too_many(found: FileReport) -> bool:
    return any(one.condition == "invalid-device-ordinal" for one in found.findings)


@pytest.mark.parametrize(
    ("command", "env", "from_"),
    [
        pytest.param(TORCHRUN, '{name: N, value: "8"}', "", id="kubernetes"),
        pytest.param(SHELL, '{name: N, value: "8"}', "", id="shell"),
        pytest.param(
            TORCHRUN,
            "{name: N, valueFrom: {configMapKeyRef: {name: settings, key: RANKS}}}",
            "",
            id="key-of-a-config-map",
        ),
        pytest.param(
            TORCHRUN.replace("N)", "X_RANKS)"),
            "",
            "{prefix: X_, configMapRef: {name: settings}}",
            id="all-of-a-config-map",
        ),
        pytest.param(
            TORCHRUN, '{name: M, value: "8"}, {name: N, value: $(M)}', "", id="of-another-one"
        ),
        pytest.param(
            SHELL.replace("torchrun", "export N=8; torchrun"),
            '{name: N, value: "4"}',
            "",
            id="the-shell-sets-it-again",
        ),
    ],
)
def test_a_command_gets_the_variables_of_its_container(
    tmp_path: Path, command: str, env: str, from_: str
) -> None:
    assert too_many(report(tmp_path, pod(command, env, from_)))


@pytest.mark.parametrize(
    ("command", "env", "from_"),
    [
        pytest.param(TORCHRUN, '{name: N, value: "4"}', "", id="as-many-as-gpus"),
        pytest.param(TORCHRUN, "", "", id="not-stated"),
        pytest.param(TORCHRUN.replace("$(N)", "$$(N)"), '{name: N, value: "8"}', "", id="escaped"),
        pytest.param(TORCHRUN.replace("$(N)", "$N"), '{name: N, value: "8"}', "", id="no-shell"),
        pytest.param(
            TORCHRUN,
            "{name: N, valueFrom: {secretKeyRef: {name: settings, key: RANKS}}}",
            "",
            id="a-secret",
        ),
        pytest.param(
            TORCHRUN.replace("N)", "RANKS)"),
            "{name: RANKS, valueFrom: {fieldRef: {fieldPath: a}}}",
            "{configMapRef: {name: settings}}",
            id="overridden",
        ),
        pytest.param(
            TORCHRUN.replace("N)", "RANKS)"), "", "{configMapRef: {name: others}}", id="elsewhere"
        ),
        pytest.param(TORCHRUN, '{name: N, value: "8$(UNKNOWN)"}', "", id="partly-unknown"),
    ],
)
def test_what_is_not_known_is_not_filled_in(
    tmp_path: Path, command: str, env: str, from_: str
) -> None:
    assert not too_many(report(tmp_path, pod(command, env, from_)))


def compose(command: str, env: str = "TWO=2") -> str:
    return COMPOSE.replace("COMMAND", command).replace("ENV", env)


@pytest.mark.parametrize(
    ("command", "env", "file", "bad"),
    [
        pytest.param("torchrun --nproc_per_node=${N:-8} t.py", "A=1", "", True, id="default"),
        pytest.param("torchrun --nproc_per_node=${N:-8} t.py", "A=1", "N=4", False, id="env-file"),
        pytest.param("torchrun --nproc_per_node=$N t.py", "A=1", "N='8' # all", True, id="quoted"),
        pytest.param("torchrun --nproc_per_node=$N t.py", "N=8", "", False, id="not-interpolated"),
        pytest.param(
            "sh -c 'torchrun --nproc_per_node=$$N t.py'", "N=8", "", True, id="of-the-container"
        ),
        pytest.param(
            "sh -c 'torchrun --nproc_per_node=$$N t.py'", "N=${M:-8}", "", True, id="its-default"
        ),
        pytest.param(
            "sh -c 'torchrun --nproc_per_node=$$N t.py'", "N=8${M}", "", False, id="unknown"
        ),
        pytest.param("torchrun --nproc_per_node=8 t.py", "A=1", "COUNT=8", False, id="more-gpus"),
    ],
)
def test_compose_fills_in_variables(
    tmp_path: Path, command: str, env: str, file: str, *, bad: bool
) -> None:
    if file:
        (tmp_path / ".env").write_text(f"# settings\n{file}\n")
    assert too_many(report(tmp_path, compose(command, env))) == bad


def test_compose_reads_the_env_file_of_a_service(tmp_path: Path) -> None:
    (tmp_path / "train.env").write_text("N=8\nNCCL_DEBUGG=INFO\n")
    text = compose("sh -c 'torchrun --nproc_per_node=$$N t.py'").replace(
        "    image:", "    env_file: [train.env, /etc/passwd, ../x]\n    image:"
    )
    found = report(tmp_path, text)
    assert too_many(found)
    assert [one.evidence["line"] for one in found.findings if "NCCL" in one.message] == [3]


def test_a_variable_before_a_command_that_grows_hides_nothing(tmp_path: Path) -> None:
    grown = SHELL.replace("torchrun", "PATH=/a:$PATH torchrun").replace("$N", "8")
    found = report(tmp_path, pod(grown))
    assert too_many(found)
    assert not found.not_judged
    other = pod(SHELL.replace("torchrun", "NPROC_PER_NODE=$M torchrun").replace("$N", "8"))
    assert report(tmp_path, other).not_judged == (17,)


def variables(found: FileReport) -> list[tuple[str, int, str]]:
    return [
        (one.condition, one.evidence["line"], one.hint)
        for one in found.findings
        if one.condition != "invalid-device-ordinal"
    ]


def test_variables_are_judged_at_their_own_lines(tmp_path: Path) -> None:
    env = "\n        - name: NCCL_P2P_DISABL\n          value: '1'\n        - {name: A, value: b}"
    text = pod("[python, t.py]", "", "{configMapRef: {name: settings}}").replace(" []", env)
    assert variables(report(tmp_path, text)) == [
        (
            "nccl-unknown-variable",
            6,
            f"remove `NCCL_DEBUGG` from line 6 of `job.yaml`, {MEANT.format('NCCL_DEBUG')}",
        ),
        (
            "nccl-unknown-variable",
            20,
            f"remove `NCCL_P2P_DISABL` from line 20 of `job.yaml`, {MEANT.format('NCCL_P2P_DISABLE')}",
        ),
    ]


def test_values_that_torch_refuses_fail(tmp_path: Path) -> None:
    text = compose("python t.py", "TORCH_DISTRIBUTED_DEBUG=verbose")
    found = report(tmp_path, text)
    assert [(one.status, one.condition) for one in found.findings] == [
        (Status.FAIL, "variable-refused")
    ]
    assert variables(found)[0][1:] == (
        9,
        "remove `TORCH_DISTRIBUTED_DEBUG` from line 9 of `job.yaml`",
    )


@pytest.mark.parametrize(
    "env",
    [
        "NCCL_DEBUG=INFO",
        "NCCL_P2P_DISABLE=1",
        "NCCL_P2P_DISABL=${OFF}",
        "NCCL_IB_DISABL={x}",
        "FOO_DEBUGG=1",
    ],
)
def test_right_or_unknown_variables_are_not_reported(tmp_path: Path, env: str) -> None:
    assert not report(tmp_path, compose("torchrun --nproc_per_node 4 t.py", env)).findings


def test_a_dockerfile_says_where_to_remove_a_variable(tmp_path: Path) -> None:
    text = """\
        FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
        ENV A=1
        ENV NCCL_SHM_DISABL=1
        RUN pip install torch==2.6.0
        """
    found = report(tmp_path, text, "Dockerfile")
    assert variables(found) == [
        (
            "nccl-unknown-variable",
            3,
            f"remove `NCCL_SHM_DISABL` from line 3 of `Dockerfile`, {MEANT.format('NCCL_SHM_DISABLE')}",
        )
    ]


def test_no_hint_about_a_file_asks_for_a_shell() -> None:
    """Whatever a condition says of a variable of a file, nobody is sent to a shell for it."""
    from dsdoctor.lint_hints import in_file

    for hint in ("run `unset A`", "unset `A`, or set it to a number", "run `unset A` and set `B`"):
        one = Finding(status=Status.WARN, message="", hint=hint)
        assert "unset" not in in_file(one, {"A": 3}, "a.yaml", 1)[0]
        assert in_file(one, {"C": 3}, "a.yaml", 1) == (hint, 1)


def test_a_value_that_is_no_text_is_refused(tmp_path: Path) -> None:
    found = report(tmp_path, pod("[torchrun, t.py]", "{name: WORLD, value: 8}")).findings
    said = [one.message for one in found if one.condition == "manifest-refused"]
    assert said == ["the value of `WORLD` in `env` is no text"]
    right = pod("[python, t.py]", '{name: WORLD, value: "8"}')
    assert not report(tmp_path, right, named=True).findings


def test_more_config_maps_than_are_read_are_said(tmp_path: Path) -> None:
    rows = "".join(f'  f{n}.json: "{{}}"\n' for n in range(103))
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{rows}"
    found = report(tmp_path, text, named=True)
    assert [reason for _, reason in found.not_followed] == [
        "3 more files of ConfigMaps were not read (limit: 100)"
    ]


HELM = "kind: Job\nspec:\n  containers:\n  - name: a\n    command: [torchrun, {{ .Values.n }}]\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HELM, id="value"),
        pytest.param(HELM.replace("{{ .Values.n }}", '{{ include "a.n" . }}'), id="include"),
        pytest.param("{{- $own := .Values.own }}\n" + HELM, id="variable"),
        pytest.param("{{- if and .Values.own .Values.b }}\n" + HELM, id="condition"),
    ],
)
def test_a_helm_template_is_named(tmp_path: Path, text: str) -> None:
    said = "is a Helm template: run `helm template` and lint its output"
    if text.startswith("{{"):
        with pytest.raises(UsageError, match=re.escape(said)):
            report(tmp_path, text, named=True)
    assert report(tmp_path, text).not_followed == ((1, f"the file {said}"),)


def test_another_template_is_named_and_a_broken_file_is_not(tmp_path: Path) -> None:
    other = HELM.replace(".Values.n", "gpus | int")
    assert report(tmp_path, other).not_followed == (
        (1, "the file is a template (`{{ … }}`): fill it in and lint the result"),
    )
    with pytest.raises(UsageError, match="is not YAML: line 6"):
        report(tmp_path, HELM.replace("{{ .Values.n }}]", ""), named=True)


TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    numProcPerNode: 8
    image: train:1
    command: [torchrun, t.py]
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
---
# the queue is made elsewhere
"""


def test_a_train_job_is_read(tmp_path: Path) -> None:
    found = report(tmp_path, TRAIN_JOB, named=True)
    assert [one.condition for one in found.findings] == ["manifest-request-mismatch"]
    assert not report(tmp_path, TRAIN_JOB.replace(": 8", ": 4")).findings


def test_an_object_in_another_one_is_read(tmp_path: Path) -> None:
    job = pod('[torchrun, "--nproc_per_node=8", t.py]').partition("---\n")[2]
    inner = textwrap.indent(job, "      ")
    text = f"apiVersion: a/v1\nkind: AppWrapper\nspec:\n  components:\n  - template:\n{inner}"
    assert too_many(report(tmp_path, text))


def test_mutated_files_are_read_in_time(tmp_path: Path) -> None:
    maker = random.Random(20261130)
    texts = [
        pod(SHELL, "{name: N, value: $(M)}", "{configMapRef: {name: settings}}"),
        compose("sh -c 'torchrun --nproc_per_node=$$N t.py'", "N=${M:-${K:-8}}"),
        TRAIN_JOB,
        HELM,
    ]
    pieces = [
        "$(N)",
        "${A:-",
        "}",
        "$$",
        "{{",
        "\n  ",
        ": ",
        "- ",
        "'",
        '"',
        "[",
        "&a ",
        "*a",
        "\0",
    ]
    started = time.monotonic()
    path = tmp_path / "job.yaml"
    for _ in range(120):
        text = maker.choice(texts)
        for _ in range(maker.randrange(1, 6)):
            place = maker.randrange(len(text))
            cut = place + maker.randrange(4)
            text = text[:place] + maker.choice(pieces) * maker.randrange(1, 3) + text[cut:]
        path.write_text(text)
        try:
            LINTER.lint(path, "job.yaml", named=maker.random() < 0.5)
        except UsageError:
            continue
    assert time.monotonic() - started < 60


def test_variables_that_contain_each_other_do_not_grow(tmp_path: Path) -> None:
    env = ", ".join(
        [f"{{name: A0, value: {'x' * 1000}}}"]
        + [f"{{name: A{n}, value: {f'$(A{n - 1})' * 8}}}" for n in range(1, 60)]
    )
    assert report(tmp_path, pod("[torchrun, $(A59), t.py]", env)).findings is not None
    (tmp_path / ".env").write_text("A=" + "$A" * 2000 + "\n")
    assert report(tmp_path, compose("torchrun " + "$A" * 5000 + " t.py")) is not None
