"""Finds secrets in text and in JSON-like values, and masks them: the only place that does so.

Three kinds are recognized: what is a secret by its form (tokens of known issuers, private keys,
JSON web tokens), by its place (passwords and signatures in URLs, HTTP authorization headers) and by
the name in front of it (`HF_TOKEN=`, `"api_key":`, `--password`). The collector carries this file
to nodes, so it needs the standard library of Python 3.8 only. Over 400 lines because it
has to be one file.
"""

from __future__ import annotations

import binascii
import functools
import operator
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MASK = "[masked]"


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern when it is first used: most text contains nothing to mask."""
    return re.compile(pattern)


# Each pattern begins with a literal, and a repeat that may run on is not followed by anything that
# can fail or cannot begin again inside itself: text of any kind costs linear time.

#: Tokens of known issuers: how they begin, and what follows.
_ISSUERS: tuple[tuple[str, str], ...] = (
    # hubs, forges, registries
    ("hf_ api_org_", r"[A-Za-z0-9]{16,}"),
    ("gho_ ghp_ ghr_ ghs_ ghu_", r"[A-Za-z0-9]{16,}"),
    ("github_pat_", r"[A-Za-z0-9_]{20,}"),
    (
        "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glagent- glimt-",
        r"[A-Za-z0-9_.-]{16,}",
    ),
    ("pypi-", r"[A-Za-z0-9_-]{20,}"),
    ("npm_", r"[A-Za-z0-9]{30,}"),
    ("dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{16,}"),
    ("AKCp", r"[A-Za-z0-9]{60,}"),
    # clouds and what is hired there
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("LTAI", r"[A-Za-z0-9]{12,26}(?![A-Za-z0-9])"),
    ("AKID", r"[A-Za-z0-9]{28,}"),
    ("AIza", r"[A-Za-z0-9_-]{30,}"),
    ("GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    ("ya29. AQ.Ab8", r"[A-Za-z0-9_-]{20,}"),
    ("dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{32,}"),
    ("dapi", r"[0-9a-f]{32}"),
    ("rpa_", r"[A-Za-z0-9]{30,}"),
    ("pul-", r"[0-9a-f]{40}"),
    ("HRKU-", r"[A-Za-z0-9_-]{30,}"),
    ("tskey-", r"[A-Za-z0-9-]{16,}"),
    ("hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,}"),
    ("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{40,}"),
    ("ops_eyJ", r"[A-Za-z0-9_-]{20,}"),
    # models as a service
    ("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    ("gsk_ r8_", r"[A-Za-z0-9]{30,}"),
    ("xai- pplx-", r"[A-Za-z0-9]{32,}"),
    ("csk-", r"[a-z0-9]{40,}"),
    ("fw_", r"[A-Za-z0-9]{20,}"),
    ("tvly-", r"[A-Za-z0-9-]{20,}"),
    ("pcsk_ lsv2_pt_ lsv2_sk_", r"[A-Za-z0-9_]{20,}"),
    # trackers, monitors, mail, chat, payment
    ("wandb_v1_", r"[A-Za-z0-9_-]{20,}"),
    ("glsa_ glc_", r"[A-Za-z0-9_+/=]{30,}"),
    ("NRAK-", r"[A-Z0-9]{27}"),
    ("sntrys_ sntryu_", r"[A-Za-z0-9_+/=-]{30,}"),
    ("xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xox", r"[A-Za-z0-9-]{10,}"),
    ("xapp-", r"[A-Za-z0-9-]{20,}"),
    ("rk_live_ rk_test_ sk_live_ sk_test_", r"[A-Za-z0-9]{16,}"),
    ("shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("lin_api_", r"[A-Za-z0-9]{20,}"),
    ("ATATT3", r"[A-Za-z0-9_=-]{20,}"),
    # keys and passwords at rest
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{30,}"),
    ("$1$ $5$ $6$ $7$ $y$ $gy$ $2a$ $2b$ $2y$ $argon2i", r"[A-Za-z0-9./$=,+]{20,}"),
)
#: Those that may begin with what is a part of words with dashes.
_ISSUERS_OF_WORDS: tuple[tuple[str, str], ...] = (
    ("sk-", r"(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{20,}"),
    ("SG.", r"[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{16,60}"),
    ("eyJ", r"[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"),
)
_PRIVATE_KEYS = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----END ).)*(?:-----END [A-Z0-9 ]{0,40}-----)?"
    r"|---- BEGIN SSH2 (?:[A-Z0-9]+ ){0,4}PRIVATE KEY ----"
    r"(?:(?!---- END ).)*(?:---- END [A-Z0-9 ]{0,40} ----)?"
    r"|Private-Lines: [0-9]{1,4}\s(?:(?!Private-MAC).)*"
)


def _starts(table: tuple[tuple[str, str], ...]) -> list[str]:
    return [start for starts, _ in table for start in starts.split()]


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of these words that shares beginnings: four times as fast as a list.

    >>> _any_of(["ghp_", "gho_", "hf_"])
    'g(?:h(?:p_|o_))|hf_'
    """
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    made = []
    for first, rest in by_first.items():
        inner = "" if "" in rest else _any_of(rest)
        made.append(re.escape(first) + (f"(?:{inner})" if len(rest) > 1 and inner else inner))
    return "|".join(made)


