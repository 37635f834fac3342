"""Output of environment tools in their documented layouts, for a machine that does not exist.

Over 400 lines because each format is written out.
"""

from __future__ import annotations

COLLECT_ENV = """\
Collecting environment information...
PyTorch version: 2.11.0+cu130
Is debug build: False
CUDA used to build PyTorch: 13.0
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version: Could not collect
CMake version: version 3.31.4
Libc version: glibc-2.35

Python version: 3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0] (64-bit runtime)
Python platform: Linux-5.15.0-105-generic-x86_64-with-glibc2.35
Is CUDA available: False
CUDA runtime version: 12.8.93
CUDA_MODULE_LOADING set to: N/A
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version: 535.104.05
cuDNN version: Could not collect

CPU:
Architecture:                       x86_64
CPU(s):                             96
Model name:                         AMD EPYC 7413 24-Core Processor

Versions of relevant libraries:
[pip3] numpy==2.2.1
[pip3] torch==2.11.0
[conda] Could not collect
"""

COLLECT_ENV_OLD = """\
PyTorch version: 1.4.0
Is debug build: No
CUDA used to build PyTorch: 10.1

OS: Ubuntu 18.04.3 LTS
GCC version: (Ubuntu 4.8.5-4ubuntu8) 4.8.5
CMake version: version 3.10.2

Python version: 3.6
Is CUDA available: Yes
CUDA runtime version: Could not collect
GPU models and configuration: GPU 0: Tesla V100-SXM2-16GB
Nvidia driver version: 418.67
cuDNN version: Could not collect

Versions of relevant libraries:
[pip] numpy==1.17.3
[pip] torch==1.4.0
[conda] Could not collect
"""

COLLECT_ENV_VLLM = """\
==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
      Python Environment
==============================
Python version               : 3.12.9 (main, Feb  4 2025, 14:38:38) [GCC 12.2.0] (64-bit runtime)
Python platform              : Linux-6.1.0-26-amd64-x86_64-with-glibc2.36

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.6.77
GPU models and configuration :
GPU 0: NVIDIA L40S
GPU 1: NVIDIA L40S
Nvidia driver version        : 560.35.03

NCCL_DEBUG=INFO
CUDA_VISIBLE_DEVICES=0,1
HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789
"""

COLLECT_ENV_SYSTEM_FIRST = """\
==============================
        System Info
==============================
OS                           : Ubuntu 24.04.2 LTS (x86_64)
GCC version                  : (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Clang version                : Could not collect
CMake version                : version 4.0.2
Libc version                 : glibc-2.39

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.1+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.0.140
GPU models and configuration : GPU 0: NVIDIA L4
Nvidia driver version        : 570.133.20
"""

SGLANG = """\
Python: 3.11.9 (main, May  9 2026, 07:35:25) [GCC 12.2.0]
CUDA available: True
GPU 0,1,2,3: NVIDIA L40S
GPU 0,1,2,3 Compute Capability: 8.9
CUDA_HOME: /opt/cuda-11.8
NVCC: Cuda compilation tools, release 11.8, V11.8.89
CUDA Driver Version: 560.35.03
PyTorch: 2.5.1+cu124
sglang: 0.4.3.post2
sgl_kernel: Module Not Found
triton: 3.1.0
transformers: 4.48.3
numpy: 1.26.4
NVIDIA Topology:
\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity

ulimit soft: 1024
"""

SGLANG_ROCM = """\
Python: 3.12.8 (main, Dec  4 2024, 08:54:12) [GCC 11.4.0]
ROCM available: True
GPU 0,1: AMD Instinct MI300X
GPU 0,1 Compute Capability: 9.4
ROCM_HOME: /opt/rocm
HIPCC: HIP version: 6.3.42131-fa1d09cbd
ROCM Driver Version: 6.10.5
PyTorch: 2.6.0a0+git8d4926e
sglang: 0.4.5
"""

