"""What shells, kernels and tools of other makers print."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)


def run(text: str) -> dict[str, str]:
    """The status of each finding in a text, by condition."""
    found = judge(stated(text), list(REGISTRY), REGISTRY).findings
    return {one.condition: one.status.value for one in found}


ROCM_SMI = """\
======================= ROCm System Management Interface =======================
================================= Concise Info =================================
GPU  Temp   AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    31.0c  34.0W   800Mhz  1600Mhz  0%   auto  300.0W    0%   0%
1    34.0c  34.0W   800Mhz  1600Mhz  0%   auto  300.0W    0%   0%
================================================================================
============================= End of ROCm SMI Log ==============================
"""
ROCM_SMI_7 = """\
============================ ROCm System Management Interface ============================
====================================== Concise Info ======================================
Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK
              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
==========================================================================================
0       2     0x74a1,   28851  40.0°C      135.0W    NPS1, SPX, 0        132Mhz  900Mhz
1       3     0x74a1,   51499  37.0°C      133.0W    NPS1, SPX, 0        132Mhz  900Mhz
==========================================================================================
================================== End of ROCm SMI Log ===================================
"""
AMD_SMI = """\
+------------------------------------------------------------------------------+
| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.1    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:05:00.0    AMD Instinct MI300X | 0 %      40 °C   0           135/750 W |
|   0       0       7        SPX/NPS1 | 0 %        N/A           283/196592 MB |
|-------------------------------------+----------------------------------------|
| 0000:26:00.0    AMD Instinct MI300X | 0 %      37 °C   0           132/750 W |
|   1       1       6        SPX/NPS1 | 0 %        N/A           283/196592 MB |
+-------------------------------------+----------------------------------------+
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ROCM_SMI, id="rocm-smi"),
        pytest.param(ROCM_SMI_7, id="rocm-smi 7"),
        pytest.param(AMD_SMI, id="amd-smi"),
    ],
)
def test_how_many_amd_gpus_there_are(text: str) -> None:
    assert value(stated(text), "os_info/amd_gpus") == 2
    found = run(text + "$ pip list | grep torch\ntorch 2.9.1+cpu\n")
    assert found["cpu-only-torch"] == "warn"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(ROCM_SMI.splitlines()[:-1]),
        ROCM_SMI.replace("0    31", "3    31"),
        "\n".join(AMD_SMI.splitlines()[:-1]),
    ],
    ids=["cut", "a row is missing", "cut in a box"],
)
def test_a_table_that_is_not_whole_gives_no_number(text: str) -> None:
    assert environment_of(text) is None


