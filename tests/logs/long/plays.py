"""The scenarios of the long logs: a real run that trains, and then what happens to it.

The label of each is written here, before any tool reads the log.

Over 400 lines because it is a table: each play with all that makes it fail.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import scripts
from scenarios import _bench, slurm
from scenarios._bench import RUN, Bench

RANKS = 4
TORCHRUN = ("-m", "torch.distributed.run", f"--nproc-per-node={RANKS}")
ELASTIC = ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:29601", "--monitor-interval=0.3")
_bench.REGISTRY.clear()
scenario = _bench.scenario
KILLED = ("rank-killed", "host-oom-killed")
USER, CRASH, CLEAN = "user-code", "native-crash", "none"


def beside(bench: Bench, name: str) -> Path:
    """Where a file that is kept beside the log goes."""
    folder = bench.log.parent / "beside"
    folder.mkdir(exist_ok=True)
    return folder / name


def until(bench: Bench, pattern: str, seconds: float = 200) -> None:
    """Waits for words in the log."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if re.search(pattern.encode(), bench.log.read_bytes()):
            return
        time.sleep(0.2)
    raise AssertionError(pattern)


def torchrun(bench: Bench, script: str, *launch: str, deadline: float = 220, **env: str) -> int:
    bench.write("train.py", script)
    return bench.run([bench.python, *TORCHRUN, *launch, "train.py"], env={**env}, deadline=deadline)


def ds(bench: Bench, script: str, *, config: str = "", name: str = "train.py", **env: str) -> int:
    bench.write(name, script)
    bench.write("ds_config.json", config or scripts.config())
    argv = [bench.python, "/opt/train/bin/deepspeed", "--num_accelerators", str(RANKS), name]
    return bench.run(argv, env=env, deadline=220)


def struck(
    bench: Bench,
    argv: Sequence[str],
    pattern: str,
    number: signal.Signals,
    **env: str,
) -> int:
    """A run whose group gets a signal once its log shows a pattern."""
    child = bench.start([bench.python, *argv], env=env)
    until(bench, pattern)
    os.killpg(child.pid, number)
    try:
        return child.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.wait()


def on(rank: int, step: int, code: str) -> str:
    """Code that runs on one rank at one step."""
    return f"if rank == {rank} and step == {step}:\n" + "\n".join(
        "    " + row for row in code.split("\n")
    )


# ---------------------------------------------------------------- torchrun, DDP


@scenario(USER, "KeyError")
def torchrun_keyerror(bench: Bench) -> int:
    """One rank looks up a column that the batch does not have."""
    return torchrun(bench, scripts.ddp(step=on(2, 40, 'lookup(x, "labels")')))


@scenario(CRASH, "SIGSEGV")
def torchrun_segfault(bench: Bench) -> int:
    """One rank reads address 0 in native code."""
    return torchrun(bench, scripts.ddp(step=on(1, 40, "ctypes.string_at(0)")))


@scenario(CRASH, "SIGSEGV")
def torchrun_segfault_faulthandler(bench: Bench) -> int:
    """The same with Python's fault handler, which prints the stacks of all threads."""
    step = on(3, 40, "ctypes.string_at(0)")
    return torchrun(bench, scripts.ddp(step=step), PYTHONFAULTHANDLER="1")


@scenario(CRASH, "SIGABRT")
def torchrun_abort(bench: Bench) -> int:
    """One rank aborts."""
    return torchrun(bench, scripts.ddp(step=on(3, 40, "os.abort()")))


@scenario(CRASH, "SIGBUS")
def torchrun_bus_error(bench: Bench) -> int:
    """A mapped data file is made shorter while it is read."""
    code = (
        'open("/tmp/run/shard.bin", "wb").write(bytes(1 << 20))\n'
        'view = mmap.mmap(os.open("/tmp/run/shard.bin", os.O_RDWR), 1 << 20)\n'
        'os.truncate("/tmp/run/shard.bin", 0)\nview[4096]'
    )
    return torchrun(bench, scripts.ddp(step=on(1, 40, code)))


