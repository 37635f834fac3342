"""An isolated pip build does not see torch.

## Why it matters
pip builds packages in an empty environment. A setup.py that imports torch does not find the installed
one.

## What to do
Install torch and the build tools first (`pip install torch setuptools wheel packaging ninja`), then
build with `pip install --no-build-isolation PACKAGE`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("pip-build-isolation", id="DSD454", scope=Scope.USER_ENV, since="0.1")

HINT = (
    "install torch and the build tools (`pip install setuptools wheel packaging ninja`), then run"
    " `pip install --no-build-isolation PACKAGE`"
)

SIGNATURES = (
    Signature(
        pattern=r"No module named '?(?:torch|packaging|wheel|psutil|numpy|setuptools)'?\s*$",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'torch'",
            "      ModuleNotFoundError: No module named 'packaging'",
            "ImportError: No module named torch",
            "No module named wheel",
            "No module named psutil",
            "No module named numpy",
            "No module named setuptools",
        ),
        not_examples=(
            "ModuleNotFoundError: No module named 'torch._six'",
            "ModuleNotFoundError: No module named 'numpy.core'",
        ),
        level=Level.STRONG,
        near=(
            "build dependency",
            "build isolation",
            "build-isolation",
            "build wheel",
            "egg_info",
            "subprocess-exited",
            "pip-build-env",
            "build_meta",
            "metadata",
            "requirements to build",
            "build backend",
            "setuptools/",
            "pip install",
            "pip-install-",
            "pip-req-build",
            "bdist_wheel",
            "building wheel",
            "Building wheel",
            "build_wheel",
            "build_editable",
            "Backend subprocess",
        ),
        # it says how to upgrade itself
        not_near=("$ pip install wandb",),
    ),
    # uv and pdm name the module that the isolated build cannot import
    Signature(
        pattern=r"depends on `(?:torch|packaging|wheel|psutil|numpy|setuptools)`, but doesn't declare it as a build dependency|Module '(?:torch|packaging|wheel|psutil|numpy|setuptools)' is missing, please make sure it is specified in the 'build-system\.requires' section",
        source="uv 0.4-0.9 crates/uv-build-frontend/src/error.rs; python-build 1",
        examples=(
            "hint: This error likely indicates that `fastattn@1.0.0` depends on `torch`, but doesn't declare it as a build dependency.",
            "BuildError: Build backend raised error: Module 'torch' is missing, please make sure it is specified in the 'build-system.requires' section.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Unable to import torch, pre-compiling ops will be disabled",
        source="deepspeed 0.14.5-0.16.9 setup.py",
        examples=(
            "[WARNING] Unable to import torch, pre-compiling ops will be disabled. Please visit https://pytorch.org/",
            "      [WARNING] Unable to import torch, pre-compiling ops will be disabled.",
        ),
        level=Level.HINT,
        near=(
            "did not run successfully",
            "subprocess-exited",
            "build backend returned an error",
            "build_wheel",
            "metadata-generation-failed",
        ),
    ),
)
