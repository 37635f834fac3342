"""Secrets of many kinds, to be planted in environments, commands, files and logs.

None was ever valid: they are put together here, so that no scanner of repositories takes them for
real ones. Each has a text that must not be found anywhere, and a line in which it stands.
"""

from __future__ import annotations

import dataclasses

_RANDOM = "q7Zk2Xw9Rt4Vb6Yn8Mp3Lc5Jd1Hf0Gs"
_HEX = "9f3c1a7be2d4860f5b1c9a3e7d2f4086"
_UPPER = "Q7ZK2XW9RT4VB6YN"


@dataclasses.dataclass(frozen=True)
class Planted:
    """A secret.

    Attributes:
        kind: what it is.
        line: text in which it stands.
        secret: what must not be found.
    """

    kind: str
    line: str
    secret: str


def _form(kind: str, head: str, body: str) -> Planted:
    """A token that is recognised wherever it stands."""
    return Planted(kind, f"loading {head}{body} now", head + body)


def _named(name: str, value: str, form: str = "{}={}") -> Planted:
    return Planted(form.format(name, "…"), form.format(name, value), value)


FORMS = (
    _form("hugging face", "hf" + "_", _RANDOM),
    _form("hugging face organisation", "api_org" + "_", _RANDOM),
    _form("github classic", "gh" + "p_", _RANDOM + "abcd"),
    _form("github oauth", "gh" + "o_", _RANDOM + "abcd"),
    _form("github app", "gh" + "s_", _RANDOM + "abcd"),
    _form("github fine-grained", "github" + "_pat_", "11ABC_" + _RANDOM),
    _form("gitlab", "glpat" + "-", _RANDOM[:20]),
    _form("gitlab trigger", "glptt" + "-", _HEX),
    _form("aws key", "AK" + "IA", _UPPER),
    _form("aws session key", "AS" + "IA", _UPPER),
    _form("openai", "sk" + "-proj-", _RANDOM),
    _form("anthropic", "sk" + "-ant-api03-", _RANDOM),
    _form("stripe", "sk" + "_live_", _RANDOM),
    _form("nvidia", "nvapi" + "-", _RANDOM + "_-" + _RANDOM),
    _form("pypi", "pypi" + "-", "AgEIcHlwaS5vcmc" + _RANDOM),
    _form("npm", "npm" + "_", _RANDOM + "abcd"),
    _form("docker hub", "dckr" + "_pat_", _RANDOM),
    _form("slack bot", "xox" + "b-", "123456789012-" + _RANDOM),
    _form("slack app", "xapp" + "-", "1-A0B-" + _RANDOM),
    _form("google api", "AI" + "za", "Sy" + _RANDOM + "abc"),
    _form("google oauth", "ya29" + ".", _RANDOM + "_-x"),
    _form("google client", "GOCSPX" + "-", _RANDOM),
    _form("groq", "gsk" + "_", _RANDOM + _RANDOM),
    _form("replicate", "r8" + "_", _RANDOM + "abcdef"),
    _form("vault", "hvs" + ".", _RANDOM),
    _form("databricks", "dapi", _HEX),
    _form("digital ocean", "dop" + "_v1_", _HEX + _HEX),
    _form("sendgrid", "SG" + ".", _RANDOM[:22] + "." + _RANDOM + "abc"),
    _form("tailscale", "tskey" + "-auth-", _RANDOM),
    _form("json web token", "eyJ" + "hbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxIn0." + _RANDOM),
    _form("slack web hook", "https://hooks.slack.com/services/", f"T0/B0/{_RANDOM}"),
    Planted(
        "private key",
        "-----BEGIN OPENSSH PRIVATE " + f"KEY-----\n{_RANDOM}\n-----END OPENSSH PRIVATE KEY-----",
        _RANDOM,
    ),
    Planted("unfinished private key", "-----BEGIN RSA PRIVATE " + f"KEY-----\\n{_RANDOM}", _RANDOM),
)
PLACES = (
    Planted("password in a URL", "proxy http://bob:hunter2x@proxy:3128/", "hunter2x"),
    Planted("password with an @", "git clone https://bob:hun@ter2x@host/r", "ter2x"),
    Planted("password of a database", "mlflow at postgresql://u:hunter2x@db/m", "hunter2x"),
    Planted("password without a user", "redis://:hunter2x@cache:6379/0", "hunter2x"),
    Planted("token in a URL", f"pip install https://{_RANDOM}@host/simple", _RANDOM),
    Planted(
        "presigned URL",
        f"GET https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={_HEX}&x=1",
        _HEX,
    ),
    Planted("presigned credential", "https://h/k?X-Amz-Credential=ABC%2F2024x&b", "ABC%2F2024x"),
    Planted("shared access", "https://a.blob.core.windows.net/c?sv=1&sig=hunter2x%3D", "hunter2x"),
    Planted("google signature", f"https://s.com/b?X-Goog-Signature={_HEX}", _HEX),
    Planted("key in a URL", "GET https://h/v1?api_key=hunter2x&page=1", "hunter2x"),
    Planted("token parameter", "wss://jupyter:8888/lab?token=hunter2x", "hunter2x"),
    Planted("bearer", "Authorization: Bearer hunter2x", "hunter2x"),
    Planted("basic", "curl -H 'Authorization: Basic aHVudGVyMjpodW50ZXIy' x", "aHVudGVyMjpodW50"),
    Planted("bearer alone", f"sent Bearer {_RANDOM}", _RANDOM),
    Planted("key header", "x-api-key: hunter2x", "hunter2x"),
    Planted("cookie", "Set-Cookie: session=hunter2x; Path=/", "hunter2x"),
    Planted("curl", "curl -s -u bob:hunter2x https://h/", "hunter2x"),
    Planted("sshpass", "sshpass -p hunter2x ssh gpu1", "hunter2x"),
    Planted("netrc", "machine h login bob password hunter2x", "hunter2x"),
    Planted(
        "connection string",
        "DefaultEndpointsProtocol=https;AccountKey=hunter2xhunter2x==;Suffix=y",
        "hunter2xhunter2x",
    ),
)
NAMES = (
    _named("HF_TOKEN", "hunter2x", "pdsh -w gpu1 export {}={}; cd /srv/job"),
    _named("SLURM_JWT", "hunter2x"),
    _named("NVIDIA_API_KEY", "hunter2x", "export {}='{}'"),
    _named("HF_HUB_TOKEN", "hunter2x"),
    _named("WANDB_API_KEY", "hunter2x"),
    _named("CUDA_PROXY_AUTH", "hunter2x"),
    _named("NCCL_STORE_CREDS", "hunter2x"),
    _named("TORCH_STORE_PASSPHRASE", "hunter2x"),
    _named("DS_DB_PASSWORD", "hunter2x"),
    _named("MYSQL_PWD", "hunter2x"),
    _named("SLURM_SECRET", "hunter2x"),
    _named("NVIDIA_CREDENTIALS", "hunter2x"),
    _named("GITHUB_PAT", "hunter2x"),
    _named("AWS_SECRET_ACCESS_KEY", "hunter2x"),
    _named("api_key", "hunter2x", "  {}: {}"),
    _named("wandb_api_key", "hunter2x", "{{ {}: {}, "),
    _named("apiKey", "hunter2x", '"{}": "{}"'),
    _named("clientSecret", "hunter2x", '\\"{}\\": \\"{}\\"'),
    _named("password", "hunter2x", "{} = {}"),
    _named("db.passphrase", "hunter2x", "{}: '{}'"),
    _named("hub_token", "hunter2x", "TrainingArguments({}='{}', steps=4)"),
    _named("--token", f"{_RANDOM}", "train.py {} {} --steps 4"),
    _named("--wandb-api-key", "hunter2x", "train.py {} {}"),
    _named("--password", "hunter2x", "train.py {}={}"),
    _named("auth", _RANDOM, '"{}": "{}"'),
)
PLANTED = (*FORMS, *PLACES, *NAMES)