@scenario(KILLED[0], "SIGKILL", also_ok=KILLED)
def torchrun_sigkill(bench: Bench) -> int:
    """One rank gets SIGKILL; the log does not show from whom."""
    return torchrun(bench, scripts.ddp(step=on(1, 40, "os.kill(os.getpid(), signal.SIGKILL)")))


@scenario("unrecognised", "exitcode  : 3", also_ok=(USER,))
def torchrun_silent_exit(bench: Bench) -> int:
    """One rank exits with status 3 and says nothing."""
    return torchrun(bench, scripts.ddp(step=on(1, 40, "os._exit(3)")))


@scenario("nccl-timeout-watchdog", "Timed out waiting")
def torchrun_gloo_timeout(bench: Bench) -> int:
    """One rank sleeps through the time limit of a collective."""
    return torchrun(bench, scripts.ddp(timeout=12, step=on(1, 40, "time.sleep(90)")))


@scenario(USER, "(?i)mismatch", also_ok=("unrecognised",))
def torchrun_collectives_differ(bench: Bench) -> int:
    """One rank gives a collective a tensor of another shape; torch's own check is on."""
    code = "if step == 40:\n    dist.all_reduce(torch.ones(8 if rank == 1 else 4))"
    return torchrun(bench, scripts.ddp(step=code), TORCH_DISTRIBUTED_DEBUG="DETAIL")


@scenario(USER, "FileNotFoundError")
def torchrun_missing_shard(bench: Bench) -> int:
    """One rank does not find its data file."""
    code = on(3, 40, 'open(f"/data/tokens/shard_{rank:05d}.bin", "rb")')
    return torchrun(bench, scripts.ddp(step=code))


FLAKY = "if attempt == 0:\n" + "\n".join(
    "    " + row for row in on(2, 30, "os.kill(os.getpid(), signal.SIGKILL)").split("\n")
)


@scenario(USER, "KeyError")
def elastic_restart_then_keyerror(bench: Bench) -> int:
    """The first attempt is killed, the second trains on and dies of a KeyError."""
    step = FLAKY + "\n" + on(1, 45, 'lookup(x, "labels")').replace("if ", "if attempt == 1 and ", 1)
    return torchrun(bench, scripts.ddp(step=step), *ELASTIC, "--max-restarts=1")


@scenario(CLEAN, "training finished")
def elastic_restart_heals(bench: Bench) -> int:
    """The first attempt fails, the second trains to the end."""
    step = on(2, 30, 'raise ValueError("shard 3 is locked by another process")')
    step = step.replace("if ", "if attempt == 0 and ", 1)
    return torchrun(bench, scripts.ddp(step=step), *ELASTIC, "--max-restarts=2")


@scenario(CRASH, "SIGSEGV")
def elastic_restarts_exhausted(bench: Bench) -> int:
    """Every attempt ends in the same crash."""
    step = on(1, 25, "ctypes.string_at(0)")
    return torchrun(bench, scripts.ddp(step=step), *ELASTIC, "--max-restarts=2")


@scenario("rendezvous-timeout", "(?i)rendezvous")
def rendezvous_second_node_never_comes(bench: Bench) -> int:
    """A stage trains to its end; the next is to run on two nodes, of which one never comes."""
    torchrun(bench, scripts.ddp(steps=40))
    bench.write("train.py", scripts.ddp())
    argv = [
        "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={RANKS}", "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:29602", "--rdzv-conf=join_timeout=8,timeout=8", "train.py",
    ]  # fmt: skip
    return bench.run([bench.python, *argv], deadline=120)


