"""More whole logs: other launchers and schedulers, appended runs, what healed, unlabelled ranks.

Over 400 lines because it is a table of logs.
"""

from __future__ import annotations

from tests.support.wholelogs import (
    BARRIER,
    CLEAN,
    FORWARD,
    KILLED,
    LOGS,
    LOOP,
    MAIN,
    SITE,
    UNKNOWN,
    USER,
    agent,
    ds_end,
    key_error,
    mixed,
    node,
    one_dead,
    oom,
    remote,
    start,
    store_gone,
    tagged,
    terminated,
    traceback,
    train,
    watchdog,
    whole,
)

__all__ = ["LOGS"]

GOOD_END = "{'train_runtime': 7213.1, 'train_samples_per_second': 91.2, 'train_steps_per_second': 0.7, 'train_loss': 1.31, 'epoch': 3.0}\n"
IMPORT = ("/home/me/train.py", 3, "<module>", "from transformers import Trainer")


def bars(first: int, last: int) -> str:
    """A bar that overwrites itself on one line."""
    return "".join(
        f"\r {n // 50:2}%|#    | {n}/5000 [{n // 3600}:{n // 60 % 60:02}:{n % 60:02}<1:20:14,  1.03it/s]"
        for n in range(first, last)
    )


@whole(USER)
def unlabelled_tracebacks_of_four_ranks_interleaved() -> str:
    return (
        start(4)
        + bars(1, 600)
        + mixed([key_error(n, "") for n in range(4)], 7)
        + agent(range(4), 2, 1)
    )


@whole(USER)
def error_behind_a_bar_that_overwrites_itself() -> str:
    return (
        start(8, "deepspeed")
        + bars(1, 4000)
        + key_error(5, "")
        + mixed([remote(n, tag="") for n in (0, 1, 2, 3, 4, 6, 7)])
        + ds_end(8, 1)
    )


@whole("nccl-timeout-watchdog")
def logged_exceptions_that_the_script_skips_then_a_hang() -> str:
    skipped = "".join(
        f"[2026-05-06 07:0{n % 10}:01,001] [ERROR] [data.py:61:__getitem__] cannot decode sample {n}\n"
        + traceback(
            "PIL.UnidentifiedImageError: cannot identify image file '/data/img.jpg'",
            [
                ("/home/me/data.py", 55, "__getitem__", "image = Image.open(path)"),
                (f"{SITE}/PIL/Image.py", 3498, "open", "raise UnidentifiedImageError(msg)"),
            ],
        )
        + train(20 * n, 20 * n + 20)
        for n in range(12)
    )
    return (
        start(16)
        + skipped
        + train(240, 500)
        + mixed([watchdog(n, "09:18:09") for n in range(1, 16)])
        + agent(range(8), 3, -6, "09:18:12")
    )


@whole(USER)
def out_of_memory_that_the_trainer_survived_then_own_error() -> str:
    caught = "[2026-05-06 07:03:01,001] [WARNING] [train.py:90:main] CUDA out of memory. Tried to allocate 1.2 GiB: skipping this batch\n"
    return (
        start(8)
        + train(1, 50)
        + caught
        + train(50, 700)
        + mixed([key_error(n) for n in range(8)])
        + agent(range(8), 2, 1)
    )


@whole("launcher-killed", "job-cancelled", UNKNOWN)
def sigterm_from_outside() -> str:
    return start(8) + train(1, 400) + terminated()


@whole("terminal-closed")
def terminal_closed() -> str:
    return (
        start(8)
        + train(1, 400)
        + terminated()
        .replace("Signals.SIGTERM", "Signals.SIGHUP")
        .replace("got signal: 15", "got signal: 1")
        .replace("closing signal SIGTERM", "closing signal SIGHUP")
    )


@whole("disk-full")
def quota_in_a_safetensors_checkpoint() -> str:
    quota = traceback(
        'safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 122, kind: FilesystemQuotaExceeded, message: "Disk quota exceeded" })',
        [
            MAIN,
            LOOP,
            (f"{SITE}/transformers/trainer.py", 3910, "_save", "self.model.save_pretrained("),
            (
                f"{SITE}/safetensors/torch.py",
                286,
                "save_file",
                "serialize_file(_flatten(tensors), filename, metadata=metadata)",
            ),
        ],
        "[rank0]: ",
    )
    return (
        start(8)
        + train(1, 501)
        + quota
        + mixed([store_gone(n, "07:28:10") for n in range(1, 8)])
        + agent(range(8), 0, 1)
    )


@whole("storage-io-error")
def stale_file_handle_on_rank_12() -> str:
    stale = traceback(
        "OSError: [Errno 116] Stale file handle: '/nfs/data/part-3.bin'",
        [MAIN, LOOP, ("/home/me/data.py", 55, "__getitem__", "return self.file.read(n)")],
        "[rank12]: ",
    )
    return start(16) + train(1, 800) + stale + one_dead(watchdog, 16, 12, 1)


