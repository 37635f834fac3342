"""What the measuring child knows of models that ask, build or choose in ways of their own."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from dsdoctor.probes.children import measure_model


def test_a_model_that_sees_is_not_taken_for_its_text_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen3.5 has a class of its own for that."""
    tables = types.SimpleNamespace(
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES={"x": "Text"},
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES={"x": "Seeing"},
    )
    monkeypatch.setitem(sys.modules, "transformers.models.auto.modeling_auto", tables)
    library = types.SimpleNamespace(Text="text", Seeing="seeing")
    blind = types.SimpleNamespace(model_type="x")
    seeing = types.SimpleNamespace(model_type="x", vision_config={})
    assert measure_model.head_of(library, blind) == "text"
    assert measure_model.head_of(library, seeing) == "seeing"
    tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES = {"audio": "Seeing"}
    assert measure_model.head_of(library, types.SimpleNamespace(model_type="audio")) == "seeing"


HALF = """
import sys, torch
sys.path.append("dsdoctor/probes/children")
import dsdmeasure_cuda
make = {"dtype": torch.float16, "device": "meta"}
part = torch.empty((1, 2, 8, 16), **make)
mask = torch.ones((1, 1, 8, 8), dtype=torch.bool)
print(tuple(dsdmeasure_cuda.attention(part, part, part, mask).shape))
"""
AUTOCAST = """
import torch
from dsdoctor.probes.children import measure_model
measure_model.allow_autocast(torch)
with torch.autocast(device_type="meta", enabled=False):
    pass
with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
    print(torch.is_autocast_enabled("cpu"))
"""
POOLED = """
import types, torch
from dsdoctor.probes.children import dsdmeasure_inputs
vision = types.SimpleNamespace(image_size=896, patch_size=14)
config = types.SimpleNamespace(
    model_type="gemma3", vision_config=vision, image_token_id=5, mm_tokens_per_image=256
)
case = {"batch": 2, "sequence": 600, "image_tokens": 512}
ids = torch.ones((2, 600), dtype=torch.long)
made = dsdmeasure_inputs.images_of(torch, case, config, ids, {"device": "meta"})
print(tuple(made["pixel_values"].shape), int(made["token_type_ids"].sum()))
"""
GROUPED = """
import sys, torch
sys.path.append("dsdoctor/probes/children")
import dsdmeasure_storages
make = {"dtype": torch.float16, "device": "meta"}
with dsdmeasure_storages.StorageMeter(4, 2):
    tokens = torch.empty((32, 64), **make).requires_grad_()
    weight = torch.empty((4, 64, 128), **make)
    ends = torch.empty(4, dtype=torch.int32, device="meta")
    out = torch.nn.functional.grouped_mm(tokens, weight, offs=ends)
    out.square().sum().backward()
print(tuple(out.shape), tokens.grad.dtype)
"""
OWN_WAYS = """
import torch
from dsdoctor.probes.children import measure_model
class Config:
    hidden_size = 8
    @property
    def head_dim(self):
        raise RuntimeError("differs between layers")
model = torch.nn.Linear(2, 2, device="meta")
model.bias = torch.nn.Parameter(torch.normal(0, 1, (2,)))
measure_model.onto(torch, model, "meta")
print(measure_model.first(Config(), ("head_dim", "hidden_size")), model.bias.device)
"""
RECORDING = """
import types, torch
from dsdoctor.probes.children import dsdmeasure_inputs
config = types.SimpleNamespace(
    max_source_positions=60, max_target_positions=16, input_feat_per_channel=40, input_channels=2
)
case = {"batch": 2, "sequence": 99, "dtype": "bfloat16"}
made = dsdmeasure_inputs.inputs_of(torch, case, config)
print(tuple(made["input_features"].shape), tuple(made["labels"].shape))
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param(AUTOCAST, "True", id="rotary embeddings of transformers 4"),
        pytest.param(POOLED, "(4, 3, 896, 896) 1024", id="images that are pooled"),
        pytest.param(HALF, "(1, 2, 8, 16)", id="padding in fp16"),
        pytest.param(GROUPED, "(32, 128) torch.float16", id="experts in fp16"),
        pytest.param(OWN_WAYS, "8 meta", id="per-layer attributes, weights made on the CPU"),
        pytest.param(RECORDING, "(2, 60, 80) (2, 16)", id="recordings in frames"),
    ],
)
def test_the_child_knows_what_models_ask_for(code: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.stdout.strip() == printed, done.stderr[-2000:]
