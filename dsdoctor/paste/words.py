"""Whether a text may state an environment, without loading the readers of `dsdoctor.paste`."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy

#: A text contains at least one of these words if a reader recognizes a part of it.
_WORDS = lazy(
    r"(?i)PyTorch version|NVIDIA-SMI|Failed to initialize NVML|NVSMI LOG|DeepSpeed C\+\+/CUDA ext"
    r"|DeepSpeed general env|\(UUID: |\bGPU0\s"
    r"|(?:transformers|accelerate|llama-?factory)`{0,2} version"
    r"|Cuda compilation tools|NVIDIA Corporation|Package\s+Version|Name\s+Version\s+Build"
    r"|pip[\d.]{0,5} (?:list|freeze)\b|\w==|Name: [\w.-]+\s+Version: \d|No devices were found"
    r"|determine the device handle|NVRM(?: version:|: loading) NVIDIA"
    r"|(?:torch|deepspeed) \w{4,7} \.{3}|(?:CUDA|ROCM) available: "
    r"|@EXPLICIT|This file may be used to create an environment"
    r"|\b(?:gcc|g\+\+) \([^()\n]{1,80}\) \d"
    r"|\bNODELIST\b|\bHOSTNAMES\b|NodeName=|ROLES\s+AGE\s+VERSION|[Aa]llocatable\"?:"
    r"|MiB */ *\d{3,6}MiB|[Dd]river\W{1,3}[3-6]\d\d\.\d|[Tt]orch\W{1,3}\d\.\d+\.\d\+"
    r"|NodeStatusUnknown|Taints: |Reason=\S|(?:down|drain|drng|fail)[*$]?\s+[A-Za-z][\w.-]*\["
    r"|nvidia_smi_log|query-gpu|driver_version|etting ds_accelerator to cpu|bus info: pci@"
    r"|\b(?:py)?torch[ =:]{1,40}\d\.\d|\bdeepspeed[ =:]{1,40}0\.\d"
    r"|CUDA (?:runtime version|used to build)"
    r"|torch\.(?:cuda\.is_available|__version__|version\.cuda)|# gpu {1,20}(?:pwr|pid|sm|fb)\b"
)


def may_state(text: str) -> bool:
    """Whether a text is worth reading line by line; a log of a run usually is not."""
    return _WORDS.search(text) is not None
