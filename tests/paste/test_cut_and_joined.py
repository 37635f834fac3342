"""Texts whose heads are missing, whose lines are joined, and what people type into Python."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.model.matrix import Matrix
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.words import may_state
from tests.paste import texts
from tests.paste.reading import stated, value

REGISTRY = packs.load()
ROW = "|   {0}  A100-SXM4-40GB      On   | 00000000:B{0}:00.0 Off |                   On |\n"
MEMORY = "| N/A   34C    P0    69W / 400W |      0MiB / 40537MiB |     N/A      Default |\n"
MIG = "|                               |                      |             {0:>8}  |\n"
BORDER = "+-------------------------------+----------------------+----------------------+\n"
NO_GPU = "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'\n"


def troubles(text: str) -> set[str]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    return {f.condition for f in report.findings if f.status in (Status.FAIL, Status.WARN)}


def joined(text: str) -> str:
    return " ".join(text.split()) + "\n"


@pytest.mark.parametrize(
    "path",
    [
        "torch_build/version",
        "torch_build/cuda",
        "torch_live/cuda_ok",
        "nvml/driver_version",
        "cuda_toolkits/found/0/version",
        "compilers/cxx/version",
        "gpus/count",
        "gpus/gpus/1/name",
        "packages/packages/numpy/version",
    ],
)
def test_a_report_in_one_line_states_what_it_states_in_many(path: str) -> None:
    one = stated("Title\n" + joined(texts.COLLECT_ENV))
    assert value(one, path) == value(stated(texts.COLLECT_ENV), path)
    assert {s.line for facts in one.sources.values() for s in facts.values()} == {2}


def test_a_report_in_one_line_that_is_cut_claims_no_whole_list() -> None:
    text = joined(texts.COLLECT_ENV)
    cut = text[: text.index("GPU 1: ") + 12]
    assert "gpus" not in stated(cut).sources["gpus"]


@pytest.mark.parametrize("first", ["Is debug build", "Is CUDA available", "CUDA runtime version"])
def test_a_report_whose_head_is_cut(first: str) -> None:
    rest = texts.COLLECT_ENV[texts.COLLECT_ENV.index(first) :]
    assert value(stated(rest), "nvml/driver_version") == "535.104.05"
    assert value(stated(rest), "cuda_toolkits/found/0/version") == "12.8"


def test_one_key_alone_is_no_report() -> None:
    assert environment_of("CUDA runtime version: 12.4\nand so on\n") is None


def test_a_table_whose_head_is_cut() -> None:
    text = BORDER + ROW.format(6) + MEMORY + MIG.format("Enabled") + BORDER
    snapshot = stated(text)
    assert value(snapshot, "gpus/gpus/0/index") == 6
    assert value(snapshot, "gpus/gpus/0/mig_mode") is True
    assert "count" not in snapshot.facts["gpus"]  # the rows before it are missing


def test_a_star_says_that_the_mode_changes_at_the_next_reset() -> None:
    snapshot = stated(ROW.format(0) + MEMORY + MIG.format("Disabled*") + BORDER)
    assert value(snapshot, "gpus/gpus/0/mig_mode") is True
    assert value(snapshot, "gpus/gpus/0/mig_mode_pending") is False
    assert "mig-mode-pending" in troubles(ROW.format(0) + MEMORY + MIG.format("Enabled*") + BORDER)


MIG_TABLE = (
    "| MIG devices:                                                                |\n"
    "+------------------+----------------------+-----------+-----------------------+\n"
    "|  1   13   0   0  |      3MiB /  4864MiB | 14      0 |  1   0    0    0    0 |\n"
    "|                  |      0MiB /  8191MiB |           |                       |\n"
)


def test_a_gpu_that_the_list_of_mig_devices_leaves_out_has_none() -> None:
    gpus = "".join(
        row.format(n) + MEMORY + MIG.format("Enabled") + BORDER
        for n, row in enumerate((ROW, ROW, ROW))
    )
    whole = gpus + "\n" + BORDER + MIG_TABLE + BORDER + "\n"
    snapshot = stated(whole)
    assert "mig_devices" not in value(snapshot, "gpus/gpus/1")
    assert value(snapshot, "gpus/gpus/0/mig_devices") == []
    assert "mig-without-instance" in troubles(whole)
    cut = stated(gpus + "\n" + BORDER + MIG_TABLE)
    assert "mig_devices" not in value(cut, "gpus/gpus/0")


@pytest.mark.parametrize(("word", "named"), [("ERR!", True), ("N/A", True), ("12.2", False)])
def test_a_libcuda_that_nvidia_smi_cannot_use(word: str, named: bool) -> None:
    head = f"| NVIDIA-SMI 535.54.03   Driver Version: 536.25   CUDA Version: {word}  |\n"
    assert ("libcuda-unusable" in troubles(head)) is named
    query = f"====NVSMI LOG====\n\nDriver Version   : 536.25\nCUDA Version  : {word}\n"
    assert ("libcuda-unusable" in troubles(query)) is named


def test_ds_report_shows_that_torch_finds_no_device() -> None:
    text = NO_GPU + texts.DS_REPORT_UNTITLED
    assert value(stated(text), "torch_live/cuda_ok") is False
    assert "no-gpu-visible" in troubles(text)
    assert environment_of(NO_GPU) is None  # in a log, it is no environment


def test_a_report_without_a_toolkit_says_what_ds_build_ops_does() -> None:
    report = (
        "torch version .................... 2.3.0+cu121\n"
        "deepspeed info ................... 0.14.4, unknown, unknown\n"
        "torch cuda version ............... 12.1\n"
        "nvcc version ..................... [FAIL] cannot find CUDA_HOME via x=None\n"
    )
    for text, said in (
        (report, False),
        ("$ DS_BUILD_OPS=0 pip install deepspeed\n" + report, True),
    ):
        findings = judge(stated(text), list(REGISTRY), REGISTRY).findings
        found = next(f for f in findings if f.condition == "cuda-toolkit-missing")
        assert found.status is Status.WARN
        assert ("`DS_BUILD_OPS=0` does not disable builds" in found.hint) is said
    assert environment_of("DS_BUILD_OPS=0 pip install deepspeed\n") is None


CONSOLE = """\
>>> import torch
>>> torch.__version__
'2.4.0+cu121'
>>> torch.cuda.is_available()
/env/torch/cuda/__init__.py:118: UserWarning: CUDA initialization: x (Triggered at y.cpp:108.)
  return torch._C._cuda_getDeviceCount() > 0