#: Text that looks a little like a secret and must stay as it is.
ORDINARY = (
    "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_P2P_LEVEL=NVL",
    "NCCL_IB_SL=3 UCX_TLS=rc,cuda FI_PROVIDER=efa TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
    "TOKENIZERS_PARALLELISM=false tokenizer=meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_class: PreTrainedTokenizerFast, tokenizer_file: /models/7b/tokenizer.json",
    "max_tokens=4096 max_new_tokens: 512 num_tokens=123456789012345678 tokens: 81920",
    "pad_token: <|endoftext|> eos_token='</s>' pad_token=[PAD] bos_token=<s> DEFAULT_PAD_TOKEN=[PAD]",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN=1 use_auth_token=True token=None hub_token=<HUB_TOKEN>",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b of deepspeed 0.19.8+3f786850",
    "revision=3f786850e387550fdab836ed7e6dc881de23001b sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "key=model.layers.0.self_attn.q_proj.weight keys: ['optimizer', 'lr_scheduler']",
    "Missing key(s) in state_dict: transformer_block_attention_weight",
    "Unexpected key(s): Meta-Llama-3-8B-Instruct.lm_head.weight",
    "KeyError: 'optimizer_state_dict' PassManager compass=north bypass=1 passed=3",
    "PWD=/home/ann/train OLDPWD=/home/ann SSH_AUTH_SOCK=/tmp/ssh-x/agent.1 XAUTHORITY=/run/x",
    "GPU-1a2b3c4d-0000-1111-2222-333344445555 MIG-1a2b3c4d-0000-1111-2222-333344445555",
    "git@github.com:o/r and ssh://git@github.com/o/r https://huggingface.co/gpt2?download=true",
    "nvidia-cudnn-cu12==9.10.2.21 torch==2.11.0+cu130 triton-3.4.0-cp312-cp312-linux_x86_64.whl",
    "basic functionality, Basic Authentication, basic zero3-training, a bearer of bad news",
    "monkey: patched keyboard=us author=ann authority: none signal=9 assignment: a=b design: x",
    "Permission denied (publickey,password). pathological pattern=ab* dispatch: 4",
    "/usr/local/cuda/bin:/opt/env/bin LD_LIBRARY_PATH=/opt/secrets-free/lib",
    "CUDA_VISIBLE_DEVICES=0,1 MASTER_ADDR=gpu1 MASTER_PORT=29500 RANK=0 OMP_NUM_THREADS=8",
    "10:42:07 [INFO] keys 12, tokens/s: 18234.5, grad_norm: 1.25e-3, loss: 2.3456789",
    "risk-adjusted sk-learn-contrib-packages-of-old task-queue-manager-of-the-node",
)
