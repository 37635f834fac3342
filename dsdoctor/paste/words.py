"""Whether a text may state an environment, without loading the readers of `dsdoctor.paste`."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy

#: A text in lower case contains at least one of these if a reader recognizes a part of it, ...
_WORDS = (
    "pytorch version", "nvidia-smi", "failed to initialize nvml", "nvsmi log",
    "deepspeed c++/cuda ext", "deepspeed general env", "(uuid: ", "cuda compilation tools",
    "nvidia corporation", "no devices were found", "determine the device handle",
    "nvrm version: nvidia", "nvrm: loading nvidia", "cuda available: ", "rocm available: ",
    "@explicit", "this file may be used to create an environment", "nodename=",
    "nodestatusunknown", "taints: ", "nvidia_smi_log", "query-gpu", "driver_version",
    "etting ds_accelerator to cpu", "bus info: pci@", "cuda runtime version", "cuda used to build",
    '"hostconfig": {', "buff/cache", "pcie.link.", "buffers     cached", "max locked memory",
    "locked-in-memory size", "hypervisor vendor", "torch.cuda.is_available", "torch.__version__",
    "torch.version.cuda", "\nservices:", "apiversion: ", "nvidia.com/gpu:", "nvidia/cuda:",
    "pytorch/pytorch:", "/dev/nvidia*", "cgroup driver: ", "hugepages_total", "缓冲/缓存",
    "conda list", "env:cuda", '[{"name": "', "nvidia-fabricmanager", "fabric manager version is",
    "libnvidia-compute", "libcuda1", "-cuda-libs-", "nvidia-fabric-manager-", '"build_string": "',
    "power.default_limit", "_reasons.active", "ecc.errors.", "remapped_rows.", "retired_pages.",
)  # fmt: skip
#: ... or matches one of these. Each begins with its literal where possible, and is tried only if
#: the text contains the literal: a single pattern of all of them reads 1 MB/s.
_PATTERNS = tuple(
    (literal, lazy(pattern))
    for literal, pattern in (
        ("shm", r"(?:docker|podman|nerdctl) [^\n]{0,400}--shm-size|\bshm_size: "),
        ("--ulimit", r"(?:docker|podman|nerdctl) [^\n]{0,400}--ulimit"),
        ("dev/shm", r"%\s+/dev/shm\s"),
        ("100% /", r"\s\d[\d.]*[kmgtp]?i?\s+100% /"),
        ("not found", r"(?:gcc|g\+\+|cc|c\+\+) (?:--version|-v)\n"),
        ("ulimit -", r"ulimit -s?[lnsuva]\s"),
        ("node 0", r"node 0 size: \d"),
        ("jobid=", r"\bjobid=\d{1,12}[^\n]{0,200}\n[^\n]{0,200}="),
        ("physical_state", r"state [a-z]{4,8} physical_state "),
        ("infiniband device", r"infiniband device '"),
        ("phys", r"physical state: |phys_state:"),
        ("gpu0", r"\bgpu0\s"),
        ("transformers", r"transformers`{0,2} version"),
        ("accelerate", r"accelerate`{0,2} version"),
        ("llama", r"llama-?factory`{0,2} version"),
        ("package", r"package\s+version"),
        ("name", r"name\s+version\s+build"),
        ("name: ", r"name: [\w.-]+\s+version: \d"),
        ("pip", r"pip[\d.]{0,5} (?:list|freeze)\b"),
        ("==", r"\w=="),
        ("torch ", r"torch \w{4,7} \.{3}"),
        ("torch", r"torch\W{1,3}\d\.\d+\.\d\+"),
        ("torch", r"torch[ =:]{1,40}\d\.\d"),
        ("deepspeed ", r"deepspeed \w{4,7} \.{3}"),
        ("deepspeed", r"deepspeed[ =:]{1,40}0\.\d"),
        ("gcc (", r"gcc \([^()\n]{1,80}\) \d"),
        ("g++ (", r"g\+\+ \([^()\n]{1,80}\) \d"),
        ("nodelist", r"\bnodelist\b"),
        ("hostnames", r"\bhostnames\b"),
        ("roles", r"roles\s+age\s+version"),
        ("allocatable", r"allocatable\"?:"),
        ("mib", r"mib */ *\d{3,6}mib"),
        ("driver", r"driver\W{1,3}[3-6]\d\d\.\d"),
        ("reason=", r"reason=\S"),
        ("down", r"down[*$]?\s+[a-z][\w.-]*\["),
        ("drain", r"drain[*$]?\s+[a-z][\w.-]*\["),
        ("drng", r"drng[*$]?\s+[a-z][\w.-]*\["),
        ("fail", r"fail[*$]?\s+[a-z][\w.-]*\["),
        ("# gpu", r"# gpu {1,20}(?:pwr|pid|sm|fb)\b"),
    )
)


def may_state(text: str) -> bool:
    """Whether a text is worth reading line by line; a log of a run usually is not."""
    text = text.lower()
    return any(word in text for word in _WORDS) or any(
        literal in text and pattern.search(text) is not None for literal, pattern in _PATTERNS
    )