def _either(table: tuple[tuple[str, str], ...]) -> str:
    """A pattern for any token of a table."""
    return "|".join(f"(?:{_any_of(starts.split())}){rest}" for starts, rest in table)


_ISSUED = (
    f"(?s){_PRIVATE_KEYS}"
    f"|(?<![A-Za-z0-9])(?:{_either(_ISSUERS)})"
    f"|(?<![A-Za-z0-9_-])(?:{_either(_ISSUERS_OF_WORDS)})"
    # what Entra ID and Terraform issue has this in its middle
    r"|[78]Q~[A-Za-z0-9_.~-]{31,34}(?![A-Za-z0-9_.~-])"
    r"|\.atlasv1\.[A-Za-z0-9_=-]{60,}"
)
#: Literals with which each match of it begins.
_ISSUED_STARTS = (
    "-----BEGIN", "---- BEGIN", "Private-Lines: ", "7Q~", "8Q~", ".atlasv1.",
    *_starts(_ISSUERS), *_starts(_ISSUERS_OF_WORDS),
)  # fmt: skip
#: `re` searches for literals alone several times as fast.
_ISSUED_START = _any_of(_ISSUED_STARTS)
_BOT = r"[0-9](?:(?<![A-Za-z0-9_-].)|(?<=/bot.))[0-9]{7,9}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
_HOOK = (
    r"(?P<always>hooks\.slack\.com/|/api/webhooks/|\.webhook\.office\.com/|/bot/v2/hook/)"
    r"[^\s\"'<>]+"
)
#: The path of a channel of conda's with the token for it.
_CHANNEL = r"(/t/)(?=[a-z-]{0,8}[0-9])[0-9a-z-]{30,}(?=/)"
_USERINFO = r"(?P<always>://)(?:[^\s/'\"]*:[^\s/'\"]*|[A-Za-z0-9_%.~-]{20,})@"
#: A proxy without a scheme.
_PROXY = (
    r"(?P<always>proxy[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)"
    r"[^\s:/@\"',;]{1,80}:[^\s/@\"']{1,200}@"
)
#: An account and its password in front of a host, without a scheme; `IMAGE:TAG@sha256:…` is none.
_AUTHORITY = (
    r":(?<=[A-Za-z0-9_]:)(?<!mailto:)(?=[^\s/@:]{0,80}[0-9])(?=[^\s/@:]{0,80}[A-Za-z])"
    r"[^\s/@:\"'<>,;()\[\]]{6,80}@(?!sha[0-9])(?=[A-Za-z0-9])"
)
#: Parameters of URLs that sign or authorize: AWS, Azure SAS, Google, CloudFront, and common ones.
_PARAMETER = (
    r"([?&;](?:amp;)?(?:x-(?:amz|goog|ms)-(?:signature|credential|security-token)"
    r"|sig|signature|awsaccesskeyid|googleaccessid|key-pair-id|policy|(?:[a-z]{1,20}[_-])?token"
    r"|(?:[a-z]{1,20}[_-])?(?:api)?key|auth|password|pass|pwd|secret|(?:[a-z]{1,20}[_-])?secret"
    r"|code|jwt|session_?id)=)([^&;\s\"'<>#]+)"
)
_HEADER = (
    r"(?<![a-z0-9])((?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    # a variable of a shell is not the secret
    r"(?!(?:[a-z-]{1,20}\s{1,4})?\$[\w{(])"
    r"(?:(?:bearer|basic|token|negotiate|ntlm|apikey|ssws)\s{1,4})?)"
    r"(?:(?:digest|aws4-hmac-sha256|oauth|hawk)\s[^\r\n]+|[^\s\"',;]+)"
    r"|(?<![a-z0-9])(bearer\s{1,4})(?=[a-z._~+/-]{0,200}[0-9=])([a-z0-9._~+/-]{12,}=*)"
    r"|(?<![a-z0-9])(basic\s{1,4})(?=[a-z+/]{0,200}[0-9=])([a-z0-9+/]{12,}=*)"
    r"|(?<![a-z0-9-])((?:set-)?cookie[\"']?:\s{0,4}[\"']?)(?=[^\r\n\"']{0,200}=)"
    r"[^\r\n\"']+(?:(?:(?<==)|(?<==\\))[\"'][^\r\n\"']*[\"'][^\r\n\"']*){0,20}"
)
_HEADER_START = "authorization|proxy-|bearer|basic|set-|cookie"
_PROGRAMS = (
    "curl sshpass login machine docker podman nerdctl buildah skopeo helm mysql mariadb redis-cli "
    "ipmitool wandb echo"
)
_COMMAND_START = _any_of(_PROGRAMS.split())
#: Passwords that options of one letter, a place among the words or the line of a .netrc mark.
_COMMAND = (
    r"(?<![\w-])(curl[^\n]{0,200}?\s(?:-u|--user|-U|--proxy-user)[ =]?[\"']?[^\s:\"']{1,80}:)"
    r"[^\s\"']+"
    r"|(?<![\w-])(sshpass\s{1,4}-p\s{0,4}[\"']?)[^\s\"']+"
    r"|(?<![\w-])(login\s{1,4}\S{1,80}\s{1,4}(?:account\s{1,4}\S{1,80}\s{1,4})?password\s{1,4})\S+"
    r"|(?<![\w-])(machine\s{1,4}\S{1,253}\s{1,40}password\s{1,4})\S+"
    r"|(?<![\w-])((?:docker|podman|nerdctl|buildah|skopeo|helm\s{1,4}registry)\s{1,4}login"
    r"[^\n]{0,200}?\s-p[ =][\"']?)[^\s\"']+"
    r"|(?<![\w-])((?:mysql|mysqldump|mysqladmin|mariadb)(?=\s)[^\n]{0,200}?\s-p[\"']?)[^\s\"']+"
    r"|(?<![\w-])(redis-cli[^\n]{0,200}?\s-a\s{1,4}[\"']?)[^\s\"']+"
    r"|(?<![\w-])(ipmitool[^\n]{0,200}?\s-P\s{1,4}[\"']?)[^\s\"']+"
    r"|(?<![\w-])(wandb\s{1,4}login(?:\s{1,4}\S{1,80}){0,4}?\s{1,4})[0-9A-Za-z_]{40,}"
    r"|(?<![\w-])(echo\s{1,4}(?:-n\s{1,4})?[\"']?)[^\s\"'|]+"
    r"(?=[\"']?\s{0,4}\|[^\n|]{0,120}(?:--password-stdin|sudo\s[^\n|]{0,40}-S))"
)
#: Documents in base64: JSON, or a key in PEM. They are masked if what they contain is.
_ENCODED = r"(?<![A-Za-z0-9+/_-])(?:eyJ|ewog|ewoJ|ew0K|LS0tLS1CRUdJTi)[A-Za-z0-9+/_-]{20,}={0,2}"
_ENCODED_PARTS = ("eyj", "ewog", "ewoj", "ew0k", "ls0tls1crudjti")
_LONGEST_DECODED = 1 << 16


