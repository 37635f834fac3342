"""Package managers that record their argv and do as they are told, and a toolkit that compiles.

What they install is a folder that looks like a toolkit of CUDA 12.3: its nvcc is a script that says
so and has gcc make the object, its libraries are empty. So the proof, the re-check and
undo are the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.patient import site_of, stub_torch, venv

CUDA = "12.3"
LEFT_OUT = ("apt-get", "apt-cache", "apt", "dpkg-query", "dnf", "rpm", "conda", "mamba", "ninja",
            "micromamba", "pixi", "nvcc", "modulecmd", "sudo")  # fmt: skip

TOOLKIT = '''
import os, subprocess, sys
from pathlib import Path
HEADERS = ["cuda_runtime.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h", "curand.h", "thrust/version.h"]
NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release VERSION, V0.1"; exit 0; fi
[ -z "$FAKE_NVCC_HANGS" ] || exec sleep 60
case "$0" in *"${FAKE_NVCC_FAILS:-//}"*) echo "proof.cu(2): error: the compiler is a fake"; exit 1;; esac
echo 'int proof(void *x) { return x != 0; }' > proof.c && exec gcc -fPIC -c proof.c -o proof.o
"""
def toolkit(root, version="12.3"):
    root = Path(root)
    (root / "bin").mkdir(parents=True, exist_ok=True)
    (root / "bin" / "nvcc").write_text(NVCC.replace("VERSION", version))
    (root / "bin" / "nvcc").chmod(0o755)
    for header in HEADERS:
        place = root / "include" / header
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    (root / "lib").mkdir(exist_ok=True)
    for name in ("libcudart.so", "libcurand.so"):
        library = root / "lib" / name
        subprocess.run(["gcc", "-shared", "-o", str(library), "-x", "c", "/dev/null"], check=True)
