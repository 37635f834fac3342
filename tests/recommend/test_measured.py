"""The measuring child: against real tensors, against torch's CUDA allocator, and how it is read."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import NotMeasuredError
from dsdoctor.host import LocalHost
from dsdoctor.model.units import GIB
from dsdoctor.probes import model_passes
from dsdoctor.recommend import measured, memory
from dsdoctor.recommend.activations import fused_gradient_bytes, fused_loss_bytes
from dsdoctor.recommend.measured import Measured, Pass
from dsdoctor.recommend.models import PRESETS, written
from dsdoctor.recommend.setting import Setting
from tests.support.command import clean_environment, dsdoctor

TINY = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}

MODEL_RECORD = {
    "type": "llama",
    "layers": 3,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 16,
    "intermediate": 176,
    "vocab": 1000,
    "positions": 2048,
    "experts": 0,
}


def case(batch: int, sequence: int, **more: Any) -> dict[str, Any]:
    return {
        "batch": batch,
        "sequence": sequence,
        "dtype": "bfloat16",
        "attention": "sdpa",
        "mask": "padded",
        "checkpointing": False,
        **more,
    }


def ask(config: dict[str, Any], cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    records = model_passes.ask(LocalHost(), sys.executable, config, cases)
    found = [record for record in records if "segments" in record]
    assert len(found) == len(cases), records
    return found


def top(record: dict[str, Any]) -> int:
    return max(int(record["forward_peak"]), *(int(peak) for peak, *_ in record["segments"]))


@pytest.mark.train
@pytest.mark.system
def test_shapes_take_what_real_tensors_take() -> None:
    """The same model on the CPU, with values: every storage that it allocates, at every moment."""
    kinds = [
        {"attention": "eager", "checkpointing": checkpointing, "dtype": dtype}
        for checkpointing in (False, True)
        for dtype in ("bfloat16", "float32")
    ]
    found = ask(
        TINY, [case(2, 96, device=device, **kind) for kind in kinds for device in ("meta", "cpu")]
    )
    for shapes, real in zip(found[::2], found[1::2], strict=True):
        assert top(shapes) == pytest.approx(top(real), rel=0.01)
        assert shapes["forward"] == pytest.approx(real["forward"], rel=0.01)
        assert [size for _, size, _ in shapes["segments"]] == [
            size for _, size, _ in real["segments"]
        ]
        for (one, *_), (other, *_) in zip(shapes["segments"], real["segments"], strict=True):
            assert one == pytest.approx(other, rel=0.02, abs=4096)


@pytest.mark.train
@pytest.mark.system
def test_keys_of_one_head_for_all_queries_store_the_scores() -> None:
    """Falcon hands them to SDPA as they are, and no kernel takes them."""
    falcon = {
        "model_type": "falcon", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
        "vocab_size": 200, "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False,
    }  # fmt: skip
    shapes, real = ask(falcon, [case(2, 256, mask="ones", device=at) for at in ("meta", "cpu")])
    scores = 4 * 2 * 8 * 256 * 256  # fp32, of one layer
    assert shapes["forward"] > 2 * scores
    assert top(shapes) == pytest.approx(top(real), rel=0.01)
    assert shapes["forward"] == pytest.approx(real["forward"], rel=0.01)


@pytest.mark.train
@pytest.mark.system
def test_modules_beside_adapters_are_trained_in_a_copy() -> None:
    """Embedding and output layer of a tied model: two copies, as PEFT makes them."""
    tied = {**TINY, "tie_word_embeddings": True}
    lora = {"lora_rank": 8, "attention": "eager", "checkpointing": True}
    saved = {**lora, "saved": ["embed_tokens", "lm_head"]}
    plain, one, shapes, real = ask(
        tied,
        [
            case(2, 96, **lora),
            case(2, 96, **lora, saved=["mlp"]),
            case(2, 96, device="meta", **saved),
            case(2, 96, device="cpu", **saved),
        ],
    )
    matrix = 1000 * 64
    assert (plain["saved"], shapes["saved"], one["saved"]) == (0, 2 * matrix, 3 * 3 * 64 * 176)
    assert shapes["trained"] == plain["trained"] + 2 * matrix
    # the linear layers of a module that is trained itself get no adapters
    assert one["trained"] < plain["trained"] + one["saved"]
    gradients = [size for _, size, _ in shapes["segments"]]
    assert gradients == [size for _, size, _ in real["segments"]]
    assert gradients.count(2 * matrix) == 2
    assert top(shapes) == pytest.approx(top(real), rel=0.01)
    records = [{"model": {**MODEL_RECORD, "tensors": [matrix]}}, shapes]
    built = measured.shape_of(records, "tiny")
    assert built is not None
    assert built.adapted == plain["trained"] // 8
    assert measured.read(records, 1).saved == 2 * matrix


@pytest.mark.train
@pytest.mark.system
def test_a_plan_measures_modules_beside_adapters(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    argv = ["recommend", "--model", "config.json", "--finetune", "lora", "--gpu-memory", "8"]
    argv += ["--host-memory", "64", "--seq-len", "64", "--micro-batch", "1", "--format", "json"]
    argv += ["--measure", "--python", sys.executable, "--modules-to-save"]
    env = clean_environment(tmp_path)
    done = dsdoctor(*argv, "embed_tokens,input_layernorm=192", env=env, cwd=tmp_path)
    assert done.status == 0, done.err
    notes = {reason["subject"]: reason["text"] for reason in done.report["reasons"]}
    assert "run on shapes without data (torch" in notes["activations"]
    adapters = 16 * 3 * (4 * 64 + 2 * 32 + 2 * 64 + 3 * (64 + 176))
    assert done.report["model"]["trainable"] == adapters + 1000 * 64 + 3 * 64
    done = dsdoctor(*argv, "resampler=76M", env=env, cwd=tmp_path)
    assert done.status == 2
    assert "the model has no module `resampler`" in done.err


@pytest.mark.train
@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("llama-3-8b", [(1, 2048, False, 4.66), (4, 2048, False, 18.62), (4, 2048, True, 12.26)]),
        ("gpt2", [(1, 1024, False, 0.76), (4, 1024, True, 2.34)]),
        ("gemma-2b", [(1, 8192, False, 29.63)]),
    ],
)
def test_peaks_are_those_of_the_cuda_allocator(
    name: str, rows: list[tuple[int, int, bool, float]]
) -> None:
    """Measured with torch 2.9.1's CUDA caching allocator, four layers of each model; GiB."""
    config = written(PRESETS[name])
    config["n_layer" if name == "gpt2" else "num_hidden_layers"] = 4
    found = ask(config, [case(batch, seq, checkpointing=on) for batch, seq, on, _ in rows])
    for record, (_, _, _, gib) in zip(found, rows, strict=True):
        assert top(record) / GIB == pytest.approx(gib, rel=0.02)