# ---- names ---------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words of a name after which every value is a secret.
_STRONG = _words(
    "password passwords passwd passphrase passcode passwort pwd pw secret secrets credential "
    "credentials creds cred jwt apikey apikeys apitoken accesskey secretkey privatekey authtoken "
    "authtok accesstoken"
)
#: In the scripts of Chinese: password, passphrase, secret key, token.
_STRONG_PHRASES = ("\u5bc6\u7801", "\u53e3\u4ee4", "\u5bc6\u94a5", "\u4ee4\u724c")
#: Words that name a secret together with an issuer or a purpose, or in an environment variable.
_WEAK = _words("token tokens key keys auth pass pat sas sig signature cookie webhook sk")
_OF = _words(
    "access account admin anthropic api app auth aws azure bearer bot client cohere comet csrf "
    "db deploy docker encryption gcp gh github gitlab google groq hf hub huggingface id identity "
    "jupyter kaggle ldap license master mlflow neptune ngc npm nvidia nvcr oauth openai "
    "personal private proxy pypi refresh registry replicate sas secret security service "
    "session shared signing slack smtp ssh storage subscription swanlab user vault wandb x"
)
#: Tokens that are text, not secrets (`pad_token`), and other ordinary uses of the weak words.
_ORDINARY = _words(
    "additional assistant audio begin bos cls decoder dup end eos extra fim forced image implicit "
    "key mask max min missing new next num pad per prefix primary foreign query sep sort special "
    "start state stop suffix think tool unk unexpected value video vision"
)
#: What may follow the word that marks a secret.
_TAILS = _words(
    "b64 base base64 data default header id json new old plain raw str string text v value"
)
#: Ends of names that are written together; some mark a secret whatever precedes them.
_CLEAR_ALONE = _words("password passwd passphrase secret credentials apikey accesskey secretkey")
_RUN_TOGETHER = (*sorted(_CLEAR_ALONE), "token", "key", "pass", "pw")
#: A word before `key: …` that makes it an ordinary key.
_ORDINARY_KEYS = _words("cache dict hash lookup object partition sort tree")
_SEGMENT = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LONGEST_NAME = 120