@scenario("job-cancelled", "SIGTERM|signal: 15", also_ok=("unrecognised", "job-preempted"))
def torchrun_sigterm_with_grace(bench: Bench) -> int:
    """The launcher gets SIGTERM; the ranks save and leave. Who sent it is not in the log."""
    before = (
        "def leave(number, frame):\n"
        '    log.warning("signal %d: saving a checkpoint before leaving", number)\n'
        "    time.sleep(0.5)\n"
        '    log.info("checkpoint saved to /ckpt/last")\n'
        "    os._exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)"
    )
    bench.write("train.py", scripts.ddp(before=before, steps=4000))
    argv = [*TORCHRUN, "train.py"]
    child = bench.start([bench.python, *argv])
    until(bench, "step 40/")
    os.kill(child.pid, signal.SIGTERM)
    return child.wait(60)


@scenario("terminal-closed", "SIGHUP|signal: 1")
def torchrun_hangup(bench: Bench) -> int:
    """The terminal of the launcher is closed."""
    bench.write("train.py", scripts.ddp(steps=4000))
    return struck(bench, [*TORCHRUN, "train.py"], "step 40/", signal.SIGHUP)


@scenario("interrupted-by-user", "SIGINT|signal: 2|KeyboardInterrupt")
def torchrun_ctrl_c(bench: Bench) -> int:
    """Ctrl-C in the terminal."""
    bench.write("train.py", scripts.ddp(steps=4000))
    return struck(bench, [*TORCHRUN, "train.py"], "step 40/", signal.SIGINT)


@scenario("port-in-use", "EADDRINUSE")
def torchrun_port_in_use(bench: Bench) -> int:
    """A stage trains to its end; the next meets its own port taken."""
    torchrun(bench, scripts.ddp(steps=40))
    code = "import socket,time\ns=socket.socket()\ns.bind(('0.0.0.0',29577))\ns.listen()\ntime.sleep(90)"
    bench.start([bench.python, "-c", code], quiet=True)
    time.sleep(2)
    return torchrun(bench, scripts.ddp(), "--master-port=29577")


RETRY = """\
if step == 12:
    import urllib.request
    for number in range(1, 4):
        try:
            urllib.request.urlopen("http://127.0.0.1:9/api/models", timeout=2)
        except OSError as error:
            log.warning("upload of metrics failed: %s. Retrying in 1s [Retry %d/5].", error, number)
    log.info("upload of metrics succeeded")"""


@scenario(USER, "ZeroDivisionError")
def retries_healed_then_own_error(bench: Bench) -> int:
    """Connections are retried and the run goes on; long afterwards the script fails of itself."""
    return torchrun(bench, scripts.ddp(step=RETRY + "\n" + on(2, 45, "1 / (step - 45)")))


@scenario(CLEAN, "step 40/")
def healthy_still_running(bench: Bench) -> int:
    """The log of a run that is still training, read in the midst of it."""
    bench.write("train.py", scripts.ddp(steps=4000))
    child = bench.start([bench.python, *TORCHRUN, "train.py"])
    until(bench, "step 60/")
    kept = bench.log.read_bytes()
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    subprocess.run(["pkill", "-9", "-f", "train.py"], check=False)  # in this namespace alone
    time.sleep(1)
    bench.log.write_bytes(kept)
    return 0


FRIGHT = """\
if step == 20:
    warnings.warn("CUDA initialization: Found no NVIDIA driver on your system; metrics of the GPU are off")
    try:
        torch.empty(1 << 45)
    except RuntimeError:
        log.exception("the large buffer does not fit, going on with the small one")
    try:
        lookup(x, "weights")
    except KeyError:
        log.error("no weights in this batch, every sample counts as 1", exc_info=True)
if step == 30:
    log.warning("loss spike: 9.31, gradient norm 88.1; skipping the batch")
    os.system("kill -9 $$")
    log.error("helper process 811 was Killed, starting it again")"""


@scenario(CLEAN, "training finished")
def healthy_frightening_warnings(bench: Bench) -> int:
    """Handled exceptions with their tracebacks, warnings, a killed helper: it trains to the end."""
    return torchrun(bench, scripts.ddp(step=FRIGHT))


