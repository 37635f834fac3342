"""The environment on disk, read by the real child.

Over 400 lines because each kind of environment is built as files, next to what is read of it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from dsdoctor.host import LocalHost
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    Packages,
    Patient,
    PatientChoice,
    TorchBuild,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.patient import parse_static, patient_facts
from dsdoctor.process import Result

CHOICE = PatientChoice(executable=sys.executable, chosen_by="--python")
Facts = tuple[Patient, Packages, TorchBuild, DeepSpeedInstall]


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An environment without packages: its interpreter."""
    home = Path(getattr(sys, "_base_executable", sys.executable))
    prefix = tmp_path / "env"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to(home)
    config = f"home = {home.parent}\ninclude-system-site-packages = false\n"
    (prefix / "pyvenv.cfg").write_text(config, encoding="utf-8")
    return prefix


def site_of(prefix: Path) -> Path:
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    place = prefix / "lib" / name / "site-packages"
    place.mkdir(parents=True, exist_ok=True)
    return place


def read(prefix: Path, cwd: Path | None = None, **env: str) -> Facts:
    choice = PatientChoice(executable=str(prefix / "bin/python"), chosen_by="--python")
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    folder = cwd or prefix / "empty"
    folder.mkdir(exist_ok=True)
    run = RunNeeds(cwd=str(folder))
    facts = patient_facts.function(LocalHost({**clean, **env}), choice, run)
    patient, packages, torch, deepspeed = facts
    assert isinstance(patient, Patient), patient
    assert isinstance(packages, Packages), packages
    assert isinstance(torch, TorchBuild), torch
    assert isinstance(deepspeed, DeepSpeedInstall), deepspeed
    return patient, packages, torch, deepspeed


VERSION = """from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.9.1+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = 'abc'
hip: Optional[str] = None
"""


def test_the_running_interpreter() -> None:
    facts = patient_facts.function(LocalHost(), CHOICE, RunNeeds())
    patient, packages = facts[0], facts[1]
    assert isinstance(patient, Patient)
    assert patient.version == ".".join(map(str, sys.version_info[:3]))
    assert patient.prefix == sys.prefix
    assert patient.executable == sys.executable
    assert patient.include_dir == sysconfig.get_path("include", "posix_prefix")
    assert isinstance(packages, Packages)
    assert packages.version("msgspec")


def test_an_empty_environment(bare: Path) -> None:
    patient, packages, torch, deepspeed = read(bare)
    assert patient.kind == "venv"
    assert patient.user_site is None
    assert patient.bin_dir == str(bare / "bin")
    assert patient.sys_path[0] == str(bare / "empty")
    assert packages.packages == {}
    assert packages.shadowed == {}
    assert set(packages.origins.values()) == {""}
    assert not torch.installed
    assert deepspeed == DeepSpeedInstall()


def test_an_environment_of_uv_is_known_by_its_configuration(bare: Path) -> None:
    assert not read(bare)[0].made_by_uv
    with (bare / "pyvenv.cfg").open("a", encoding="utf-8") as file:
        file.write("uv = 0.9.7\n")
    assert read(bare)[0].made_by_uv