'''

#: A pip that has the wheels of CUDA 13.0 and nothing else.
PIP = """
import json, re, shutil, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from fake_toolkit import toolkit
argv, site = sys.argv[1:], Path(__file__).parent.parent
db = Path({db!r})
have = json.loads(db.read_text()) if db.exists() else ["torch==2.11.0"]
with open({log!r}, "a") as log:
    log.write(json.dumps(["pip", *argv]) + "\\n")
if argv[0] == "freeze":
    print("\\n".join(have))
elif "--dry-run" in argv:
    wheels = {{"cuda-toolkit": "13.0.2", "nvidia-cuda-nvcc": "13.0.88"}}
    print(json.dumps({{"install": [{{"metadata": {{"name": n, "version": v}}}} for n, v in wheels.items()]}}))
elif argv[0] == "uninstall":
    have = [row for row in have if row.split("==")[0] not in argv]
    shutil.rmtree(site / "nvidia")
elif "--target" in argv:
    toolkit(argv[argv.index("--target") + 1] + "/nvidia/cu13", "13.0")
else:
    toolkit(site / "nvidia/cu13", "13.0")
    have += [word for word in argv if "==" in word]
db.write_text(json.dumps(have))
"""

MANAGER = """#!{python}
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, {here!r})
from fake_toolkit import toolkit
name = os.path.basename(sys.argv[0])
with open({log!r}, "a") as log:
    log.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
argv, mode = sys.argv[1:], os.environ.get("FAKE_MODE", "ok")
db = Path({db!r})
have = json.loads(db.read_text()) if db.exists() else {{"base": "1"}}
changes = argv and argv[0] in ("create", "install", "add", "remove", "downgrade")
WORDS = {{
    "solver": "LibMambaUnsatisfiableError: Encountered problems while solving:\\n  - nothing provides x",
    "permission": "E: Could not open lock file /var/lib/dpkg/lock - open (13: Permission denied), are you root?" if name == "apt-get"
        else "EnvironmentNotWritableError: The current user does not have write permissions",
    "lock": "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)",
    "disk": "OSError: [Errno 28] No space left on device",
    "missing": "PackagesNotFoundError: The following packages are not available",
    "network": "CondaHTTPError: HTTP 000 CONNECTION FAILED for url",
}}
def prefix():
    for flag in ("--prefix", "-p"):
        if flag in argv:
            return argv[argv.index(flag) + 1]
    if "--manifest-path" in argv:
        return os.path.dirname(argv[argv.index("--manifest-path") + 1]) + "/.pixi/envs/default"
    return ""
if name == "apt-cache":
    for package in argv[1:]:
        if package in {candidates!r}:
            print(package + ":\\n  Installed: (none)\\n  Candidate: 1.0\\n  Version table:")
elif name == "dpkg-query":
    print("\\n".join(f"{{k}}={{v}} installed" for k, v in have.items()))
elif name == "rpm":
    print("\\n".join(f"{{k}}={{v}}" for k, v in have.items()))
elif argv and "repoquery" in argv:
    print("\\n".join({candidates!r}))
elif argv and argv[0] == "list":
    rows = [{{"name": k, "version": v, "build_string": "0"}} for k, v in have.items()]
    print(json.dumps(rows))
elif argv and argv[0] == "init":
    Path(argv[1]).mkdir(parents=True)
    Path(argv[1], "pixi.toml").write_text("[workspace]\\n")
elif changes and mode != "ok" and argv[0] != "remove":
    if prefix():
        Path(prefix()).mkdir(parents=True, exist_ok=True)
        Path(prefix(), "half").write_text("x")
    if mode == "hang":
        print("solving", flush=True)
        time.sleep(60)
    print(WORDS[mode], file=sys.stderr)
    sys.exit(1)
elif changes:
    specs = [w for w in argv[1:] if not w.startswith("-") and "/" not in w and w not in ("conda-forge",)]
    for spec in specs:
        key = spec.split("=")[0]
        if argv[0] == "remove":
            have.pop(key, None)
        else:
            have[key] = "1"
    db.write_text(json.dumps(have))
    if prefix() and argv[0] in ("create", "install", "add"):
        toolkit(prefix(), os.environ.get("FAKE_CUDA", "12.3"))
        Path(prefix(), "conda-meta").mkdir(exist_ok=True)
    ninja = Path({bin!r}, "ninja")
    if "ninja-build" in specs:
        if argv[0] == "install":
            ninja.write_text("#!/bin/sh\\n")
            ninja.chmod(0o755)
        else:
            ninja.unlink()
"""


def tools(folder: Path) -> Path:
    """A folder for PATH with every program of /usr/bin but what installs or builds."""
    folder.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not program.name.startswith("conda") and program.name not in LEFT_OUT:
            (folder / program.name).symlink_to(program)
    return folder


class Machine:
    """A folder with a patient, tools, and package managers that are fakes.

    Attributes:
        root: everything is below it.
        env: environment of the commands.
        patient: folder of the virtual environment.
    """

    def __init__(self, root: Path, *managers: str, cuda: str = CUDA, torch: str = "2.3.1") -> None:
        self.root = root
        self.bin = tools(root / "tools")
        self.log = root / "argv.jsonl"
        self.patient = venv(root / "env", pip=False)
        stub_torch(self.patient, version=torch, cuda=cuda, release="0")
        self.fake = root / "fake"
        self.fake.mkdir()
        (self.fake / "fake_toolkit.py").write_text(TOOLKIT)
        for name in managers:
            self.manager(name)
        home = root / "home"
        home.mkdir()
        self.env = {
            "PATH": f"{self.fake}:{self.bin}",
            "HOME": str(home),
            "DSDOCTOR_PYTHON": str(self.patient / "bin" / "python"),
            "DS_BUILD_FUSED_ADAM": "1",
            "TORCH_CUDA_ARCH_LIST": "9.0",
            "DSDOCTOR_CUDA_ARCHIVES": "http://127.0.0.1:9/none",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        }

    def manager(self, name: str) -> None:
        fields = {
            "python": sys.executable,
            "here": str(self.fake),
            "log": str(self.log),
            "db": str(self.root / "installed.json"),
            "bin": str(self.bin),
            "candidates": ["ninja-build", f"cuda-toolkit-{CUDA.replace('.', '-')}"],
        }
        path = self.fake / name
        path.write_text(MANAGER.format(**fields))
        path.chmod(0o755)

    def pip(self) -> None:
        """Gives the patient a pip that is a fake."""
        package = site_of(self.patient) / "pip"
        package.mkdir()
        (package / "__init__.py").write_text("")
        fields = {"here": str(self.fake), "db": str(self.root / "pip.json"), "log": str(self.log)}
        (package / "__main__.py").write_text(PIP.format(**fields))

    def toolkit(self, place: Path, version: str = CUDA) -> Path:
        code = f"import sys; sys.path.insert(0, {str(self.fake)!r}); import fake_toolkit; "
        code += f"fake_toolkit.toolkit({str(place)!r}, {version!r})"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=500)
        return place

    def calls(self, *verbs: str) -> list[list[str]]:
        if not self.log.exists():
            return []
        rows = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [row for row in rows if not verbs or (len(row) > 1 and row[1] in verbs)]