@scenario(CLEAN, "training finished")
def healthy_import_warnings(bench: Bench) -> int:
    """Modules that are optional are missing, and it says so; the run trains to its end."""
    before = (
        "for name in ('flash_attn', 'apex', 'xformers'):\n"
        "    try:\n        __import__(name)\n    except ImportError as error:\n"
        '        warnings.warn(f"{name} is not available, falling back to eager: {error}")\n'
        '        log.warning("ImportError: %s", error)'
    )
    return torchrun(bench, scripts.ddp(before=before))


def _logdir(bench: Bench, code: str) -> int:
    """Each rank writes to files of its own; the launcher's words go elsewhere."""
    bench.write("train.py", scripts.ddp(step=code))
    argv = [*TORCHRUN, "--log-dir=/tmp/run/logs", "--redirects=3", "train.py"]
    done = bench.run([bench.python, *argv], deadline=220)
    beside(bench, "launcher.log").write_bytes(bench.log.read_bytes())
    for path in sorted(Path("/tmp/run/logs").rglob("std*.log")):
        parts = path.parts[-3:]
        if path.stat().st_size:
            to = beside(bench, "x").parent / "/".join(parts)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
    return done


@scenario(USER, "ChildFailedError")
def files_of_ranks_own_error(bench: Bench) -> int:
    """`torchrun --log-dir`: one file a rank, the launcher's apart; a ValueError on one rank."""
    return _logdir(bench, on(2, 40, 'raise ValueError(f"sample {step} has 0 tokens")'))


@scenario(CRASH, "ChildFailedError")
def files_of_ranks_segfault(bench: Bench) -> int:
    """The same files; a rank crashes, which only the launcher reports."""
    return _logdir(bench, on(1, 40, "ctypes.string_at(0)"))


@scenario(CLEAN, "training finished")
def appended_died_then_healthy(bench: Bench) -> int:
    """Two runs in one log: the first died of a KeyError, the second trained to its end."""
    torchrun(bench, scripts.ddp(step=on(2, 30, 'lookup(x, "labels")')))
    return torchrun(bench, scripts.ddp(steps=60))


@scenario(CRASH, "SIGABRT")
def appended_healthy_then_died(bench: Bench) -> int:
    """Two runs in one log: the first trained to its end, the second aborts."""
    torchrun(bench, scripts.ddp(steps=50))
    return torchrun(bench, scripts.ddp(step=on(1, 30, "os.abort()")))


@scenario("training-diverged", "loss nan")
def loss_is_nan_and_goes_on(bench: Bench) -> int:
    """The loss becomes NaN; the run logs it and goes on to the end."""
    code = "if step == 20:\n    model.module.body[0].weight.data.fill_(float('nan'))"
    return torchrun(bench, scripts.ddp(step=code))


@scenario("weights-file-corrupt", "(?i)pickle|zip|archive")
def resume_from_truncated_checkpoint(bench: Bench) -> int:
    """A stage trains to its end; the next resumes from a file that was cut off."""
    save = "if rank == 0 and step == 38:\n    torch.save(model.state_dict(), '/tmp/run/last.pt')\n"
    save += "    os.truncate('/tmp/run/last.pt', 1500)"
    torchrun(bench, scripts.ddp(steps=40, step=save))
    return torchrun(
        bench, scripts.ddp(after="model.load_state_dict(torch.load('/tmp/run/last.pt'))")
    )


@scenario("open-files-limit", "Too many open files")
def too_many_open_files(bench: Bench) -> int:
    """A leak of descriptors meets the limit after many steps."""
    before = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\nkept = []"
    step = "if rank == 1:\n    kept += [open('/dev/zero', 'rb') for _ in range(3)]"
    return torchrun(bench, scripts.ddp(before=before, step=step))


