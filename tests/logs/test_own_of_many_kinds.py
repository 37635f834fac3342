"""Failures of the script's own that a product words, and those that only look like its own."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
HEAD = "Traceback (most recent call last):\n"
MAIN = '  File "/home/me/train.py", line 9, in main\n    loss = engine(ids, mask=m)\n'


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def frame(file: str, function: str) -> str:
    return f'  File "{SITE}{file}", line 7, in {function}\n    return f(*args)\n'


TUNE = '  File "/home/me/tune.py", line 9, in tune\n    trainer.evaluate()\n'
INNER = frame("transformers/trainer.py", "evaluation_loop") + (
    "TypeError: tune.<locals>.<lambda>() got an unexpected keyword argument 'k'\n"
)
CALLS = frame("deepspeed/runtime/engine.py", "forward") + frame(
    "torch/nn/modules/module.py", "_call_impl"
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            HEAD
            + MAIN
            + CALLS
            + "TypeError: Net.forward() got an unexpected keyword argument 'm'\n",
            id="a call of a model, through DeepSpeed",
        ),
        pytest.param(HEAD + TUNE + INNER, id="a call of what the script's function defines"),
        pytest.param(
            "TypeError                                 Traceback (most recent call last)\n"
            "Cell In[4], line 2\n      1 y = 3\n----> 2 loss = net(x, y, z)\n\n"
            "File ~/e/lib/python3.11/site-packages/torch/nn/modules/module.py:1751, in"
            " Module._call_impl(self, *args)\n-> 1751     return f(*args)\n\n"
            "TypeError: Net.forward() takes 3 positional arguments but 4 were given\n",
            id="a call of a model, in a notebook",
        ),
        pytest.param(
            HEAD
            + '  File "/home/me/dpo.py", line 4, in <module>\n    t = DPOTrainer(model)\n'
            + frame("datasets/arrow_dataset.py", "apply_function")
            + frame("trl/data_utils.py", "maybe_extract_prompt")
            + "KeyError: 'chosen'\n",
            id="a column that the data lacks",
        ),
        pytest.param(
            "In 'config': Could not find 'optim/adamx'\n\nAvailable options in 'optim':\n\tadam\n"
            "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
            id="an option that Hydra does not find",
        ),
        pytest.param(
            HEAD
            + '  File "export.py", line 3, in <module>\n    m = torch.jit.script(Net())\n'
            + frame("torch/jit/frontend.py", "get_jit_def")
            + "torch.jit.frontend.UnsupportedNodeError: Yield nodes aren't supported:\n",
            id="code that TorchScript does not accept",
        ),
        pytest.param(
            '  File "<ipython-input-4-aa>", line 1\n    pip install x\n        ^\n'
            "SyntaxError: invalid syntax\n",
            id="the syntax of a cell",
        ),
    ],
)
def test_the_scripts_own(text: str) -> None:
    assert read(text).outcome is Outcome.USER_CODE


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            HEAD
            + MAIN
            + CALLS
            + frame("transformers/models/llama/modeling_llama.py", "forward")
            + frame("torch/nn/modules/module.py", "_call_impl")
            + "TypeError: LlamaAttention.forward() missing 1 required positional argument: 'x'\n",
            id="a call by a product",
        ),
        pytest.param(HEAD + MAIN + INNER, id="a call of what a product's function defines"),
        pytest.param(
            HEAD + frame("trl/trainer/dpo_trainer.py", "step") + "KeyError: 'chosen'\n",
            id="a key that is no column",
        ),
        pytest.param("nbclient.exceptions.DeadKernelError: Kernel died\n", id="a dead kernel"),
        pytest.param(
            HEAD + MAIN + "safetensors_rust.SafetensorError: No space left (os error 5)\n",
            id="an error of the disk, by Rust",
        ),
        pytest.param(
            HEAD
            + MAIN
            + "RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : no buffer\n",
            id="a failure of ONNX Runtime",
        ),
    ],
)
def test_not_the_scripts_own(text: str) -> None:
    assert read(text).outcome is not Outcome.USER_CODE


DIED = HEAD + MAIN + "KeyError: 'rate'\n"
FIT = "`Trainer.fit` stopped: `max_epochs=2` reached.\n"


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(FIT, id="Lightning"),
        pytest.param("Final validation metrics: {'val/acc': 0.3}\n", id="verl"),
        pytest.param(
            "2026-03-03 14:10:10 | INFO | fairseq_cli.train | done training in 14211.0 seconds\n",
            id="fairseq",
        ),
        pytest.param("Job 'raysubmit_ab12' succeeded\n------\n", id="Ray"),
        pytest.param(
            "2026-03-03 sagemaker-training-toolkit INFO Reporting training SUCCESS\n",
            id="SageMaker",
        ),
        pytest.param(
            "Training completed. Do not forget to share your model on huggingface.co/models =)\n",
            id="transformers",
        ),
    ],
)
def test_what_a_training_that_succeeded_went_through_did_not_end_it(last: str) -> None:
    assert read(DIED + "trying again\n" + last).outcome is Outcome.CLEAN
    died = "[E] failed (exitcode: 1) local_rank: 0 (pid: 4) of binary: /usr/bin/python\n"
    assert read(died + DIED + last).outcome is Outcome.CLEAN
    assert read(DIED + last + died).outcome is not Outcome.CLEAN
    assert read(last + DIED).outcome is Outcome.USER_CODE
    assert read(last + "torch.OutOfMemoryError: CUDA out of memory. Tried\n").causes
    assert read(DIED + f"see whether {last[:12]} is printed\n").outcome is Outcome.USER_CODE


def test_slurm_goes_on_in_another_directory() -> None:
    fell_back = (
        "slurmstepd-n1: error: Unable to create TMPDIR [/scratch/9]: Permission denied\n"
        "slurmstepd-n1: error: Setting TMPDIR to /tmp\n"
    )
    steps = "step 10 loss 1.2\nstep 20 loss 1.1\nstep 30 loss 1.0\nfinished\n"
    assert "died" not in read(fell_back + steps).summary


def test_cmake_below_pip_ends_no_sound_log() -> None:
    said = "      CMake Error at CMakeLists.txt:18 (find_package):\n        x\n"
    end = "      -- Configuring incomplete, errors occurred!\n"
    assert read(said + end).outcome is Outcome.UNRECOGNISED
    assert read("      -- Configuring done\n").outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("Error: No such option: --epoch Did you mean --epochs?", id="click"),
        pytest.param("Error: Missing option '--data'.", id="click, a missing option"),
        pytest.param("Error: Invalid value for '--lr': 'x' is not a valid float.", id="a value"),
        pytest.param("│ Got unexpected extra argument (x)                │", id="typer's box"),
        pytest.param("ERROR: Could not consume arg: --lrr\nUsage: tune.py <flags>", id="Fire"),
        pytest.param(
            "Could not override 'model.hiden'.\nTo append to your config use +model.hiden=1\n\n"
            "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
            id="an override of Hydra's",
        ),
    ],
)
def test_options_of_the_scripts_command_line(said: str) -> None:
    assert named(f"Usage: main.py [OPTIONS]\n\n{said}\n") == "script-option-refused"


@pytest.mark.parametrize(
    "said",
    [
        "Missing options are set to their defaults",
        "There is no such option",
        "Error: Invalid value",
        "│ Missing argument │ 3 │",
    ],
)
def test_words_about_options_are_no_failure_of_the_command_line(said: str) -> None:
    assert read(f"{said}\nstep 1\n").outcome is not Outcome.USER_CODE


KERNEL = frame("triton/runtime/jit.py", "run") + frame("triton/compiler/compiler.py", "compile")
REJECTED = "triton.compiler.errors.CompilationError: at 4:11:\ndef k(x):\n    i = tl.arange(0, 5)\n"


def test_a_kernel_belongs_to_whoever_called_it() -> None:
    assert read(HEAD + MAIN + KERNEL + REJECTED).outcome is Outcome.USER_CODE
    product = frame("deepspeed/ops/sparse_attention/matmul.py", "forward")
    assert read(HEAD + MAIN + product + KERNEL + REJECTED).outcome is not Outcome.USER_CODE


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("pyarrow.lib.ArrowMemoryError: realloc of size 9 failed\n", id="Arrow"),
        pytest.param(
            "concurrent.futures.process.BrokenProcessPool: A process ended.\n", id="a pool"
        ),
        pytest.param("openai.APIConnectionError: Connection error.\n", id="a server"),
        pytest.param("azureml._common.exceptions.AzureMLException: no target\n", id="AzureML"),
    ],
)
def test_what_happened_to_processes_and_services_is_not_the_scripts(text: str) -> None:
    assert read(text).outcome is not Outcome.USER_CODE


WARN = "n1:1:9 [0] NCCL WARN Could not find a tuner\n"


def test_training_that_advances_outlives_a_librarys_last_words() -> None:
    steps = "".join(f"step {n} | loss 1.2\n" for n in (10, 20, 30))
    assert read(WARN + steps).outcome is Outcome.CLEAN
    assert read(steps + WARN).outcome is Outcome.UNRECOGNISED
    assert read(steps + WARN + "step 40 | loss 1.2\n").outcome is Outcome.UNRECOGNISED


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("qsub: Unknown queue", id="PBS"),
        pytest.param(
            "[n1][[1,1],3][btl_tcp_endpoint.c:625:x] received unexpected process identifier",
            id="Open MPI's TCP",
        ),
        pytest.param(
            "[rank0]:[F404 10:00:00.000 ProcessGroupNCCL.cpp:1554] Terminating the process",
            id="torch's glog",
        ),
        pytest.param(
            "The kernel for ft.ipynb appears to have died. It will restart automatically.",
            id="Jupyter",
        ),
        pytest.param("Your session crashed for an unknown reason.", id="Colab"),
        pytest.param("[TRT] [E] 2: [builder.cpp::build::9] Error Code 2: Internal", id="TensorRT"),
    ],
)
def test_no_sound_log_ends_so(last: str) -> None:
    assert read(f"starting\n{last}\n").outcome is Outcome.UNRECOGNISED


def test_what_qsub_says_of_an_interactive_job_is_no_failure() -> None:
    said = (
        "qsub: waiting for job 8.srv to start\nqsub: job 8.srv ready\nqsub: job 8.srv completed\n"
    )
    assert read(said).outcome is Outcome.CLEAN


def named(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        pytest.param("已杀死", "host-oom-killed", id="Chinese"),
        pytest.param(
            "run.sh: 行 3:  4711 已杀死               python t.py", "host-oom-killed", id="bash"
        ),
        pytest.param("Getötet", "host-oom-killed", id="German"),
        pytest.param("Processus arrêté", "host-oom-killed", id="French"),
        pytest.param("Violación de segmento (`core' generado)", "native-crash", id="Spanish"),
        pytest.param("Ошибка сегментирования", "native-crash", id="Russian"),
        pytest.param("已放弃（核心已转储）", "native-crash", id="full-width brackets"),
        pytest.param("浮点数例外 (核心已转储)", "native-crash", id="a division in Chinese"),
        pytest.param("OSError: [Errno 5] 输入/输出错误", "storage-io-error", id="a disk"),
        pytest.param("zsh: killed     python t.py", "host-oom-killed", id="zsh"),
        pytest.param(
            "fish: Job 1, 'python t.py' terminated by signal SIGSEGV (x)", "native-crash", id="fish"
        ),
        pytest.param("client_loop: send disconnect: Broken pipe", "terminal-closed", id="ssh"),
        pytest.param("进程已结束，退出代码为 137", "host-oom-killed", id="PyCharm in Chinese"),
        pytest.param(
            "OMP: Error #15: Initializing libiomp5.dylib, but", "unrecognised", id="OpenMP"
        ),
        pytest.param("Aborted", "unrecognised", id="an abort without a dump"),
        pytest.param("Marking task as FAILED. dag_id=train", "unrecognised", id="Airflow"),
    ],
)
def test_deaths_in_other_shells_and_languages(last: str, wanted: str) -> None:
    assert named(f"epoch 1\n{last}\n") == wanted


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("程序强制结束已取消", id="a word within a sentence"),
        pytest.param("Prozesse: 3, Getötete: 0", id="a part of a word"),
        pytest.param("进程已结束，退出代码为 0", id="a status of success"),
        pytest.param("Aborted 3 of 4 downloads, all present", id="a count"),
    ],
)
def test_words_of_other_languages_that_report_no_death(last: str) -> None:
    assert read(f"epoch 1\n{last}\n").outcome is Outcome.CLEAN


LOCAL = "HTTPConnectionPool(host='10.0.0.4', port=8000): Max retries exceeded with url: /health"


def test_a_server_of_the_jobs_own_is_not_the_hub() -> None:
    assert named(f"requests.exceptions.ConnectionError: {LOCAL}\n") == "unrecognised"
    hub = "HTTPSConnectionPool(host='cdn.example.org', port=443): Max retries exceeded with url: /x"
    assert named(f"requests.exceptions.ConnectionError: {hub}\n") == "hub-unreachable"
    ray = "Failed to connect to Ray at address: http://127.0.0.1:8265."
    assert named(f"requests.exceptions.ConnectionError: {ray}\n") == "ray-not-running"


def test_sagemaker_quotes_the_exception_of_the_script() -> None:
    head = "sagemaker-training-toolkit ERROR    ExecuteUserScriptError:\nExitCode 1\n"
    assert named(f'{head}ErrorMessage "KeyError: \'rows\'"\nCommand "python t.py"\n') == "user-code"
    oom = 'ErrorMessage "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."\n'
    assert named(head + oom) == "gpu-oom"
    assert named(f'{head}ErrorMessage ""\n') == "unrecognised"


def test_an_address_that_is_not_this_machines_is_no_port_in_use() -> None:
    said = "The server socket has failed to listen on any local network address. port: 29500, "
    there = "useIpv6: false, code: -99, name: EADDRNOTAVAIL, message: address not available\n"
    taken = "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"
    error = "torch.distributed.DistNetworkError: "
    assert named(error + said + there) == "unrecognised"
    assert named(error + said + taken) == "port-in-use"


def test_a_compiler_that_was_killed_explains_the_build_that_failed() -> None:
    failed = "      FAILED: a.o\n      Killed\n      ninja: build stopped: subcommand failed.\n"
    end = "      RuntimeError: Error compiling objects for extension\n"
    assert named(failed + end) == "host-oom-killed"
    assert named(failed.replace("Killed", "nvcc a.cu") + end) != "host-oom-killed"


def test_pinning_that_the_system_refuses_is_no_broken_driver() -> None:
    said = "RuntimeError: CUDA error: OS call failed or operation not supported on this OS\n"
    pinned = HEAD + frame("deepspeed/runtime/zero/stage3.py", "pin_memory") + said
    assert named(said) == "cuda-init-driver-state"
    assert named(pinned) == "unrecognised"


def test_a_relative_import_in_a_file_that_is_run_is_the_scripts() -> None:
    said = "ImportError: attempted relative import with no known parent package\n"
    assert (
        named(HEAD + '  File "/home/me/t.py", line 4, in <module>\n    from .a import b\n' + said)
        == "relative-import-in-script"
    )
    other = named(HEAD + frame("deepspeed/ops/x.py", "<module>") + said)
    assert other not in {"user-code", "relative-import-in-script"}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("[1]+  Exit 1                  python t.py", id="a job of bash"),
        pytest.param("[2]-  Done(1)                 ./run.sh", id="a job of bash with a status"),
        pytest.param("[1]  + 811 exit 1     torchrun t.py", id="a job of zsh"),
        pytest.param("zsh: exit 1     python t.py", id="zsh"),
        pytest.param('The command "python t.py" exited with 1.', id="Travis CI"),
        pytest.param("Return code: -11", id="a status"),
        pytest.param("User defined signal 1", id="a signal of LSF"),
        pytest.param("Your runtime has been disconnected due to inactivity", id="Colab"),
    ],
)
def test_statuses_that_shells_and_services_show(last: str) -> None:
    assert named(f"epoch 1\n{last}\n") == "unrecognised"


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("[1]+  Done                    python t.py", id="a job that succeeded"),
        pytest.param("[3] 811 exit 1 of 4 doors", id="a sentence"),
        pytest.param("Return code: 0", id="a status of success"),
        pytest.param("RC: 1.2.0", id="a release"),
    ],
)
def test_statuses_of_success_and_of_other_programs(last: str) -> None:
    assert named(f"epoch 1\n{last}\n") == "clean"
