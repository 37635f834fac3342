"""A compiled op or extension is missing because its build failed.

## Why it matters
Optimizer offload calls a compiled op, and other packages build extensions at first use. If a build failed,
the last line of the log only says what is missing; the cause is further up.

## What to do
Delete its folder under `~/.cache/torch_extensions`, run again, and read the first build error.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("cpu-adam-unbuilt", id="DSD450", scope=Scope.USER_ENV, since="0.1")

HINT = (
    "delete the op's folder under `~/.cache/torch_extensions`, run again, and read the first build"
    " error"
)

SIGNATURES = (
    Signature(
        pattern=r"[Bb]uilding extension module \w+\.{3} ?FAILED",
        source=(
            "published guides of running DeepSpeed, which word it so; no release of torch 1.13-2.9 "
            "does"
        ),
        examples=(
            "Building extension module cpu_adam... FAILED",
            "building extension module fused_adam...FAILED",
        ),
        not_examples=("Building extension module cpu_adam...",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="has no attribute 'ds_opt_(?:adam|adagrad|lion)'",
        source=(
            "python 3.3-3.14 Objects/object.c, for deepspeed 0.3-0.19 ops/adam/cpu_adam.py, "
            "ops/adagrad/cpu_adagrad.py, ops/lion/cpu_lion.py"
        ),
        examples=(
            "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
            "AttributeError: 'DeepSpeedCPUAdagrad' object has no attribute 'ds_opt_adagrad'",
            "AttributeError: 'DeepSpeedCPULion' object has no attribute 'ds_opt_lion'",
        ),
    ),
    Signature(
        pattern=r"torch_extensions\S*/(?:cpu_adam|fused_adam|utils|cpu_lion|cpu_adagrad|fused_lamb|async_io|transformer_inference|deepspeed_\w+|\w+)\.so: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c, for libraries that torch's cpp_extension.py builds",
        examples=(
            "ImportError: /c/torch_extensions/py39_cu118/cpu_adam/cpu_adam.so: cannot open shared object file: No such file or directory",
            "ImportError: /root/.cache/torch_extensions/fused_adam/fused_adam.so: cannot open shared object file: No such file or directory",
            "torch_extensionsx1/utils.so: cannot open",
            "torch_extensionsx1/cpu_lion.so: cannot open",
            "torch_extensionsx1/cpu_adagrad.so: cannot open",
            "torch_extensionsx1/fused_lamb.so: cannot open",
            "torch_extensionsx1/async_io.so: cannot open",
            "torch_extensionsx1/transformer_inference.so: cannot open",
            "ImportError: /home/user/.cache/torch_extensions/py311_cpu/deepspeed_shm_comm/deepspeed_shm_comm.so: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libaio.so: cannot open shared object file: No such file or directory",),
    ),
    Signature(
        pattern=r"requires the \w+ op, which failed to build/load",
        source="deepspeed 0.19.8 utils/pin_memory.py, ops/adam/cpu_adam.py",
        examples=(
            "RuntimeError: DeepSpeedCPUAdam requires the cpu_adam op, which failed to build/load.",
            "RuntimeError: FusedAdam requires the fused_adam op, which failed to build/load.",
        ),
        not_examples=("the cpu_adam op, which failed to build/load.",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Error building extension '(?P<op>\w+)'",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "RuntimeError: Error building extension 'fused_adam'",
            "RuntimeError: Error building extension 'cpu_adam': [1/2] c++ -MMD -MF cpu_adam.o.d",
        ),
        not_examples=("Error building extension ' is fine",),
        message="The extension `{op}` could not be built",
        hint="read the compiler's first error above this line; after mending that, delete the extension's folder under `~/.cache/torch_extensions`, and run again",
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"CalledProcessError: Command '\['ninja', '-v'(?:, '-j', '\d+')?\]' returned non-zero exit status \d+",
        source="torch 1.2-2.13 utils/cpp_extension.py, with the words of CPython's subprocess",
        examples=(
            "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
            "subprocess.CalledProcessError: Command '['ninja', '-v', '-j', '8']' returned non-zero exit status 255.",
        ),
        not_examples=(
            "subprocess.CalledProcessError: Command '['ninja', '-v']' died with <Signals.SIGKILL: 9>.",
        ),
        hint="read the compiler's first error above this line; after mending that, delete the extension's folder under `~/.cache/torch_extensions`, and run again",
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\bld: cannot find /\S{1,400}/\w+\.o: No such file or directory",
        source="binutils 2.20-2.44 ld/ldfile.c",
        message="The linker did not find an object file, so its source was not compiled",
        hint="read the compiler's first error above this line; without one, build again from scratch, with fewer jobs (`MAX_JOBS=1`)",
        examples=(
            "/usr/bin/ld: cannot find /tmp/pip-install-a1/deepspeed_b2/build/temp.linux-x86_64-3.10/csrc/adam/cpu_adam.o: No such file or directory",
        ),
        not_examples=("/usr/bin/ld: cannot find crt1.o: No such file or directory",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Unable to JIT load the (?!async_io)\w+ op due to it not being compatible",
        source="deepspeed 0.3-0.19 ops/op_builder/builder.py, ops/op_builder/xpu/builder.py",
        message="This machine does not meet the requirements of a DeepSpeed op",
        hint="read the warnings above the error, and the op's row in `ds_report`: they say what is missing",
        examples=(
            "RuntimeError: Unable to JIT load the cpu_adam op due to it not being compatible",
        ),
        not_examples=(
            "RuntimeError: Unable to JIT load the async_io op due to it not being compatible",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Unable to (?:JIT load the|pre-compile) (?!async_io)\w+\b(?! op due to it not)",
        source="deepspeed 0.14.5-0.19.8 ops/op_builder/builder.py, ops/op_builder/xpu/builder.py; deepspeed 0.14.5-0.16.9 setup.py",
        examples=(
            "RuntimeError: Unable to JIT load the cpu_adam op",
            "AssertionError: Unable to pre-compile fused_lamb",
        ),
        not_examples=("AssertionError: Unable to pre-compile async_io",),
        level=Level.WEAK,
        not_near=("ninja not being installed",),
    ),
    Signature(
        pattern=r"No module named '?deepspeed\.ops\.[\w.]*_op'?",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'deepspeed.ops.adam.cpu_adam_op'",
            "ImportError: No module named deepspeed.ops.lamb.fused_lamb_op",
        ),
        not_examples=("No module named 'deepspeed.ops. is fine",),
        masks=("deepspeed-missing",),
    ),
    Signature(
        pattern=r"^(?:ModuleNotFoundError|ImportError): No module named '?deepspeed_\w+_cuda\b",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py, for ops of deepspeed 0.1-0.2",
        examples=(
            "ModuleNotFoundError: No module named 'deepspeed_lamb_cuda'",
            "ImportError: No module named deepspeed_adam_cuda",
        ),
        not_examples=("ModuleNotFoundError: No module named 'deepspeed_cuda'",),
        level=Level.WEAK,
    ),
)
