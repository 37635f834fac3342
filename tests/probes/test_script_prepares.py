"""Optimizers and schedulers that a script passes to Accelerate's `prepare` in any case."""

from __future__ import annotations

import pytest

from dsdoctor.scripts.prepares import prepared_by

HEAD = "import torch\nfrom accelerate import Accelerator\nfrom transformers import get_scheduler\n"
MAIN = HEAD + (
    "def main():\n"
    "    accelerator = Accelerator()\n"
    "    with accelerator.main_process_first():\n"
    "        data = load()\n"
    "    optimizer = torch.optim.AdamW(model.parameters())\n"
    "    {between}\n"
    "    schedule = get_scheduler('linear', optimizer)\n"
    "    model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)\n"
    "if __name__ == '__main__':\n"
    "    main()\n"
)


def test_what_runs_in_any_case_counts() -> None:
    assert prepared_by(MAIN.format(between="pass")) == {"optimizer": 8, "scheduler": 10}
    flat = "accelerator = Accelerator()\no = torch.optim.SGD(p)\no = accelerator.prepare(o)\n"
    assert prepared_by(HEAD + flat) == {"optimizer": 5}
    inside = "".join(f"    {line}\n" for line in flat.splitlines())
    assert prepared_by(HEAD + "if __name__ == '__main__':\n" + inside) == {"optimizer": 6}
    named = HEAD + flat.replace("torch.optim.SGD", "SGD")
    assert prepared_by("from torch.optim import SGD\n" + named) == {"optimizer": 6}


@pytest.mark.parametrize(
    "between",
    [
        "if args.custom: optimizer = mine()",
        "optimizer = wrap(optimizer)",
        "for optimizer in several: pass",
    ],
)
def test_what_may_be_another_object_does_not(between: str) -> None:
    assert prepared_by(MAIN.format(between=between)) == {"scheduler": 10}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.optim.AdamW(", "choose("),
        ("torch.optim.AdamW(", "own.AdamW("),
        ("    optimizer = torch", "    if args.a: optimizer = torch"),
        ("accelerator = Accelerator()", "accelerator = given"),
        ("from accelerate import", "from mine import"),
        ("data = load()", "data = accelerator.state.deepspeed_plugin"),
        ("data = load()", "data = DummyOptim"),
        ("(model, optimizer, schedule)", "(model)"),
        ("def main():", "def main(:"),
    ],
)
def test_a_script_that_decides_or_that_is_not_known_is_left_alone(old: str, new: str) -> None:
    text = MAIN.format(between="pass")
    assert old in text
    assert "optimizer" not in prepared_by(text.replace(old, new))