#: Values that are not secret whatever their name: nothing, switches, examples, and what programs
#: print instead of a secret.
_PLACEHOLDER = (
    r"(?i)(?:none|null|nil|true|false|yes|no|on|off|auto|unset|undefined|required|missing|\*+|x{3,}"
    r"|\(?(?:not|is|null|empty|hidden|redacted|invalid|expired|incorrect|denied|permission)"
    r"|<[a-z_ -]*>?|<[^>]*>|your[_-][a-z_-]*|\[masked\]?"
    r"|\$\w+|\$\{[\w.:,-]+\}?|\{\{.*|%\w+%|![a-z]+|[-|>]|tests?[_/.].*|)(?:@.*)?"
)
#: Code that reads it: `getpass.getpass()`, `os.environ[`, `$(cat file)`, or begins a structure.
_CODE = (
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\)?|\[)"
    r"|(?:input|getenv|getpass|prompt|(?:get|read|load|fetch)_\w+)\(\)?"
    r"|\$\([a-z].*|`[a-z].*|[\[{].*:|[\[{(<]+"
)
_ATTRIBUTE = r"[A-Za-z_][\w.()]*\.([A-Za-z_]\w*)"
#: A path of a file that contains it. A key in base64 may begin with a slash.
_FILE = (
    r"(?:~|\.{1,2}|\$\{?\w+\}?)/.*"
    r"|/(?:etc|home|root|usr|opt|var|run|tmp|mnt|data|srv|scratch|secrets?|workspace|dev|shared"
    r"|nfs|lustre|gpfs|fsx|Users)/.*"
    r"|[\w.@+-]*/[\w./@+-]*\.(?:json|key|pem|crt|ya?ml|toml|ini|conf|cfg|env|txt|py|pt|bin"
    r"|safetensors)"
)
#: What may be between the end of a name and its value. In a text that was made printable before,
#: U+FFFD replaces quotes and ESC.
_TO_VALUE = (
    r"(?:\\{0,3}[\"'\ufffd]\]?|%22|&quot;|(?:\x1b|\ufffd|\\u001b|\\x1b)\[[0-9;]{0,12}m)?"
    r"[ \t]{0,4}(?:=>|:=|=|:|\uff1a|%3[ad])[ \t]{0,40}"
    # a value on the next line, also if another document quotes the text
    r"(?:(?:[|>][+-]?)?\\{0,2}(?:\r?\n|\\n)[ \t]{1,40})?"
)
_ASSIGNED = (
    r"(?:pass|pwd|pw|secret|cred|jwt|key|token|auth|pat|sas|sig|cookie|webhook|_sk"
    rf"|{'|'.join(_STRONG_PHRASES)})[a-z0-9_.-]{{0,40}}(?P<after>{_TO_VALUE})"
)
_OPTION = (
    r"-(?<![a-z0-9_-]-)-?[a-z0-9_.-]{0,40}(?:pass|pwd|secret|cred|jwt|key|token|auth|pat)"
    r"[a-z0-9_.-]{0,20}(?P<after>\s{1,4})(?!-)"
)
_NAME = r"(?P<name>[a-z0-9_.-]{1,120})"
#: A pair of texts in parentheses: `setdefault("HF_TOKEN", "…")`, and what `items()` prints.
_PAIR = rf"\(\s{{0,4}}b?[\"']{_NAME}[\"'](?P<after>,\s{{0,4}})(?=b?[\"'])"
_ELEMENT = rf"<{_NAME}(?P<after>>)(?=[^<\s])"
_PROPERTY = rf"<name>{_NAME}</name>\s{{0,40}}<value(?P<after>>)(?=[^<\s])"
#: A variable whose name and value are two fields: Kubernetes, XML.
_FIELDS = (
    r"(?:name|key)\\{0,3}[\"'\ufffd]?\s{0,4}[:=]\s{0,4}\\{0,3}[\"'\ufffd]?"
    rf"{_NAME}\\{{0,3}}[\"'\ufffd]?(?:\s{{0,4}},)?(?:\\n)?\s{{0,40}}\\{{0,3}}[\"'\ufffd]?"
    r"value(?P<after>\\{0,3}[\"'\ufffd]?[ \t]{0,4}[:=][ \t]{0,40})"
)
#: Commands that set a variable without a sign between name and value.
_SETTING = (
    r"(?:setenv|configure set|%env|env(?<![^\n]env))[ \t]{1,4}"
    rf"{_NAME}(?P<after>[ \t]{{1,4}})"
)
#: A text that each match contains, the pattern, and whether what follows may be a name too.
_NAMED = (
    ("", _ASSIGNED),
    ("(", _PAIR),
    ("</", _ELEMENT),
    ("</name>", _PROPERTY),
    ("value", _FIELDS),
    ("set", _SETTING),
    ("env", _SETTING),
    ("-", _OPTION),
)
#: A value in quotes, or up to the next space; a weak name's value is judged by its beginning.
_VALUE = (
    r"(?s)\\[\"'](?:[^\"'\\]|\\{3}[\"'])+|\\{2,3}[\"'][^\"'\\]+"
    r"|\"\"\"[^\"]+|'''[^']+|b?\"(?:[^\"\\]|\\.)+|b?'(?:[^'\\]|\\.|'\\{0,3}[\"\ufffd]'\\{0,3}[\"\ufffd]')+"
    r"|(?:%22|%27|&quot;)?[^\s\"'&]+"
)
_LONGEST_JUDGED = 300
_SHORTEST_VARIABLE = 4
#: Text without any of these in lower case contains nothing to mask.
_CLUES = tuple(
    dict.fromkeys((
        "://", "pass", "pwd", "pw", "secret", "cred", "jwt", "key", "token", "auth", "pat", "sas",
        "sig", "cookie", "hook", "bearer", "basic", "proxy", "_sk", ":aa", "/t/",
        *_PROGRAMS.split(), *_ENCODED_PARTS, *_STRONG_PHRASES,
        *(start.lower() for start in _ISSUED_STARTS),
    ))
)  # fmt: skip


