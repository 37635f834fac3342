"""All readers, the most reliable first, as several may state the same field.

`ds_report` and `sglang.check_env` come before tools that print the nvcc on PATH: they run the nvcc
that DeepSpeed builds with.
"""

from __future__ import annotations

from dsdoctor.paste import (
    accelerate_env,
    amd_smi,
    collect_env,
    conda_list,
    dcgmi,
    ds_accelerator,
    ds_report,
    gcc_version,
    ibstat,
    kernel_module,
    kubectl_nodes,
    limits,
    llamafactory_env,
    lshw,
    lspci,
    nvcc,
    nvidia_smi,
    nvidia_smi_csv,
    nvidia_smi_dmon,
    nvidia_smi_list,
    nvidia_smi_query,
    nvidia_smi_xml,
    pip_list,
    pip_show,
    python_console,
    sentences,
    sglang_env,
    shell_variables,
    slurm_nodes,
    system,
    topo,
    torch_warning,
    transformers_env,
    version_list,
)
from dsdoctor.paste.reader import Reader

READERS: tuple[Reader, ...] = (
    ds_report.READER,
    sglang_env.READER,
    collect_env.READER,
    nvidia_smi.READER,
    nvidia_smi_query.READER,
    nvidia_smi_xml.READER,
    nvidia_smi_csv.READER,
    nvidia_smi_list.READER,
    nvidia_smi_dmon.READER,
    topo.READER,
    transformers_env.READER,
    accelerate_env.READER,
    llamafactory_env.READER,
    version_list.READER,
    nvcc.READER,
    gcc_version.READER,
    lspci.READER,
    lshw.READER,
    kernel_module.READER,
    system.READER,
    limits.DF,
    limits.ULIMIT,
    shell_variables.READER,
    amd_smi.READER,
    dcgmi.READER,
    ibstat.READER,
    pip_list.READER,
    pip_show.READER,
    conda_list.READER,
    slurm_nodes.READER,
    kubectl_nodes.READER,
    python_console.READER,
    ds_accelerator.READER,
    torch_warning.READER,
    sentences.READER,
)

_WRITTEN = (
    version_list.READER,
    python_console.READER,
    ds_accelerator.READER,
    torch_warning.READER,
    sentences.READER,
)
#: Names of the tools whose output is read; the other readers parse what people write themselves.
TOOLS: tuple[str, ...] = tuple(reader.name for reader in READERS if reader not in _WRITTEN)
