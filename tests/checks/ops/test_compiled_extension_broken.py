from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import ImportOutcome, ModuleImports, Packages, RunNeeds, ScriptImports
from dsdoctor.judge import judge as whole
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.finding import Status
from dsdoctor.model.snapshot import of
from dsdoctor.probes.module_imports import module_imports, parse_imports
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.ops import compiled_extension_broken
from tests.checks.machines import ABSENT
from tests.checks.python.support import packages

REGISTRY = packs.load()
CHECK = compiled_extension_broken.extensions_load
SYMBOL = "/v/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2E"
BROKEN = ModuleImports(
    outcomes={"flash_attn": ImportOutcome(ok=False, error_type="ImportError", message=SYMBOL)}
)
WORKS = ModuleImports(outcomes={"flash_attn": ImportOutcome(ok=True)})
USED = packages(transformers="4.50.0", flash_attn="2.7.4")
ALONE = packages(flash_attn="2.7.4")


@pytest.mark.parametrize(
    ("imports", "installed", "script", "expected"),
    [
        pytest.param(WORKS, USED, ABSENT, ["ok"], id="it loads"),
        pytest.param(ModuleImports(), USED, ABSENT, ["ok"], id="none is installed"),
        pytest.param(BROKEN, USED, ABSENT, ["fail"], id="transformers imports it"),
        pytest.param(BROKEN, ALONE, ABSENT, ["warn"], id="nothing that is known imports it"),
        pytest.param(
            BROKEN,
            ALONE,
            ScriptImports(script="train.py", found=("flash_attn", "torch")),
            ["fail"],
            id="the script imports it",
        ),
    ],
)
def test_verdict(imports: ModuleImports, installed: Any, script: Any, expected: list[str]) -> None:
    facts = {"module_imports": imports, "packages": installed, "script_imports": script}
    assert judge(CHECK, **facts, patient=ABSENT).statuses == expected


def failing(message: str) -> ModuleImports:
    outcome = ImportOutcome(ok=False, error_type="ImportError", message=message)
    return ModuleImports(outcomes={"torch_npu": outcome})


@pytest.mark.parametrize(
    ("message", "expected", "hint"),
    [
        pytest.param("libhccl.so: cannot open", "fail", "set_env.sh", id="CANN's is not found"),
        pytest.param("x.so: undefined symbol: y", "fail", "CANN", id="of another CANN"),
        pytest.param("libascend_hal.so: cannot open", "warn", "driver", id="no driver of NPUs"),
    ],
)
def test_the_plug_in_for_npus(message: str, expected: str, hint: str) -> None:
    facts: dict[str, Any] = {"module_imports": failing(message), "script_imports": ABSENT}
    found = judge(
        CHECK, packages=packages(deepspeed="0.16.4", torch_npu="2.5.1"), patient=ABSENT, **facts
    )
    assert found.status == expected
    assert hint in found.findings[0].hint


@pytest.mark.parametrize(
    ("module", "error", "condition", "hint"),
    [
        pytest.param(
            "flash_attn",
            f"ImportError: {SYMBOL}",
            "cxx-abi-undefined-symbol",
            "for this torch",
            id="a symbol that this torch does not have",
        ),
        pytest.param(
            "torchvision",
            "RuntimeError: operator torchvision::nms does not exist",
            "dependency-version-conflict",
            "pip install --force-reinstall torchvision",
            id="an operator that was not registered",
        ),
        pytest.param(
            "flash_attn",
            "ImportError: something else",
            "compiled-extension-broken",
            "uninstall",
            id="an error that no condition knows",
        ),
    ],
)
def test_what_the_error_states_names_the_condition_and_its_way_out(
    module: str, error: str, condition: str, hint: str
) -> None:
    kind, _, message = error.partition(": ")
    outcome = ImportOutcome(ok=False, error_type=kind, message=message)
    snapshot = of([ModuleImports(outcomes={module: outcome}), ALONE])
    (found,) = [
        f for f in whole(snapshot, list(REGISTRY), REGISTRY).findings if f.status is Status.WARN
    ]
    assert found.condition == condition
    assert hint in found.hint


def ended(status: int | None) -> Result:
    return Result(argv=("python",), returncode=status, stdout=b"", stderr=b"")


TORCH: dict[str, Any] = {"fact": "torch_import", "value": {"ok": True, "seconds": 1.0}}


def test_a_module_that_kills_the_child_is_named_and_torch_is_not() -> None:
    records: list[dict[str, Any]] = [TORCH, {"step": "import flash_attn", "at": 1.0}]
    found = parse_imports(records, ended(-11))
    assert isinstance(found, ModuleImports)
    assert found.outcomes["flash_attn"].error_type == "signal"


def test_modules_without_files_are_left_out() -> None:
    failed = {"ok": False, "absent": True, "error_type": "ModuleNotFoundError", "message": "x"}
    works = {"ok": True, "seconds": 0.1}
    records: list[dict[str, Any]] = [
        TORCH,
        {"fact": "import flash_attn", "value": failed},
        {"fact": "import torchvision", "value": works},
        {"done": True},
    ]
    found = parse_imports(records, ended(0))
    assert isinstance(found, ModuleImports)
    assert {name: one.ok for name, one in found.outcomes.items()} == {"torchvision": True}