def _segments(name: str) -> list[str]:
    """`hfHubToken`, `HF_HUB_TOKEN` and `hf-hub-token` are the same words."""
    return [found.lower() for found in _compiled(_SEGMENT).findall(name)]


@functools.lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    """How strongly a name suggests a secret: `strong`, `weak` or "" for not at all."""
    if not name.isascii() and any(phrase in name for phrase in _STRONG_PHRASES):
        return "strong"
    words = _segments(name)
    while words and (words[-1] in _TAILS or words[-1].isdigit()) and len(words) > 1:
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[:-1]
    if last in _STRONG:
        # the working folder is in PWD and OLDPWD, a column in `pw`
        return "strong" if last not in ("pwd", "pw") or before else ""
    if last not in _WEAK:
        return "strong" if _is_run_together(last) else ""
    if before and (before[-1] in _ORDINARY or (last == "key" and before[-1] in _ORDINARY_KEYS)):
        return ""
    if before and (before[-1] in _OF or before[-1] in _STRONG):
        return "strong"
    if before and name.isupper():
        return "strong"
    return "weak"


def _is_run_together(word: str) -> bool:
    """Whether words without a sign between them name a secret: `PGPASSWORD`, `hftoken`."""
    for tail in _RUN_TOGETHER:
        head = word[: -len(tail)]
        if head and word.endswith(tail):
            return tail in _CLEAR_ALONE or (head in _OF and len(head) > 1) or head == "root"
    return False


def secret_name(name: str) -> bool:
    """Whether a variable is left out of a snapshot because of its name; in doubt it is.

    >>> secret_name("SLURM_JWT"), secret_name("HF_HUB_TOKEN"), secret_name("NCCL_DEBUG")
    (True, True, False)
    """
    return any(
        word in _STRONG or word in _WEAK or _is_run_together(word) for word in _segments(name)
    )


#: A bootstrap token of Kubernetes.
_KUBEADM = r"[a-z0-9]{6}\.[a-z0-9]{16}"


def _random_looking(value: str) -> bool:
    """Whether a value is a key rather than a word: hexadecimal, or letters and digits mixed."""
    if _compiled(_KUBEADM).fullmatch(value):
        return True
    for run in re.findall(r"[A-Za-z0-9+]{10,}", value):
        if not any(character.isdigit() for character in run):
            continue
        if len(run) >= 24 and re.fullmatch(r"[0-9a-fA-F]+", run):  # noqa: PLR2004
            return True
        if any(c.islower() for c in run) and any(c.isupper() for c in run):
            return True
    return False