@scenario("host-oom-killed", "SIGKILL")
def out_of_memory_in_cgroup(bench: Bench) -> int:
    """A rank grows until the kernel kills it in its control group; dmesg is beside the log."""
    group = Path(f"/sys/fs/cgroup/memory/provoke-{os.getpid()}")
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text("2200M")
    code = "kept = globals().setdefault('kept', [])\nif rank == 1 and step > 30:\n"
    code += "    kept.append(torch.ones(160 << 20, dtype=torch.int8))"
    bench.write("train.py", scripts.ddp(steps=400, step=code))
    enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    argv = ["sh", "-c", enter, "sh", bench.python, *TORCHRUN, "train.py"]
    done = bench.run(argv, deadline=220)
    text = subprocess.run(["dmesg", "-T"], capture_output=True, text=True, check=False).stdout
    rows = text.splitlines()
    first = [n for n, row in enumerate(rows) if "invoked oom-killer" in row]
    own = [row for row in rows[first[-1] :] if re.search("(?i)oom|killed process", row)]
    beside(bench, "dmesg.txt").write_text("\n".join(own) + "\n")
    return done


@scenario("shm-too-small", "(?i)shared memory|bus error")
def shared_memory_is_too_small(bench: Bench) -> int:
    """A stage trains to its end; the next has workers and larger samples, in 1 MiB of /dev/shm."""
    torchrun(bench, scripts.ddp(steps=40))
    bench.mount("-o", "remount,size=1m", "/dev/shm")
    text = scripts.ddp(workers=2, item="return torch.zeros(1 << 18), 1")
    return torchrun(bench, text)


# ---------------------------------------------------------------- the deepspeed launcher


@scenario(USER, "KeyError")
def deepspeed_keyerror(bench: Bench) -> int:
    """A KeyError on one rank after many steps."""
    return ds(bench, scripts.deepspeed(step=on(2, 45, 'lookup(x, "labels")')))


@scenario(KILLED[0], "return code = -9", also_ok=KILLED)
def deepspeed_sigkill(bench: Bench) -> int:
    """One rank gets SIGKILL; the log does not show from whom."""
    return ds(bench, scripts.deepspeed(step=on(3, 45, "os.kill(os.getpid(), signal.SIGKILL)")))


@scenario(CRASH, "return code = -11")
def deepspeed_segfault(bench: Bench) -> int:
    """One rank crashes in native code."""
    return ds(bench, scripts.deepspeed(step=on(1, 45, "ctypes.string_at(0)")))


