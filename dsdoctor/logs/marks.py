"""Marks: lines that show what was active in a run, how far it came, and how it ended."""

from __future__ import annotations

import functools
import re

#: What follows the name of an offload block that names a device.
OFFLOADED = r"['\"]?\s*[=:]\s*.{0,60}device['\"]?\s*[=:]\s*['\"<]?\S*?(?P<v>cpu|nvme)"
#: Slurm goes on after these (2.0-25.05 src/slurmd/slurmstepd/mgr.c, task.c, plugins/proctrack;
#: 22.05-25.05 plugins/cgroup, while a step begins or ends). It follows `slurmstepd`.
SLURM_GOES_ON = (
    r".{0,60}error: (?:couldn't chdir to `|Unable to create TMPDIR \[|TMPDIR \[|Setting TMPDIR to "
    r"|_is_a_lwp: |common_file_write_u\w{1,12}: |Unable to move pid \d|error unlocking cgroup )"
)
#: Marks that are a literal: name to literal.
#: The mark of a training that has finished.
TRAINED = "trained"
END_OF_TRAINING = "end-of-training"
#: The mark of a program that Hydra (1.0-1.3 _internal/utils.py) ends with status 1.
HYDRA_FAILED = "hydra-failed"
WORDS = {
    "spawned": "spawned with command",
    "finished": "exits successfully",
    "child-failed": "ChildFailedError",
    "terminate": "terminate called",
    "killing": "Killing subprocess",
    "sigterm": "received SIGTERM",
    "stage3": "Stage 3 initialize",
    "zero3-offload": "DeepSpeedZeRoOffload initialize",
    "fp16-optimizer": "fp16 ZeRO stage",
    HYDRA_FAILED: "Error executing job with overrides",
    "accelerator-cpu": "Setting accelerator to CPU",
    "slurm": "srun: error: ",
    "zero-init": "Detected DeepSpeed ZeRO-3: activating",
    "bf16-optimizer": "torch.bfloat16 ZeRO",
    "deepspeed-info": "DeepSpeed info: version",
    # where environments state the releases of products: ds_report, collect_env, `transformers env`,
    # `accelerate env` and pip
    "deepspeed-release": "deepspeed info ...",
    "torch-release": "torch version ...",
    "pytorch-release": "PyTorch version",
    "transformers-release": "`transformers` version",
    "accelerate-release": "`Accelerate` version",
    "installed": "Successfully installed ",
    "torch-pinned": "torch==",
    "transformers-pinned": "transformers==",
    "accelerate-pinned": "accelerate==",
    "deepspeed-pinned": "deepspeed==",
    "peft-pinned": "peft==",
    "trl-pinned": "trl==",
    "triton-pinned": "triton==",
}
#: What a process prints as it aborts, so what follows is of others, or a dump of its state.
ABORTS = {
    "python-abort": ("Fatal Python error: ", r"Fatal Python error: "),  # CPython 3.3-3.14
    # glibc 2.26-2.41 malloc/malloc.c, debug/fortify_fail.c
    "glibc-free": ("free(): ", r"^(?:\S+: )?free\(\): (?:invalid|double)"),
    "glibc-double": ("double free or corruption", r"^(?:\S+: )?double free or corruption"),
    "glibc-malloc": ("malloc(): ", r"^(?:\S+: )?malloc\(\): \w"),
    "glibc-size": ("corrupted size vs. prev_size", r"^(?:\S+: )?corrupted size vs\. prev_size"),
    "glibc-stack": ("stack smashing detected", r"\*\*\* stack smashing detected \*\*\*"),
    # ROCR 1-7 core/runtime/runtime.cpp; ROCclr 3-7 rocdevice.cpp, which Hygon's DTK writes large
    "rocr-fault": ("Memory access fault by GPU", r"Memory access fault by GPU .{1,60}on address"),
    "rocr-hang": ("HW Exception by GPU node-", r"HW Exception by GPU node-\d"),
    "hsa-queue": ("borting with error : HSA_STATUS", r"\b[Aa]borting with error : HSA_STATUS"),
    # glog 0.3-0.7 signalhandler.cc, whose stack follows; absl 2020-2025 failure_signal_handler.cc
    "signal-stack": (
        " received by PID ",
        r"\*\*\* SIG[A-Z]{3,5} \(@0x[0-9a-f]+\) received by PID ",
    ),
    "signal-time": (" received at time=", r"\*\*\* SIG[A-Z]{3,5} received at time=\d"),
}
#: All marks: name to (literal, pattern).
MARKS: dict[str, tuple[str, str]] = {
    **{name: (literal, re.escape(literal)) for name, literal in WORDS.items()},
    **ABORTS,
    "world": ("dist_world_size=", r"dist_world_size=(?P<n>\d+)"),
    "died": (
        "exits with return code",
        r"exits with return code = (?!0\b)-?\d+",
    ),
    # transformers 4.1-5.24 (trainer_utils.py speed_metrics), of a training that has finished
    TRAINED: ("train_runtime", r"'train_runtime': '?\d"),
    # BasicSR 1.0-1.4 (basicsr/train.py), ESRGAN and EDVR (codes/train.py)
    END_OF_TRAINING: ("End of training.", r"\bEnd of training\.(?: Time consumed: |$)"),
    "exitcode": ("exitcode", r"exitcode\s{0,8}:?\s{0,8}(?!0\b)-?\d+"),
    "exit-code": ("Exited with exit code", r"Exited with exit code (?!0\b)\d+"),
    # LSF 9-10.1, its report below the output of a job: the signal, and the reason if it has one
    "lsf-signal": (
        "Exited with signal termination",
        r"^Exited with signal termination: \S",
    ),
    "lsf-reason": (
        ": job killed by ",
        r"^TERM_[A-Z_]{2,20}: job killed by ",
    ),
    # PBS Professional, OpenPBS 13-23 and Torque 4-6 (src/resmom)
    "pbs-killed": ("PBS: job killed: ", r"PBS: job killed: \S"),
    # Open MPI 1.6-5.0 (help-orterun.txt, help-prun.txt), of the first process that failed
    "mpirun": (
        "processes exited with non-zero status",
        r"one or more processes exited with non-zero status",
    ),
    "mpirun-signal": (
        "noticed that process rank",
        r"noticed that process rank \d+ with PID \S+ on node \S+ exited on signal \d",
    ),
    "mpirun-job": (
        "Primary job ",
        r"Primary job  ?terminated normally, but \d+ process(?:es)? returned",
    ),
    "mpi-abort": ("MPI_ABORT was invoked on", r"MPI_ABORT was invoked on"),
    # Open MPI 1.8-4.1 (orte) and PRRTE 1-4, help-errmgr-base.txt
    "mpi-daemon": (
        " has lost communication with a remote daemon",
        r"(?:ORTE|PRTE) has lost communication with a remote daemon",
    ),
    # Ray 1.9-2.54 (src/ray/raylet/worker_pool.cc)
    "ray-start": (
        "probably it crashed during start",
        r"The process is dead, probably it crashed during start",
    ),
    # Kubeflow's training operator 1.3-1.9 (pkg/controller.v1/common/pod.go)
    "pod-exit": ("exited with code", r"\bPod: \S{1,400} exited with code (?!0\b)\d{1,3}\b"),
    # Kaldi and ESPnet: run.pl, queue.pl and slurm.pl below utils/parallel
    "run-pl": ("failed, log is in ", r"^\w+\.pl: (?:\d+ / \d+|job) failed, log is in "),
    # Horovod 0.11-0.28 (common/common.h)
    "horovod": ("Horovod has been shut down", r"Horovod has been shut down"),
    # mpich 3.0-4.2 and Intel MPI (src/pm/hydra)
    "hydra": (
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    ),
    # Ray 1.9-2.54 (_private/worker.py), which restarts some of its workers
    "ray-worker": (
        "A worker died or was killed while executing a task",
        r"A worker died or was killed while executing a task by an unexpected system error",
    ),
    # Ray 2.0-2.54 (src/ray/raylet/node_manager.cc, gcs/gcs_server/gcs_actor_manager.cc)
    "ray-exit": (
        "orker exit type: ",
        r"\b[Ww]orker exit type: (?P<v>[A-Z]{3,20}(?:_[A-Z]{2,20}){0,4})",
    ),
    # Ray Train 2.44-2.54 (v2/_internal/execution/worker_group/worker_group.py), of one that died
    "ray-rank": (
        "DistributedContext(world_rank=",
        r"DistributedContext\(world_rank=(?P<n>\d{1,6})\b",
    ),
    # Lightning 1.9-2.6 (fabric/utilities/distributed.py): each rank prints it, so this log contains
    # the output of more than the first
    "lightning-world": (
        "GLOBAL_RANK: ",
        r"GLOBAL_RANK: [1-9]\d{0,5}, MEMBER: \d{1,6}/(?P<n>\d{1,6})\b",
    ),
    "slurm-step": ("slurmstepd", rf"slurmstepd(?!{SLURM_GOES_ON}).{{0,400}}error"),
    "segfault": ("egmentation fault", r"[Ss]egmentation fault"),
    "zero": ("ZeRO", r"(?i)zero[ _-]?(?:optimization_)?(?:stage[ _:=.]*|-)(?P<n>[0-3])\b"),
    "zero-config": (
        "zero_optimization_stage",
        r"zero_optimization_stage[ .]+(?:\w+\.)?(?P<n>[0-3]|disabled|\w+states|gradients|weights)",
    ),
    "cpu-offload": ("CPU Offload", r"CPU Offload: (?P<v>True|False)"),
    "cpu-adam": ("Adam Optimizer #", r"Adam Optimizer #\d+ is created"),
    "offload-config": ("offload_optimizer", "offload_optimizer" + OFFLOADED),
    "offload-param": ("offload_param", "offload_param" + OFFLOADED),
    "bf16": (
        "bfloat16_",
        r"bfloat16_(?:enabled \.{1,30} |config \.{1,30} .{0,400}\benabled=)(?P<v>True|False)",
    ),
    "offload-none": (
        "offload_optimizer=None",
        r"offload_param=None.{0,400}offload_optimizer=None",
    ),
    "fp16": ("fp16_enabled", r"\bfp16_enabled \.{1,30} (?P<v>True|False)"),
    "fp16-config": (
        "float16_config",
        r"\bfloat16_config \.{1,30} .{0,400}\benabled=(?P<v>True|False)",
    ),
    "world-size": ("world_size", r"\bworld_size\s*[.=:]+\s*(?P<n>\d+)"),
    "distributed": ("nranks", r"\bnranks (?P<n>\d+)"),
    "ds-accelerator": ("Setting ds_accelerator to", r"Setting ds_accelerator to (?P<v>\w+)"),
}
#: Marks of a run that died; a run that continues below them has outlived them.
FATAL_MARKS = (
    "died",
    "killing",
    "child-failed",
    "exitcode",
    "exit-code",
    "lsf-signal",
    "lsf-reason",
    "pbs-killed",
    "mpirun",
    "mpirun-signal",
    "mpirun-job",
    "mpi-abort",
    "mpi-daemon",
    "hydra",
    "ray-worker",
    "ray-start",
    "pod-exit",
    "run-pl",
    "horovod",
    "slurm",
    "slurm-step",
    "terminate",
    "segfault",
    *ABORTS,
)
MARK_LITERALS: dict[str, list[str]] = {}
for _name, (_literal, _) in MARKS.items():
    MARK_LITERALS.setdefault(_literal, []).append(_name)


@functools.cache
def mark_pattern(name: str) -> re.Pattern[str]:
    """The pattern of a mark, compiled when first needed: most never occur in a log."""
    return re.compile(MARKS[name][1])
