"""Secrets of many kinds, to be planted in environments, commands, files and logs.

None was ever valid: they are put together here, so that no scanner of repositories takes them for
real ones. Each has a text that must not be found anywhere, and a line in which it stands.
"""

from __future__ import annotations

import base64
import dataclasses
import json

_RANDOM = "q7Zk2Xw9Rt4Vb6Yn8Mp3Lc5Jd1Hf0Gs"
_HEX = "9f3c1a7be2d4860f5b1c9a3e7d2f4086"
_UPPER = "Q7ZK2XW9RT4VB6YN"
_UUID = "9f3c1a7b-e2d4-860f-5b1c-9a3e7d2f4086"


def _encoded(document: object) -> str:
    return base64.b64encode(json.dumps(document).encode()).decode()


_BASIC = base64.b64encode(b"bob:hunter2x").decode()
_SERVICE_ACCOUNT = _encoded(
    {"type": "service_account", "private_key": "-----BEGIN PRIVATE " + f"KEY-----\n{_RANDOM}\n"}
)
_DOCKER = _encoded({"auths": {"nvcr.io": {"auth": _BASIC}}})
_NEPTUNE = _encoded({"api_address": "https://app.neptune.ai", "api_key": _UUID})


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


def _named(name: str, value: str, form: str = "{}={}", where: str = "") -> Planted:
    """A value behind a name that says that it is secret."""
    return Planted(f"{name} {where}".rstrip(), form.format(name, value), value)


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
    _form("jfrog", "AKC" + "p", _RANDOM + _RANDOM),
    _form("alibaba", "LTA" + "I", "5t" + _RANDOM[:18]),
    _form("tencent", "AKI" + "D", _RANDOM),
    _form("gemini", "AQ" + ".Ab8", "RN6" + _RANDOM),
    _form("runpod", "rp" + "a_", _UPPER * 3),
    _form("pulumi", "pu" + "l-", _HEX + _HEX[:8]),
    _form("doppler", "dp" + ".pt.", _RANDOM + _RANDOM),
    _form("xai", "xa" + "i-", _RANDOM + _RANDOM),
    _form("perplexity", "pp" + "lx-", _RANDOM + _RANDOM),
    _form("cerebras", "cs" + "k-", _HEX + _HEX),
    _form("fireworks", "f" + "w_", _RANDOM[:22]),
    _form("tavily", "tv" + "ly-dev-", _RANDOM),
    _form("pinecone", "pc" + "sk_", _RANDOM + "_" + _RANDOM),
    _form("langsmith", "ls" + "v2_pt_", _HEX + "_9f3c1a7be2"),
    _form("grafana", "gl" + "sa_", _RANDOM + "_9f3c1a7b"),
    _form("new relic", "NR" + "AK-", _UPPER + _UPPER[:11]),
    _form("sentry", "sn" + "trys_", "eyJpYXQiOjE2" + _RANDOM),
    _form("1password", "op" + "s_eyJ", _RANDOM),
    _form("crypt", "$" + "6$saltsalt$", _RANDOM + _RANDOM),
    Planted("entra", f"secret abc8{'Q'}~{_RANDOM}abc expires", _RANDOM),
    Planted("terraform", f"host {_RANDOM[:14]}.{'atlasv1'}.{_RANDOM}{_RANDOM}", _RANDOM + _RANDOM),
    Planted("anaconda", f"https://conda.anaconda.org/t/ab-{_UUID}/channel/noarch", _UUID),
    Planted("feishu web hook", f"https://open.feishu.cn/open-apis/bot/v2/hook/{_UUID}", _UUID),
    Planted("telegram", f"https://api.telegram.org/bot123456789:AAH{_RANDOM}x/send", _RANDOM),
    Planted("service account in base64", f"GCP_SA={_SERVICE_ACCOUNT}", _SERVICE_ACCOUNT),
    Planted("docker config in base64", f".dockerconfigjson: {_DOCKER}", _DOCKER),
    Planted("neptune", f"connecting with {_NEPTUNE}", _NEPTUNE),
    Planted(
        "ssh2 private key",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE " + f"KEY ----\n{_RANDOM}\n---- END SSH2 KEY ----",
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
    Planted("netrc with an account", "login bob account x password hunter2x", "hunter2x"),
    Planted("netrc in another order", "machine h password hunter2x login bob", "hunter2x"),
    Planted("docker login", "docker login nvcr.io -u oauth -p hunter2x", "hunter2x"),
    Planted("docker config", '{"auths": {"nvcr.io": {"auth": "' + _BASIC + '"}}}', _BASIC),
    Planted("identity token", '{"identitytoken": "hunter2x"}', "hunter2x"),
    Planted("mysql", "mysql -u root -phunter2x slurm", "hunter2x"),
    Planted("redis", "redis-cli -h head -a hunter2x ping", "hunter2x"),
    Planted("ipmitool", "ipmitool -H bmc1 -U admin -P hunter2x power status", "hunter2x"),
    Planted("wandb login", f"wandb login --relogin {_HEX}9f3c1a7b", _HEX + "9f3c1a7b"),
    Planted("password on stdin", "echo hunter2x | docker login --password-stdin", "hunter2x"),
    Planted("proxy without a scheme", "http_proxy=bob:hunter2x@proxy:3128", "hunter2x"),
    Planted("password in front of a host", "root:hunter2x@gpu2 slots=8", "hunter2x"),
    Planted("proxy of curl", "curl --proxy-user bob:hunter2x https://h/", "hunter2x"),
    Planted("connection of a database", "Server=db;Uid=sa;Pwd=hunter2x;", "hunter2x"),
    Planted("password parameter", "GET https://h/j/1?pwd=hunter2x&x=1", "hunter2x"),
    Planted("session parameter", f"GET https://h/?sessionid={_HEX}", _HEX),
    Planted("percent-encoded", "GET /?q=%22password%22%3A%22hunter2x%22", "hunter2x"),
    Planted("digest", f'Authorization: Digest username="b", response="{_HEX}"', _HEX),
    Planted("another scheme", "Authorization: SSWS hunter2x", "hunter2x"),
    Planted("cookie in quotes", f'Cookie: _xsrf=2|1a; username-h="{_RANDOM}"', _RANDOM),
    Planted("kubeadm", "kubeadm join h:6443 --token abcdef.0123456789abcdef", "0123456789abcdef"),
    Planted("quote in a password", 'password = "Tr0ub4dor\\"hunter2x"', "hunter2x"),
    Planted("quoted for a shell", "export DB_PASSWORD='Tr0'\"'\"'hunter2x'", "hunter2x"),
    Planted("Chinese", "\u5bc6\u7801\uff1ahunter2x", "hunter2x"),
    Planted(
        "connection string",
        "DefaultEndpointsProtocol=https;AccountKey=hunter2xhunter2x==;Suffix=y",
        "hunter2xhunter2x",
    ),
)
NAMES = (
    _named("HF_TOKEN", "hunter2x", "pdsh -w gpu1 export {}={}; cd /srv/job", "exported by pdsh"),
    _named("SLURM_JWT", "hunter2x"),
    _named("NVIDIA_API_KEY", "hunter2x", "export {}='{}'", "exported in quotes"),
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
    _named("api_key", "hunter2x", "  {}: {}", "in YAML"),
    _named("wandb_api_key", "hunter2x", "{{ {}: {}, ", "in YAML on one line"),
    _named("apiKey", "hunter2x", '"{}": "{}"', "in JSON"),
    _named("clientSecret", "hunter2x", '\\"{}\\": \\"{}\\"', "in JSON within a string"),
    _named("password", "hunter2x", "{} = {}", "in an INI file"),
    _named("db.passphrase", "hunter2x", "{}: '{}'", "in quotes in YAML"),
    _named(
        "hub_token", "hunter2x", "TrainingArguments({}='{}', steps=4)", "as an argument of Python"
    ),
    _named("--token", f"{_RANDOM}", "train.py {} {} --steps 4", "in front of other options"),
    _named("--wandb-api-key", "hunter2x", "train.py {} {}", "as the last option"),
    _named("--password", "hunter2x", "train.py {}={}", "with an equals sign"),
    _named("auth", _RANDOM, '"{}": "{}"', "in JSON"),
    _named("PGPASSWORD", "hunter2x"),
    _named("SSHPASS", "hunter2x"),
    _named("hftoken", "hunter2x"),
    _named("appsecret", "hunter2x"),
    _named("DBPASS", "hunter2x"),
    _named("HW_SK", "hunter2x"),
    _named("SECRET_KEY_BASE", "hunter2x"),
    _named("master_key", "hunter2x"),
    _named("HF_TOKEN", "hunter2x", "      {}:                        {}", "in a table of columns"),
    _named("HF_TOKEN", "hunter2x", "- name: {}\n  value: {}", "in the env of a pod"),
    _named("HF_TOKEN", "hunter2x", '{{"name":"{}","value":"{}"}}', "in the env of a pod in JSON"),
    _named("HF_TOKEN", "hunter2x", 'os.environ["{}"] = "{}"', "set in os.environ"),
    _named(
        "HF_TOKEN", "hunter2x", "os.environ.setdefault('{}', '{}')", "as a default in os.environ"
    ),
    _named("HF_TOKEN", "hunter2x", "setenv {} {}", "set by csh"),
    _named("HF_TOKEN", "hunter2x", "\x1b[1m{}\x1b[0m=\x1b[32m{}\x1b[0m", "in color"),
    _named("aws_secret_access_key", "hunter2x", "aws configure set {} {}", "set by aws configure"),
    _named("password", "hunter2x", "<{}>{}</password>", "as an element of XML"),
    _named(
        "fs.s3a.secret.key",
        "hunter2x",
        "<name>{}</name><value>{}</value>",
        "in a property of Hadoop",
    ),
    _named("HF_TOKEN", "hunter2x", "%env {} {}", "set in a notebook"),
    _named("ldap_default_authtok", "hunter2x", "{} = {}", "in an INI file"),
    _named("CI_JOB_JWT_V2", "hunter2x"),
    _named("Password", "hunter2x", '<add key="{}" value="{}"/>', "as an attribute of XML"),
)
#: Only as they stand on several lines.
LINES = (
    Planted("block of YAML", "password: |\n  hunter2x", "hunter2x"),
    Planted("folded block of YAML", "password: >-\n    hunter2x\nnext: 1", "hunter2x"),
    Planted("a line that goes on", "export HF_TOKEN=\\\n  hunter2x", "hunter2x"),
)
PLANTED = (*FORMS, *PLACES, *NAMES)