@scenario("disk-full", "(?i)No space left|file write failed|unexpected pos|enforce fail")
def deepspeed_disk_full(bench: Bench) -> int:
    """The file system fills up while a checkpoint is saved."""
    small = Path("/tmp/ckpt")
    small.mkdir()
    bench.mount("-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small))
    step = "if step % 20 == 0:\n    engine.save_checkpoint('/tmp/ckpt', tag=f'step{step}')"
    return ds(bench, scripts.deepspeed(width=4000, step=step))


@scenario("interrupted-by-user", "KeyboardInterrupt|SIGINT|signal 2|Killing subprocess")
def deepspeed_ctrl_c(bench: Bench) -> int:
    """Ctrl-C in the terminal."""
    bench.write("train.py", scripts.deepspeed(steps=4000))
    bench.write("ds_config.json", scripts.config())
    argv = ["/opt/train/bin/deepspeed", "--num_accelerators", str(RANKS), "train.py"]
    return struck(bench, argv, "step 40 loss", signal.SIGINT)


@scenario("training-diverged", "(?i)minimum")
def deepspeed_fp16_scale_floor(bench: Bench) -> int:
    """Every gradient overflows from a step on, down to the smallest loss scale."""
    top = "from deepspeed.accelerator import get_accelerator\n"
    top += "type(get_accelerator()).is_fp16_supported = lambda self: True"
    step = "if step == 40:\n    for p in engine.module.parameters():\n        p.data.fill_(float('inf'))"
    fp16 = {"enabled": True, "initial_scale_power": 8, "loss_scale_window": 1000, "hysteresis": 1}
    return ds(
        bench, scripts.deepspeed(top=top, step=step, steps=400), config=scripts.config(fp16=fp16)
    )


@scenario("ds-config-batch-mismatch", "Check batch related parameters")
def deepspeed_config_refused(bench: Bench) -> int:
    """A stage trains to its end; the config of the next is refused."""
    ds(bench, scripts.deepspeed(steps=50))
    config = scripts.config(train_batch_size=30)
    return ds(bench, scripts.deepspeed(), config=config, name="finetune.py")


@scenario("checkpoint-mismatch", "size mismatch")
def deepspeed_resume_other_shape(bench: Bench) -> int:
    """A stage trains and saves; the next resumes with another model."""
    ds(bench, scripts.deepspeed(steps=50))
    after = "engine.load_checkpoint('/tmp/ckpt')"
    return ds(bench, scripts.deepspeed(width=48, after=after), name="finetune.py")


@scenario(CLEAN, "training finished")
def deepspeed_healthy(bench: Bench) -> int:
    """A run that trains to its end and saves."""
    return ds(bench, scripts.deepspeed(steps=60))


@scenario("job-cancelled", "SIGTERM|signal 15|Killing", also_ok=("unrecognised", "job-preempted"))
def deepspeed_sigterm(bench: Bench) -> int:
    """The launcher gets SIGTERM; who sent it is not in the log."""
    bench.write("train.py", scripts.deepspeed(steps=4000))
    bench.write("ds_config.json", scripts.config())
    argv = ["/opt/train/bin/deepspeed", "--num_accelerators", str(RANKS), "train.py"]
    child = bench.start([bench.python, *argv])
    until(bench, "step 40 loss")
    os.kill(child.pid, signal.SIGTERM)
    return child.wait(60)


# ---------------------------------------------------------------- the Trainer


@scenario(USER, "AssertionError")
def trainer_assertion_in_loader_worker(bench: Bench) -> int:
    """A sample fails an assertion of the dataset within a worker of the loader."""
    item = "assert index != 1700 or length > 16, f'sample {index} is longer than 16 tokens'"
    text = scripts.trainer(
        item=item.replace("1700", "(index // 997) * 997 + 500"), workers=1, steps=400
    )
    return torchrun(bench, text)


@scenario(USER, "(?i)stack expects each tensor|expected sequence|ValueError|RuntimeError")
def accelerate_ragged_batch(bench: Bench) -> int:
    """`accelerate launch`: samples of two lengths cannot be collated."""
    bench.write(
        "train.py", scripts.trainer(item="length = 17 if index % 1009 == 400 else 16", steps=4000)
    )
    argv = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", str(RANKS),
            "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
            "--num_cpu_threads_per_process", "1", "train.py"]  # fmt: skip
    return bench.run([bench.python, *argv], deadline=220)


@scenario("disk-full", "(?i)no space left|write failed|PytorchStreamWriter|enforce fail")
def trainer_deepspeed_disk_full(bench: Bench) -> int:
    """Trainer with DeepSpeed: the file system fills up when a checkpoint is saved."""
    small = Path("/tmp/ckpt")
    small.mkdir()
    bench.mount("-t", "tmpfs", "-o", "size=700k", "tmpfs", str(small))
    bench.write(
        "ds_config.json",
        scripts.config(
            train_micro_batch_size_per_gpu="auto",
            gradient_accumulation_steps="auto",
            gradient_clipping="auto",
        ),
    )
    args = "deepspeed='ds_config.json', save_strategy='steps', logging_first_step=True"
    return torchrun(bench, scripts.trainer(save=20, args=args, steps=400))


@scenario(CLEAN, "train_runtime")
def trainer_healthy(bench: Bench) -> int:
    """Trainer trains to its end."""
    return torchrun(bench, scripts.trainer(steps=60))


