"""Pastes through the commands: what is named, what is not said, how they exit.

Over 400 lines because the rows of all formats stand in few tables.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from click.testing import CliRunner

from dsdoctor import packs
from dsdoctor.cli.main import group
from dsdoctor.errors import UsageError
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report, Verdict
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.pip_show import PYPI_CUDA
from tests.paste import texts

REGISTRY = packs.load()


def report_of(text: str) -> Report:
    snapshot = environment_of(text)
    assert snapshot is not None
    return judge(snapshot, list(REGISTRY), REGISTRY)


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str]:
    # as the real entry point does, the command's return value is the exit status
    result = CliRunner().invoke(group, list(arguments), input=stdin, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def troubles(report: Report) -> set[str]:
    return {f.condition for f in report.findings if f.status in (Status.FAIL, Status.WARN)}


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        pytest.param(texts.COLLECT_ENV, {"driver-too-old"}, id="collect_env"),
        pytest.param(
            texts.DS_REPORT, {"cuda-toolkit-mismatch", "jit-build-ninja-missing"}, id="ds_report"
        ),
        pytest.param(texts.SMI, {"ecc-uncorrectable"}, id="nvidia-smi"),
        pytest.param(
            "NVIDIA-SMI has failed because it couldn\u2019t communicate with the NVIDIA driver.\n",
            {"driver-missing"},
            id="nvidia-smi without a driver",
        ),
        pytest.param(
            texts.SMI_Q,
            {"row-remap-failed", "mig-mode-pending", "row-remap-pending"},
            id="nvidia-smi -q",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\n",
            {"driver-library-mismatch"},
        ),
        pytest.param(texts.SMI_LOST, {"gpu-lost"}, id="nvidia-smi with a lost GPU"),
        pytest.param(texts.NVIDIA_SMI_MIG, {"mig-without-instance"}, id="nvidia-smi with MIG"),
        pytest.param(
            texts.KERNEL_MODULE + texts.COLLECT_ENV.replace("535.104.05", ""),
            {"driver-too-old"},
            id="the kernel module of a driver",
        ),
        pytest.param(
            texts.DS_REPORT_UNTITLED, {"cuda-toolkit-mismatch"}, id="ds_report without a title"
        ),
        pytest.param(
            "No devices were found\n" + texts.LSPCI_BARE,
            {"no-gpu-visible"},
            id="lspci and no device",
        ),
        pytest.param(
            "couldn't communicate with the NVIDIA driver.\n" + texts.LSPCI_BARE,
            {"driver-missing"},
            id="lspci and no driver",
        ),
        pytest.param(
            texts.PIP_SHOW + texts.NVCC.replace("12.6", "11.8"),
            {"cuda-toolkit-mismatch"},
            id="pip show and nvcc",
        ),
        pytest.param(
            texts.PIP_LIST.replace("2.4.0", "2.4.0+cpu"),
            {"cpu-only-torch"},
            id="pip list with a build without CUDA",
        ),
        pytest.param(
            texts.PIP_LIST.replace("torch ", "nvidia-cuda-runtime 13.0.48\ntorch ").replace(
                "2.4.0", "2.11.0"
            )
            + texts.SMI,
            {"driver-too-old"},
            id="pip list with the CUDA runtime, and nvidia-smi",
        ),
        pytest.param(
            texts.COLLECT_ENV_OLD.replace("available: Yes", "available: No").replace("418", "410"),
            {"driver-too-old"},
            id="an old collect_env without CUDA",
        ),
        pytest.param(
            texts.COLLECT_ENV_OLD.replace("GPU 0: Tesla V100-SXM2-16GB", "GPU 0: NVIDIA A40"),
            {"gpu-arch-unsupported"},
            id="an old collect_env with a new GPU",
        ),
        pytest.param(texts.DS_REPORT, {"shm-too-small"}, id="ds_report with little shared memory"),
        pytest.param(texts.SGLANG, {"cuda-toolkit-mismatch"}, id="check_env of SGLang"),
        pytest.param(
            texts.COLLECT_ENV_SYSTEM_FIRST.replace("24.04", "24.10"),  # 24.04 packages this nvcc
            {"jit-build-gcc-too-new"},
            id="collect_env with the system first",
        ),
        pytest.param(
            "Unable to determine the device handle for GPU2: Unknown Error\n",
            {"gpu-lost"},
            id="a handle of a GPU",
        ),
        pytest.param(
            texts.COLLECT_ENV.replace("11.4.0", "8.5.0"),
            {"jit-build-gcc-too-old"},
            id="collect_env with an old GCC",
        ),
        pytest.param(
            texts.NVCC.replace("12.6", "10.2") + texts.GCC,
            {"jit-build-gcc-too-new"},
            id="nvcc and gcc",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, conditions: set[str]) -> None:
    assert conditions <= troubles(report_of(text))


#: GPU, driver and release alone: what no build of the release can change is named.
_GPU = "GPU 0: {gpu} (UUID: GPU-67a571b1-79ee-1016-8ea3-c1fff3f1c1d2)\n"
_PIP = "$ pip list | grep torch\ntorch         {torch}\ntorchvision   0.20.1\n"


@pytest.mark.parametrize(
    ("gpu", "torch", "driver", "found"),
    [
        ("Tesla K40m", "2.5.1", "470.161.03", {"gpu-arch-unsupported"}),
        ("Tesla K80", "2.5.1", "470.161.03", set()),  # the build for CUDA 11.8 runs there
        ("Tesla K80", "2.9.1", "470.161.03", {"gpu-arch-unsupported", "driver-too-old"}),
        ("NVIDIA GeForce RTX 5090", "2.5.1", "590.48.01", {"gpu-arch-unsupported"}),
        ("NVIDIA GeForce RTX 5090", "2.7.1", "590.48.01", set()),  # one build of three has code
        ("NVIDIA A100-SXM4-80GB", "2.15.0", "535.104.05", {"driver-too-old"}),
        ("NVIDIA A100-SXM4-80GB", "2.5.1", "470.161.03", set()),
        ("Tesla K40m", "1.4.0", "418.67", set()),  # not in the tables
        ("NVIDIA A100-SXM4-80GB", "2.15.0+cpu", "535.104.05", {"cpu-only-torch"}),
    ],
)
def test_a_torch_without_its_cuda_is_judged_over_all_its_builds(
    gpu: str, torch: str, driver: str, found: set[str]
) -> None:
    smi = f"| NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: 11.4     |\n"
    report = report_of(_PIP.format(torch=torch) + smi + _GPU.format(gpu=gpu))
    assert troubles(report) == found


def test_a_failing_nvidia_smi_beside_a_torch_for_rocm_is_no_failure() -> None:
    failing = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    assert troubles(report_of(texts.SGLANG_ROCM + failing)) == set()


@pytest.mark.parametrize("name", ["GPU-9f3c", "MIG-06a16211-6455-5548"])
def test_a_uuid_is_not_compared_with_gpus_whose_uuids_are_not_stated(name: str) -> None:
    text = texts.COLLECT_ENV_VLLM.replace("DEVICES=0,1", f"DEVICES={name}")
    assert "visible-devices-invalid" not in troubles(report_of(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(texts.SMI_LOST + texts.TOPO, id="a lost GPU without its index"),
        pytest.param(
            texts.SGLANG.replace("GPU 0,1,2,3: NVIDIA L40S\n", "") + texts.TOPO,
            id="GPUs without their names",
        ),
    ],
)
def test_gpus_of_which_little_is_stated_crash_no_check(text: str) -> None:
    report = report_of(text + texts.LIST_AND_LINKS)
    assert report.counts["crash"] == 0


def test_a_gpu_on_the_bus_does_not_say_what_the_driver_lists() -> None:
    text = texts.LSPCI_BARE + texts.KERNEL_MODULE
    assert "no-gpu-visible" not in troubles(report_of(text))


def test_the_headline_counts_gpus_that_the_paste_does_not_name(tmp_path: Path) -> None:
    paste = tmp_path / "env.txt"
    paste.write_text(texts.LLAMAFACTORY, encoding="utf-8")
    output = run("check", "--from-report", str(paste))[1]
    assert "1 × NVIDIA A800-SXM4-80GB + 7 × GPU" in " ".join(output.split())


def test_one_gpu_of_two_without_code_is_a_warning() -> None:
    text = _PIP.format(torch="2.5.1") + _GPU.format(gpu="NVIDIA GeForce RTX 5090")
    text += _GPU.format(gpu="NVIDIA L4").replace("GPU 0", "GPU 1").replace("67a571b1", "67a571b2")
    found = [f for f in report_of(text).findings if f.condition == "gpu-arch-unsupported"]
    assert [(f.status, f.evidence.get("gpu")) for f in found] == [
        (Status.WARN, "GPU 0 (NVIDIA GeForce RTX 5090)")
    ]


@pytest.mark.parametrize(
    ("python", "torch", "found"),
    [
        ("3.8.18", "2.6.0", {"python-too-old"}),  # DeepSpeed's release is not stated
        ("3.9.18", "2.6.0", set()),
        (None, "2.6.0", set()),
    ],
)
def test_python_is_judged_by_the_packages_that_are_stated(
    python: str | None, torch: str, found: set[str]
) -> None:
    lines = [
        f"PyTorch version: {torch}",
        "Is debug build: False",
        "ROCM used to build PyTorch: N/A",
    ]
    lines += [f"Python version: {python} (64-bit runtime)"] if python else []
    lines += ["Versions of relevant libraries:", "[pip3] numpy==1.24.4", f"[pip3] torch=={torch}"]
    assert troubles(report_of("\n".join(lines))) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            texts.PIP_LIST,
            "the paste does not report the GPUs, the driver, Python or the CUDA version of torch",
            id="pip list",
        ),
        pytest.param(
            _GPU.format(gpu="NVIDIA L4"),
            "the paste does not report the driver, Python, torch or",
            id="a GPU",
        ),
    ],
)
def test_a_paste_says_what_it_leaves_out(text: str, words: str) -> None:
    _, output = run("check", "--from-report", "-", stdin=text)
    assert words in " ".join(output.split())
    assert "\nbuilt-in tables as of 20" in output


def test_a_paste_given_as_a_snapshot_names_the_option_for_it(tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    path.write_text(texts.SMI, encoding="utf-8")
    with pytest.raises(UsageError, match=r"pass `--from-report .*issue\.md`"):
        run("check", "--from", str(path))
    path.write_text("nothing of a machine", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a snapshot: JSON is malformed"):
        run("check", "--from", str(path))


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("$ pip list | grep torch\ntorch    2.5.1\n", {"torch": "2.5.1"}),
        ("(env) me@box:~$ pip3 freeze\ntorch==2.5.1\n\nnumpy==2\n", {"torch": "2.5.1"}),
        ("please run pip list\ntorch    2.5.1\n", None),  # prose
        ("pip install:\ntorch==2.5.1\n", None),  # what is asked for
    ],
)
def test_a_few_rows_below_their_command_are_a_list(
    text: str, packages: dict[str, str] | None
) -> None:
    snapshot = environment_of(text)
    if packages is None:
        assert snapshot is None or "packages" not in snapshot.facts
        return
    assert snapshot is not None
    found = snapshot.facts.get("packages", {}).get("packages", {})
    assert {name: entry["version"] for name, entry in found.items()} == packages


def test_a_name_that_was_cut_is_not_an_unreadable_gpu() -> None:
    report = report_of(_GPU.format(gpu="NVIDIA"))
    assert report.gpus == ["1 × GPU"]


@pytest.mark.parametrize("name", sorted(texts.ALL))
def test_a_paste_is_never_healthy_and_no_check_crashes(name: str) -> None:
    report = report_of(texts.ALL[name])
    assert report.verdict is not Verdict.HEALTHY
    assert report.counts["crash"] == 0
    assert isinstance(report.judged, int)
    assert report.conditions == sum(unit.check is not None for unit in REGISTRY)


@pytest.mark.parametrize(
    "name",
    [
        "transformers env",
        "llamafactory-cli env",
        "pip list",
        "pip show",
        "conda list",
        "nvcc --version",
    ],
)
def test_a_paste_of_a_working_machine_has_no_findings(name: str) -> None:
    assert troubles(report_of(texts.ALL[name])) == set()


@pytest.mark.parametrize("name", ["pip list", "nvcc --version", "accelerate env", "ds_report"])
def test_a_paste_without_gpus_does_not_say_that_there_are_none(name: str) -> None:
    text = texts.ALL[name]
    status, output = run("check", "--from-report", "-", stdin=text)
    assert "no NVIDIA GPU" not in output
    assert "no-gpu-visible" not in troubles(report_of(text))
    assert f"judged {report_of(text).judged} of {report_of(text).conditions} conditions" in output
    assert status in (1, 3)


def test_check_quotes_the_lines_that_a_finding_rests_on(tmp_path: Path) -> None:
    text = f"Hello\n\n{texts.COLLECT_ENV}"
    (tmp_path / "env.txt").write_text(text)
    number = text.splitlines().index("Nvidia driver version: 535.104.05") + 1
    status, output = run("check", "--from-report", str(tmp_path / "env.txt"))
    assert status == 1
    assert f"line {number}: Nvidia driver version: 535.104.05" in output
    assert output.startswith("a paste of collect_env · 2 × NVIDIA A100-SXM4-80GB · driver 535")


def test_check_refuses_a_text_that_states_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    with pytest.raises(
        Exception, match=r"says nothing about a machine; expected output of .* other tools"
    ):
        run("check", "--from-report", str(tmp_path / "a.txt"))


def test_a_command_of_the_options_is_judged_with_the_pasted_config(tmp_path: Path) -> None:
    config = (
        '{"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}}'
    )
    launch = "deepspeed --num_gpus 2 train.py --deepspeed ds.json"
    (tmp_path / "issue.md").write_text(f"ds.json:\n```\n{config}\n```\n```\n{launch}\n```\n")
    status, output = run("check", "--from-report", str(tmp_path / "issue.md"))
    assert status == 3, output
    asked = ("--", "deepspeed", "--num_gpus", "4", "train.py", "--deepspeed", "ds.json")
    status, output = run("check", "--from-report", str(tmp_path / "issue.md"), *asked)
    assert status == 1
    assert "12" in output
    assert "4 ranks" in output
    assert "ds-config-unreadable" not in output


def test_several_commands_are_left_to_the_reader(tmp_path: Path) -> None:
    text = "driver 550.54.15\n```\n$ deepspeed a.py\n$ deepspeed b.py\n```\n"
    (tmp_path / "a.md").write_text(text)
    _, output = run("check", "--from-report", str(tmp_path / "a.md"))
    assert "lines 3, 4 launch jobs, and none of them alone fails" in output
    assert "add `-- CMD`" in output
    _, output = run("check", "--from-report", str(tmp_path / "a.md"), "--", "deepspeed", "a.py")
    assert "launch jobs" not in output
    _, output = run("check", "--from-report", str(tmp_path / "a.md"), "--gpus", "0")
    assert "to judge one of them" not in output


def test_check_names_the_cause_that_a_log_alone_shows(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("RuntimeError: launcher 'pdsh' not installed.\n")
    status, output = run("check", "--from-report", str(tmp_path / "a.txt"))
    assert status == 1
    assert output.startswith("a paste of a log")
    assert "hostfile-or-ssh-problem" in output
    (tmp_path / "a.txt").write_text("step 1: loss 2.0\nstep 2: loss 1.9\n")
    with pytest.raises(Exception, match="says nothing about a machine"):
        run("check", "--from-report", str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + texts.COLLECT_ENV, id="a-byte-order-mark"),
        pytest.param(texts.COLLECT_ENV.replace(": ", "：\u200b"), id="wide-colons"),
        pytest.param(texts.COLLECT_ENV.replace("\n", "\r\n"), id="crlf"),
        pytest.param(f"我的机器报错：\n{texts.COLLECT_ENV}\n谢谢", id="in-chinese"),
    ],
)
def test_what_editors_and_input_methods_add_is_left_out(text: str) -> None:
    plain, found = environment_of(texts.COLLECT_ENV), environment_of(text)
    assert plain is not None
    assert found is not None
    assert found.pasted == plain.pasted
    assert found.facts == plain.facts


@pytest.mark.parametrize("through", ["file", "stdin"])
def test_diagnose_judges_a_paste(tmp_path: Path, through: str) -> None:
    (tmp_path / "issue.txt").write_text(texts.COLLECT_ENV)
    path = "-" if through == "stdin" else str(tmp_path / "issue.txt")
    status, output = run("diagnose", path, "--format", "json", stdin=texts.COLLECT_ENV)
    document: dict[str, Any] = json.loads(output)
    assert status == 1
    assert "driver-too-old" in {f["condition"] for f in document["environment"]["findings"]}
    assert document["environment"]["origin"] == "a paste of collect_env"


def test_diagnose_of_a_log_says_nothing_of_an_environment(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    status, output = run("diagnose", str(tmp_path / "a.log"), "--format", "json")
    assert status == 0
    assert "environment" not in json.loads(output)


ISSUE = f"""\
Training dies at the first step.

