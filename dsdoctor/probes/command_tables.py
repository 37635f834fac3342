"""Which options of launchers, and of programs before them, take a value."""

from __future__ import annotations

#: Modules that start a launcher with `python -m`.
MODULES = {
    "deepspeed": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "composer.cli.launcher": "composer",
}
#: Programs that are launchers.
PROGRAMS = {
    "deepspeed": "deepspeed",
    "deepspeed.pt": "deepspeed",
    "ds": "deepspeed",
    "torchrun": "torchrun",
    "accelerate": "accelerate",
    "accelerate-launch": "accelerate",
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "orterun": "mpirun",
    "jsrun": "jsrun",
    "flux": "flux",
    "aprun": "aprun",
    "horovodrun": "horovodrun",
    "colossalai": "colossalai",
    "composer": "composer",
}
#: Those that start a command once for each rank, which may be a launcher itself.
STARTERS = frozenset({"srun", "mpirun", "jsrun", "flux", "aprun", "horovodrun"})
#: The words after a program, one of which makes it a launcher: `accelerate config` is none.
STARTED_BY: dict[str, tuple[tuple[str, ...], ...]] = {
    "accelerate": (("launch",),),
    "colossalai": (("run",),),
    "flux": (("run",), ("mini", "run")),
}
#: Command lines of trainers, which start torchrun themselves; their YAML or an option refers to the
#: config.
TRAINERS = frozenset({"llamafactory-cli", "swift", "xtuner", "axolotl", "megatron", "nemo"})
#: Those, and TRL's, whose trainer is that of transformers: it fills in the DeepSpeed config.
ON_TRANSFORMERS = frozenset({"llamafactory-cli", "swift", "axolotl", "trl"})
#: Programs that pass a command on to a container, a profiler, a queue or other machines.
CARRIERS = frozenset(
    {"apptainer", "singularity", "docker", "podman", "nerdctl", "enroot", "shifter", "ncu",
     "rocprof", "rocprofv3", "qsub", "bsub", "oarsub", "xargs", "parallel",
     "kubectl", "oc", "ray", "apptainer_wrapper", "singularity_wrapper"}
)  # fmt: skip
_BY_MANIFEST = "starts in a cluster what the manifest describes, which `dsdoctor lint` checks"
_BY_QUEUE = "submits the job to a queue; `dsdoctor lint` checks its script"
#: Programs with their first words that start a job in a way that is not followed, and where.
UNFOLLOWED = {
    ("torchx", "run"): "starts what its component describes",
    ("sky", "launch"): "starts the job on machines of a cloud",
    ("sky", "exec"): "starts the job on machines of a cloud",
    ("sky", "jobs"): "starts the job on machines of a cloud",
    ("dstack", "apply"): "starts the job on machines of a cloud",
    ("dstack", "run"): "starts the job on machines of a cloud",
    ("modal", "run"): "starts the job on machines of a cloud",
    ("det", "experiment"): "starts the job in a cluster of Determined",
    ("ray", "job"): "starts the job in a cluster of Ray",
    ("kubectl", "apply"): _BY_MANIFEST,
    ("kubectl", "create"): _BY_MANIFEST,
    ("hf", "jobs"): "starts the job on machines of a cloud",
    # `check` follows them, where they name a script or a command
    ("qsub",): _BY_QUEUE,
    ("bsub",): _BY_QUEUE,
    ("oarsub",): _BY_QUEUE,
    ("sbatch",): _BY_QUEUE,
    ("fabric", "run"): "is a launcher whose options are not known here",
    ("lightning", "run"): "is a launcher whose options are not known here",
}
#: Names of DeepSpeed settings that come with a trainer (swift 3.7, xtuner 0.1.23): no files.
PRESETS = frozenset(
    {"zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload", "default",
     "default-zero2", "default-zero3", "deepspeed_zero1", "deepspeed_zero2", "deepspeed_zero3",
     "deepspeed_zero2_offload", "deepspeed_zero3_offload"}
)  # fmt: skip
#: Programs that start another one; their own options with a separate value.
WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "nohup": frozenset(),
    "time": frozenset(),
    "exec": frozenset({"-a"}),
    "command": frozenset(),
    "catchsegv": frozenset(),
    "xvfb-run": frozenset({"-e", "-f", "-n", "-p", "-s"}),
    # nsys 2024.5: short options of `profile` and `launch`; long ones are joined with `=`
    "nsys": frozenset("-b -c -d -e -f -h -o -p -s -t -w -x -y".split()),  # noqa: SIM905
    "nice": frozenset({"-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "setsid": frozenset(),
    "timeout": frozenset({"-s", "-k"}),
    "numactl": frozenset({"-N", "-m", "-C"}),
    "taskset": frozenset(),
    "sudo": frozenset({"-u", "-g"}),
    # util-linux 2.40, expect 5.45, strace 6.10, compute-sanitizer 2025.2, proxychains-ng 4.17
    "ionice": frozenset({"-c", "-n", "-p"}),
    "flock": frozenset({"-w", "-E", "--timeout", "--conflict-exit-code"}),
    "unbuffer": frozenset(),
    "strace": frozenset({"-e", "-o", "-s", "-p", "-u", "-E", "-P", "-a", "-b"}),
    "compute-sanitizer": frozenset({"--tool", "--log-file", "--target-processes", "--save"}),
    "proxychains": frozenset({"-f"}),
    "proxychains4": frozenset({"-f"}),
    "systemd-inhibit": frozenset({"--what", "--who", "--why", "--mode"}),
    "caffeinate": frozenset({"-t", "-w"}),
}
#: Of those, the ones whose first argument is not the command: a time, a mask, a file.
WITH_ARGUMENT = frozenset({"timeout", "taskset", "flock"})
#: Debuggers and profilers that run a Python script, as a command or with `python -m`: the word
#: before their options, and the options with a separate value (Python 3.14, debugpy 1.8, coverage
#: 7.11, memray 1.19, viztracer 1.1, scalene 1.5, line_profiler 5.0, torch 2.13).
SCRIPT_RUNNERS: dict[str, tuple[str, frozenset[str]]] = {
    "pdb": ("", frozenset({"-c", "--command"})),
    "ipdb": ("", frozenset({"-c"})),
    "pudb": ("", frozenset({"-e", "--log-errors"})),
    "cProfile": ("", frozenset({"-o", "-s"})),
    "profile": ("", frozenset({"-o", "-s"})),
    "trace": ("", frozenset({"-f", "--file", "-C", "--coverdir"})),
    "debugpy": ("", frozenset({"--listen", "--connect", "--log-to", "--configure-subProcess"})),
    "coverage": ("run", frozenset({"--rcfile", "--source", "--include", "--omit", "--context"})),
    "memray": ("run", frozenset({"-o", "--output", "--live-port"})),
    "viztracer": ("", frozenset({"-o", "--output_file", "--tracer_entries", "--max_stack_depth"})),
    "scalene": ("", frozenset({"--outfile"})),
    "kernprof": ("", frozenset({"-o", "--outfile", "-s", "--setup", "-p", "--prof-mod"})),
    "memory_profiler": ("", frozenset({"-o"})),
    "torch.utils.bottleneck": ("", frozenset()),
}
#: Profilers that run the command after `--`.
BEFORE_DASHES = frozenset({"py-spy", "austin", "perf"})
#: Launchers whose options say how many ranks they start on a host.
COUNTING = frozenset({"deepspeed", "torchrun", "accelerate", "colossalai", "composer"})
#: Programs that start a command in an environment, each with the word before the command.
RUNNERS = {
    "uv": "run", "poetry": "run", "pipenv": "run", "pdm": "run", "conda": "run", "mamba": "run",
    "micromamba": "run", "pixi": "run", "hatch": "run", "rye": "run", "pipx": "run", "uvx": "",
}  # fmt: skip
#: Their options with a separate value (uv 0.9, poetry 2.2, pixi 0.55, hatch 1.14, conda 25.5).
RUNNER_TAKES = frozenset(
    {"--with", "--extra", "--python", "--env-file", "-n", "--name", "-p", "--prefix", "--cwd",
     "--project", "--directory", "--package", "--group", "--only-group", "--no-group", "--from",
     "--spec", "--with-requirements", "--with-editable", "--index-url", "--cache-dir", "-C", "-P",
     "-e", "--environment", "--env", "--manifest-path", "-r", "--root-prefix"}
)  # fmt: skip
#: Switches: the options of each launcher that take no value.
SWITCHES: dict[str, frozenset[str]] = {
    # deepspeed 0.19.8 launcher/runner.py
    "deepspeed": frozenset(
        [
            "h",
            "help",
            "module",
            "no_python",
            "no_local_rank",
            "no_ssh",
            "no_ssh_check",
            "force_multi",
            "save_pid",
            "bind_cores_to_rank",
            "quiet",
            "q",
            "V",
            "version",
        ],
    ),
    # torch 2.13 distributed/run.py
    "torchrun": frozenset(
        [
            "h",
            "help",
            "standalone",
            "m",
            "module",
            "no_python",
            "run_path",
            "use_env",
            "disable_numa",
        ],
    ),
    # accelerate 1.15 commands/launch.py
    "accelerate": frozenset(
        [
            "h",
            "help",
            "q",
            "quiet",
            "cpu",
            "multi_gpu",
            "tpu",
            "ipex",
            "use_mps_device",
            "use_deepspeed",
            "use_fsdp",
            "use_parallelism_config",
            "use_megatron_lm",
            "use_xpu",
            "m",
            "module",
            "no_python",
            "debug",
            "enable_cpu_affinity",
            "tpu_cluster",
            "no_tpu_cluster",
            "dynamo_use_fullgraph",
            "dynamo_use_dynamic",
            "dynamo_use_regional_compilation",
        ],
    ),
    # ColossalAI 0.1.10 to 0.5.0 cli/launcher/__init__.py; `-m` takes the module
    "colossalai": frozenset(["help"]),
    # Composer 0.8 to 0.32 cli/launcher.py
    "composer": frozenset(
        ["h", "help", "version", "v", "verbose", "module_mode", "command_mode"],
    ),
}
SHORT: dict[str, dict[str, str]] = {
    "deepspeed": {"H": "hostfile", "i": "include", "e": "exclude"},
    "torchrun": {"m": "module"},
    "accelerate": {"m": "module"},
    "colossalai": {"H": "host"},
    "composer": {"n": "nproc", "m": "module_mode", "c": "command_mode"},
}
#: Long names, because argparse accepts any unambiguous prefix of one.
LONG: dict[str, list[str]] = {
    "deepspeed": [
        "hostfile",
        "include",
        "exclude",
        "num_nodes",
        "min_elastic_nodes",
        "max_elastic_nodes",
        "num_gpus",
        "num_accelerators",
        "master_port",
        "master_addr",
        "node_rank",
        "launcher",
        "launcher_args",
        "module",
        "no_python",
        "no_local_rank",
        "no_ssh",
        "no_ssh_check",
        "force_multi",
        "save_pid",
        "enable_each_rank_log",
        "autotuning",
        "elastic_training",
        "bind_cores_to_rank",
        "bind_core_list",
        "ssh_port",
        "venv_script",
        "log_level",
        "quiet",
    ],
    "torchrun": [
        "nnodes",
        "nproc_per_node",
        "rdzv_backend",
        "rdzv_endpoint",
        "rdzv_id",
        "rdzv_conf",
        "standalone",
        "max_restarts",
        "monitor_interval",
        "start_method",
        "event_log_handler",
        "role",
        "module",
        "no_python",
        "run_path",
        "log_dir",
        "redirects",
        "tee",
        "node_rank",
        "master_addr",
        "master_port",
        "local_addr",
        "logs_specs",
        "numa_binding",
    ],
    # click takes whole names only
    "colossalai": [
        "host",
        "hostfile",
        "include",
        "exclude",
        "num_nodes",
        "nproc_per_node",
        "master_port",
        "master_addr",
        "extra_launch_args",
        "ssh_port",
    ],
    "composer": [
        "nproc",
        "stdout",
        "stderr",
        "verbose",
        "module_mode",
        "command_mode",
        "world_size",
        "base_rank",
        "node_rank",
        "master_addr",
        "master_port",
    ],
}
#: Options of srun that take a separate value in their short form (srun(1) of Slurm 22.05).
SRUN_SHORT = frozenset("ABCDFGJLMNSTWbcdeimnopqrtwx")
#: Options of srun that take no value, or only one after `=` (srun of Slurm 22.05 to 26.05).
SRUN_SWITCHES = frozenset(
    {"async", "bcast", "compress", "contiguous", "disable_status", "exact", "exclusive",
     "external", "help", "hold", "immediate", "kill_on_bad_exit", "label", "multi_prog", "nice",
     "no_allocate",
     "no_kill", "oom_kill_step", "overcommit", "overlap", "oversubscribe", "parsable",
     "preserve_env", "propagate", "pty", "quiet", "quit_on_interrupt", "reboot", "resv_ports",
     "send_libs", "spread_job", "spread_segments", "stepmgr", "test_only", "unbuffered", "usage",
     "use_min_nodes", "verbose", "version", "wait_all_nodes", "wait_for_children", "x11",
     # pyxis 0.9 to 0.20 args.c
     "container_mount_home", "no_container_mount_home", "container_remap_root",
     "no_container_remap_root", "container_entrypoint", "no_container_entrypoint",
     "container_entrypoint_log", "container_writable", "container_readonly"},
)  # fmt: skip
#: The same for sbatch, where `-W` and `--wait` take none, and `-a` lists the tasks of an array
#: (sbatch of Slurm 22.05 to 26.05).
SBATCH_SHORT = SRUN_SHORT - {"W"} | {"a"}
SBATCH_SWITCHES = SRUN_SWITCHES | {
    "get_user_env", "ignore_pbs", "no_requeue", "requeue", "wait",
}  # fmt: skip
#: Options of mpirun with more than one value.
MPI_TWO = frozenset({"mca", "gmca"})
MPI_SWITCHES = frozenset(
    [
        "allow_run_as_root",
        "oversubscribe",
        "nooversubscribe",
        "tag_output",
        "bynode",
        "byslot",
        "report_bindings",
        "display_map",
        "display_allocation",
        "v",
        "q",
        "bind_to_core",
        "bind_to_none",
        # of MPICH's Hydra
        "genvall",
        "genvnone",
        "envall",
        "envnone",
        "use_hwthread_cpus",
    ],
)
#: The same for `flux run` (flux-core 0.60 to 0.88 bindings/python/flux/cli/base.py).
FLUX_SHORT = frozenset("BNScgnoqt")
FLUX_SWITCHES = frozenset(
    {"unbuffered", "label_io", "dry_run", "quiet", "list_plugins", "debug_emulate", "exclusive",
     "verbose", "wait", "watch", "progress", "jps", "help"}
)  # fmt: skip
#: And for jsrun (the table of options in OLCF's guide to Summit; IBM JSM 10.03 jsrun(1)).
JSRUN_SHORT = frozenset("AEFHIKLMNPTUabcdeghklmnoprtuy")
JSRUN_SWITCHES = frozenset({"immediate", "help", "version", "stdio_stdin_none"})
#: And for aprun (aprun(1) of ALPS 5.2 and 6.6), whose long options may begin with one `-`.
APRUN_SWITCHES = frozenset({"b", "B", "q", "T", "ss", "batch_args", "reserve", "help", "version"})
#: And for horovodrun (Horovod 0.19 to 0.28 runner/launch.py).
HOROVOD_SWITCHES = frozenset(
    {"v", "version", "h", "help", "cb", "check_build", "disable_cache", "verbose",
     "hierarchical_allreduce", "no_hierarchical_allreduce", "hierarchical_allgather",
     "no_hierarchical_allgather", "torus_allreduce", "no_torus_allreduce", "autotune",
     "no_autotune", "timeline_mark_cycles", "no_timeline_mark_cycles", "no_stall_check",
     "stall_check", "mpi_threads_disable", "no_mpi_threads_disable", "tcp", "log_with_timestamp",
     "log_without_timestamp", "prefix_timestamp", "prefix_output_with_timestamp",
     "log_hide_timestamp", "no_log_hide_timestamp", "gloo", "mpi", "jsrun"}
)  # fmt: skip