@scenario("dataloader-worker-killed", "DataLoader worker")
def trainer_loader_worker_killed(bench: Bench) -> int:
    """A worker of the loader gets SIGKILL."""
    item = "if index % 211 == 77 and step_of() > 30: os.kill(os.getpid(), signal.SIGKILL)"
    item = "count = globals().setdefault('seen', [0])\ncount[0] += 1\n"
    item += "if rank == 1 and count[0] == 150: os.kill(os.getpid(), signal.SIGKILL)"
    return torchrun(bench, scripts.trainer(item=item, workers=1, steps=400))


@scenario("hub-unreachable", "(?i)couldn't connect|offline|connection error|resolve")
def trainer_hub_unreachable(bench: Bench) -> int:
    """A stage trains to its end; the next needs a model that is not cached, without a network."""
    torchrun(bench, scripts.trainer(steps=40))
    before = "transformers.AutoTokenizer.from_pretrained('bert-base-uncased')"
    return torchrun(bench, scripts.trainer(before=before))


@scenario(USER, "RecursionError")
def trainer_recursion(bench: Bench) -> int:
    """A callback of the script calls itself without end."""
    step = "def deep(n): return deep(n + 1)\nif rank == 1 and step == 40: deep(0)"
    return torchrun(bench, scripts.trainer(step=step, steps=400))


# ---------------------------------------------------------------- Slurm

SLURM_ENV = """\
os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE=os.environ["SLURM_NTASKS"])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29588", GLOO_SOCKET_IFNAME="lo")"""
NEEDS = slurm.NEEDS


def _submit(bench: Bench, more: str = "", *, label: bool = True, **parts: object) -> dict[str, str]:
    """A cluster of two nodes and a job of four ranks whose output is the log."""
    slurm.CONF = slurm.CONF.replace("MaxTime=10 State=UP", "MaxTime=10 State=UP PriorityTier=1") + (
        "" if "SlurmdTimeout" in slurm.CONF else "SlurmdTimeout=6\nBatchStartTimeout=30\n" + more
    )
    env = slurm._cluster(bench)
    bench.write("train.py", scripts.ddp(**{"before": SLURM_ENV, "steps": 4000, **parts}))
    flag = "--label " if label else ""
    bench.write(
        "job.sh",
        f"#!/bin/bash\nsrun {flag}--kill-on-bad-exit=1 {bench.python} train.py\n",
        mode=0o755,
    )
    bench.log.touch()
    argv = ["sbatch", "-N2", "--ntasks=4", "--ntasks-per-node=2", "--overcommit", "--requeue", "--time=1",
            "--open-mode=append", "--job-name=pretrain", f"--output={bench.log}", "job.sh"]  # fmt: skip
    bench.run(argv, env=env, quiet=True)
    return env