def test_torch_and_its_wheels_without_an_import(bare: Path) -> None:
    put(
        site_of(bare),
        {
            "torch/__init__.py": "raise SystemExit('imported')",
            "torch/version.py": VERSION,
            "torch-2.9.1+cu128.dist-info/METADATA": (
                "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu128\n"
                "Requires-Dist: filelock\nRequires-Dist: nvidia-nccl-cu12==2.27.5\n\n"
                "Requires-Dist: a line of the description\n"
            ),
            "nvidia_nccl_cu12-2.27.5.dist-info/METADATA": "Name: nvidia-nccl-cu12\n",
            "nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA": "Name: nvidia-cudnn-cu12\n",
            "nvidia_ml_py-13.580.1.dist-info/METADATA": "Name: nvidia-ml-py\n",
        },
    )
    _, packages, torch, _ = read(bare)
    assert torch == TorchBuild(
        version="2.9.1+cu128",
        cuda="12.8",
        path=str(site_of(bare) / "torch"),
        nccl="2.27.5",
        cudnn="9.10.2.21",
        cuda_wheels={"nvidia-nccl-cu12": "2.27.5", "nvidia-cudnn-cu12": "9.10.2.21"},
    )
    assert packages.requires == {"torch": ("filelock", "nvidia-nccl-cu12==2.27.5")}
    assert packages.origins["torch"] == str(site_of(bare) / "torch/__init__.py")


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"torch/__init__.py": ""}, "could not be read"),
        ({"torch/__init__.py": "", "torch/version.py": "=1"}, "is not Python"),
        ({"torch/__init__.py": "", "torch/version.py": "import x"}, "no `__version__`"),
        ({"torch-2.5.1.dist-info/METADATA": ""}, "its folder is missing"),
    ],
)
def test_a_torch_that_is_not_whole(bare: Path, files: dict[str, str], error: str) -> None:
    put(site_of(bare), files)
    torch = read(bare)[2]
    assert torch.installed
    assert torch.version is None
    assert error in str(torch.error)


def test_what_an_uninstall_left_is_no_torch(bare: Path) -> None:
    put(site_of(bare), {"torch/lib/libtorch.so": "", "~orch-2.5.1.dist-info/METADATA": ""})
    _, packages, torch, _ = read(bare)
    assert not torch.installed
    assert packages.packages == {}


def test_what_an_interrupted_pip_moved_away_is_named(bare: Path) -> None:
    header = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n\ntext\n"
    put(
        site_of(bare),
        {
            "~orch/__init__.py": "",
            "~orch-2.13.0+cpu.dist-info/METADATA": header.format("torch", "2.13.0+cpu"),
            "~umpy-2.4.5.dist-info/METADATA": header.format("numpy", "2.4.5"),
            "numpy/__init__.py": "",
            "numpy-2.4.6.dist-info/METADATA": header.format("numpy", "2.4.6"),
            "~json-3.1.0.dist-info/RECORD": "",
        },
    )
    _, packages, torch, _ = read(bare)
    assert not torch.installed
    assert packages.remnants == {"torch": "2.13.0+cpu"}  # numpy has been installed again since


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param("python2.7", "2.7", id="torch of another Python"),
        pytest.param("python2.7-old", None, id="a folder of another name"),
    ],
)
def test_a_venv_whose_python_was_replaced(bare: Path, folder: str, expected: str | None) -> None:
    put(bare / "lib" / folder / "site-packages", {"torch/__init__.py": ""})
    patient = read(bare)[0]
    assert patient.left_by_python == expected


def test_torch_of_its_own_python_was_not_left(bare: Path) -> None:
    put(site_of(bare), {"torch/__init__.py": ""})
    assert read(bare)[0].left_by_python is None


def test_deepspeed_with_prebuilt_ops(bare: Path) -> None:
    info = (
        "version='0.19.8'\ninstalled_ops={'cpu_adam': True, 'fused_adam': False}\n"
        "torch_info={'version': '2.5', 'cuda_version': '12.4', 'bf16_support': True}\n"
        "accelerator_name='cpu'\n"
    )
    put(
        site_of(bare),
        {
            "deepspeed/__init__.py": "raise SystemExit('imported')",
            "deepspeed/git_version_info_installed.py": info,
        },
    )
    deepspeed = read(bare)[3]
    assert deepspeed.version == "0.19.8"
    assert deepspeed.prebuilt == ("cpu_adam",)
    assert (deepspeed.built_for_torch, deepspeed.built_for_cuda) == ("2.5", "12.4")
    assert deepspeed.built_for_accelerator == "cpu"
    assert deepspeed.error is None


def test_deepspeed_without_prebuilt_ops_was_built_for_none(bare: Path) -> None:
    info = (
        "version='0.19.8'\ninstalled_ops={'cpu_adam': False}\ntorch_info={'version': '0.0'}\n"
        "accelerator_name='cpu'\n"
    )
    files = {"deepspeed/__init__.py": "", "deepspeed/git_version_info_installed.py": info}
    put(site_of(bare), files)
    deepspeed = read(bare)[3]
    assert deepspeed.built_for_torch is None
    assert deepspeed.built_for_accelerator is None
    assert deepspeed.prebuilt == ()


