"""Lists of nodes of a scheduler, `nvidia-smi` as XML and CSV, DeepSpeed's choice of an accelerator."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Finding, Status
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.words import may_state
from tests.paste.reading import stated, value

REGISTRY = packs.load()


def problems(text: str) -> list[Finding]:
    snapshot = environment_of(text)
    if snapshot is None:
        return []
    assert may_state(text)
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    return [one for one in report.findings if one.status in (Status.FAIL, Status.WARN)]


def named(text: str) -> list[tuple[str, str]]:
    return [(one.status.value, one.condition) for one in problems(text)]


SINFO = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up   infinite      2  {state} gpu[01-02]
gpu*         up   infinite      6   idle gpu[03-08]
"""
REASONS = """\
$ sinfo -R
REASON               USER      TIMESTAMP           NODELIST
gres/gpu count repor slurm     2024-12-19T11:03:34 gpu03
Kill task failed     root      2024-01-25T15:12:23 gpu[07-08]
"""
LONG = """\
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
gpu01          1      gpu*     drained 64     2:32:1 515000        0      1   (null) Low RealMemory
gpu02          1      gpu*        idle 64     2:32:1 515000        0      1   (null) none
"""
SHOWN = """\
NodeName=gpu01 Arch=x86_64 CoresPerSocket=32
   Gres=gpu:8
   State={state} ThreadsPerCore=2 TmpDisk=0 Weight=1
   Reason=gres/gpu count reported lower than configured (0 < 8) [slurm@2024-12-19T11:03:34]
"""


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        pytest.param(
            SINFO.format(state="down*"), "fail", "gpu[01-02] are out of service (down)", id="down"
        ),
        pytest.param(
            SINFO.format(state=" drng"),
            "warn",
            "gpu[01-02] are out of service (draining)",
            id="draining",
        ),
        pytest.param(
            SINFO.format(state="idle*"),
            "fail",
            "gpu[01-02] are out of service (not responding)",
            id="no answer",
        ),
        pytest.param(
            REASONS,
            "warn",
            "gpu[07-08] are out of service (down or drained, reason `Kill task",
            id="-R",
        ),
        pytest.param(
            LONG, "warn", "gpu01 is out of service (drained, reason `Low RealMemory`)", id="-N -l"
        ),
        pytest.param(
            SHOWN.format(state="IDLE+DRAIN"), "warn", "configured (0 < 8)`)", id="scontrol"
        ),
        pytest.param(
            SHOWN.format(state="DOWN*+DRAIN"),
            "fail",
            "gpu01 is out of service (down, ",
            id="scontrol, down",
        ),
        pytest.param(
            "2  maint c[003,012]\n3  fail* c[020-022]\n", "fail", "c[020-022]", id="cut at the side"
        ),
        pytest.param(
            "gpu   up 14-00:00:0   3  down* c[020-022]\n", "fail", "c[020-022]", id="no heading"
        ),
        pytest.param(
            "f1: Reason=Node unexpectedly rebooted [slurm@2022-07-23T15:31:00]\n",
            "warn",
            "a node is out of service (down or drained, reason `Node unexpectedly rebooted`)",
            id="a reason alone",
        ),
        pytest.param(
            "HOSTNAMES STATE\ngpu1 fail\ngpu2 mix\n",
            "fail",
            "gpu1 is out of service (failed)",
            id="columns of -o",
        ),
        pytest.param(
            "NAME  STATUS  ROLES  AGE  VERSION\ngpu-1  NotReady  <none>  3d  v1.29.3\n",
            "fail",
            "gpu-1 is out of service (not ready)",
            id="kubectl get nodes",
        ),
    ],
)
def test_nodes_out_of_service(text: str, expected: str, words: str) -> None:
    found = problems(text)
    assert {(one.status.value, one.condition) for one in found} == {(expected, "node-failed")}
    assert any(words in one.message for one in found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SINFO.format(state=" idle"), id="idle"),
        pytest.param(SINFO.format(state="maint"), id="maintenance"),
        pytest.param(SINFO.format(state="idle~"), id="powered down to save energy"),
        pytest.param(SINFO.format(state="drng@"), id="drained for a reboot that was asked for"),
        pytest.param(SINFO.format(state="down$"), id="down in a maintenance window"),
        pytest.param("we lost 3  down c[1-3]\n", id="prose with a list of hosts"),
        pytest.param("3  fail c[1-3]\n", id="one row that is cut"),
        pytest.param("Reason=Low memory\n", id="a reason that is of nothing"),
        pytest.param("Columns: NODELIST and STATE\ngpu1 was down\n", id="prose"),
        pytest.param("REASON NODELIST\n\nThe node is down because of this.\n", id="a bare heading"),
        pytest.param(
            "NAME  STATUS  ROLES  AGE  VERSION\ncp  Ready,SchedulingDisabled  cp  3d  v1.29.3\n",
            id="cordoned",
        ),
    ],
)
def test_nodes_in_service_or_planned_out(text: str) -> None:
    assert named(text) == []