def _over(bench: Bench, env: dict[str, str], *words: str, seconds: float = 150) -> int:
    """Waits for the job's end and keeps what `scontrol` says of it."""
    deadline = time.monotonic() + seconds
    text = ""
    while time.monotonic() < deadline:
        text = subprocess.run(
            ["scontrol", "show", "job", "1"], env={**bench.env, **env},
            capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        if any(f"JobState={word}" in text for word in words):
            break
        time.sleep(0.5)
    time.sleep(3)
    beside(bench, "scontrol_show_job.txt").write_text(text)
    return 1


@scenario("job-time-limit", "TIME LIMIT", needs=NEEDS)
def slurm_time_limit(bench: Bench) -> int:
    """The job runs into its time limit of a minute."""
    env = _submit(bench)
    return _over(bench, env, "TIMEOUT")


@scenario("job-cancelled", "CANCELLED", needs=NEEDS)
def slurm_scancel(bench: Bench) -> int:
    """The owner cancels the job."""
    env = _submit(bench)
    until(bench, "step 40/")
    bench.run(["scancel", "1"], env=env, quiet=True)
    return _over(bench, env, "CANCELLED")


PREEMPT = """\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL MaxTime=10 State=UP PriorityTier=10 PreemptMode=OFF
"""


@scenario("job-preempted", "PREEMPTION", needs=NEEDS)
def slurm_preempted(bench: Bench) -> int:
    """A job of a higher partition takes the nodes; Slurm puts this one back into the queue."""
    env = _submit(bench, PREEMPT)
    until(bench, "step 40/")
    bench.run(["sbatch", "-p", "urgent", "-N2", "--exclusive", "--output=/dev/null", "--wrap=sleep 60"],
              env=env, quiet=True)  # fmt: skip
    until(bench, "PREEMPTION", 60)
    return _over(bench, env, "PENDING", seconds=20)


@scenario("node-failed", "(?i)node fail", needs=NEEDS)
def slurm_node_failed(bench: Bench) -> int:
    """One node stands still with all that it runs; the controller gives it up."""
    env = _submit(bench)
    until(bench, "step 40/")
    for path in Path("/proc").glob("[0-9]*"):
        try:
            own = b"SLURMD_NODENAME=n2" in (path / "environ").read_bytes()
            own = own or b"n2" in (path / "cmdline").read_bytes().split(b"\0")
            if (
                own
                or b"slurmstepd: [1." in (path / "cmdline").read_bytes()
                and "n2" in os.readlink(path / "cwd")
            ):
                os.kill(int(path.name), signal.SIGSTOP)
        except OSError:
            continue
    try:
        until(bench, "(?i)node fail", 60)
    except AssertionError:
        pass
    return _over(bench, env, "NODE_FAIL", "PENDING", "FAILED", seconds=60)


@scenario(USER, "KeyError", needs=NEEDS)
def slurm_keyerror(bench: Bench) -> int:
    """A KeyError on one task; srun labels each line with its task."""
    env = _submit(bench, step=on(2, 40, 'lookup(x, "labels")'))
    return _over(bench, env, "FAILED")


# ---------------------------------------------------------------- prefixes of platforms


def prefixed(bench: Bench, script: str, form: str) -> int:
    """Ranks without a launcher, each line with a head like that of a platform."""
    bench.write("train.py", script)
    env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29599", "WORLD_SIZE": str(RANKS)}
    lock = threading.Lock()
    out = bench.log.open("ab")

    def pump(rank: int, pid: int, stream: object) -> None:
        for line in stream:  # type: ignore[attr-defined]
            with lock:
                out.write(form.format(rank=rank, pid=pid).encode() + line)
                out.flush()

    children, threads = [], []
    for rank in range(RANKS):
        child = subprocess.Popen(
            [bench.python, "train.py"], env={**bench.env, **env, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            cwd=RUN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        children.append(child)
        threads.append(threading.Thread(target=pump, args=(rank, child.pid, child.stdout)))
        threads[-1].start()
    deadline = time.monotonic() + 200
    while all(child.poll() is None for child in children) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(4)
    for child in children:
        child.kill()
        child.wait()
    for thread in threads:
        thread.join()
    out.close()
    return 1


DECODE = "if index % 997 == 160:\n    b'\\xff\\xfe broken'.decode('utf-8')"


@scenario(USER, "UnicodeDecodeError", simulated="the prefix of each line")
def mpi_prefix_bad_text(bench: Bench) -> int:
    """Text that is not UTF-8, below prefixes as `mpirun --tag-output` writes them."""
    return prefixed(bench, scripts.ddp(item=DECODE, steps=400), "[1,{rank}]<stderr>:")


@scenario(USER, "UnicodeDecodeError", simulated="the prefix of each line")
def ray_prefix_bad_text(bench: Bench) -> int:
    """The same below prefixes as Ray writes them."""
    form = "\x1b[36m(RayTrainWorker pid={pid}, ip=10.0.0.7)\x1b[0m "
    return prefixed(bench, scripts.ddp(item=DECODE, steps=400), form)