@whole("path-not-writable")
def no_permission_to_write_the_output() -> str:
    denied = traceback(
        "PermissionError: [Errno 13] Permission denied: '/data/out/checkpoint-500'",
        [
            MAIN,
            LOOP,
            (
                f"{SITE}/transformers/trainer.py",
                3301,
                "_save_checkpoint",
                "os.makedirs(output_dir, exist_ok=True)",
            ),
            ("/usr/lib/python3.11/os.py", 225, "makedirs", "mkdir(name, mode)"),
        ],
        "[rank0]: ",
    )
    return (
        start(8)
        + train(1, 501)
        + denied
        + mixed([watchdog(n) for n in range(1, 8)])
        + agent(range(8), 0, 1)
    )


@whole("deepspeed-missing")
def deepspeed_missing_on_one_node() -> str:
    missing = "/opt/other/bin/python: Error while finding module specification for 'deepspeed.launcher.launch' (ModuleNotFoundError: No module named 'deepspeed')\n"
    late = traceback(
        "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 8/16 clients joined.",
        [
            MAIN,
            (
                f"{SITE}/deepspeed/comm/comm.py",
                801,
                "init_distributed",
                "cdb = TorchBackend(dist_backend, timeout, init_method, rank, world_size)",
            ),
            (
                f"{SITE}/torch/distributed/rendezvous.py",
                189,
                "_create_c10d_store",
                "return TCPStore(",
            ),
        ],
    )
    return (
        node("gpu-0", start(8, "pdsh"))
        + node("gpu-1", missing)
        + "pdsh@gpu-0: gpu-1: ssh exited with exit code 1\n"
        + node("gpu-0", late * 2 + ds_end(8, 1, "07:31:12"))
        + "pdsh@gpu-0: gpu-0: ssh exited with exit code 1\n"
    )


@whole("hostfile-or-ssh-problem")
def ssh_refused() -> str:
    return (
        "[2026-05-06 07:00:01,102] [INFO] [runner.py:607:main] cmd = pdsh -S -f 1024 -w gpu-0,gpu-1 export PYTHONPATH=/home/me; cd /home/me; /opt/env/bin/python -u -m deepspeed.launcher.launch --node_rank=%n train.py\ngpu-1: ssh: connect to host gpu-1 port 22: Connection refused\npdsh@gpu-0: gpu-1: ssh exited with exit code 255\n"
        + node("gpu-0", start(8, "pdsh"))
    )


@whole("cuda-toolkit-missing")
def build_of_an_op_without_toolkit() -> str:
    frames = [
        MAIN,
        ("/home/me/train.py", 101, "main", "opt = DeepSpeedCPUAdam(model.parameters())"),
        (
            f"{SITE}/deepspeed/ops/op_builder/builder.py",
            540,
            "load",
            "return self.jit_load(verbose)",
        ),
        (
            f"{SITE}/torch/utils/cpp_extension.py",
            2557,
            "_join_cuda_home",
            "raise OSError('CUDA_HOME environment variable is not set. '",
        ),
    ]
    return (
        start(8, "deepspeed")
        + mixed(
            [
                traceback(
                    "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
                    frames,
                    f"[rank{n}]: ",
                )
                for n in range(8)
            ]
        )
        + "Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x7f1>\n"
        + traceback(
            "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
            [
                (
                    f"{SITE}/deepspeed/ops/adam/cpu_adam.py",
                    102,
                    "__del__",
                    "self.ds_opt_adam.destroy_adam(self.opt_id)",
                )
            ],
        )
        + ds_end(8, 1)
    )


@whole(USER)
def mpi_abort_after_own_error() -> str:
    own = traceback(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x512 and 768x768)",
        [
            MAIN,
            ("/home/me/train.py", 77, "main", "y = net(x)"),
            (
                f"{SITE}/torch/nn/modules/linear.py",
                125,
                "forward",
                "return F.linear(input, self.weight, self.bias)",
            ),
        ],
    )
    end = '--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n--------------------------------------------------------------------------\nprterun has exited due to process rank 3 with PID 4003 on node gpu-0 calling "abort". This may have caused other processes in the application to be terminated by signals sent by prterun\n'
    return (
        mixed([tagged(start(8), f"[1,{n}]<stderr>:") for n in range(2)])
        + tagged(own, "[1,3]<stderr>:")
        + end
    )