DS_REPORT = """\
--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
NOTE: Ops not installed will be just-in-time (JIT) compiled at
      runtime if needed. Op compatibility means that your system
      meet the required dependencies to JIT install the op.
--------------------------------------------------
JIT compiled ops requires ninja
ninja .................. \x1b[91m[FAIL]\x1b[0m
--------------------------------------------------
op name ................ installed .. compatible
--------------------------------------------------
async_io ............... [93m[NO][0m ....... [93m[NO][0m
cpu_adam ............... [93m[NO][0m ....... [92m[OKAY][0m
fused_adam ............. [92m[YES][0m ...... [92m[OKAY][0m
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/lib/python3.10/site-packages/torch']
torch version .................... 2.0.1+cu117
deepspeed install path ........... ['/opt/conda/lib/python3.10/site-packages/deepspeed']
deepspeed info ................... 0.9.2, unknown, unknown
torch cuda version ............... 11.7
torch hip version ................ None
nvcc version ..................... 12.1
deepspeed wheel compiled w. ...... torch 1.13, cuda 11.6
shared memory (/dev/shm) size .... 64.00 MB
"""

SMI = """\
Thu Nov 19 10:00:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 560.35.03              Driver Version: 560.35.03      CUDA Version: 12.6     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
| N/A   35C    P0            112W /  700W |       4MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    7 |
| N/A   33C    P0            113W /  700W |       4MiB /  81559MiB |      0%   E. Process |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""

SMI_OLD = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 384.111                Driver Version: 384.111                   |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  Off  | 00000000:00:1E.0 Off |                    0 |
| N/A   43C    P0    35W / 300W |      0MiB / 16152MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""

SMI_Q = """\
==============NVSMI LOG==============

Timestamp                                 : Thu Nov 19 10:00:00 2026
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 39000 MiB
    Compute Mode                          : Prohibited
    ECC Mode
        Current                           : Enabled
        Pending                           : Enabled
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : Yes

GPU 00000000:0B:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Remapped Rows
        Pending                           : No
"""

LIST_AND_LINKS = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-2222-3333-4444-555555555555)
\t Link 0: 25 GB/s
\t Link 1: <inactive>
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbbbbbbb-2222-3333-4444-555555555555)
\t Link 0: 25 GB/s
\t Link 1: 25 GB/s
"""

TOPO = """\
\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV12\tSYS\tPXB\t0-31\t0
GPU1\tNV12\t X \tNODE\tPXB\t0-31\t0
GPU2\tSYS\tNODE\t X \tSYS\t32-63\t1
NIC0\tPXB\tPXB\tSYS\t X
"""

TRANSFORMERS = """\
- `transformers` version: 4.36.2
- Platform: Linux-5.15.0-91-generic-x86_64-with-glibc2.35
- Python version: 3.10.12
- Huggingface_hub version: 0.20.3
- Safetensors version: 0.4.2
- Accelerate version: 0.26.1
- Accelerate config:    not found
- PyTorch version (GPU?): 2.1.2+cu121 (True)
- Tensorflow version (GPU?): not installed (NA)
- Using GPU in script?: yes
"""

ACCELERATE = """\
- `Accelerate` version: 0.26.1
- Platform: Linux-5.10.16.3-microsoft-standard-WSL2-x86_64-with-glibc2.31
- Python version: 3.8.10
- Numpy version: 1.24.4
- PyTorch version (GPU?): 2.1.2 (False)
- PyTorch XPU available: False
- System RAM: 31.25 GB
- `Accelerate` default config:
\t- compute_environment: LOCAL_MACHINE
\t- num_processes: 2
"""

LLAMAFACTORY = """\
- `llamafactory` version: 0.9.2
- Platform: Linux-5.15.0-60-generic-x86_64-with-glibc2.31
- Python version: 3.10.14
- PyTorch version: 2.4.0+cu121 (GPU)
- Transformers version: 4.46.1
- Datasets version: 2.21.0
- Accelerate version: 1.0.1
- PEFT version: 0.12.0
- TRL version: 0.9.6
- GPU type: NVIDIA A800-SXM4-80GB
- GPU number: 8
- GPU memory: 79.33GB
- DeepSpeed version: 0.15.4
"""

