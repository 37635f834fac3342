from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.model.redact import MASK, mask, redact

SECRETS = {
    "Hugging Face": "hf_" + "aB3" * 11,
    "GitHub": "ghp_" + "aB3" * 12,
    "AWS": "AKIA" + "ABCDEFGH12345678",
    "OpenAI": "sk-" + "aB3" * 12,
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("frame", ["{}", "--x={}", "token: {} end", "/a/{}/b", 'x="{}"'])
def test_tokens_are_masked(secret: str, frame: str) -> None:
    assert secret not in mask(frame.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", id="an environment variable"
        ),
        pytest.param(
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE1",
            id="a line of an INI file",
        ),
        pytest.param("password: hunter2", id="a line of YAML"),
        pytest.param("https://bob:hunter2@proxy:3128", id="a URL"),
        pytest.param("Authorization: Bearer abcdefghijklmnop123", id="a header"),
    ],
)
def test_values_after_telling_names_are_masked(text: str) -> None:
    masked = mask(text)
    assert MASK in masked
    for secret in ("hunter2", "0123456789abcdef", "wJalr", "abcdefghijklmnop123"):
        assert secret not in masked


@pytest.mark.parametrize(
    "text",
    [
        "/usr/local/cuda/bin:/opt/env/bin",
        "key=model.layers.0.self_attn.q_proj.weight",
        pytest.param(
            "Missing key(s) in state_dict: transformer_block_attention_weight",
            id="missing keys of a state dict",
        ),
        "pad_token: <|endoftext|>",
        "GPU-1a2b3c4d-0000-1111-2222-333344445555",
        "git@github.com:o/r and ssh://git@github.com/o/r",
        "nvidia-cudnn-cu12==9.10.2.21",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text) == text


def test_the_same_gets_the_same_name() -> None:
    tree = {
        "argv": ["/home/ann/run.py", "gpu-17:29500", "10.1.2.3"],
        "env": {"HOME": "/home/ann", "MASTER_ADDR": "10.1.2.3"},
        "by_path": {"/home/ann/x": 1},
    }
    assert redact(tree, users=["ann"], hosts=["gpu-17"]) == {
        "argv": ["/home/user-1/run.py", "host-1:29500", "ip-1"],
        "env": {"HOME": "/home/user-1", "MASTER_ADDR": "ip-1"},
        "by_path": {"/home/user-1/x": 1},
    }


def test_versions_addresses_of_nobody_and_field_names_stay() -> None:
    tree = {
        "torch_build": {"cudnn": "9.10.2.21", "cuda_wheels": {"nvidia-curand-cu12": "10.3.7.77"}},
        "root": "127.0.0.1",
        "pci": "0000:1b:00.0",
        "error": "c10::Error at fd::x",
        "user": "root",
    }
    assert redact(tree, users=["root", "torch"], hosts=["localhost"]) == tree


def test_other_homes_and_ipv6() -> None:
    out = redact(["/home/eve/x", "fe80::1ff:fe23:4567:890a", "/Users/eve"])
    assert out == ["/home/user-1/x", "ip-1", "/Users/user-1"]


NAMES = st.text(string.ascii_lowercase, min_size=6, max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(JSON, NAMES, NAMES, NAMES)
def test_nothing_named_is_left(tree: object, user: str, host: str, folder: str) -> None:
    path = f"/data/{folder}"
    whole = {"t": tree, "x": [f"{user}@{host}", f"{path}/a", f"/home/{user}/b {host}.log"]}
    out = redact(whole, users=[user], hosts=[host], paths=[path])
    left = json.dumps(out["x"])
    for name in {user, host, folder} - {"redact"}:
        assert f"/{name}" not in left
        assert f"{name}@" not in left
    assert redact(out, users=[user], hosts=[host], paths=[path])["x"] == out["x"]
    assert set(out) == set(whole)