#: Text that looks a little like a secret and must stay as it is.
ORDINARY = {
    "variables of NCCL": (
        "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_P2P_LEVEL=NVL"
    ),
    "variables of transports": (
        "NCCL_IB_SL=3 UCX_TLS=rc,cuda FI_PROVIDER=efa TORCH_NCCL_ASYNC_ERROR_HANDLING=1"
    ),
    "a tokenizer's name": (
        "TOKENIZERS_PARALLELISM=false tokenizer=meta-llama/Llama-3.1-8B-Instruct"
    ),
    "a tokenizer's class and file": (
        "tokenizer_class: PreTrainedTokenizerFast, tokenizer_file: /models/7b/tokenizer.json"
    ),
    "numbers of tokens": (
        "max_tokens=4096 max_new_tokens: 512 num_tokens=123456789012345678 tokens: 81920"
    ),
    "special tokens": (
        "pad_token: <|endoftext|> eos_token='</s>' pad_token=[PAD] bos_token=<s> DEFAULT_PAD_TOKEN=[PAD]"
    ),
    "switches of tokens": (
        "HF_HUB_DISABLE_IMPLICIT_TOKEN=1 use_auth_token=True token=None hub_token=<HUB_TOKEN>"
    ),
    "a commit": "commit 3f786850e387550fdab836ed7e6dc881de23001b of deepspeed 0.19.8+3f786850",
    "a revision and a digest": (
        "revision=3f786850e387550fdab836ed7e6dc881de23001b sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    ),
    "keys of weights": (
        "key=model.layers.0.self_attn.q_proj.weight keys: ['optimizer', 'lr_scheduler']"
    ),
    "missing keys of a state dict": (
        "Missing key(s) in state_dict: transformer_block_attention_weight"
    ),
    "unexpected keys of a model": "Unexpected key(s): Meta-Llama-3-8B-Instruct.lm_head.weight",
    "words with pass in them": (
        "KeyError: 'optimizer_state_dict' PassManager compass=north bypass=1 passed=3"
    ),
    "paths in variables": (
        "PWD=/home/ann/train OLDPWD=/home/ann SSH_AUTH_SOCK=/tmp/ssh-x/agent.1 XAUTHORITY=/run/x"
    ),
    "UUIDs of GPUs": (
        "GPU-1a2b3c4d-0000-1111-2222-333344445555 MIG-1a2b3c4d-0000-1111-2222-333344445555"
    ),
    "URLs without a password": (
        "git@github.com:o/r and ssh://git@github.com/o/r https://huggingface.co/gpt2?download=true"
    ),
    "versions of packages": (
        "nvidia-cudnn-cu12==9.10.2.21 torch==2.11.0+cu130 triton-3.4.0-cp312-cp312-linux_x86_64.whl"
    ),
    "basic and bearer as words": (
        "basic functionality, Basic Authentication, basic zero3-training, a bearer of bad news"
    ),
    "words with key, auth and sign in them": (
        "monkey: patched keyboard=us author=ann authority: none signal=9 assignment: a=b design: x"
    ),
    "words with pass and path in them": (
        "Permission denied (publickey,password). pathological pattern=ab* dispatch: 4"
    ),
    "search paths": "/usr/local/cuda/bin:/opt/env/bin LD_LIBRARY_PATH=/opt/secrets-free/lib",
    "variables of a launch": (
        "CUDA_VISIBLE_DEVICES=0,1 MASTER_ADDR=gpu1 MASTER_PORT=29500 RANK=0 OMP_NUM_THREADS=8"
    ),
    "a line of a training log": (
        "10:42:07 [INFO] keys 12, tokens/s: 18234.5, grad_norm: 1.25e-3, loss: 2.3456789"
    ),
    "world info of a launcher": (
        "--world_info=eyJncHUxIjogWzAsIDFdLCAiZ3B1MiI6IFswLCAxXX0= --node_rank=0"
    ),
    "keys of a cache": (
        "cache key: 9f3c1a7be2d4860f5b1c9a3e7d2f4086 key: runs/A1b2C3d4E5f6/step100.pt"
    ),
    "paths of files with secrets": (
        "GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/sa.json jwt_key=/etc/slurm/jwt.key HF_TOKEN=~/.token"
    ),
    "names in place of values": (
        "api_key=config.api_key, token=args.hf_token, password=getpass.getpass() hub_token=hub_token"
    ),
    "code that reads a token": (
        "os.environ['HF_TOKEN'] = token c = Client(address, authkey=current_process().authkey)"
    ),
    "placeholders": (
        "HF_TOKEN=<your_token> HF_TOKEN=your_token_here WANDB_API_KEY=xxxx StoragePass=(null)"
    ),
    "prompts for a password": (
        "sudo: a password is required password: Permission denied imagePullSecrets: [{name: nvcr}]"
    ),
    "names of secrets": (
        "secret: {secretName: hf} DataLoader(pin_memory=True) bypass=1 hotkey: ctrl monkey=1 compass: n"
    ),
    "words that begin as tokens do": (
        "fw_bw_time: 1.2 rpa_ratio=0.5 ms-marco-MiniLM-L-6-v2 xai-toolkit pul-request AKIDS 5$ each $6"
    ),
    "commands without a secret": (
        "docker login nvcr.io then wandb login, echo done | tee x mysqld -port redis-cli ping"
    ),
    "keys of tests and caches": (
        "PASS: test_a1B2c3D4e5F6g7H8 (0.2 s) CacheKey: a1b2C3d4E5f6G7h8I9j0 CacheKey=a1b2C3d4E5f6G7h8I9j0"
    ),
    "values that a shell or a config fills in": (
        "curl -H 'Authorization: Bearer $HF_TOKEN' https://h api_key: ${oc.env:KEY} password: !vault"
    ),
    "options that are no passwords": "ssh login -p 22 hostname and mysql -u root -h db slurm",
    "proxies and adapters without a password": (
        "NO_PROXY=localhost,.corp:80 http_proxy=http://proxy:8080 rank0:gpu1@mlx5_0:1 NCCL_IB_HCA=mlx5_0:1"
    ),
    "words with sk and ask in them": (
        "risk-adjusted sk-learn-contrib-packages-of-old task-queue-manager-of-the-node"
    ),
}