False
"""


def test_what_python_answers() -> None:
    snapshot = stated(CONSOLE)
    assert value(snapshot, "torch_build/version") == "2.4.0+cu121"
    assert value(snapshot, "torch_live/cuda_ok") is False
    assert may_state(CONSOLE)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            'python -c "import torch; print(torch.cuda.is_available())"\nTrue\n', id="python -c"
        ),
        pytest.param("In [2]: torch.cuda.is_available()\nOut[2]: True\n", id="IPython"),
        pytest.param("print(torch.cuda.is_available())\n\nreturn True\n", id="print and return"),
        pytest.param("```\n`print(torch.cuda.is_available())`\nTrue\n```\n", id="marked as code"),
    ],
)
def test_other_ways_to_ask_python(text: str) -> None:
    assert value(stated(text), "torch_live/cuda_ok") is True


def test_python_answers_which_gpus_torch_has_code_for() -> None:
    text = (
        ">>> import torch; torch.__version__\n'2.6.0+cu124'\n"
        ">>> torch.cuda.get_device_capability(0)\n(12, 0)\n"
        ">>> print(torch.cuda.get_arch_list())\n['sm_80', 'sm_90', 'compute_90']\n"
    )
    snapshot = stated(text)
    assert value(snapshot, "torch_build/version") == "2.6.0+cu124"
    assert value(snapshot, "torch_live/arch_list") == ("sm_80", "sm_90", "compute_90")
    assert value(snapshot, "gpus/gpus/0/cc_major") == 12
    assert may_state(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("torch.cuda.is_available() returns False, why?\n", id="a sentence"),
        pytest.param("    print(torch.cuda.is_available())\n    return False\n", id="a script"),
        pytest.param(
            'python -c "import torch; print(torch.version.cuda); print(torch.cuda.is_available())"\n12.1\n',
            id="a list of commands",
        ),
        pytest.param(
            ">>> torch.cuda.is_available()\nand then nothing. False\n", id="an answer in prose"
        ),
        pytest.param("if torch.cuda.is_available():\n    x = True\n", id="a condition of a script"),
    ],
)
def test_a_sentence_or_a_script_is_no_answer(text: str) -> None:
    assert environment_of(text) is None


def test_a_list_of_versions_without_its_head() -> None:
    text = (
        "- Huggingface_hub version: 1.18.0\n- Accelerate version: 1.14.0\n"
        "- PyTorch version (accelerator?): 2.12.0+cu130 (CUDA)\n- GPU type: NVIDIA L4\n"
    )
    snapshot = stated(text)
    assert value(snapshot, "torch_build/cuda") == "13.0"
    assert value(snapshot, "gpus/gpus/0/name") == "NVIDIA L4"
    assert environment_of("- PyTorch version: 2.4.0\nand more\n") is None


def test_pytorchs_template_of_issues() -> None:
    text = " - PyTorch Version (e.g., 1.0): 1.7.1\n - OS (e.g., Linux): Linux\n - Python version: 3.8\n"
    assert value(stated(text), "torch_build/version") == "1.7.1"
    assert value(stated(text), "patient/version") == "3.8"


def test_values_in_backticks() -> None:
    text = (
        "* `transformers` version: `5.0.0.dev0`\n"
        "* Platform: `Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.39`\n"
        "* PyTorch version (accelerator?): `2.9.1+cu128 (CUDA)`\n"
    )
    assert value(stated(text), "torch_build/cuda") == "12.8"
    assert value(stated(text), "os_info/wsl") is True


TOPO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-15\nGPU1\tPIX\t X \t0-15\n"


def test_a_matrix_without_nvlinks_says_nothing_of_them() -> None:
    assert value(stated("$ nvidia-smi topo -m\n" + TOPO), "gpu_topology/pairs/0/nvlinks") == 0
    for command in ("topo -mp", "topo --matrix_pci"):
        [pair] = stated(f"$ nvidia-smi {command}\n\n" + TOPO).facts["gpu_topology"]["pairs"]
        assert pair == {"a": 0, "b": 1, "ancestor": "SINGLE"}


P2P = " \tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n\nLegend:\n\n  GNS  = GPU not supported\n"
LINKED = TOPO.replace("PIX", "NV4")
LISTED = "".join(
    f"GPU {n}: NVIDIA A100-SXM4-40GB (UUID: GPU-0000000{n}-0000-0000-0000-000000000000)\n"
    for n in range(2)
)


def test_matrices_of_one_machine_are_one() -> None:
    text = f"$ nvidia-smi topo -m\n{LINKED}$ nvidia-smi topo -mp\n{TOPO}$ nvidia-smi topo -p2p r\n{P2P}"
    [pair] = stated(text).facts["gpu_topology"]["pairs"]
    assert pair == {
        "a": 0, "b": 1, "nvlinks": 4, "ancestor": "SINGLE", "p2p_read": "GPU_NOT_SUPPORTED",
    }  # fmt: skip
    assert "p2p-unsupported" in troubles(LISTED + text)
    assert "p2p-unsupported" not in troubles(LISTED + text.replace("GNS", "OK"))


def test_a_matrix_of_another_machine_adds_nothing() -> None:
    other = TOPO.replace("PIX", "SYS")
    text = f"$ nvidia-smi topo -m\n{TOPO}\non the other node\n$ nvidia-smi topo -mp\n{other}"
    assert stated(text).facts["gpu_topology"] == stated(TOPO).facts["gpu_topology"]


@pytest.mark.parametrize(
    ("option", "field"),
    [
        pytest.param("-p2p r", "p2p_read", id="read"),
        pytest.param("-p2p w", "p2p_write", id="write"),
        pytest.param("-p2p n", "p2p_nvlink", id="NVLink"),
        pytest.param("-p2p a", "", id="atomics, which no check judges"),
        pytest.param("", "", id="without the command"),
    ],
)
def test_what_the_driver_allows_between_gpus(option: str, field: str) -> None:
    text = (f"$ nvidia-smi topo {option}\n" if option else "") + P2P
    [pair] = stated(text).facts["gpu_topology"]["pairs"]
    assert pair == {"a": 0, "b": 1} | ({field: "GPU_NOT_SUPPORTED"} if field else {})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(P2P.replace("GPU0\tX", "GPU0\tOK"), id="without the diagonal"),
        pytest.param(P2P.replace("X\tGNS", "X\tPIX"), id="of two kinds"),
        pytest.param(P2P.replace("X\tGNS", "X\tFOO"), id="other words"),
    ],
)
def test_other_tables_of_gpus_are_none(text: str) -> None:
    assert environment_of(text) is None


def test_a_cpu_build_beside_a_toolkit_is_named() -> None:
    nvcc = "Cuda compilation tools, release 10.2, V10.2.89\n"
    cut = "PyTorch version: 1.7.1+cpu\nIs debug build: False\n\nOS: Microsoft Windows 10 Home\n"
    assert "cpu-only-torch" in troubles(nvcc + cut)
    assert "cpu-only-torch" not in troubles(cut)


def test_a_lost_gpu_without_a_number_beside_a_topology() -> None:
    lost = "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n"
    report = judge(stated(texts.SMI + "```\n" + TOPO + lost), list(REGISTRY), REGISTRY)
    assert "gpu-lost" in {f.condition for f in report.findings if f.status is Status.FAIL}
    assert isinstance(report.topology, Matrix)
    assert report.topology.names == ["GPU0", "GPU1", "GPU?"]


def test_a_topology_beside_the_same_one_that_was_cut_off() -> None:
    """As in a text of a log and a terminal; neither order mixes the two."""
    cut = TOPO.split("\n", 2)
    part = "\n".join(cut[:2]) + "\n"
    for text in (TOPO + "\n" + part, part + "\n" + TOPO):
        assert stated(text).facts["gpu_topology"] == stated(TOPO).facts["gpu_topology"]