NVCC = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Tue_Oct_29_23:50:19_PDT_2024
Cuda compilation tools, release 12.6, V12.6.85
Build cuda_12.6.r12.6/compiler.35059454_0
"""

KERNEL_MODULE = """\
$ cat /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  525.147.05  Release Build  (user@host)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""

KERNEL_LOG = """\
[   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024
"""

DS_REPORT_UNTITLED = """\
torch version .................... 2.6.0+cu124
deepspeed info ................... 0.16.5, unknown, unknown
torch cuda version ............... 12.4
nvcc version ..................... 11.5
"""

NVIDIA_SMI_MIG = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A30          On   | 00000000:3B:00.0 Off |                   On |
| N/A   38C    P0    28W / 165W |      0MiB / 24576MiB |     N/A      Default |
|                               |                      |              Enabled |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A30          On   | 00000000:5E:00.0 Off |                    0 |
| N/A   38C    P0    28W / 165W |      0MiB / 24576MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+--------------------------------+-----------+-----------------------+
|  No MIG devices found                                                       |
+-----------------------------------------------------------------------------+
"""

LSPCI = """\
17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)
\tSubsystem: NVIDIA Corporation Device [10de:1533]
\tKernel driver in use: nouveau
\tKernel modules: nvidiafb, nouveau
65:00.0 VGA compatible controller [0300]: ASPEED Technology, Inc. ASPEED Graphics Family [1a03:2000]
"""

LSPCI_BARE = "5a:00.0 3D controller: NVIDIA Corporation Device 1db6 (rev a1)\n"

PIP_LIST = """\
Package                  Version
------------------------ ----------
accelerate               1.0.1
deepspeed                0.15.4
numpy                    1.26.4
nvidia-nccl-cu12         2.20.5
torch                    2.4.0
"""

PIP_SHOW = """\
Name: torch
Version: 2.2.1
Summary: Tensors and Dynamic neural networks in Python with strong GPU acceleration
Home-page: https://pytorch.org/
License: BSD-3
Location: /opt/env/lib/python3.10/site-packages
Requires: filelock, fsspec, jinja2, networkx, nvidia-cublas-cu12, nvidia-nccl-cu12, sympy
Required-by: accelerate, peft
---
Name: deepspeed
Version: 0.14.0
Location: /opt/env/lib/python3.10/site-packages
Requires: hjson, ninja, torch
"""

CONDA_LIST = """\
# packages in environment at /opt/conda/envs/train:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                        main
cuda-cudart               11.8.89                       0    nvidia
deepspeed                 0.14.4                   pypi_0    pypi
numpy                     1.26.4          py312hc5e2394_0
python                    3.12.7               h5148396_0
pytorch                   2.4.1           py3.12_cuda11.8_cudnn9.1.0_0    pytorch
pytorch-cuda              11.8                 h7e8668a_5    pytorch
pyyaml                    6.0.2           py312h5eee18b_0
"""

CONDA_EXPORT = """\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
_libgcc_mutex=0.1=conda_forge
blas=1.0=mkl
deepspeed=0.14.4=pypi_0
einops=0.8.0=pypi_0
hjson=3.1.0=pyhd3eb1b0_0
ninja=1.11.1=pypi_0
numpy=1.26.4=py312hc5e2394_0
python=3.12.7=h5148396_0
pytorch=2.4.1=py3.12_cuda11.8_cudnn9.1.0_0
pytorch-cuda=11.8=h7e8668a_6
pyyaml=6.0.2=py312h5eee18b_0
"""

CONDA_EXPLICIT = """\
# platform: linux-64
@EXPLICIT
https://repo.anaconda.com/pkgs/main/linux-64/_libgcc_mutex-0.1-main.conda
https://repo.anaconda.com/pkgs/main/linux-64/blas-1.0-mkl.tar.bz2
https://conda.anaconda.org/conda-forge/noarch/einops-0.8.0-pyhd8ed1ab_0.conda
https://conda.anaconda.org/conda-forge/noarch/hjson-3.1.0-pyhd3eb1b0_0.tar.bz2
https://conda.anaconda.org/conda-forge/linux-64/ninja-1.11.1-h924138e_0.tar.bz2
https://repo.anaconda.com/pkgs/main/linux-64/numpy-1.26.4-py312hc5e2394_0.conda
https://repo.anaconda.com/pkgs/main/linux-64/python-3.12.7-h5148396_0.conda
https://conda.anaconda.org/pytorch/linux-64/pytorch-2.4.1-py3.12_cuda11.8_cudnn9.1.0_0.tar.bz2#0123abcd
https://conda.anaconda.org/pytorch/linux-64/pytorch-cuda-11.8-h7e8668a_6.tar.bz2
https://repo.anaconda.com/pkgs/main/linux-64/pyyaml-6.0.2-py312h5eee18b_0.conda
"""

GCC = """\
gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Copyright (C) 2021 Free Software Foundation, Inc.
"""

LIGHTNING = """\
* CUDA:
\t- GPU:
\t\t- NVIDIA A10G
\t\t- NVIDIA A10G
\t- available:         True
\t- version:           12.1
* Lightning:
\t- lightning:         2.2.1
\t- torch:             2.2.2
\t- torchmetrics:      1.3.2
* Packages:
\t- deepspeed:         0.14.0
\t- numpy:             1.26.4
\t- typing-extensions: 4.10.0
* System:
\t- OS:                Linux
\t- architecture:
\t\t- 64bit
\t\t- ELF
\t- processor:         x86_64
\t- python:            3.10.13
\t- release:           5.15.0-1055-aws
\t- version:           #60~20.04.1-Ubuntu SMP Thu Feb 22 15:49:52 UTC 2024
"""

SMI_LOST = """\
Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU
"""

PIP_FREEZE = "".join(
    f"{name}==1.{number}.0\n"
    for number, name in enumerate(
        "aiohttp attrs certifi deepspeed filelock fsspec hjson idna jinja2 mpmath ninja".split()  # noqa: SIM905
    )
)

ALL = {
    "collect_env": COLLECT_ENV,
    "collect_env old": COLLECT_ENV_OLD,
    "collect_env vllm": COLLECT_ENV_VLLM,
    "collect_env system first": COLLECT_ENV_SYSTEM_FIRST,
    "sglang.check_env": SGLANG,
    "sglang.check_env ROCm": SGLANG_ROCM,
    "collect_env of Lightning": LIGHTNING,
    "ds_report": DS_REPORT,
    "nvidia-smi": SMI,
    "nvidia-smi old": SMI_OLD,
    "nvidia-smi -q": SMI_Q,
    "nvidia-smi -L": LIST_AND_LINKS,
    "nvidia-smi topo": TOPO,
    "transformers env": TRANSFORMERS,
    "accelerate env": ACCELERATE,
    "llamafactory-cli env": LLAMAFACTORY,
    "nvcc --version": NVCC,
    "lspci": LSPCI,
    "kernel module": KERNEL_MODULE,
    "kernel log": KERNEL_LOG,
    "ds_report without title": DS_REPORT_UNTITLED,
    "nvidia-smi MIG": NVIDIA_SMI_MIG,
    "pip list": PIP_LIST,
    "pip freeze": PIP_FREEZE,
    "pip show": PIP_SHOW,
    "conda list": CONDA_LIST,
    "conda list --export": CONDA_EXPORT,
    "conda list --explicit": CONDA_EXPLICIT,
    "gcc --version": GCC,
}