def test_a_reason_and_a_state_of_one_node_are_one_finding_with_its_lines() -> None:
    text = SINFO.format(state="drain") + "\nREASON  NODELIST\nLow RealMemory  gpu[01-02]\n"
    (finding,) = problems(text)
    assert "reason `Low RealMemory`" in finding.message
    assert [row["line"] for row in finding.evidence["stated_at"]] == [2, 6]


DESCRIBED = """\
Name:               gpu-1
Labels:             kubernetes.io/os=linux
                    {label}
Conditions:
  Type     Status  LastHeartbeatTime                 LastTransitionTime   Reason         Message
  Ready    {ready}    Wed, 07 Jul 2021 18:23:33 +0900   Wed, 07 Jul 2021   {reason}
Capacity:
  cpu:                12
  memory:             16325228Ki
{capacity}  pods:               110
Allocatable:
  cpu:                12
  memory:             16325228Ki
{allocatable}  pods:               110
"""


def described(
    capacity: int | None, allocatable: int | None, *, label: str = "a=b", ready: str = "True"
) -> str:
    rows = ["" if n is None else f"  nvidia.com/gpu:     {n}\n" for n in (capacity, allocatable)]
    reason = "KubeletReady   kubelet is posting ready status"
    if ready != "True":
        reason = "NodeStatusUnknown   Kubelet stopped posting node status."
    return DESCRIBED.format(
        label=label, ready=ready, reason=reason, capacity=rows[0], allocatable=rows[1]
    )