def test_an_editable_deepspeed_is_found_by_its_finder(bare: Path, tmp_path: Path) -> None:
    source = put(
        tmp_path / "DeepSpeed",
        {"deepspeed/__init__.py": "", "setup.py": "", "version.txt": "0.19.9\n"},
    )
    put(
        site_of(bare),
        {
            "__editable___deepspeed_0_19_9_finder.py": (
                f"MAPPING: dict[str, str] = {{'deepspeed': {str(source / 'deepspeed')!r}}}\n"
            ),
            "deepspeed-0.19.9.dist-info/METADATA": "Name: deepspeed\n",
        },
    )
    _, packages, _, deepspeed = read(bare)
    assert deepspeed.version == "0.19.9"
    assert deepspeed.path == str(source / "deepspeed")
    assert packages.origins["deepspeed"] == str(source / "deepspeed/__init__.py")
    # and its owner may work in the checkout
    packages = read(bare, source)[1]
    assert packages.shadowed == {}


@pytest.mark.parametrize(
    ("files", "shadowed"),
    [
        ({"torch.py": ""}, {"torch": "torch.py"}),
        ({"torch/__init__.py": ""}, {"torch": "torch/__init__.py"}),
        (
            {"deepspeed.py": "", "random.py": ""},
            {"deepspeed": "deepspeed.py", "random": "random.py"},
        ),
        ({"json/__init__.py": ""}, {"json": "json/__init__.py"}),
        # a folder with data, a module nobody imports, a name that the interpreter has loaded or
        # built in, a package that is nowhere else
        ({"deepspeed/x": "", "torch/x.txt": "", "train.py": ""}, {}),
        ({"test.py": "", "this.py": "", "os.py": "", "time.py": "", "datasets.py": ""}, {}),
        # a DeepSpeed checkout, on purpose
        ({"deepspeed/__init__.py": "", "setup.py": ""}, {}),
    ],
)
def test_files_of_the_job_that_hide_modules(
    bare: Path, tmp_path: Path, files: dict[str, str], shadowed: dict[str, str]
) -> None:
    put(
        site_of(bare),
        {"torch/__init__.py": "", "torch/version.py": VERSION, "deepspeed/__init__.py": ""},
    )
    job = put(tmp_path / "job", dict.fromkeys(files, "raise SystemExit(9)"))
    _, packages, torch, _ = read(bare, job)
    assert packages.shadowed == {name: str(job / file) for name, file in shadowed.items()}
    assert torch.version == "2.9.1+cu128"


def test_a_checkout_of_torch_hides_the_installed_one(bare: Path, tmp_path: Path) -> None:
    put(site_of(bare), {"torch/__init__.py": "", "torch/version.py": VERSION})
    job = put(tmp_path / "pytorch", {"torch/__init__.py": "", "setup.py": ""})
    assert set(read(bare, job)[1].shadowed) == {"torch"}


def test_pythonpath_counts_and_shadows_nothing_of_ours(bare: Path, tmp_path: Path) -> None:
    lib = put(
        tmp_path / "lib",
        {
            "torch/__init__.py": "",
            "torch/version.py": VERSION,
            "json.py": "raise SystemExit(9)",
            "ast.py": "raise SystemExit(9)",
        },
    )
    patient, _, torch, _ = read(bare, PYTHONPATH=str(lib))
    assert str(lib) in patient.sys_path
    assert torch.path == str(lib / "torch")


def test_one_distribution_in_two_places(bare: Path, tmp_path: Path) -> None:
    lib = put(tmp_path / "lib", {"numpy-1.26.4.dist-info/METADATA": ""})
    put(site_of(bare), {"numpy-2.1.0.dist-info/METADATA": ""})
    numpy = read(bare, PYTHONPATH=str(lib))[1].packages["numpy"]
    assert numpy.version == "1.26.4"
    assert numpy.location == str(lib)
    assert numpy.duplicates == (str(site_of(bare)),)