```
Traceback (most recent call last):
  File "/opt/app/train.py", line 12, in <module>
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
```

<details>

```
{texts.COLLECT_ENV}
```
</details>
"""


def test_triage_reports_the_log_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(ISSUE)
    status, output = run("triage", str(tmp_path / "issue.md"))
    assert status == 1
    assert "gpu-oom" in output
    assert "driver-too-old" in output
    assert "ask for the output of `ds_report`" in output


def test_triage_names_a_fault_that_log_and_paste_show_with_one_line_once() -> None:
    """What a check makes of the lines of the cause is a reference to it."""
    lost = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot"
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7184, GPU has fallen off the bus."
    status, output = run("triage", "-", stdin=f"{xid}\n{lost} the system to recover this GPU\n")
    assert status == 1
    assert output.count("GPU is lost.") == 1
    assert (
        "gpu-lost (DSD601)\n      rests on the same lines as `gpu-hardware-fault` above" in output
    )


TITLE = "libtorch.so: undefined symbol: ncclCommSplit since yesterday's update"
BODY = "It started after an update of the image, every node has it.\n"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("# {}\n\n", id="a heading"),
        pytest.param("title:\t{}\nstate:\tOPEN\nauthor:\tlab\n--\n", id="GitHub's command line"),
    ],
)
def test_triage_names_what_only_the_title_says(head: str) -> None:
    status, output = run("triage", "-", stdin=head.format(TITLE) + BODY)
    assert (status, "nccl-version-mismatch" in output) == (1, True)


def test_triage_prefers_what_the_body_shows_to_the_title() -> None:
    shown = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB.\n"
    status, output = run("triage", "-", "--format", "json", stdin=f"# {TITLE}\n\n{shown}")
    assert status == 1
    assert json.loads(output)["causes"][0]["condition"] == "gpu-oom"


def test_triage_reads_no_cause_out_of_a_heading_below_the_title() -> None:
    assert run("triage", "-", stdin=f"# Two questions\n\n{BODY}\n# {TITLE}\n")[0] == 3


def test_triage_of_a_text_with_neither_says_what_to_ask_for() -> None:
    status, output = run("triage", "-", stdin="It does not work.\n")
    assert status == 3
    assert "`nvidia-smi`, `python -m torch.utils.collect_env`, `ds_report`" in output


def test_a_narrower_cause_of_the_same_line_replaces_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        f"$ nvidia-smi\nFailed to initialize NVML: Unknown Error\n\n{BODY}"
    )
    status, output = run("check", "--from-report", str(tmp_path / "a.txt"))
    assert status == 1
    assert "container-lost-gpu" in output
    assert "nvml-unusable" not in output


def test_two_of_eight_gpus_do_not_fail_a_count_of_eight() -> None:
    cut = texts.SMI[: texts.SMI.index("|   1  NVIDIA")]
    assert "gpu-count-unexpected" not in troubles(report_of(cut))


PIECES = st.lists(st.sampled_from(sorted(texts.ALL)), min_size=1, max_size=4)
NOISE = st.sampled_from(["", "> ", "\x1b[1m", "    ", "\t", "| ", "- ", "\u00a0", "```\n"])


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, list):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(PIECES, NOISE, st.integers(0, 4000), st.integers(0, 4000))
@hypothesis.example(["nvidia-smi topo"] * 2, "", 0, 250)
def test_any_part_of_any_mixture_is_read_without_inventing(
    names: list[str], noise: str, start: int, end: int
) -> None:
    whole = "\n".join(texts.ALL[name] for name in names)
    text = "\n".join(noise + line for line in whole[start : start + end].splitlines())
    snapshot = environment_of(text)
    if snapshot is None:
        return
    report = judge(snapshot, list(REGISTRY), REGISTRY)
    assert report.counts["crash"] == 0
    assert report.verdict is not Verdict.HEALTHY
    lines = text.splitlines()
    for fields in snapshot.sources.values():
        for source in fields.values():
            assert 1 <= source.line <= len(lines)
    for kind, tree in snapshot.facts.items():
        for leaf in leaves(tree):
            if leaf in PYPI_CUDA.values() and "nvidia-cublas-cu" in text:
                continue  # what torch requires names its CUDA's major version
            if isinstance(leaf, str) and kind in ("nvml", "torch_build", "deep_speed_install"):
                assert leaf in text or leaf.replace(".", "") in text, (kind, leaf)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(st.text(max_size=2000))
def test_any_text_is_read(text: str) -> None:
    environment_of(text)
    environment_of(texts.SMI[:900] + text + texts.COLLECT_ENV[:600])


def test_a_finding_about_one_gpu_quotes_no_lines_of_the_others(tmp_path: Path) -> None:
    rows = "".join(
        f"|   {n}  NVIDIA H100 80GB HBM3     On  |   00000000:1{n}:00.0 Off |          {n} |\n"
        for n in range(3)
    )
    head = "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |\n"
    file = tmp_path / "a.txt"
    file.write_text(head + rows, encoding="utf-8")
    _, shown = run("check", "--from-report", str(file))
    about = shown[shown.index("GPU 2 (") :]
    assert "line 4: | 2 NVIDIA H100 80GB HBM3 On | 00000000:12:00.0 Off | 2 |" in about
    assert "line 2:" not in about  # GPU 0
    assert "skipped" not in shown  # `judged N of M conditions` says it


def test_a_clean_log_points_to_the_environment_that_is_not(tmp_path: Path) -> None:
    file = tmp_path / "issue.md"
    file.write_text(texts.COLLECT_ENV, encoding="utf-8")
    _, shown = run("triage", str(file))
    assert "the text contains no error; the environment below has failures" in shown
    file.write_text(texts.COLLECT_ENV_OLD, encoding="utf-8")
    assert "environment below" not in run("triage", str(file))[1]


def test_a_dockerfile_alone_is_not_called_clean(tmp_path: Path) -> None:
    file = tmp_path / "issue.md"
    text = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN pip install torch==2.4.0\n"
    file.write_text(f"```dockerfile\n{text}```\n", encoding="utf-8")
    code, shown = run("triage", str(file))
    assert code == 3
    assert shown.startswith("NOTHING FOUND  the text contains no error")
    assert "CLEAN" not in shown


def test_what_no_reader_knows_is_answered_with_the_tools(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        run("check", "--from-report", str(file))
    assert "`collect_env`" in str(caught.value)
    assert "`Python`" not in str(caught.value)
