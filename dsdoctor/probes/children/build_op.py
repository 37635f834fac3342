"""Builds a DeepSpeed op in a folder of its own and shows that it contains CUDA code.

Runs in the interpreter of the environment.

    python build_op.py FusedAdamBuilder

Python 3.8 and later, with the environment's torch and deepspeed. Exit status 0 = built and loaded.
"""

import glob
import os
import shutil
import sys
import tempfile


def has_cuda_code(path: str) -> bool:
    with open(path, "rb") as file:
        return b".nv_fatbin" in file.read()


def main() -> None:
    mine = "dsdoctor-%s-%d-" % (os.environ.get("DSDOCTOR_RUN", "0"), os.getpid())
    folder = tempfile.mkdtemp(prefix=mine)  # the name allows removal if this process is killed
    os.environ["TORCH_EXTENSIONS_DIR"] = folder
    os.environ["DS_ACCELERATOR"] = "cuda"
    try:
        import deepspeed  # noqa: F401  # registers its ops
        from deepspeed.ops import op_builder

        builder = getattr(op_builder, sys.argv[1])()
        # what DeepSpeed checks only when it pre-builds
        from deepspeed.ops.op_builder.builder import assert_no_cuda_mismatch

        assert_no_cuda_mismatch(builder.name)
        builder.load(verbose=True)
        libraries = glob.glob(os.path.join(folder, "**", "*.so"), recursive=True)
        # a build for the CPU succeeds too, and proves nothing
        with_code = [path for path in libraries if has_cuda_code(path)]
        if not with_code:
            sys.exit("error: DeepSpeed built %s without CUDA code" % (libraries or "nothing"))
        print("built " + os.path.basename(with_code[0]) + " with CUDA code, and loaded it")
    except Exception as error:
        sys.exit("error: %s: %s" % (type(error).__name__, str(error).strip().splitlines()[-1:]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