def test_a_remnant_beside_the_package_is_no_duplicate(bare: Path) -> None:
    site = put(site_of(bare), {"numpy-2.1.0.dist-info/METADATA": ""})
    (site / "numpy-1.26.4.dist-info").mkdir()
    numpy = read(bare)[1].packages["numpy"]
    assert numpy.version == "2.1.0"
    assert numpy.duplicates == ()


def test_names_of_old_packages(bare: Path) -> None:
    put(
        site_of(bare),
        {
            "PyYAML-5.3.1-py3.8.egg-info": "Name: PyYAML\nVersion: 5.3.1\n",
            "flash_attn.egg-info/PKG-INFO": "Name: flash-attn\nVersion: 2.8.3\n",
        },
    )
    packages = read(bare)[1]
    assert packages.version("pyyaml") == "5.3.1"
    assert packages.version("flash-attn") == "2.8.3"


def test_it_writes_no_bytecode(bare: Path) -> None:
    put(site_of(bare), {"torch/__init__.py": "", "torch/version.py": VERSION})
    read(bare)
    assert list(bare.rglob("*.pyc")) == []


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 64\n", encoding="utf-8")
    fake.chmod(0o755)
    choice = PatientChoice(executable=str(fake), chosen_by="--python")
    for fact in patient_facts.function(LocalHost(), choice, RunNeeds()):
        assert isinstance(fact, Missing)
        assert fact.why is Why.BROKEN
        assert re.search("exit status 64 .*no such option", fact.detail)


def test_an_interpreter_that_is_gone() -> None:
    choice = PatientChoice(executable="/nowhere/python", chosen_by="--python")
    for fact in patient_facts.function(LocalHost(), choice, RunNeeds()):
        assert isinstance(fact, Missing)
        assert fact.why is Why.ABSENT


def test_parts_of_a_child_that_was_cut_off() -> None:
    result = Result(argv=("py",), returncode=None, timed_out=True, seconds=60.0)
    records = [{"fact": "torch", "value": {"version": "2.5.1", "path": "/t"}}]
    patient, packages, torch, _ = parse_static(records, CHOICE, result)
    assert isinstance(torch, TorchBuild)
    assert isinstance(patient, Missing)
    assert patient.why is Why.TIMEOUT
    assert isinstance(packages, Missing)


def test_a_part_that_failed_is_broken_with_its_reason() -> None:
    records: list[dict[str, object]] = [
        {"error": "packages", "text": "OSError: [Errno 5]"},
        {"done": True},
    ]
    packages = parse_static(records, CHOICE, Result(argv=("py",), returncode=0))[1]
    assert isinstance(packages, Missing)
    assert "Errno 5" in packages.detail


@pytest.mark.skipif(shutil.which("python3.8") is None, reason="there is no python3.8 on PATH")
def test_the_oldest_interpreter_in_use() -> None:
    choice = PatientChoice(executable=str(shutil.which("python3.8")), chosen_by="--python")
    patient = patient_facts.function(LocalHost(), choice, RunNeeds())[0]
    if isinstance(patient, Missing) and "version" in patient.detail:
        pytest.skip("python3.8 is a stand-in that starts nothing")
    assert isinstance(patient, Patient), patient
    assert patient.version.startswith("3.8.")


def test_it_is_quick() -> None:
    before = os.times()
    patient_facts.function(LocalHost(), CHOICE, RunNeeds())
    after = os.times()
    spent = after.children_user + after.children_system
    # measured: 0.08 s of computing; other programs may share the processors
    assert spent - before.children_user - before.children_system < 2.0


def test_an_interpreter_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\nfor word; do [ "$word" = -c ] && printf 2.7 && exit 0; done\n'
        'echo "SyntaxError: invalid syntax" >&2\nexit 1\n'
    )
    python.chmod(0o755)
    choice = PatientChoice(executable=str(python), chosen_by="--python")
    for fact in patient_facts.function(LocalHost(), choice, RunNeeds()):
        assert isinstance(fact, Missing)
        assert fact.why is Why.BROKEN
        assert fact.detail == f"`{python}` is Python 2.7; dsdoctor can examine 3.8 and newer"
