"""Jobs of real environments whose releases do not suit each other, as Python and transformers print them."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
ENV = "/opt/env/lib/python3.10/site-packages"
DISABLED = "Disabling PyTorch because PyTorch >= 2.6 is required but found 2.3.1+cu121\n"
NUMPY = (
    "A module that was compiled using NumPy 1.x cannot be run in\n"
    "NumPy 2.2.6 as it may crash. To support both 1.x and 2.x\n"
    "versions of NumPy, modules must be compiled with NumPy 2.0.\n"
)


def traceback(*frames: str, error: str) -> str:
    """A traceback of a script; each frame is a file and its line's code."""
    lines = [
        'Traceback (most recent call last):\n  File "train.py", line 2, in <module>\n    start()'
    ]
    for frame in frames:
        file, _, code = frame.partition(" ")
        lines.append(f'  File "{file}", line 77, in <module>\n    {code}')
    return "\n".join([*lines, error]) + "\n"


IMPORTING = f"{ENV}/transformers/training_args.py from .trainer_pt_utils import AcceleratorConfig"
CLASS = f"{ENV}/transformers/trainer_pt_utils.py class LayerWiseDummyScheduler(LRScheduler):"


def judged(text: str) -> Diagnosis:
    return diagnose([Source("job.log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        pytest.param(
            DISABLED
            + traceback(
                f"{ENV}/transformers/utils/import_utils.py raise ImportError(failed)",
                error="ImportError: \nLlamaForCausalLM requires the PyTorch library but it was not found in"
                " your environment.",
            ),
            "transformers-deepspeed-incompatible",
            "needs 2.6 or newer",
            id="a class of a transformers that rejects torch",
        ),
        pytest.param(
            DISABLED
            + traceback(IMPORTING, CLASS, error="NameError: name 'LRScheduler' is not defined"),
            "transformers-deepspeed-incompatible",
            "needs 2.6 or newer",
            id="a name of torch that such a transformers did not import",
        ),
        pytest.param(
            traceback(
                f"{ENV}/transformers/utils/generic.py _torch_pytree.register_pytree_node(",
                error="AttributeError: module 'torch.utils._pytree' has no attribute 'register_pytree_node'",
            ),
            "transformers-deepspeed-incompatible",
            "need torch 2.2 or newer",
            id="a transformers that accepts torch 2.1 but is not imported with it",
        ),
        pytest.param(
            NUMPY
            + traceback(
                f"{ENV}/accelerate/state.py device_module.set_device(self.device)",
                error="AttributeError: module 'torch.cpu' has no attribute 'set_device'",
            ),
            "transformers-deepspeed-incompatible",
            "accelerate 0.33",
            id="what NumPy 2 prints is not why torch is too old for accelerate",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    start()\n'
            f'  File "{ENV}/transformers/trainer.py", line 3033, in _load_rng_state\n'
            "    checkpoint_rng_state = torch.load(rng_file)\n"
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you"
            " have two options.\n\t(1) In PyTorch 2.6, we changed the default value.\n\tWeightsUnpickler error: Unsupported global: GLOBAL"
            " numpy._core.multiarray._reconstruct was not an allowed global by default.\n",
            "transformers-deepspeed-incompatible",
            "before 4.47",
            id="the Trainer's own file of random numbers",
        ),
        pytest.param(
            'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    start()\n'
            f'  File "{ENV}/transformers/trainer.py", line 3130, in _load_rng_state\n'
            "    checkpoint_rng_state = torch.load(rng_file, weights_only=True)\n"
            "_pickle.UnpicklingError: Weights only load failed. Re-running `torch.load` with `weights_only` set"
            " to `False` will likely succeed, but it can result in arbitrary code execution.Do it only if"
            " you get the file from a trusted source. WeightsUnpickler error: Unsupported class numpy.core.multiarray._reconstruct\n",
            "transformers-deepspeed-incompatible",
            "4.51 resumes only with torch 2.6",
            id="the same file, which the Trainer of 4.51 forbids an older torch",
        ),
        pytest.param(
            NUMPY
            + traceback(
                error="ImportError: cannot import name 'x' from 'sklearn' (/x/sklearn/__init__.py)"
            ),
            "numpy-abi-2",
            "NumPy 1",
            id="it may be why an import fails",
        ),
    ],
)
def test_the_release_at_fault_is_named(text: str, cause: str, words: str) -> None:
    first = judged(text).causes[0]
    assert (first.condition, words in first.message) == (cause, True)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            DISABLED + "epoch 1 loss 0.5\nepoch 2 loss 0.4\n", id="the job went on without torch"
        ),
        pytest.param(
            traceback(IMPORTING, CLASS, error="NameError: name 'LRScheduler' is not defined"),
            id="torch was not rejected",
        ),
        pytest.param(
            DISABLED + traceback(error="NameError: name 'tokens' is not defined"),
            id="a name of the script's own",
        ),
    ],
)
def test_near_misses(text: str) -> None:
    causes = [cause.condition for cause in judged(text).causes]
    assert "transformers-deepspeed-incompatible" not in causes