IBSTAT = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 40
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
"""
DEVINFO = """\
hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_DOWN (1)
\t\t\tlink_layer:\t\tInfiniBand
hca_id:\tmlx5_1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tlink_layer:\t\tInfiniBand
"""


@pytest.mark.parametrize(
    "text", [pytest.param(IBSTAT, id="ibstat"), pytest.param(DEVINFO, id="ibv_devinfo")]
)
def test_the_ports_of_adapters(text: str) -> None:
    ports = value(stated(text), "network/rdma")
    assert [(port["device"], port["port"], port["state"]) for port in ports] == [
        ("mlx5_0", 1, "DOWN"),
        ("mlx5_1", 1, "ACTIVE"),
    ]


def test_a_port_without_its_state_is_not_stated() -> None:
    assert environment_of("\n".join(IBSTAT.splitlines()[:10])) is None


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        pytest.param(
            "$ echo $CUDA_VISIBLE_DEVICES\n0,1\n", {"CUDA_VISIBLE_DEVICES": "0,1"}, id="echo"
        ),
        pytest.param(
            "echo ${LD_LIBRARY_PATH}\n/usr/lib:/opt\n",
            {"LD_LIBRARY_PATH": "/usr/lib:/opt"},
            id="echo with braces",
        ),
        pytest.param(
            "me@n:~$ printenv NCCL_IB_HCA\n=mlx5_0\n", {"NCCL_IB_HCA": "=mlx5_0"}, id="printenv"
        ),
        pytest.param(
            "$ env | grep -e NCCL -e CUDA\nNCCL_P2P_LEVEL=SYS\nCUDA_HOME=/opt/cuda\n$ ls\n",
            {"NCCL_P2P_LEVEL": "SYS", "CUDA_HOME": "/opt/cuda"},
            id="env with a filter",
        ),
        pytest.param(
            "# env\nSHELL=/bin/bash\nNCCL_DEBUG=INFO\n", {"NCCL_DEBUG": "INFO"}, id="env as root"
        ),
        pytest.param(
            "$ env\nRANK=1\nWORLD_SIZE=2\nHF_HOME=/hf\nOMP_NUM_THREADS=4\nMASTER_ADDR=10.0.0.5\n",
            {
                "RANK": "1",
                "WORLD_SIZE": "2",
                "HF_HOME": "/hf",
                "OMP_NUM_THREADS": "4",
                "MASTER_ADDR": "10.0.0.5",
            },
            id="variables of ranks",
        ),
        pytest.param(
            "$ env\nMASTER_ADDR=<ip>\nMASTER_PORT=xxxxx\nNCCL_IB_HCA=$HCA\nRANK=0\n"
            "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz\n",
            {"RANK": "0"},
            id="what was left out",
        ),
        pytest.param(
            "These environment variables are set:\n```\nexport NCCL_DEBUG=INFO\n# adapters\n"
            'export NCCL_IB_HCA="mlx5_0,mlx5_2"\nexport MASTER_ADDR=<ip>\n```\n',
            {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0,mlx5_2"},
            id="a block of exports that are said to be set",
        ),
        pytest.param(
            "n0:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\n"
            "n0:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"
            "n0:2:2 [1] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\n",
            {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"},
            id="NCCL's log",
        ),
        pytest.param(
            "n0:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\n"
            "n1:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ib0\n"
            "n1:1:1 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0\n",
            {"NCCL_IB_HCA": "mlx5_0"},
            id="nodes that differ",
        ),
        pytest.param(
            "[2024-01-02 10:00:00,000] [INFO] [launch.py:138:main] 0 NCCL_P2P_DISABLE=1\n"
            "[2024-01-02 10:00:00,000] [INFO] [launch.py:138:main] 0 NCCL_VERSION=2.19.3\n"
            "[2024-01-02 10:00:00,000] [WARNING] [runner.py:202:main] Detected CUDA_VISIBLE_DEVICES=2,3"
            " but ignoring it because one or several of --include/--exclude were used.\n",
            {"NCCL_P2P_DISABLE": "1", "CUDA_VISIBLE_DEVICES": "2,3"},
            id="the log of DeepSpeed's launcher",
        ),
        pytest.param(
            "[INFO] [real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cuda\n"
            "Detected VISIBLE_DEVICES=2,3: setting --include=localhost:2,3\n",
            {"CUDA_VISIBLE_DEVICES": "2,3"},
            id="newer DeepSpeed with CUDA",
        ),
    ],
)
def test_what_a_shell_answers(text: str, variables: dict[str, str]) -> None:
    assert value(stated(text), "environment/variables") == variables


@pytest.mark.parametrize(
    "text",
    [
        "try export NCCL_P2P_DISABLE=1\n",
        "export NCCL_P2P_DISABLE=1\n",
        "try NCCL_P2P_DISABLE=1 torchrun train.py\n",
        "$ echo $CUDA_VISIBLE_DEVICES\n\n$ ls\n",
        "$ echo $CUDA_VISIBLE_DEVICES\nprints nothing here\n",
        "$ echo $MY_NAME\nx\n",
        "set the env\nNCCL_DEBUG=INFO\n",
        pytest.param(
            "You can set these environment variables:\n```\nexport NCCL_DEBUG=INFO\n```\n",
            id="advice above a block",
        ),
        pytest.param("Output:\n```\nexport NCCL_DEBUG=INFO\n```\n", id="a block of no known use"),
        pytest.param(
            "These variables are set:\n```\nexport NCCL_DEBUG=INFO\nand others\n```\n",
            id="a block with a sentence",
        ),
    ],
)
def test_what_is_no_answer_of_a_shell(text: str) -> None:
    assert environment_of(text) is None


MODULES = "Module                  Size  Used by\n" + "".join(
    f"mod_{letter}                16384  1\n" for letter in "abcdefghij"
)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        pytest.param(
            "Linux gpu1 5.15.0-101-generic #111-Ubuntu SMP Tue Mar 5 2024 x86_64 GNU/Linux",
            "os_info/release",
            "5.15.0-101-generic",
            id="uname",
        ),
        pytest.param(
            "Linux d 5.15.153.1-microsoft-standard-WSL2 #1 SMP Fri Mar 29 2024 x86_64 GNU/Linux",
            "os_info/wsl",
            True,
            id="uname in WSL",
        ),
        pytest.param(
            "ldd (Ubuntu GLIBC 2.31-0ubuntu9.9) 2.31", "os_info/libc", "glibc 2.31", id="ldd"
        ),
        pytest.param(
            'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu',
            "os_info/distribution",
            "ubuntu 24.04",
            id="os-release",
        ),
        pytest.param(
            MODULES + "nouveau               2400256  4\n",
            "nvidia_kernel/modules",
            ["nouveau"],
            id="lsmod with nouveau",
        ),
        pytest.param(
            MODULES + "nvidia 56717312 188 nvidia_uvm\n",
            "nvidia_kernel/modules",
            ["nvidia"],
            id="lsmod with nvidia",
        ),
    ],
)
def test_the_system(text: str, path: str, expected: Any) -> None:
    assert value(stated(text + "\n"), path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Module Size Used by\nnvidia 56717312 188 nvidia_uvm\n",  # what `grep nvidia` lets pass
        "ID=ubuntu\n",
        "Linux is an operating system\n",
    ],
)
def test_what_says_nothing_of_the_system(text: str) -> None:
    assert environment_of(text) is None


def test_slices_of_mig_in_the_list() -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268)\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-bff0)\n"
        "  MIG 1g.5gb      Device  1: (UUID: MIG-bff1)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852d-d268)\n"
    )
    first, second = value(stated(text), "gpus/gpus")
    assert first["mig_mode"]
    assert [part["profile"] for part in first["mig_devices"]] == ["3g.20gb", "1g.5gb"]
    assert "mig_mode" not in second


def test_the_versions_of_nvidia_smi() -> None:
    text = (
        "NVIDIA-SMI version  : 580.95.05\nNVML version        : 580.95\n"
        "DRIVER version      : 580.95.05\nCUDA Version        : 13.0\n"
    )
    snapshot = stated(text)
    assert value(snapshot, "nvml/driver_version") == "580.95.05"
    assert value(snapshot, "nvml/cuda_version") == 13000


@pytest.mark.parametrize(
    ("answer", "works"), [("2.6.0+cu124 12.4 False", False), ("2.6.0+cu124 12.4 True", True)]
)
def test_several_answers_of_one_print(answer: str, works: bool) -> None:
    asked = (
        '$ python -c "import torch; '
        'print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"\n'
    )
    snapshot = stated(asked + answer + "\n")
    assert value(snapshot, "torch_build/cuda") == "12.4"
    assert value(snapshot, "torch_live/cuda_ok") is works
    assert environment_of(asked + "2.6.0+cu124 False\n") is None


def test_all_limits_of_a_shell() -> None:
    text = (
        "max locked memory           (kbytes, -l) unlimited\n"
        "stack size                  (kbytes, -s) 8192\n"
        "max user processes                  (-u) 4096\n"
        "virtual memory              (kbytes, -v) 4194304\n"
    )
    assert stated(text).facts["resources"] == {
        "limit_memlock": None,
        "limit_stack": 8 << 20,
        "limit_nproc": 4096,
        "limit_address_space": 4 << 30,
    }
    assert run(text)["address-space-limited"] == "fail"
