"""A virtual environment whose torch says that it is of some CUDA, without being there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

METADATA = """Metadata-Version: 2.1
Name: torch
Version: {version}
Requires-Dist: cuda-toolkit[cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx]=={release}; platform_system == "Linux"
"""
VERSION = """__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '{version}'
debug = False
cuda = '{cuda}'
git_version = '0' * 40
hip = None
"""
INIT = """from torch.version import __version__
"""


def site_of(env: Path) -> Path:
    return next((env / "lib").glob("python3*")) / "site-packages"


def stub_torch(env: Path, *, version: str = "2.11.0", cuda: str = "13.0", release: str) -> None:
    """Lays out a distribution called torch, with its metadata and its version file."""
    site = site_of(env)
    package, info = site / "torch", site / f"torch-{version}.dist-info"
    for folder in (package, info):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    (package / "version.py").write_text(VERSION.format(version=version, cuda=cuda))
    (info / "METADATA").write_text(METADATA.format(version=version, release=release))
    (info / "INSTALLER").write_text("pip\n")
    rows = ["torch/__init__.py,,", "torch/version.py,,", f"{info.name}/METADATA,,"]
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/INSTALLER,,", ""]))


def venv(folder: Path, *, pip: bool = True) -> Path:
    argv = [sys.executable, "-m", "venv", str(folder)]
    subprocess.run([*argv, *([] if pip else ["--without-pip"])], check=True, timeout=500)
    return folder


def freeze(env: Path) -> str:
    argv = [str(env / "bin" / "python"), "-m", "pip", "freeze", "--all"]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=500).stdout


def tree(folder: Path) -> dict[str, tuple[str, bytes | str, int]]:
    """Everything below a folder: kind, content or target, mode; caches of bytecode left out."""
    found: dict[str, tuple[str, bytes | str, int]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" in name:
            continue
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()), 0)
        elif path.is_dir():
            found[name] = ("dir", "", mode)
        else:
            found[name] = ("file", path.read_bytes(), mode)
    return found