GPU_LABEL = "nvidia.com/gpu.present=true"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(described(8, 8), [], id="all"),
        pytest.param(described(None, None), [], id="a node that may have no GPU"),
        pytest.param(
            described(8, 0), [("fail", "kubernetes-gpus-not-offered")], id="none is healthy"
        ),
        pytest.param(described(8, 7), [("warn", "kubernetes-gpus-not-offered")], id="one is not"),
        pytest.param(
            described(None, None, label=GPU_LABEL),
            [("fail", "kubernetes-gpus-not-offered")],
            id="labels say that it has one",
        ),
        pytest.param(
            described(None, None) + "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\n",
            [("fail", "kubernetes-gpus-not-offered")],
            id="a pod waits",
        ),
        pytest.param(
            described(None, None)
            + described(4, 4).replace("gpu-1", "gpu-2")
            + "0/2 nodes are available: 1 Insufficient nvidia.com/gpu.\n",
            [],
            id="a pod waits and another node has GPUs",
        ),
        pytest.param(
            described(8, 8, ready="Unknown"), [("fail", "node-failed")], id="kubelet is silent"
        ),
        pytest.param(
            'status:\n  allocatable:\n    cpu: "48"\n    memory: 1Ki\n    nvidia.com/gpu: "0"\n'
            '    pods: "110"\n  capacity:\n    cpu: "48"\n    memory: 1Ki\n'
            '    nvidia.com/gpu: "16"\n    pods: "110"\n',
            [("fail", "kubernetes-gpus-not-offered")],
            id="YAML",
        ),
        pytest.param("Allocatable:\n  nvidia.com/gpu: 0\n", [], id="a fragment"),
    ],
)
def test_nodes_of_kubernetes(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(text) == expected


def test_a_node_is_not_ready_by_any_row_or_taint() -> None:
    silent = """\
Name:                   n1
Conditions:
  Type       Status    LastHeartbeatTime                 LastTransition  Reason             Message
  OutOfDisk  Unknown   Fri, 27 Jan 2017 10:38:42 -0700   Fri, 27 Jan     NodeStatusUnknown  Kubelet stopped
"""
    tainted = "Name:  n1\nTaints:  node.kubernetes.io/unreachable:NoExecute\n"
    planned = "Name:  n1\nTaints:  node.kubernetes.io/unschedulable:NoSchedule\n"
    assert named(silent) == [("fail", "node-failed")]
    assert named(tainted) == [("fail", "node-failed")]
    assert named(planned) == []


def test_a_message_of_the_kubelet_is_the_reason() -> None:
    (finding,) = problems(described(8, 8, ready="Unknown"))
    assert "reason `Kubelet stopped posting node status.`" in finding.message


XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>535.183.01</driver_version>
  <cuda_version>12.2</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:1B:00.0">
    <product_name>NVIDIA A100-SXM4-80GB</product_name>
    <mig_mode>
      <current_mig>Enabled</current_mig>
      <pending_mig>Disabled</pending_mig>
    </mig_mode>
    <remapped_rows>
      <remapped_row_corr>0</remapped_row_corr>
      <remapped_row_unc>2</remapped_row_unc>
      <remapped_row_pending>Yes</remapped_row_pending>
      <remapped_row_failure>No</remapped_row_failure>
    </remapped_rows>
    <processes>
      <process_info>
        <product_name>of another element</product_name>
      </process_info>
    </processes>
  </gpu>
</nvidia_smi_log>
"""


def test_xml_is_read_like_the_report() -> None:
    snapshot = stated(XML)
    assert value(snapshot, "nvml/driver_version") == "535.183.01"
    assert value(snapshot, "gpus/gpus/0/name") == "NVIDIA A100-SXM4-80GB"
    assert value(snapshot, "gpus/gpus/0/pci_bdf") == "0000:1b:00.0"
    assert value(snapshot, "gpus/gpus/0/mig_mode_pending") is False
    assert value(snapshot, "gpus/gpus/0/health/remapped_rows_uncorrected") == 2
    assert ("warn", "row-remap-pending") in named(XML)


QUERY = "index, name, driver_version, ecc.errors.uncorrected.volatile.total, memory.total [MiB]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            QUERY + "0, NVIDIA A100-SXM4-80GB, 535.104.05, 12, 81920 MiB\n",
            [("fail", "ecc-uncorrectable")],
            id="errors",
        ),
        pytest.param(QUERY + "0, NVIDIA A100-SXM4-80GB, 535.104.05, 0, 81920 MiB\n", [], id="none"),
        pytest.param(
            "$ nvidia-smi --query-gpu=index,name,retired_pages.pending --format=csv,noheader\n"
            "0, Tesla V100-SXM2-32GB, Yes\n",
            [("warn", "page-retirement-pending")],
            id="without a heading",
        ),
        pytest.param(
            "$ nvidia-smi --query-gpu=index,name,memory.used --format=csv,noheader\n"
            "0, Tesla V100-SXM2-32GB, [GPU is lost]\n",
            [("fail", "gpu-lost")],
            id="lost",
        ),
        pytest.param(
            "index, name, pcie.link.width.current, pcie.link.width.max\n"
            "0, NVIDIA H100 80GB HBM3, 16, 16\n1, NVIDIA H100 80GB HBM3, 8, 16\n",
            [("warn", "pcie-link-degraded")],
            id="half of the lanes",
        ),
        pytest.param(
            "index, name, ecc.errors.corrected.volatile.total, ecc.errors.corrected.aggregate.sram\n"
            "0, NVIDIA H200, 24000000, 0\n1, NVIDIA H200, 12, 3\n",
            [("warn", "ecc-corrected-errors")],
            id="millions of corrected errors",
        ),
        pytest.param("name, version\n0, NVIDIA A100-SXM4-80GB\n", [], id="another table"),
    ],
)
def test_rows_of_a_query(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(text) == expected


CPU = "[INFO] [real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cpu ({how})\n"
LISTED = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            CPU.format(how="auto detect") + LISTED,
            [("fail", "torch-cuda-init-failed")],
            id="next to a GPU",
        ),
        pytest.param(CPU.format(how="auto detect"), [], id="alone: it may have no GPU"),
        pytest.param(CPU.format(how="override") + LISTED, [], id="as DS_ACCELERATOR asks"),
        pytest.param(
            "export CUDA_VISIBLE_DEVICES=''\n" + CPU.format(how="auto detect") + LISTED,
            [],
            id="GPUs were hidden",
        ),
    ],
)
def test_deepspeed_found_no_gpu(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(text) == expected


def test_a_list_without_end_is_cut() -> None:
    assert len(value(stated("2  down c[1-2]\n" * 3000), "cluster_nodes/nodes")) == 400


def test_a_heading_is_no_row_of_another() -> None:
    text = "PARTITION STATE NODELIST\n" * 3 + "gpu down n1\n"
    assert len(value(stated(text), "cluster_nodes/nodes")) == 1