def _is_secret(name: str, value: str) -> bool:
    """Whether a value under a name is a secret."""
    kind = _kind(name)
    if not kind or _compiled(_PLACEHOLDER).fullmatch(value.strip("\"'").rstrip(".`")):
        return False
    if _compiled(_CODE).fullmatch(value) or _compiled(_FILE).fullmatch(value):
        return False
    if _repeats(name, value) or _reads_secret(value):
        return False
    if kind == "strong":
        # TOKEN=1 is a switch
        return len(value) > 2 or _segments(name)[-1] in _STRONG  # noqa: PLR2004
    return len(value) >= 16 and _random_looking(value[:256])  # noqa: PLR2004


def _repeats(name: str, value: str) -> bool:
    """Whether a value is a variable of the name's: `hub_token=token`."""
    return len(value) >= _SHORTEST_VARIABLE and name.lower().endswith(value.lower())


def _reads_secret(value: str) -> bool:
    """Whether a value is an attribute in code that has the secret: `config.api_key`."""
    found = _compiled(_ATTRIBUTE).fullmatch(value)
    return found is not None and _kind(found[1]) != ""


def _whole_name(text: str, start: int, end: int) -> tuple[int, str]:
    """Where the name begins of which a part was found, and the name."""
    least = max(0, start - _LONGEST_NAME)
    while start > least and text[start - 1] in _NAME_CHARACTERS:
        start -= 1
    return start, text[start:end].strip(".")


def _is_ordinary_key(text: str, start: int) -> bool:
    """Whether the word before a name shows that it is not a secret: `cache key: …`."""
    before = text[max(0, start - 20) : start]
    return (
        before.endswith(" ")
        and before.split()[-1:] != []
        and (before.split()[-1].lower() in _ORDINARY_KEYS)
    )


def _mask_named(text: str, small: str, pattern: re.Pattern[str]) -> str:
    """Masks values after names; if a value is not secret, the search continues within it."""
    kept: list[str] = []
    done = at = 0
    named = "name" in pattern.groupindex
    while (found := pattern.search(small, at)) is not None:
        at = max(found.end(), found.start() + 1)
        if named:
            start, end = found.span("name")
            name = text[start:end].strip(".")
        else:
            start, name = _whole_name(text, found.start(), found.start("after"))
        kind = _kind(name)
        limit = len(text) if kind == "strong" else found.end() + _LONGEST_JUDGED
        value = _compiled(_VALUE).match(text, found.end(), limit) if kind else None
        if value is None:
            continue
        begin, end = value.span()
        while begin < end and text[begin] in "\\\"'":
            begin += 1
        while begin < end and text[end - 1] in ",;)}]":
            end -= 1
        said = text[begin:end]
        after = small[found.start("after") : found.end()]
        crosses = "\n" in after or "\\n" in after
        if crosses and (said == "-" or said.partition("\\n")[0].endswith(":")):
            continue  # the next level of a document
        secret = _is_secret(name, said)
        if not secret and text[start - 1 : start] == "/":  # the name of a folder: to its end
            end = begin + len(said.partition("/")[0])
            secret = _is_secret(name, text[begin:end])
        if secret and (kind == "strong" or not _is_ordinary_key(text, start)):
            kept += [text[done:begin], MASK]
            done = at = end
    return "".join([*kept, text[done:]]) if kept else text


def _mask_encoded(text: str) -> str:
    """Masks documents in base64 that contain a secret."""

    def judged(found: re.Match[str]) -> str:
        letters = found[0][:_LONGEST_DECODED].rstrip("=").replace("-", "+").replace("_", "/")
        whole = len(letters) // 4 * 4
        inner = binascii.a2b_base64(letters[:whole]).decode("utf-8", "replace")
        return found[0] if mask(inner) == inner else MASK

    return _compiled(_ENCODED).sub(judged, text)


def _spans(
    text: str, pattern: re.Pattern[str], begins: re.Pattern[str] | None, small: str
) -> Iterator[tuple[int, int]]:
    """Where a pattern finds secrets; if it has groups, only what follows the first that matched.

    Args:
        text: the text that is searched.
        pattern: finds secrets.
        begins: finds where a match can begin; None if the pattern itself is fast at that.
        small: the text as the pattern expects it, of the same length.
    """
    at = 0
    while True:
        found = (begins or pattern).search(small, at)
        if found is None:
            return
        if begins is not None:
            at = found.start() + 1
            found = pattern.match(small, found.start())
            if found is None:
                continue
        begin, end = found.span()
        at = max(end, begin + 1)
        if found.lastindex is not None:  # the name in front of the secret is kept
            begin = found.end(next(n for n, one in enumerate(found.groups(), 1) if one is not None))
            # what follows may be a name in front of the next secret
            if text.startswith(MASK, begin) and "always" not in pattern.groupindex:
                continue
        yield begin, end


