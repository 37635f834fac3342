"""A package's compiled extension is missing or does not load.

## Why it matters
Packages such as flash-attn, torchvision, bitsandbytes and apex contain libraries that were compiled for
one torch, one CUDA and one glibc. If such a library does not load, importing the package fails; and
transformers, peft and accelerate import some of these packages as soon as they are installed, whether or
not the job uses them. dsdoctor tried the import in the environment's interpreter, after torch.

## What to do
Install the wheel that was built for this torch. If there is none, build the package from source, with the
CUDA toolkit of torch's version. Or uninstall the package if the job does not need it.

## References
- transformers utils/import_utils.py: `is_flash_attn_2_available` asks only whether the package is installed
- apex README, "From Source": `--cuda_ext` and `--cpp_ext`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    ImportOutcome,
    Level,
    Missing,
    ModuleImports,
    Packages,
    Patient,
    Scope,
    ScriptImports,
    Signature,
    check,
    fail,
    warn,
)
from dsdoctor_checks._imports import how_it_ended
from dsdoctor_checks._pip import pip

CONDITION = Condition(
    "compiled-extension-broken",
    id="DSD455",
    scope=Scope.USER_ENV,
    since="0.1",
    narrower=(
        "glibc-too-old",
        "libstdcxx-too-old",
        "cuda-runtime-lib-mismatch",
        "bitsandbytes-cuda-setup",
        "numpy-abi-2",
        "triton-unusable",
        "dependency-version-conflict",
        "module-shadowed-by-cwd",
        "cxx-abi-undefined-symbol",
    ),
)
#: Module to the package that imports it as soon as it is installed (transformers 4.36-5.0
#: image_utils.py, modeling_flash_attention_utils.py; peft 0.5-0.18 import_utils.py; 2026-11-28).
_IMPORTED_BY = {
    "flash_attn": "transformers",
    "torchvision": "transformers",
    "bitsandbytes": "peft",
    # accelerator/real_accelerator.py of 0.12 to 0.19 tries it, and takes the CPU if it fails
    "torch_npu": "deepspeed",
}
#: What the failure means for a module that is not a model's.
_EFFECT = {"torch_npu": "DeepSpeed does not find the NPUs and runs on the CPU"}
#: Where packages are built from that pip does not find with what fits this torch (their INSTALL.md).
_SOURCES = {
    "pytorch3d": "git+https://github.com/facebookresearch/pytorch3d.git",
    "detectron2": "git+https://github.com/facebookresearch/detectron2.git",
}
#: A library of the driver of Ascend NPUs.
_NPU_DRIVER = "libascend_hal.so"
_NO_NPU_DRIVER = (
    "install the driver of the NPUs; start a container with `--device /dev/davinci0` and so on, and"
    " `-v /usr/local/Ascend/driver:/usr/local/Ascend/driver`; on a machine without NPUs, this is expected"
)
_NPU = (
    "run `source /usr/local/Ascend/ascend-toolkit/set_env.sh` before the job starts; if it still fails,"
    " install the `torch-npu` that belongs to this torch and this release of CANN"
)


@check(CONDITION)
def extensions_load(
    imports: ModuleImports,
    packages: Packages,
    script: ScriptImports | Missing,
    patient: Patient | Missing,
) -> Iterator[Finding]:
    """Fails if the script, or a package that is installed, imports the module."""
    wanted = script.found if isinstance(script, ScriptImports) else ()
    for module, outcome in imports.outcomes.items():
        if outcome.ok:
            continue
        by = _IMPORTED_BY.get(module, "")
        used = bool(by) and packages.version(by) is not None
        root = module.partition(".")[0]
        name = root.replace("_", "-")
        build = f"install --force-reinstall --no-deps --no-cache-dir --no-build-isolation {_SOURCES.get(root, name)}"
        # a login node or the build of an image, which has no NPU
        undriven = _NPU_DRIVER in (outcome.message or "")
        yield (fail if (used or root in wanted) and not undriven else warn)(
            f"`import {module}` {how_it_ended(outcome)}",
            effect=_EFFECT.get(module)
            or f"{by} imports it whenever it is installed, so that its models do not load"
            if used
            else "a job that imports it stops there",
            hint=_library_hint(outcome)
            or (_NO_NPU_DRIVER if undriven else _NPU if module == "torch_npu" else "")
            or f"run `{pip(patient, packages, build)}`, or uninstall `{name}` if the job does not need it",
            module=module,
            version=packages.version(name),
            error_type=outcome.error_type,
            error=outcome.message,
            traceback=outcome.traceback,
            # other packages' words ask for a build of their own
            error_text=""
            if module == "torch_npu"
            else f"{outcome.message or ''}\n{outcome.traceback}",
        )


#: Libraries of the system that wheels expect, and the package of Debian and Ubuntu with each.
_SYSTEM = {
    "libGL.so.1": "libgl1",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libSM.so.6": "libsm6",
    "libXext.so.6": "libxext6",
    "libXrender.so.1": "libxrender1",
    "libsndfile.so": "libsndfile1",
    "libgomp.so.1": "libgomp1",
}


def _library_hint(outcome: ImportOutcome) -> str:
    """How to get a library of the system that is missing; "" if none of those is."""
    words = outcome.message or ""
    name = next((name for name in _SYSTEM if f"{name}: cannot open" in words), "")
    if not name:
        return ""
    headless = ", or `opencv-python-headless` in place of `opencv-python`" if "GL" in name else ""
    return f"install `{_SYSTEM[name]}` (Debian, Ubuntu), which has `{name}`{headless}"


HINT = (
    "install the wheel of the package for this torch, or build it from source with its CUDA extensions;"
    " if the job does not need the package, uninstall it"
)

_CLASH = "C++ could not allocate memory while a compiled module was imported, as happens if two builds of a C++ library meet in one process"
_CLASH_HINT = "import that package alone, and before the others (`python -c 'import torch'`), to see which two conflict, and reinstall them in matching releases; unset `LD_LIBRARY_PATH` and `LD_PRELOAD`, and check whether `ulimit -v` is low"

_NUMPY_OF_ANOTHER = "look at the path of `numpy` in the traceback: if it is not in the environment of this Python, remove its folder from PYTHONPATH; otherwise run `python -m pip install --force-reinstall numpy`"

SIGNATURES = (
    Signature(
        pattern=r"\bstd::bad_alloc\b",
        source="GCC 4.8-15 libstdc++-v3/libsupc++/bad_alloc.cc; pybind11 2.0-3.0 raises MemoryError",
        message=_CLASH,
        hint=_CLASH_HINT,
        examples=("MemoryError: std::bad_alloc",),
        not_examples=("MemoryError: mystd::bad_alloc",),
        importing=True,
        masks=("native-crash", "rank-killed"),
    ),
    Signature(
        pattern=r"throwing an instance of 'std::bad_alloc'",
        source="GCC 4.8-15 libstdc++-v3/libsupc++/vterminate.cc; CPython 3.8-3.14 faulthandler.c",
        message=_CLASH,
        hint=_CLASH_HINT,
        examples=("terminate called after throwing an instance of 'std::bad_alloc'",),
        near=(" in create_module", ">>> import ", "-c 'import ", '-c "import '),
        masks=("native-crash", "rank-killed"),
    ),
    Signature(
        pattern=r"\b(?P<library>libGL\.so\.1|libgthread-2\.0\.so\.0|libglib-2\.0\.so\.0|libSM\.so\.6|libXext\.so\.6|libXrender\.so\.1): cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c, for the wheels of opencv-python 3.4-4.12",
        message="OpenCV's wheel needs `{library}`, which this system does not have",
        hint="install `libgl1` and `libglib2.0-0` (Debian, Ubuntu), or `opencv-python-headless` in place of `opencv-python`",
        examples=(
            "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
            "ImportError: libgthread-2.0.so.0: cannot open shared object file: No such file or directory",
            "ImportError: libglib-2.0.so.0: cannot open shared object file: No such file or directory",
            "ImportError: libSM.so.6: cannot open shared object file: No such file or directory",
            "ImportError: libXext.so.6: cannot open shared object file: No such file or directory",
            "ImportError: libXrender.so.1: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\b(?:FusedAdam|FusedLAMB|FusedSGD|FusedNovoGrad|fused \w+) requires cuda extensions",
        source="apex optimizers/fused_adam.py, fused_lamb.py, fused_sgd.py, fused_novograd.py",
        examples=(
            "RuntimeError: apex.optimizers.FusedAdam requires cuda extensions",
            "RuntimeError: FusedLAMB requires cuda extensions",
            "RuntimeError: apex.optimizers.FusedSGD requires cuda extensions",
            "FusedNovoGrad requires cuda extensions",
            "fused name requires cuda extensions",
        ),
        not_examples=("this example requires cuda extensions to be switched off",),
        level=Level.WEAK,
        message="apex is installed without its CUDA extensions",
        hint="build apex with its CUDA extensions (`--cuda_ext`), or use the fused optimizers of torch or DeepSpeed",
    ),
    Signature(
        pattern=r"^(?:ModuleNotFoundError|ImportError): No module named '?(?:amp_C|apex_C|fused_(?:layer_norm|dense|weight_gradient_mlp)_cuda)\b",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py, for modules that apex builds on request",
        examples=(
            "ModuleNotFoundError: No module named 'amp_C'",
            "ImportError: No module named apex_C",
            "ModuleNotFoundError: No module named 'fused_layer_norm_cuda'",
            "ModuleNotFoundError: No module named 'fused_dense_cuda'",
            "ModuleNotFoundError: No module named 'fused_weight_gradient_mlp_cuda'",
        ),
        not_examples=("ModuleNotFoundError: No module named 'amp_Cx'",),
        level=Level.WEAK,
        message="apex is installed without its CUDA extensions",
        hint="build apex with its CUDA extensions (`--cuda_ext`), or use the fused optimizers of torch or DeepSpeed",
    ),
    Signature(
        # a file watcher of Streamlit asks torch for a class of any name, and goes on
        pattern=r"Tried to instantiate class '(?P<name>(?!__path__)[\w.]{1,200})', but it does not exist!",
        source="torch 1.6-2.14 torch/csrc/jit/python/python_custom_class.cpp",
        level=Level.STRONG,
        message="The compiled library that registers the class `{name}` did not load; a line above may say why",
        hint="install the wheel of that package that was built for this torch and this GPU vendor, or build it from source",
        examples=(
            "RuntimeError: Tried to instantiate class '_core_C.ScalarType', but it does not exist! Ensure that it is registered via torch::class_",
        ),
        not_examples=(
            "RuntimeError: Tried to instantiate class '__path__._path', but it does not exist! Ensure that it is registered via torch::class_",
        ),
    ),
    Signature(
        pattern=r"No module named '(?P<name>[\w.]{1,100})'\. Although a module with this name was found for a different Python version \((?P<file>[\w.-]{1,200})\)",
        source="CPython 3.15 Lib/traceback.py",
        examples=(
            "ModuleNotFoundError: No module named 'flash_attn_2_cuda'. Although a module with this name was found for a different Python version (flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so).",
        ),
        not_examples=(
            "a module 'x'. Although a module with this name was found for a different Python version (",
        ),
        level=Level.CERTAIN,
        message="`{name}` was built for another version of Python: `{file}`",
        hint="install the package that contains it again, in an environment of this Python only; do not copy `site-packages` between versions",
        masks=("script-module-missing", "cxx-abi-undefined-symbol"),
    ),
    Signature(
        pattern=r"^\s*\* _multiarray_umath\.(?P<file>\S{1,100})\s*$",
        source="numpy 2.3-2.4 _core/__init__.py",
        near=("seem incompatible",),
        message="NumPy was built for another Python or another platform: `_multiarray_umath.{file}`",
        hint=_NUMPY_OF_ANOTHER,
        examples=("  * _multiarray_umath.cpython-312-x86_64-linux-gnu.so",),
        not_examples=("x * _multiarray_umath.cpython-312-x86_64-linux-gnu.so",),
        level=Level.CERTAIN,
        masks=("numpy-abi-2", "script-module-missing"),
    ),
    Signature(
        pattern=r"No module named '(?P<name>numpy\._?core\._multiarray_umath)'",
        source="numpy 1.16-2.4 _core/__init__.py, core/__init__.py",
        message="The compiled part of NumPy is missing, or was built for another Python",
        hint=_NUMPY_OF_ANOTHER,
        examples=(
            "ModuleNotFoundError: No module named 'numpy._core._multiarray_umath'",
            "Original error was: No module named 'numpy.core._multiarray_umath'",
        ),
        level=Level.STRONG,
        masks=("numpy-abi-2", "script-module-missing", "dependency-version-conflict"),
    ),
    # kernels of trainers, which are built separately or not at all
    Signature(
        pattern=r"^(?:ModuleNotFoundError|ImportError): No module named '?(?!fused_(?:layer_norm|dense|weight_gradient_mlp)_cuda)(?:colossalai\._C\.\w+|fused_[a-z_]+|scaled_\w+_softmax_cuda|fused_\w+_cuda|exllama\w*_ext|autogptq_cuda\w*|quant_cuda|awq_(?:inference_engine|ext))\b|Fused kernels configured but not (?:properly )?installed",
        source=(
            "python 3.3-3.14 Lib/importlib/_bootstrap.py, for modules that colossalai, "
            "auto-gptq, autoawq and gpt-neox build; gpt-neox 2.0 megatron/fused_kernels/__init__.py"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'colossalai._C.cpu_adam'",
            "ModuleNotFoundError: No module named 'fused_mix_prec_layer_norm_cuda'",
            "ERROR: Fused kernels configured but not installed. Please run `setup.py install`",
            "ERROR: Fused kernels configured but not properly installed. Please run `pip install x`",
        ),
        not_examples=("ModuleNotFoundError: No module named 'fusedlib'",),
        level=Level.WEAK,
    ),
)
