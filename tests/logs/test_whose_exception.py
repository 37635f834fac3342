"""Tracebacks that are cut off, and whose fault an exception of a reader of data or an installer is."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.report.diagnosis import lines

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


BOX = "╭───────────── Traceback (most recent call last) ─────────────╮\n"
ROWS = "│ /home/me/train.py:12 in main                                 │\n" + "".join(
    f"│   {n:2d}     x = {n}                                              │\n" for n in range(9, 40)
)


def test_a_boxed_traceback_that_is_cut_off_ends_no_healthy_log() -> None:
    for cut in (BOX, BOX + ROWS, BOX + ROWS + "╰" + "─" * 61 + "╯\n"):
        found = read("preparing\n" + cut)
        assert found.outcome is Outcome.UNRECOGNISED
        assert found.summary == "the log breaks off in the middle of a traceback"
    whole = read(BOX + ROWS + "╰" + "─" * 61 + "╯\nKeyError: 'rate'\n")
    assert whole.first_error is not None
    assert whole.first_error.type == "KeyError"
    assert read(BOX.replace("Traceback (most recent call last)", "Settings") + ROWS).outcome is (
        Outcome.CLEAN
    )


URL = "https://vscode-remote+ssh-002dremote.vscode-resource.vscode-cdn.net/home/me/data.py"
NOTEBOOK = (
    "KeyError                                  Traceback (most recent call last)\n"
    "Cell In[7], [line 4](vscode-notebook-cell:?execution_count=7&line=4)\n"
    "----> [4](vscode-notebook-cell:?execution_count=7&line=4) train(rows)\n\n"
    f"File [~/job/data.py:31]({URL}:31), in train(rows)\n"
    f"     [30]({URL}:30) for row in rows:\n"
    f'---> [31]({URL}:31)     text = row["prompt"]\n'
)


def test_a_traceback_that_vs_code_made_links_of() -> None:
    assert read(NOTEBOOK).summary == "the log breaks off in the middle of a traceback"
    whole = read(NOTEBOOK + "\nKeyError: 'prompt'\n")
    assert whole.outcome is Outcome.USER_CODE
    assert whole.first_error is not None
    assert (whole.first_error.file, whole.first_error.line) == ("~/job/data.py", 31)


def test_an_operation_that_torch_compile_tries_on_shapes_is_the_scripts() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 31, in forward\n    y = self.conv(x)\n'
        '  File "/e/lib/python3.11/site-packages/torch/_dynamo/utils.py", line 7, in run_node\n'
        "    raise RuntimeError(make_error_message(e)).with_traceback(\n"
        "torch._dynamo.exc.TorchRuntimeError: Dynamo failed to run FX node with fake tensors: "
        "call_function <built-in method conv2d>(*(FakeTensor(..., size=(8, 1, 64, 64)),), **{}): "
        "got RuntimeError('expected 3 channels')\n"
    )
    assert read(text).outcome is Outcome.USER_CODE


def test_what_torch_compile_logs_of_an_operation_is_the_scripts_too() -> None:
    """torch 2.13 and later log what failed, and raise an exception of their own."""
    torch = "/e/lib/python3.11/site-packages/torch"
    logged = "E1129 12:05:46.602000 1 torch/_subclasses/fake_tensor.py:3255] [0/0] "
    said = "RuntimeError: a and b must have same reduction dim, but got [3, 4] X [3, 4]."
    text = (
        f"{logged}failed while attempting to run meta for aten.mm.default\n"
        f"{logged}Traceback (most recent call last):\n"
        f'{logged}  File "{torch}/__init__.py", line 2145, in _check_with\n'
        f"{logged}    raise error_type(message_evaluated)\n{logged}{said}\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 8, in main\n    f(torch.ones(3))\n'
        f'  File "{torch}/_dynamo/utils.py", line 4479, in _get_fake_value_impl\n'
        "    raise FakeTensorObservedException(msg, real_stack=e.real_stack) from None\n"
        "torch._dynamo.exc.TorchRuntimeError: RuntimeError when making fake tensor call\n"
        "  Explanation: Dynamo failed to run FX node with fake tensors: call_function "
        "<built-in function matmul>(): got RuntimeError('a and b must have same reduction dim, "
        "but got [3, 4] X [3, 4].')\n"
    )
    found = read(text)
    assert found.outcome is Outcome.USER_CODE
    assert "a and b must have same reduction dim" in found.summary
    assert found.first_error is not None
    assert (found.first_error.file, found.first_error.line) == ("/home/me/train.py", 8)
    # without that exception, only torch is known to have raised it
    assert read(text.partition("Traceback")[0] + said + "\n").outcome is Outcome.UNRECOGNISED


def test_a_warning_that_a_terminal_broke_explains_no_later_exception() -> None:
    text = (
        "Train step of epoch 0:  41%|####      | 720/1776 [2:06:59<3:43:20, 12.69s/it, loss=9.92]\n"
        "Cannot access gated repo for url https://huggingface.co/o/m/resolve/main/config.json.\n"
        "Please log in. - silently ignoring the lookup for the file config.json in o/m.\n"
        "  warnings.warn(\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 31, in <module>\n    shutil.rmtree(oldest)\n'
        '  File "/e/lib/python3.11/shutil.py", line 726, in rmtree\n    os.rmdir(path)\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/out/global_step15'\n"
    )
    assert read(text).outcome is Outcome.USER_CODE


PIL = "/e/lib/python3.11/site-packages/PIL/Image.py"


def test_a_file_of_data_that_is_missing_is_the_users_whatever_framework_reads_it() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/w/LLaMA-Factory/src/llamafactory/data/mm_plugin.py", line 266, in _load\n'
        "    image = Image.open(image)\n"
        f'  File "{PIL}", line 3469, in open\n    fp = builtins.open(filename, "rb")\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/w/scenes/7.jpg'\n"
    )
    assert [cause.condition for cause in read(text).causes] == ["path-missing"]


@pytest.mark.parametrize("mark", ["", "> ", "`"])
def test_a_bare_exception_without_a_traceback_is_a_failure(mark: str) -> None:
    found = read(f"I get this:\n{mark}Exception: The layers have no class that fits\n")
    assert found.first_error is not None
    assert found.first_error.message == "The layers have no class that fits"
    assert read("Exception: \n").first_error is None


def test_an_exception_quoted_in_a_line_of_its_own_counts() -> None:
    told = (
        "I'm getting this error when I start it:\n`RuntimeError: CUDA out of memory.`\nAny ideas?\n"
    )
    assert [one.condition for one in read(told).causes] == ["gpu-oom"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param(
            "My training is killed after an hour on two nodes, and I do not know why.\n",
            Outcome.UNRECOGNISED,
            id="a complaint",
        ),
        pytest.param(
            "请问作者是否遇到过训练到一半就卡住不动的问题，显存没有占满。\n",
            Outcome.UNRECOGNISED,
            id="in Chinese",
        ),
        pytest.param(
            "The weights were saved to the folder of the run, and all of them are there.\n",
            Outcome.CLEAN,
            id="a sentence about no failure",
        ),
        pytest.param(
            "`UserWarning: The strides of a gradient do not match those of its bucket. This is not"
            " an error, but it may be slower.`\nis this normal?\n",
            Outcome.CLEAN,
            id="a warning that a run printed",
        ),
        pytest.param(
            "My training is killed after an hour, and I do not know why.\n"
            "[rank0] step 10 loss 2.1\n",
            Outcome.UNRECOGNISED,
            id="above output of the run",
        ),
        pytest.param(
            "Pods in CrashLoopBackOff\n\nI applied both files, and they restart.\n"
            "```\njob.batch/a created\njob.batch/b created\n```\n",
            Outcome.UNRECOGNISED,
            id="the state of a pod",
        ),
        pytest.param(
            "Hanging at the first batch\n```\nUsing backend: gloo\nloaded 40 shards\n```\n",
            Outcome.UNRECOGNISED,
            id="a title above a block",
        ),
        pytest.param(
            "[Bug] evaluation does not start on eight cards\nloaded 40 shards\nworld size 8\n",
            Outcome.UNRECOGNISED,
            id="a title with a tag",
        ),
        pytest.param(
            "双机训练一开始就报错\nloaded 40 shards\nworld size 16\n",
            Outcome.UNRECOGNISED,
            id="a title in Chinese",
        ),
        pytest.param(
            "loaded 40 shards\nworld size 16\n10:00:01 INFO started\n"
            "The job crashes a little later. Any help is welcome, thanks.\n",
            Outcome.UNRECOGNISED,
            id="below output of the run",
        ),
        pytest.param(
            "Loss of my run on four cards\n```\nstep 10 loss 2.1\nstep 20 loss 1.9\n```\n"
            "I see no errors, is this too slow?\n",
            Outcome.CLEAN,
            id="a question about a healthy run",
        ),
        pytest.param(
            "两张卡训练没有报错，我想问速度是否正常\n```\nstep 10 loss 2.1\n```\n",
            Outcome.CLEAN,
            id="no failure in Chinese",
        ),
        pytest.param(
            "10:00:01 INFO generating 2 samples\nMy answer: the import fails if I forget a comma.\n"
            "10:00:09 INFO done\n",
            Outcome.CLEAN,
            id="a sample of a model within output",
        ),
    ],
)
def test_a_text_that_only_tells_of_a_failure_is_not_clean(text: str, outcome: Outcome) -> None:
    assert read(text).outcome is outcome


BOXED_FRAME = (
    "│   668 │   │   index = self._next_index()                            │\n"
    "│ ❱ 669 │   │   data = self._fetcher.fetch(index)                     │\n"
    "│                                                                     │\n"
    "│ /opt/env/lib/python3.10/site-packages/torch/utils/data/_utils/fetch │\n"
    "│ .py:61 in fetch                                                     │\n"
    "│                                                                     │\n"
    "│   60 │   │   rows = self.dataset[batch]                              │\n"
    "│ ❱ 61 │   return self.collate_fn(rows)                               │\n"
)


def test_a_boxed_traceback_without_its_head_and_exception_is_cut_off() -> None:
    found = read(BOXED_FRAME)
    assert found.summary == "the log breaks off in the middle of a traceback"
    assert read(BOXED_FRAME.replace("❱", " ")).outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            "RuntimeError: Expected all tensors to be on the same device, but found at least two "
            "devices, cuda:2 and cuda:1!",
            id="devices",
        ),
        pytest.param(
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
            id="no gradient",
        ),
        pytest.param(
            "RuntimeError: shape '[4, 9]' is invalid for input of size 40", id="a wrong shape"
        ),
        pytest.param("RuntimeError: Found dtype Double but expected Float", id="a wrong type"),
        pytest.param(
            "ValueError: Expected input batch_size (8) to match target batch_size (4).",
            id="labels",
        ),
    ],
)
def test_what_torch_says_of_the_scripts_tensors_is_the_scripts(said: str) -> None:
    assert read(said + "\n").outcome is Outcome.USER_CODE
    assert read("RuntimeError: the pool of the server is empty\n").outcome is (Outcome.UNRECOGNISED)


PAD = (
    "ValueError: Asking to pad but the tokenizer does not have a padding token. Please select a "
    "token to use as `pad_token` `(tokenizer.pad_token = tokenizer.eos_token e.g.)` or add a new "
    "pad token via `tokenizer.add_special_tokens({'pad_token': '[PAD]'})`."
)
TOKENIZES = "/opt/env/lib/python3.11/site-packages/transformers/tokenization_utils_base.py"


def test_what_a_tokenizer_rejects_is_the_scripts_data() -> None:
    bare = read(PAD + "\n")
    traced = read(
        "Traceback (most recent call last):\n"
        '  File "/opt/env/lib/python3.11/site-packages/datasets/arrow_dataset.py", line 3, in map\n'
        f'  File "{TOKENIZES}", line 9, in _get_padding_truncation_strategies\n'
        f"    raise ValueError(\n{PAD}\n"
    )
    for found in (bare, traced):
        assert found.outcome is Outcome.USER_CODE
        assert found.explained is not None
    backend = read(
        "Traceback (most recent call last):\n"
        f'  File "{TOKENIZES}", line 9, in _from_pretrained\n    raise ValueError(x)\n'
        "ValueError: Couldn't instantiate the backend tokenizer from one of these\n"
    )
    assert backend.outcome is Outcome.UNRECOGNISED


def test_an_exception_that_torch_passes_on_from_a_process_is_not_the_scripts() -> None:
    relayed = (
        "Exception: \n\n-- Process 0 terminated with the following error:\n"
        "Traceback (most recent call last):\n"
    )
    frame = '  File "/opt/env/lib/python3.6/site-packages/torch/nn/parallel/distributed.py", line 3'
    assert read(f"{relayed}{frame}, in __init__\n    self.b").outcome is Outcome.UNRECOGNISED
    whole = read(f'{relayed}  File "/home/me/t.py", line 3, in f\n    d["a"]\nKeyError: \'a\'\n')
    assert whole.first_error is not None
    assert whole.first_error.type == "KeyError"


HTTPX = "/opt/env/lib/python3.10/site-packages/httpx/_transports/default.py"
REFUSED = "httpcore.ConnectError: [Errno 111] Connection refused\n"
CHAINED = (
    "Traceback (most recent call last):\n"
    f'  File "{HTTPX}", line 9, in handle_request\n    x\n{REFUSED}\n'
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
)


def test_the_first_exception_of_a_chain_is_of_the_client_that_asked() -> None:
    client = "/opt/env/lib/python3.10/site-packages/vectorstore/http/api.py"
    hub = "/opt/env/lib/python3.10/site-packages/huggingface_hub/utils/_http.py"
    ends = f'  File "{HTTPX}", line 9, in handle_request\n    x\nhttpx{REFUSED[8:]}'
    own = read(f'{CHAINED}  File "{client}", line 7, in send\n    x\n{ends}')
    assert not own.causes
    asked = read(f'{CHAINED}  File "{hub}", line 7, in send\n    x\n{ends}')
    assert [one.condition for one in asked.causes] == ["hub-unreachable"]


def test_where_an_exception_without_frames_was_raised_is_not_known() -> None:
    shown = [line.text for line in lines(read("step 3\nKeyError: 'rate'\n"), width=90)]
    assert not [text for text in shown if "raised at" in text]
    assert [text for text in shown if "reported at log:2" in text]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "PackagesNotFoundError: The following packages are not available from current "
            "channels:",
            id="a package that conda does not find",
        ),
        pytest.param(
            "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://conda.anaconda.org/x>",
            id="conda's network",
        ),
        pytest.param("CondaEnvException: Pip failed", id="pip below conda"),
        pytest.param("CommandException: No URLs matched: gs://bucket/x", id="gsutil"),
    ],
)
def test_what_an_installer_or_a_cloud_tool_raises_is_not_the_scripts(line: str) -> None:
    assert read(f"Solving environment: failed\n\n{line}\n").outcome is not Outcome.USER_CODE


DATASETS = "/opt/env/lib/python3.11/site-packages/datasets/"
PANDAS = "/opt/env/lib/python3.11/site-packages/pandas/io/"


def loaded(kind: str, *files: str) -> str:
    frames = "".join(f'  File "{file}", line 7, in f\n    x = y\n' for file in files)
    return (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\n'
        f'    load_dataset("json")\n{frames}{kind}\n'
    )


def test_a_file_of_the_scripts_data_that_does_not_parse_is_about_its_data() -> None:
    for text in (
        loaded(
            "ValueError: Trailing data",
            f"{DATASETS}builder.py",
            f"{DATASETS}packaged_modules/json/json.py",
            f"{PANDAS}json/_json.py",
        ),
        loaded(
            "pyarrow.lib.ArrowInvalid: JSON parse error: Invalid value. in row 0",
            f"{DATASETS}packaged_modules/json/json.py",
        ),
        loaded("json.decoder.JSONDecodeError: Extra data: line 2 column 1 (char 9)"),
    ):
        found = read(text)
        assert found.outcome is Outcome.USER_CODE
        assert found.summary.startswith("the first exception is about the script's data: ")


def test_what_the_readers_of_datasets_raise_themselves_is_not_the_scripts() -> None:
    text = loaded(
        "AttributeError: 'list' object has no attribute 'keys'",
        f"{DATASETS}builder.py",
        f"{DATASETS}packaged_modules/json/json.py",
    )
    found = read(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.file == "datasets/packaged_modules/json/json.py"
    told = loaded(
        "ValueError: At least one data file must be specified, but got data_files=None",
        f"{DATASETS}packaged_modules/json/json.py",
    ).replace("line 7, in f", "line 7, in _split_generators")
    assert read(told).explained is not None
