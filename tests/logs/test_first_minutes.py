"""Mistakes of a job's first minutes, as real runs ended with them, and what resembles each."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
BEGIN = "Traceback (most recent call last):\n"
SCRIPT = f'{BEGIN}  File "/home/u/job/train.py", line 3, in <module>\n'
OPEN = "/opt/env/bin/python3.11: can't open file '/home/u/job/{}': [Errno 2] No such file or directory\n"


def said(text: str) -> tuple[str, str]:
    """The condition, or the outcome without one, and the message."""
    found = diagnose([Source(name="train.log", data=text.encode())], KNOWN)
    if found.outcome is not Outcome.CAUSE:
        return found.outcome.value, ""
    return found.causes[0].condition, found.causes[0].message


def frame(file: str, function: str, code: str) -> str:
    return f'  File "{SITE}{file}", line 7, in {function}\n    {code}\n'


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        pytest.param(
            f"{SCRIPT}    from datasets import load_dataset\nImportError: cannot import name"
            " 'load_dataset' from 'datasets' (/home/u/job/datasets/__init__.py)\n",
            "module-shadowed-by-cwd",
            "`/home/u/job/datasets/__init__.py`",
            id="a package of the project hides datasets",
        ),
        pytest.param(
            f"{SCRIPT}    from datasets import load_dataset\nImportError: cannot import name"
            f" 'load_dataset' from 'datasets' ({SITE}datasets/__init__.py)\n",
            "dependency-version-conflict",
            "",
            id="the installed package lacks it",
        ),
        pytest.param(
            f"{SCRIPT}    import torch\n{frame('torch/__init__.py', '<module>', 'import inspect')}"
            '  File "/usr/lib/python3.11/linecache.py", line 137, in updatecache\n'
            "    with tokenize.open(fullname) as fp:\n"
            "AttributeError: module 'tokenize' has no attribute 'open'\n",
            "module-shadowed-by-cwd",
            "`tokenize` of the standard library",
            id="tokenize.py of the project",
        ),
        pytest.param(
            f"{SCRIPT}    random.choises(items)\n"
            "AttributeError: module 'random' has no attribute 'choises'\n",
            "user-code",
            "",
            id="a name that the standard library never had",
        ),
        pytest.param(
            OPEN.format(r"train.py\r"),
            "launch-file-missing",
            "carriage return",
            id="a line of Windows",
        ),
        pytest.param(
            OPEN.format(r"\r"), "launch-file-missing", "carriage return", id="its end only"
        ),
        pytest.param(
            OPEN.format(" "), "launch-file-missing", "a space", id="a space after the backslash"
        ),
        pytest.param(
            OPEN.format("\u2013nproc_per_node"),
            "launch-file-missing",
            "typographic",
            id="a dash of a document",
        ),
        pytest.param(
            OPEN.format("train.py"), "launch-file-missing", "does not exist", id="a missing script"
        ),
        pytest.param(
            f"{SCRIPT}    from .net import Net\n"
            "ImportError: attempted relative import with no known parent package\n",
            "relative-import-in-script",
            "imports relatively",
            id="a script of a package, started by its path",
        ),
        pytest.param(
            f"{SCRIPT}    model = AutoModel.from_pretrained(name)\n"
            + frame("huggingface_hub/file_download.py", "get_hf_file_metadata", "r = get(url)")
            + frame("httpx/_transports/default.py", "handle_request", "raise mapped(message)")
            + "httpx.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.\n",
            "hub-unreachable",
            "`HF_ENDPOINT` has no `https://`",
            id="the hub's address without a scheme",
        ),
        pytest.param(
            f"{SCRIPT}    httpx.get(address)\n"
            + frame("httpx/_transports/default.py", "handle_request", "raise mapped(message)")
            + "httpx.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.\n",
            "unrecognised",
            "",
            id="an address of the script's own",
        ),
        pytest.param(
            f"{SCRIPT}    engine = deepspeed.initialize(model=net, config=c)\n"
            + frame(
                "deepspeed/runtime/engine.py", "_configure_lr_scheduler", "s = scheduler(o, **p)"
            )
            + "TypeError: WarmupDecayLR.__init__() missing 1 required positional argument:"
            " 'total_num_steps'\n",
            "ds-config-unsupported-combination",
            "does not set `total_num_steps`",
            id="a scheduler without its number of steps",
        ),
        pytest.param(
            f"{SCRIPT}    engine = deepspeed.initialize(model=net, config=c)\n"
            + frame("deepspeed/runtime/precision_config.py", "get_bfloat16_config", "return C(**d)")
            + "TypeError: deepspeed.runtime.precision_config.DeepSpeedBF16Config() argument after **"
            " must be a mapping, not bool\n",
            "ds-config-wrong-type",
            "`bool`",
            id="bf16 is true instead of an object",
        ),
        pytest.param(
            f'{BEGIN}  File "/opt/env/bin/torchrun", line 5, in <module>\n'
            + frame("torch/distributed/__init__.py", "<module>", "Rank = int | torch.SymInt")
            + "AttributeError: module 'torch' has no attribute 'SymInt'\n",
            "torch-import-broken",
            "`__init__.py`",
            id="torch without its first file",
        ),
        pytest.param(
            f"{SCRIPT}    import deepspeed\n"
            + frame("deepspeed/__init__.py", "<module>", "from torch import inf")
            + "ImportError: cannot import name 'inf' from 'torch' (unknown location)\n",
            "torch-import-broken",
            "`__init__.py`",
            id="a package that imports from such a torch",
        ),
        pytest.param(
            f"{SCRIPT}    trainer = Trainer(model=model, args=args)\n"
            + frame("transformers/trainer.py", "__init__", "os.makedirs(output_dir, exist_ok=True)")
            + '  File "<frozen os>", line 225, in makedirs\n'
            "FileExistsError: [Errno 17] File exists: 'out'\n",
            "path-not-writable",
            "`out` is a file",
            id="the output folder is a file",
        ),
        pytest.param(
            f"{SCRIPT}    os.makedirs('out')\n"
            '  File "<frozen os>", line 225, in makedirs\n'
            "FileExistsError: [Errno 17] File exists: 'out'\n",
            "user-code",
            "",
            id="the script does not expect the folder",
        ),
    ],
)
def test_rows(text: str, condition: str, words: str) -> None:
    found, message = said(text)
    assert found == condition
    assert words in message