def test_without_torch_nothing_is_said_of_them() -> None:
    failed = {"ok": False, "error_type": "ImportError", "message": "x"}
    found = parse_imports([{"fact": "torch_import", "value": failed}], ended(0))
    assert not isinstance(found, ModuleImports)


def test_a_library_of_the_system_is_named_with_its_package() -> None:
    words = "libGL.so.1: cannot open shared object file: No such file or directory"
    broken = ImportOutcome(ok=False, error_type="ImportError", message=words)
    found = judge(
        CHECK,
        module_imports=ModuleImports(outcomes={"cv2": broken}),
        packages=packages(opencv_python="4.10.0.84"),
        script_imports=ScriptImports(script="t.py", found=("cv2",)),
    ).worst
    assert found.status == Status.FAIL
    assert "`libgl1`" in found.hint


def test_only_what_the_script_imports_is_tried_of_the_others() -> None:
    """opencv-python without libGL is no fault of a job that never imports it."""
    asked: list[tuple[str, ...]] = []
    host = FakeHost(env={"PATH": "/bin"}, queries={"executable": "/py"}, commands={"": ""})
    installed = packages(torch="2.4.0", opencv_python="4.10.0.84", torchvision="0.19.0")
    choice = PatientChoice(executable="/env/bin/python", chosen_by="test", why="a test")
    for found, expected in (((), "torchvision"), (("cv2",), "torchvision,cv2")):
        script = ScriptImports(script="t.py", found=found)
        module_imports.function(host, RunNeeds(), choice, installed, ABSENT, script)
        asked = [argv for argv in host.ran if "--modules" in argv]
        assert asked[-1][asked[-1].index("--modules") + 1] == expected


@pytest.mark.parametrize(
    ("found", "expected", "how"),
    [
        pytest.param(("pytorch3d",), ["fail"], "git+https", id="the script imports its package"),
        pytest.param((), ["warn"], "git+https", id="no known script imports it"),
    ],
)
def test_a_library_that_its_package_loads_late(
    found: tuple[str, ...], expected: list[str], how: str
) -> None:
    words = "libtorch_cuda_cu.so: cannot open shared object file: No such file or directory"
    broken = ImportOutcome(ok=False, error_type="ImportError", message=words)
    judged = judge(
        CHECK,
        module_imports=ModuleImports(outcomes={"pytorch3d._C": broken}),
        packages=packages(pytorch3d="0.7.2"),
        script_imports=ScriptImports(script="train.py", found=found),
        patient=ABSENT,
    )
    assert judged.statuses == expected
    assert how in judged.findings[0].hint


class Asked(FakeHost):
    """A host that keeps what its child was asked to import."""

    modules = ""

    def run(self, argv: Any, **options: Any) -> Result:
        self.modules = argv[list(argv).index("--modules") + 1]
        return super().run(argv, **options)


@pytest.mark.parametrize(
    ("installed", "script", "asked"),
    [
        pytest.param("pytorch3d", "pytorch3d", "pytorch3d._C", id="its own library is tried"),
        pytest.param("mmcv_full", "mmcv", "mmcv._ext", id="a distribution of another name"),
        pytest.param("torch_scatter", "torch_scatter", "torch_scatter", id="the package loads it"),
    ],
)
def test_what_the_script_imports_is_tried(installed: str, script: str, asked: str) -> None:
    host = Asked(files={"/v/python": ""}, commands={"/v/python": ""})
    module_imports.function(
        host,
        RunNeeds(),
        PatientChoice(executable="/v/python", chosen_by="x", why="x"),
        packages(torch="2.0.1", **{installed: "1.0"}),
        ABSENT,
        ScriptImports(script="train.py", found=(script, "torch")),
    )
    assert host.modules == asked


@pytest.mark.parametrize(
    ("requirement", "asked"),
    [
        pytest.param("mamba_ssm==1.0.1", "mamba_ssm", id="required"),
        pytest.param('mamba-ssm ; python_version >= "3.8"', "mamba_ssm", id="with a marker"),
        pytest.param('mamba-ssm ; extra == "cuda"', "", id="by an extra"),
        pytest.param("opencv-python", "", id="not compiled for torch"),
    ],
)
def test_what_a_package_of_the_script_requires_is_tried(requirement: str, asked: str) -> None:
    metadata = f"Name: visionnet\nRequires-Dist: {requirement}\n\nRequires-Dist: torch-scatter\n"
    host = Asked(
        files={"/v/python": "", "/site/visionnet-1.0.dist-info/METADATA": metadata},
        commands={"/v/python": ""},
    )
    installed = packages(
        torch="2.0.1", visionnet="1.0", mamba_ssm="1.0", torch_scatter="2.1", opencv_python="4.9"
    )
    located = {
        name: msgspec.structs.replace(one, location="/site")
        for name, one in installed.packages.items()
    }
    module_imports.function(
        host,
        RunNeeds(),
        PatientChoice(executable="/v/python", chosen_by="x", why="x"),
        Packages(packages=located),
        ABSENT,
        ScriptImports(script="train.py", found=("visionnet", "torch"), names={"trl": 1}),
    )
    assert host.modules == asked
