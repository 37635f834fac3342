"""Compiles and links CUDA code with a toolkit: an object, then a shared library that is loaded.

    python prove_toolkit.py NVCC CUDA_HOME TORCH_FOLDER|- CXX_STANDARD ARCHS [HOST_COMPILER]

ARCHS are as in TORCH_CUDA_ARCH_LIST (`8.0;9.0a;12.0+PTX`); a name of a generation that torch also
takes (`Hopper`) is left to torch's own build.
Stdlib only, Python 3.8 and later. Exit status 0 = all worked; else prints the compiler's errors.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import List

PLAIN = """
#include <cuda_runtime.h>
__global__ void scale(float *x) { x[threadIdx.x] *= 2.0f; }
extern "C" int proof(float *x) { scale<<<1, 32>>>(x); return (int)cudaGetLastError(); }
"""


def run(argv: List[str], folder: str) -> None:
    print("$ " + " ".join(argv), flush=True)
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, check=False
    )
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        errors = [
            line for line in text.splitlines() if "error" in line.lower() or "cannot find" in line
        ]
        sys.stderr.write("\n".join((errors or text.splitlines())[:6]) + "\n")
        sys.exit(1)


def code_for(archs: str) -> List[str]:
    """Options of nvcc for a list of capabilities."""
    found = re.findall(r"(?:^|;)(\d+)\.(\d+)([af]?)", archs)
    names = [major + minor + letter for major, minor, letter in found]
    return ["-gencode=arch=compute_%s,code=sm_%s" % (name, name) for name in names]


def main() -> None:
    nvcc, home, torch, standard, archs = sys.argv[1:6]
    include = os.path.join(torch, "include")
    headers = os.path.isdir(os.path.join(include, "ATen", "cuda"))
    source = ("#include <ATen/cuda/CUDAContext.h>\n" if headers else "") + PLAIN
    print("with torch's headers" if headers else "without torch's headers: this torch has none")
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    try:
        with open(os.path.join(folder, "proof.cu"), "w") as file:
            file.write(source)
        common = ["-std=" + standard, "-Xcompiler", "-fPIC", *code_for(archs)]
        for compiler in sys.argv[6:]:
            common += ["-ccbin", compiler]
        if headers:
            common += ["-I" + include, "-DTORCH_API_INCLUDE_EXTENSION_H"]
            common += ["-I" + os.path.join(include, "torch", "csrc", "api", "include")]
        common += ["-I" + os.path.join(home, "include")]
        run([nvcc, "-c", "proof.cu", "-o", "proof.o", *common], folder)
        # as torch's build links: the host compiler, and nothing but CUDA_HOME's libraries
        libraries = [
            os.path.join(home, name)
            for name in ("lib64", "lib")
            if os.path.isdir(os.path.join(home, name))
        ]
        cxx = (os.environ.get("CXX") or "c++").split()
        link = [*cxx, "-shared", "proof.o", "-o", "proof.so"]
        link += ["-L" + library for library in libraries[:1]] + ["-lcudart"]
        run(link, folder)
        size = os.path.getsize(os.path.join(folder, "proof.so"))
        print("an object and a shared library of %d bytes" % size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