@whole("gpu-oom")
def restarts_exhausted_by_out_of_memory() -> str:
    text = start(8)
    for left in (2, 1, 0):
        text += (
            train(1, 20)
            + oom(4)
            + mixed([store_gone(n) for n in range(4)])
            + "\n".join(agent(range(8), 4, 1).splitlines()[:8])
            + "\n"
        )
        if left:
            text += (
                f"W0506 07:09:12.900000 140 torch/distributed/elastic/agent/server/api.py:919] [default] Worker group FAILED. {left}/2 attempts left; will restart worker group\n"
                + start(8)
            )
    return text + agent(range(8), 4, 1)


@whole("job-time-limit")
def time_limit_and_then_what_the_ranks_say() -> str:
    return (
        start(8)
        + train(1, 900)
        + "slurmstepd: error: *** JOB 4711 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 DUE TO TIME LIMIT ***\nslurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 DUE TO TIME LIMIT ***\n"
        + terminated()
        + mixed([remote(n) for n in range(8)])
        + "srun: error: gpu-1: task 1: Killed\nsrun: error: gpu-0: task 0: Exited with exit code 1\n"
    )


@whole("training-diverged")
def loss_is_nan_to_the_end() -> str:
    nan = "".join(
        f"{{'loss': {'nan' if n else '14.2'}, 'grad_norm': nan, 'learning_rate': 1.9e-05, 'epoch': {1 + n / 100:.2f}}}\n"
        for n in range(60)
    )
    return start(8) + train(1, 900) + nan + GOOD_END.replace("1.31", "nan")


@whole("cuda-kernel-failed", "gpu-hardware-fault", UNKNOWN)
def illegal_memory_access_on_rank_3() -> str:
    bad = traceback(
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        [
            MAIN,
            LOOP,
            FORWARD,
            (
                f"{SITE}/flash_attn/flash_attn_interface.py",
                90,
                "_flash_attn_forward",
                "out, lse = flash_attn_gpu.fwd(",
            ),
        ],
        "[rank3]: ",
    )
    dog = "[rank3]:[E506 07:09:10.412345678 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
    return start(8) + train(1, 30) + bad + dog + one_dead(remote, 8, 3, -6)


@whole(USER)
def warnings_of_bitsandbytes_then_own_error() -> str:
    warn = f'{SITE}/bitsandbytes/cextension.py:34: UserWarning: The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are unavailable.\n  warn("The installed version of bitsandbytes was compiled without GPU support. "\n'
    return warn * 8 + start(8) + train(1, 300) + key_error(6) + one_dead(remote, 8, 6, 1)


@whole(USER)
def srun_ranks_of_which_one_raises() -> str:
    own = traceback(
        "ValueError: Unknown split 'valid'. Should be one of ['train', 'test'].",
        [
            MAIN,
            ("/home/me/train.py", 60, "main", "data = load('valid')"),
            ("/home/me/data.py", 19, "load", "raise ValueError("),
        ],
        "11: ",
    )
    return (
        mixed([tagged(start(2), f"{n:2}: ") for n in range(16)])
        + own
        + "srun: error: gpu-1: task 11: Exited with exit code 1\nsrun: Terminating StepId=4711.0\n 0: slurmstepd: error: *** STEP 4711.0 ON gpu-0 CANCELLED AT 2026-05-06T07:09:12 ***\nsrun: error: gpu-0: tasks 0-7: Terminated\nsrun: error: gpu-1: tasks 8-10,12-15: Terminated\nsrun: Force Terminated StepId=4711.0\n"
    )


@whole("host-oom-killed")
def lsf_memory_limit() -> str:
    return (
        start(8)
        + train(1, 40)
        + agent(range(8), 3, -9)
        + "\n------------------------------------------------------------\nSender: LSF System <lsfadmin@gpu-0>\nSubject: Job 991: <train> in cluster <lab> Exited\n\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 137.\n"
    )


@whole("job-time-limit")
def pbs_walltime() -> str:
    return (
        start(8)
        + train(1, 900)
        + "=>> PBS: job killed: walltime 86432 exceeded limit 86400\n"
        + terminated()
    )


@whole("host-oom-killed")
def pod_out_of_memory() -> dict[str, str]:
    pod = "Name:             worker-0\nContainers:\n  train:\n    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n    Restart Count:  0\n"
    return {
        "describe-worker-0.txt": pod,
        "worker-0.log": start(8) + train(1, 90),
        "worker-1.log": start(8)
        + mixed([remote(n) for n in range(8, 16)])
        + agent(range(8, 16), 9, 1),
    }


@whole(CLEAN, UNKNOWN)
def log_that_just_ends() -> str:
    return start(8, "torchrun") + train(1, 731)


