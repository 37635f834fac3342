"""Reads the variables that affect a job; never those that contain secrets."""

from __future__ import annotations

from collections.abc import Mapping

from dsdoctor.api import Environment, probe
from dsdoctor.host import Host
from dsdoctor.model.redact import mask, secret_name

PREFIXES = (
    "ACCELERATE_",
    "APPTAINER_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DEEPSPEED_",
    "DS_",
    "FI_",
    "FSDP_",
    "GLOO_",
    "GOMP_",
    "HF_DATASETS_",
    "HF_HUB_",
    "KMP_",
    "MASTER_",
    "MKL_",
    "NCCL_",
    "NVCC_",
    "NVIDIA_",
    "OMPI_COMM_WORLD_",
    "OMP_",
    "PET_",
    "PMI_",
    "PMIX_",
    "PYTORCH_",
    "SINGULARITY_",
    "SLURM_",
    "TORCH",
    "TRITON_",
    "UCX_",
)
NAMES = frozenset(
    {
        "ALL_PROXY",
        "ASCEND_RT_VISIBLE_DEVICES",
        "CC",
        "CFLAGS",
        "CONDA_DEFAULT_ENV",
        "CONDA_PREFIX",
        "CPATH",
        "CXX",
        "CXXFLAGS",
        "EBROOTCUDA",
        "FORCE_TORCHRUN",
        "GROUP_RANK",
        "HF_ENDPOINT",
        "HF_HOME",
        "HIP_VISIBLE_DEVICES",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "KUBERNETES_SERVICE_HOST",
        "LDFLAGS",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LIBRARY_PATH",
        "LOADEDMODULES",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MAX_JOBS",
        "NNODES",
        "NODE_RANK",
        "NPROC_PER_NODE",
        "PATH",
        "PYTHONHOME",
        "PYTHONNOUSERSITE",
        "PYTHONPATH",
        "RANK",
        "ROCR_VISIBLE_DEVICES",
        "SLURMD_TRES_BIND",
        "TMPDIR",
        "TOKENIZERS_PARALLELISM",
        "TRANSFORMERS_CACHE",
        "TRANSFORMERS_OFFLINE",
        "USE_KT",
        "USE_MCA",
        "USE_NINJA",
        "USE_RAY",
        "VIRTUAL_ENV",
        "WORLD_SIZE",
        "XDG_CACHE_HOME",
        "ZE_AFFINITY_MASK",
        "ZE_FLAT_DEVICE_HIERARCHY",
        "all_proxy",
        "http_proxy",
        "https_proxy",
    },
)


def allowed(name: str) -> bool:
    """Whether a variable may enter a snapshot.

    >>> allowed("NCCL_DEBUG"), allowed("HF_TOKEN"), allowed("SLURM_JWT"), allowed("USER")
    (True, False, False, False)
    >>> allowed("SLURMD_TRES_BIND")
    True
    """
    return (name in NAMES or name.startswith(PREFIXES)) and not secret_name(name)


def select(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables, sorted, with secrets in their values masked.

    >>> select({"PATH": "/bin", "HF_TOKEN": "hf_x", "NCCL_NET": "https://a:b@c"})
    {'NCCL_NET': 'https://[masked]@c', 'PATH': '/bin'}
    """
    return {name: mask(variables[name]) for name in sorted(variables) if allowed(name)}


@probe
def environment(host: Host) -> Environment:
    """The job's environment."""
    return Environment(variables=select(host.env))