@pytest.mark.train
@pytest.mark.system
def test_a_type_that_no_formula_covers_is_planned_for(tmp_path: Path) -> None:
    config = {
        "model_type": "opt",
        "hidden_size": 256,
        "ffn_dim": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 2000,
        "max_position_embeddings": 512,
        "word_embed_proj_dim": 256,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    argv = (
        "--model",
        "config.json",
        "--gpu-memory",
        "8",
        "--host-memory",
        "64",
        "--seq-len",
        "128",
    )
    done = dsdoctor(
        "recommend", *argv, "--python", sys.executable, "--micro-batch", "2", "--format", "json",
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    notes = {reason["subject"]: reason["text"] for reason in done.report["reasons"]}
    assert "run on shapes without data (torch" in notes["activations"]
    assert done.report["model"]["parameters"] == 2000 * 256 + 514 * 256 + 2 * 527_104 + 512


@pytest.mark.train
@pytest.mark.parametrize(
    ("head", "more"),
    [
        pytest.param("RobertaForSequenceClassification", {}, id="classes of texts"),
        pytest.param("RobertaForQuestionAnswering", {}, id="answers to questions"),
        pytest.param(
            "RobertaForTokenClassification",
            {"id2label": {"0": "no", "1": "yes", "2": "other"}},
            id="classes of words",
        ),
        pytest.param("RobertaModel", {}, id="no head"),
        pytest.param(
            "ViTForImageClassification",
            {"id2label": {"0": "cat", "1": "dog"}},
            id="classes of images",
        ),
    ],
)
def test_classes_without_a_language_models_loss_are_measured(
    head: str, more: dict[str, Any]
) -> None:
    width = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 256}
    family = "vit" if head.startswith("ViT") else "roberta"
    config = {"model_type": family, "architectures": [head], "num_attention_heads": 4, **width}
    records = model_passes.ask(LocalHost(), sys.executable, config | more, [case(4, 128)])
    read = measured.read(records, 1)
    assert read.no_loss == ("RobertaModel" if head == "RobertaModel" else "")
    built = measured.shape_of(records, "x")
    assert built is not None
    if more:  # the classes of the last layer
        assert built.sizes[-1] == len(more["id2label"])


@pytest.mark.train
def test_a_type_that_nobody_knows_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "foobar5"}')
    done = dsdoctor(
        "recommend", "--model", "config.json", "--gpu-memory", "80", "--python", sys.executable,
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 2
    assert done.err.count("no formula covers") == 1
    assert "does not know the type `foobar5`; pass an interpreter" in done.err


def test_a_size_cannot_be_measured(tmp_path: Path) -> None:
    done = dsdoctor(
        "recommend", "--model", "1.5B", "--measure", "--gpu-memory", "80",
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 2
    assert "only the size of `1.5B` is known" in done.err


# ---- what is made of it -----------------------------------------------------------------------

LOW = Pass(batch=1, forward=100, segments=((300, 40, 90), (200, 20, 80), (120, 10, 7), (90, 0, 0)))
HIGH = Pass(
    batch=4, forward=400, segments=((1200, 40, 90), (500, 20, 80), (480, 10, 7), (90, 0, 0))
)


def test_a_micro_batch_between_two_is_interpolated_and_one_outside_is_not() -> None:
    found = Measured(by="torch", plain=(LOW, HIGH))
    model = PRESETS["gpt2"]
    middle = found.moments(model, Setting(micro_batch=2))
    assert middle is not None
    assert (middle[0].activations, middle[0].logits) == (200, 400)
    assert found.moments(model, Setting(micro_batch=8)) is None
    assert found.moments(model, Setting(micro_batch=2, checkpointing=True)) is None


def test_moments_keep_what_is_not_outdone() -> None:
    """A stretch is dropped where a later one takes as much: gradients only grow."""
    later = Pass(
        batch=1, forward=100, segments=((300, 40, 0), (100, 20, 0), (120, 10, 0), (90, 0, 0))
    )
    moments = Measured(by="torch", plain=(later,)).moments(PRESETS["gpt2"], Setting())
    assert moments is not None
    assert [(moment.name, moment.bytes, moment.finished) for moment in moments] == [
        ("loss", 300, 0),
        ("backward", 120, 30),
        ("backward", 90, 35),
    ]


def test_a_norm_is_taken_when_a_bucket_is_reduced() -> None:
    """Of the largest gradient in it, beside what is alive then; the last bucket at the end."""
    setting = Setting(stage=2, world=4, offload="optimizer", bucket=25)
    moments = Measured(by="torch", plain=(LOW,)).moments(PRESETS["gpt2"], setting)
    assert moments is not None
    assert [
        (moment.activations, moment.finished, moment.reduced)
        for moment in moments
        if moment.name == "reduction"
    ] == [(80, 20, 20), (0, 35, 10)]


def test_the_norm_of_an_offloaded_gradient_does_not_outweigh_the_loss() -> None:
    """Matrices as large as those of four layers of Phi-3.5-mini, in passes made up for the test.

    The engine peaks at the loss (Phi-3.5-mini of benchmarks/memory.md), not in a block with the
    norm of its largest matrix.
    """
    sizes = [98_500_608, *[28_311_552, 9_437_184, 50_331_648, 25_165_824] * 4, 98_500_608]
    backward = [(846, 98_500_608, 212), (846, 25_165_824, 600), (700, 50_331_648, 424)]
    segments = tuple((mib << 20, 2 * size, left << 20) for mib, size, left in backward)
    passed = Pass(
        batch=1, forward=694 << 20, segments=((1696 << 20, *segments[0][1:]), *segments[1:])
    )
    model = dataclasses.replace(PRESETS["llama-3-8b"], sizes=tuple(sizes))
    setting = Setting(
        stage=2, world=8, offload="optimizer", sequence=4096, checkpointing=True, accumulation=4
    )
    passes = Measured(by="torch", recomputing=(passed,)).moments(model, setting)
    need = memory.estimate(model, setting, passes=passes)
    assert any(item.phase == "loss" for item in memory.at_peak(need.gpu))


def test_measured_passes_replace_the_formula() -> None:
    model, setting = PRESETS["gpt2"], Setting(stage=2, world=4)
    passes = Measured(by="torch", plain=(LOW,)).moments(model, setting)
    sized = memory.estimate(model, setting, passes=passes)
    loss = sum(item.bytes for item in sized.gpu if item.phase == "loss")
    assert loss == 300 + 9  # and the allowance for fragmentation


def test_pieces_of_a_fused_loss_are_gone_before_the_backward_pass() -> None:
    """CWM with adapters on 4 bits: 21.89 GiB in an engine, 23.60 predicted with both at once."""
    model = PRESETS["llama-3-8b"]
    setting = Setting(fused_loss=True, lora_rank=8, micro_batch=2, sequence=4096)
    kept = fused_gradient_bytes(model, setting)
    for forward, backward, peak in (
        (GIB, 9 * GIB, 9 * GIB + kept),
        (9 * GIB, 9 * GIB, 9 * GIB + fused_loss_bytes(model, setting)),
    ):
        one = Pass(batch=2, forward=forward, segments=((backward, 0, 0),))
        moments = Measured(by="", plain=(one,)).moments(model, setting)
        assert moments is not None
        assert max(moment.bytes for moment in moments) == peak


@pytest.mark.parametrize(
    ("records", "words"),
    [
        pytest.param(
            [{"error": {"kind": "KeyError", "message": "x"}}],
            "KeyError: x",
            id="an error of the model's code",
        ),
        pytest.param(
            [{"error": {"kind": "LookupError", "message": "does not know the type `x`"}}],
            "measured: does not know the type `x`",
            id="a type that transformers does not know",
        ),
        pytest.param(
            [{"error": {"kind": "ModuleNotFoundError", "message": "No module named 'torch'"}}],
            "measured: its environment has no torch",
            id="an environment without torch",
        ),
        pytest.param(
            [{"error": {"kind": "KeyError", "message": "expert_tensor(..., device='meta')"}}],
            "its code reads values of its tensors",
            id="a tensor made on meta",
        ),
        pytest.param(
            [{"error": {"kind": "RuntimeError", "message": "x() on meta tensors"}}],
            "its code reads values of its tensors, and shapes have none",
            id="an operation on shapes",
        ),
        pytest.param(
            [{"step": "import torch"}], "ended in step `import torch`", id="no record after a step"
        ),
    ],
)
def test_a_failed_measurement_says_why(records: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(NotMeasuredError, match=words):
        measured.read(records, 1)
