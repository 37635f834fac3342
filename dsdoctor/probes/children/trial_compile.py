"""Compiles a CUDA source that includes torch's CUDA headers, in a temporary folder.

    python trial_compile.py NVCC CUDA_HOME TORCH_FOLDER CXX_STANDARD [HOST_COMPILER]

Stdlib only, Python 3.8 and later. Prints one record: {"ok": bool, "error": text}.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = """
#include <ATen/cuda/CUDAContext.h>
__global__ void trial(float *x) { x[threadIdx.x] *= 2.0f; }
"""


def say(record: dict) -> None:  # type: ignore[type-arg]  # 3.8 has no dict[...]
    os.write(1, ("\x1edsdoctor:" + json.dumps(record) + "\n").encode())


def main() -> None:
    nvcc, home, torch, standard = sys.argv[1:5]
    include = os.path.join(torch, "include")
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    try:
        source = os.path.join(folder, "trial.cu")
        with open(source, "w") as file:
            file.write(SOURCE)
        argv = [nvcc, "-c", source, "-o", os.path.join(folder, "trial.o"), "-std=" + standard]
        argv += ["-I" + include, "-I" + os.path.join(include, "torch", "csrc", "api", "include")]
        argv += ["-I" + os.path.join(home, "include"), "-DTORCH_API_INCLUDE_EXTENSION_H"]
        for compiler in sys.argv[5:]:
            argv += ["-ccbin", compiler]
        say({"step": "compile"})
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, check=False
        )
        text = done.stdout.decode("utf-8", "replace")
        errors = [
            line for line in text.splitlines() if "error" in line.lower()
        ] or text.splitlines()
        say({"ok": done.returncode == 0, "error": "\n".join(errors[:5])[:1000]})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