@whole("interrupted-by-user")
def appended_runs_of_which_the_last_is_interrupted_at_its_import() -> str:
    first = train(1, 30) + key_error(0, "")
    second = traceback(
        "KeyboardInterrupt",
        [
            IMPORT,
            (
                f"{SITE}/transformers/__init__.py",
                27,
                "<module>",
                "from . import dependency_versions_check",
            ),
            (
                f"{SITE}/torch/__init__.py",
                2108,
                "<module>",
                "from torch import _meta_registrations",
            ),
        ],
    )
    return first + "\n" + second


@whole("gpu-oom")
def appended_runs_of_which_the_first_died_at_its_import() -> str:
    first = traceback(
        "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
        [
            IMPORT,
            (f"{SITE}/torch/__init__.py", 367, "<module>", "from torch._C import *  # noqa: F403"),
        ],
    )
    return first + train(1, 200) + oom(0).replace("[rank0]: ", "")


@whole(USER)
def ray_workers() -> str:
    own = traceback(
        "KeyError: 'prompt'",
        [("/home/me/train.py", 96, "collate", 'row["prompt"]')],
        "(RayTrainWorker pid=4003, ip=10.0.0.4) ",
    )
    task = (
        "ray.exceptions.RayTaskError(KeyError): ray::_Inner.train() (pid=4003, ip=10.0.0.4, actor_id=7, repr=TorchTrainer)\n"
        '  File "/home/me/train.py", line 96, in collate\n    row["prompt"]\n'
        "KeyError: 'prompt'\n"
    )
    dead = (
        "(RayTrainWorker pid=4004, ip=10.0.0.4) "
        '[rank1]:[W506 07:09:11.212345678 ProcessGroupNCCL.cpp:1659] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe\n'
    )
    return tagged(start(4), "(RayTrainWorker pid=4003, ip=10.0.0.4) ") + own + dead + task


@whole("gpu-oom")
def pods_of_two_nodes_with_prefixes() -> str:
    return mixed(
        [
            tagged(start(8) + oom(3) + agent(range(8), 3, 1), "[pod/worker-0/train] "),
            tagged(
                start(8) + remote(12) + store_gone(13) + agent(range(8, 16), 12, 1, "07:09:20"),
                "[pod/worker-1/train] ",
            ),
        ],
        3,
    )


@whole("nccl-duplicate-gpu")
def duplicate_gpu() -> str:
    error = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.21.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"
    return (
        start(4)
        + mixed([traceback(error, [MAIN, BARRIER], f"[rank{n}]: ") for n in range(4)])
        + agent(range(4), 1, 1)
    )


@whole("gpu-oom")
def timeout_after_an_oom_that_one_rank_survived_by_hanging() -> str:
    return (
        start(8)
        + train(1, 30)
        + oom(2)
        + mixed([watchdog(n, "07:19:09") for n in range(8) if n != 2])
        + agent(range(8), 4, -6, "07:19:12")
    )


@whole(*KILLED)
def killed_loader_of_a_single_node_bash() -> str:
    return (
        start(1)
        + bars(1, 900)
        + "run.sh: line 12:  4711 Killed                  python train.py --config a.yaml\n"
    )


@whole("rendezvous-timeout")
def node_that_never_joins() -> str:
    late = traceback(
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        [
            ("/opt/env/bin/torchrun", 8, "<module>", "sys.exit(main())"),
            (
                f"{SITE}/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py",
                691,
                "run",
                "raise RendezvousTimeoutError",
            ),
        ],
    )
    return (
        "".join(tagged(late, f"{n}: ") for n in range(3))
        + "srun: error: gpu-0: task 0: Exited with exit code 1\nsrun: error: gpu-1: task 1: Exited with exit code 1\nsrun: error: gpu-2: task 2: Exited with exit code 1\n"
    )


@whole("script-option-refused")
def unknown_option_on_all_ranks() -> str:
    usage = "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rate 1e-4\n"
    return start(8) + usage * 8 + agent(range(8), 0, 2)


@whole(CLEAN)
def store_warnings_at_the_end_of_a_good_run() -> str:
    return (
        start(16)
        + train(1, 300)
        + GOOD_END
        + mixed([store_gone(n, "09:12:11") for n in range(1, 16)])
    )


@whole("hub-unreachable")
def hub_unreachable_offline_node() -> str:
    frames = [
        MAIN,
        (f"{SITE}/transformers/utils/hub.py", 446, "cached_file", "raise EnvironmentError("),
    ]
    text = traceback(
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection or see how to run the library in offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'.",
        frames,
    )
    return (
        start(8)
        + "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/org/model (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f1>: Failed to establish a new connection: [Errno 101] Network is unreachable'))\"), '(Request ID: 7)')' thrown while requesting HEAD https://huggingface.co/org/model/resolve/main/config.json\n"
        + mixed([tagged(text, f"[rank{n}]: ") for n in range(8)])
        + agent(range(8), 2, 1)
    )
