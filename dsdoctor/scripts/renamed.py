"""What an argument or option that the installed release does not have is called there."""

from __future__ import annotations

import difflib
from collections.abc import Collection

#: Old names of arguments of transformers and trl, and their successors. Read 2026-11-29 in the
#: wheels of transformers 4.40.2 to 5.24.0 (training_args.py, trainer.py) and trl 0.9.6 to 0.24.0
#: (trainer/sft_config.py, trainer/sft_trainer.py).
RENAMED = {
    "evaluation_strategy": "eval_strategy",  # both from 4.41, only the new one since 4.51
    "no_cuda": "use_cpu",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "warmup_ratio": "warmup_steps",  # which takes a ratio too: a value below 1
    "tokenizer": "processing_class",  # of trainers
    "max_seq_length": "max_length",  # of SFTConfig, only the new one since trl 0.20
}
#: How alike two names are, so that one may be meant for the other.
_ALIKE = 0.8


def successor(name: str, known: Collection[str]) -> str:
    """The known name that replaced this one, or is spelled nearly so; "" = there is none.

    >>> successor("no_cuda", {"use_cpu"}), successor("learning_rates", {"learning_rate", "rate"})
    ('use_cpu', 'learning_rate')
    >>> successor("overwrite_output_dir", {"output_dir"})
    ''
    """
    if (new := RENAMED.get(name, "")) in known:
        return new
    return "".join(difflib.get_close_matches(name, sorted(known), 1, _ALIKE))