def _substitute(
    text: str, pattern: re.Pattern[str], begins: re.Pattern[str] | None, by: str, small: str
) -> str:
    """Masks what `_spans` finds, with the text that replaces it."""
    kept: list[str] = []
    done = 0
    for begin, end in _spans(text, pattern, begins, small):
        kept += [text[done:begin], by]
        done = end
    return "".join([*kept, text[done:]]) if kept else text


def lower(text: str) -> str:
    """In lower case and of the same length, so that patterns need not ignore case.

    A pattern that ignores case cannot look up first characters and takes ten times as long. The
    four characters are all that such a pattern takes for a letter of ASCII, and the first is the
    only one that `str.lower` makes longer.

    >>> lower("HF_TO\u212aEN \u0130")
    'hf_token i'
    """
    if not text.isascii():
        for odd, letter in (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"), ("\u212a", "k")):
            text = text.replace(odd, letter)
    return text.lower()


#: Clues by their first two characters.
_CLUES_BY_START: dict[str, list[str]] = {}
for _clue in _CLUES:
    _CLUES_BY_START.setdefault(_clue[:2], []).append(_clue)
_CLUE_STARTS = frozenset(_CLUES_BY_START)


def _has_clue(small: str) -> bool:
    """Whether a text in lower case contains one of `_CLUES`.

    Compiling a pattern would take 3 ms, and searching for each clue four times as long as this.
    """
    starts = _CLUE_STARTS.intersection(map(operator.add, small, small[1:]))
    return "@" in small or any(clue in small for start in starts for clue in _CLUES_BY_START[start])


def _is_suspicious(text: str) -> bool:
    """Whether a text holds a clue to a secret, in letters of either case."""
    return _has_clue(lower(text))


def mask(text: str) -> str:
    """Hides what looks like a secret.

    >>> mask("pull https://bob:hunter2@example.org/x with hf_abcdefghijklmnopqrst")
    'pull https://[masked]@example.org/x with [masked]'
    >>> mask("password=hunter2 key=model.layers.0.weight")
    'password=[masked] key=model.layers.0.weight'
    >>> mask("pdsh -w gpu1 export HF_TOKEN=x1y2z3; export NCCL_DEBUG=INFO")
    'pdsh -w gpu1 export HF_TOKEN=[masked]; export NCCL_DEBUG=INFO'
    """
    small = lower(text)
    short = len(text) < _SHORT
    if short and not _has_clue(small):
        return text
    for parts, pattern, begins, by, exact in _SECRETS:
        if (len(parts) > _MANY and not short) or any(part in small for part in parts):
            hidden = _substitute(
                text,
                _compiled(pattern),
                _compiled(begins) if begins else None,
                by,
                text if exact else small,
            )
            if hidden != text:
                text, small = hidden, lower(hidden)
    if any(part in small for part in _ENCODED_PARTS):
        hidden = _mask_encoded(text)
        if hidden != text:
            text, small = hidden, lower(hidden)
    for part, pattern in _NAMED:
        if part in small:
            hidden = _mask_named(text, small, _compiled(pattern))
            if hidden != text:
                text, small = hidden, lower(hidden)
    return text


#: Compiling a pattern takes 1 ms, so a text is searched for its parts first. In a longer text, that
#: takes longer than 1 ms if there are many parts.
_SHORT = 1 << 15
_MANY = 10
#: Parts, what it finds and how that begins, what replaces it, and whether upper case counts.
_SECRETS = (
    (
        ("private key", *dict.fromkeys(start.lower() for start in _ISSUED_STARTS)),
        _ISSUED, _ISSUED_START, MASK, True,
    ),
    ((":aa",), _BOT, None, MASK, True),
    (
        ("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/", "/bot/v2/hook/"),
        _HOOK, None, MASK, True,
    ),
    (("/t/",), _CHANNEL, None, MASK, True),
    (("://",), _USERINFO, None, MASK + "@", True),
    (("proxy",), _PROXY, None, MASK + "@", False),
    (("@",), _AUTHORITY, None, f":{MASK}@", True),
    ("?&;", _PARAMETER, None, MASK, False),
    (("authorization", "bearer", "basic", "cookie"), _HEADER, _HEADER_START, MASK, False),
    (tuple(_PROGRAMS.split()), _COMMAND, _COMMAND_START, MASK, True),
)  # fmt: skip


def mask_lines(lines: list[str]) -> list[str]:
    r"""`mask` for lines that belong together: what one line begins, another one may end.

    >>> mask_lines(["- name: HF_TOKEN", "  value: hunter2", "- name: NCCL_DEBUG", "  value: INFO"])
    ['- name: HF_TOKEN', '  value: [masked]', '- name: NCCL_DEBUG', '  value: INFO']
    >>> mask_lines(["-----BEGIN PRIVATE " + "KEY-----", "MIIE", "-----END PRIVATE KEY-----", "end"])
    ['[masked]', '', '', 'end']
    """
    text = "\n".join(lines)
    kept: list[str] = []
    done = 0
    if any(start in text for start in ("PRIVATE KEY", "Private-Lines")):
        for begin, end in _spans(text, _compiled(_ISSUED), _compiled(_ISSUED_START), text):
            kept += [text[done:begin], MASK, "\n" * text.count("\n", begin, end)]
            done = end
    hidden = mask("".join([*kept, text[done:]])).split("\n")
    # a value in quotes that goes over several lines would be one
    return hidden if len(hidden) == len(lines) else [mask(line) for line in lines]


def mask_value(name: str, value: str) -> str:
    """`mask` for the value of a variable or field whose name is known.

    >>> mask_value("WANDB_API_KEY", "abcdef"), mask_value("pad_token", "<pad>")
    ('[masked]', '<pad>')
    """
    return MASK if _is_secret(name, value) else mask(value)


#: Words in front of a secret that may say what it is: `password = x`, `curl -u bob:x`.
WORDS_BEFORE = 3


def mask_words(words: list[str] | tuple[str, ...]) -> list[str]:
    """`mask` for the words of a command, where an option's value is a word of its own.

    >>> mask_words(["login", "--password", "hunter2", "-v"])
    ['login', '--password', '[masked]', '-v']
    >>> mask_words(["echo", "password", "=", "abcdef"])
    ['echo', 'password', '=', '[masked]']
    >>> mask_words(["docker", "login", "registry", "-u", "ann", "-p", "hunter2"])[-2:]
    ['-p', '[masked]']
    """
    found: list[str] = []
    option = ""
    whole = " ".join(words)
    clueless = not _is_suspicious(whole)  # then no part of it has a clue either
    marked = set() if clueless else _words_of_commands(words, whole)
    for place, word in enumerate(words):
        named = option and not word.startswith("-")
        if place in marked:
            hidden = MASK
        elif clueless:
            hidden = MASK if named and _is_secret(option, word) else word
        else:
            hidden = mask_value(option, word) if named else mask(word)
            before = words[max(0, place - WORDS_BEFORE) : place]
            if hidden == word != "" and not mask(" ".join((*before, word))).endswith(word):
                hidden = MASK
        found.append(hidden)
        plain = word.startswith("-") and "=" not in word and " " not in word
        option = word.lstrip("-") if plain else ""
    return found


def _words_of_commands(words: list[str] | tuple[str, ...], whole: str) -> set[int]:
    """Places of words that programs and options far in front of them mark, and of split keys."""
    spans = [
        span
        for parts, pattern, begins, *_ in _SECRETS
        if pattern in (_COMMAND, _ISSUED) and any(part in lower(whole) for part in parts)
        for span in _spans(whole, _compiled(pattern), _compiled(begins) if begins else None, whole)
    ]
    places: set[int] = set()
    start = 0
    for place, word in enumerate(words):
        end = start + len(word)
        # a word that contains all of it is masked in part
        if any(begin <= start and end <= until for begin, until in spans):
            places.add(place)
        start = end + 1
    return places


def mask_tree(value: Any, name: str = "") -> Any:
    """`mask` for every text in a JSON-like value; names of fields count.

    >>> mask_tree({"a": ["password=x", 1], "wandb": {"api_key": "abc"}})
    {'a': ['password=[masked]', 1], 'wandb': {'api_key': '[masked]'}}

    Args:
        value: what JSON can hold.
        name: of the field that contains it.
    """
    if isinstance(value, str):
        return mask_value(name, value) if name else mask(value)
    if isinstance(value, dict):
        # a variable as a pair: {"name": "HF_TOKEN", "value": "…"}
        said = value.get("name")
        pair = said if isinstance(said, str) and "value" in value else ""
        return {
            mask(key) if isinstance(key, str) else key: mask_tree(
                inner, pair if key == "value" and pair else str(key)
            )
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        if _kind(name):
            return type(value)(mask_tree(item, name) for item in value)
        if value and all(isinstance(item, str) for item in value):
            return type(value)(mask_words(value))
        return type(value)(mask_tree(item) for item in value)
    if isinstance(value, int) and not isinstance(value, bool) and _is_number_secret(name):
        return MASK
    return value


def _is_number_secret(name: str) -> bool:
    return _segments(name)[-1:] in (["password"], ["passwd"], ["passphrase"], ["passcode"])
