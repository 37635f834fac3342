"""The isolated build does not see torch.

## Why it matters
pip builds packages in an empty environment. A setup.py that imports torch does not find the one
that is installed.

## What to do
Install torch first, then build with `pip install --no-build-isolation`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("pip-build-isolation", id="DSD454", scope=Scope.USER_ENV, since="0.1")

HINT = "install torch first, then build with `pip install --no-build-isolation`"

SIGNATURES = (
    Signature(
        anchor="No module named",
        pattern=r"No module named '?(?:torch|packaging|wheel|psutil|numpy|setuptools)'?\s*$",
        examples=(
            "ModuleNotFoundError: No module named 'torch'",
            "      ModuleNotFoundError: No module named 'packaging'",
            "ImportError: No module named torch",
        ),
        not_examples=(
            "ModuleNotFoundError: No module named 'torch._six'",
            "ModuleNotFoundError: No module named 'numpy.core'",
        ),
        weight=66,
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
    ),
    Signature(
        # uv and pdm name the module that the isolated build does not see
        anchor=("but doesn't declare it as a build dependency", "'build-system.requires' section"),
        pattern=(
            r"depends on `(?:torch|packaging|wheel|psutil|numpy|setuptools)`, but doesn't declare"
            r" it as a build dependency|Module '(?:torch|packaging|wheel|psutil|numpy|setuptools)'"
            r" is missing, please make sure it is specified in the 'build-system\.requires' section"
        ),
        examples=(
            "hint: This error likely indicates that `fastattn@1.0.0` depends on `torch`, but doesn't declare it as a build dependency.",
            "BuildError: Build backend raised error: Module 'torch' is missing, please make sure it is specified in the 'build-system.requires' section.",
        ),
        not_examples=(
            "hint: `oldpkg@0.1` depends on `distutils`, but doesn't declare it as a build dependency",
            "each build tool belongs into the 'build-system.requires' section of pyproject.toml",
        ),
        weight=66,
    ),
    Signature(
        anchor="Unable to import torch, pre-compiling",
        pattern="Unable to import torch, pre-compiling ops will be disabled",
        examples=(
            "[WARNING] Unable to import torch, pre-compiling ops will be disabled. Please visit https://pytorch.org/",
            "      [WARNING] Unable to import torch, pre-compiling ops will be disabled.",
        ),
        not_examples=(
            "torch imported, pre-compiling",
            "[WARNING] Unable to import torch, pre-compiling of the docs' examples is left out",
        ),
        weight=30,
        near=(
            "did not run successfully",
            "subprocess-exited",
            "build backend returned an error",
            "build_wheel",
            "metadata-generation-failed",
        ),
    ),
)
