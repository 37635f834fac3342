"""Finds secrets in text and in JSON-like values, and masks them: the only place that does so.

Three kinds are recognized: what is a secret by its form (tokens of known issuers, private keys,
JSON web tokens), by its place (passwords and signatures in URLs, HTTP authorization headers) and by
the name in front of it (`HF_TOKEN=`, `"api_key":`, `--password`). The collector carries this file
to nodes, so it needs the standard library of Python 3.8 only. Over 400 lines because it
has to be one file.
"""

from __future__ import annotations

import functools
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MASK = "[masked]"


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern when it is first used: most text contains nothing to mask."""
    return re.compile(pattern)


# Each pattern begins with a literal, and a repeat that may run on is not followed by anything that
# can fail or cannot begin again inside itself: text of any kind costs linear time.
_ISSUED = (
    r"(?s)-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----END ).)*(?:-----END [A-Z0-9 ]{0,40}-----)?"
    r"|(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"
    r"|api_org_[A-Za-z0-9]{16,}"
    r"|gh[oprsu]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt)-[A-Za-z0-9_.-]{16,}"
    r"|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|nvapi-[A-Za-z0-9_-]{20,}"
    r"|pypi-[A-Za-z0-9_-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}"
    r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"
    r"|xox[abceoprs]-[A-Za-z0-9-]{10,}"
    r"|xapp-[A-Za-z0-9-]{20,}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|GOCSPX-[A-Za-z0-9_-]{20,}"
    r"|ya29\.[A-Za-z0-9_-]{20,}"
    r"|gsk_[A-Za-z0-9]{30,}"
    r"|r8_[A-Za-z0-9]{30,}"
    r"|wandb_v1_[A-Za-z0-9_-]{20,}"
    r"|hv[sbr]\.[A-Za-z0-9_-]{20,}"
    r"|dapi[0-9a-f]{32}"
    r"|do[opr]_v1_[0-9a-f]{32,}"
    r"|tskey-[A-Za-z0-9-]{16,}"
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|lin_api_[A-Za-z0-9]{20,}"
    r"|ATATT3[A-Za-z0-9_=-]{20,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{30,}"
    r")"
    r"|(?<![A-Za-z0-9_-])(?:"
    r"sk-(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{16,60}"
    r"|eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
#: How each match of it begins: literals alone, which `re` searches several times as fast.
_ISSUED_START = (
    r"-----BEGIN|hf_|api_org_|gh[oprsu]_|github_pat_|gl[a-z]{2,5}-|AKIA|ASIA|ABIA|ACCA|rk_|sk_|nvapi-"
    r"|pypi-|npm_|dckr_|xox|xapp-|AIza|GOCSPX|ya29|gsk_|r8_|wandb_v1_|hv[sbr]\.|dapi|do[opr]_v1_"
    r"|tskey-|shp|lin_api_|ATATT3|AGE-SECRET|sk-|SG\.|eyJ"
)
_BOT = r"[0-9](?<![A-Za-z0-9_-].)[0-9]{7,9}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
_HOOK = r"(?P<always>hooks\.slack\.com/|/api/webhooks/|\.webhook\.office\.com/)[^\s\"'<>]+"
_USERINFO = r"(?P<always>://)(?:[^\s/'\"]*:[^\s/'\"]*|[A-Za-z0-9_%.~-]{20,})@"
#: Parameters of URLs that sign or authorize: AWS, Azure SAS, Google, CloudFront, and common ones.
_PARAMETER = (
    r"([?&;](?:amp;)?(?:x-(?:amz|goog|ms)-(?:signature|credential|security-token)"
    r"|sig|signature|awsaccesskeyid|googleaccessid|key-pair-id|policy|(?:[a-z]{1,20}[_-])?token"
    r"|(?:[a-z]{1,20}[_-])?(?:api)?key|auth|password|secret|code|jwt)=)([^&;\s\"'<>#]+)"
)
_HEADER = (
    r"(?<![a-z0-9])((?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,4})?)([^\s\"',;]+)"
    r"|(?<![a-z0-9])(bearer\s{1,4})(?=[a-z._~+/-]{0,200}[0-9=])([a-z0-9._~+/-]{12,}=*)"
    r"|(?<![a-z0-9])(basic\s{1,4})(?=[a-z+/]{0,200}[0-9=])([a-z0-9+/]{12,}=*)"
    r"|(?<![a-z0-9-])((?:set-)?cookie[\"']?:\s{0,4}[\"']?)([^\r\n\"']+)"
)
_HEADER_START = r"authorization|proxy-|bearer|basic|set-|cookie"
_COMMAND_START = r"curl|sshpass|login"
#: curl -u name:password, sshpass -p password, the lines of a .netrc
_COMMAND = (
    r"(?<![\w-])(curl[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:)([^\s\"']+)"
    r"|(?<![\w-])(sshpass\s{1,4}-p\s{0,4}[\"']?)([^\s\"']+)"
    r"|(?<![\w-])(login\s{1,4}\S{1,80}\s{1,4}password\s{1,4})(\S+)"
)


# ---- names ---------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words of a name after which every value is a secret.
_STRONG = _words(
    "password passwords passwd passphrase passcode pwd pw secret secrets credential credentials "
    "creds cred jwt apikey apikeys apitoken accesskey secretkey privatekey authtoken "
    "accesstoken"
)
#: Words that name a secret together with an issuer or a purpose, or in an environment variable.
_WEAK = _words("token tokens key keys auth pass pat sas sig signature cookie webhook")
_OF = _words(
    "access account admin anthropic api app auth aws azure bearer bot client cohere comet csrf "
    "db deploy docker encryption gcp gh github gitlab google groq hf hub huggingface id jupyter "
    "kaggle license mlflow neptune ngc npm nvidia nvcr oauth openai personal private proxy pypi "
    "refresh registry replicate sas secret security service session shared signing slack ssh "
    "storage subscription swanlab user vault wandb x"
)
#: Tokens that are text, not secrets (`pad_token`), and other ordinary uses of the weak words.
_ORDINARY = _words(
    "additional assistant audio begin bos cls decoder dup end eos extra fim forced image implicit "
    "key mask max min missing new next num pad per prefix primary foreign query sep sort special "
    "start state stop suffix think tool unk unexpected value video vision"
)
#: What may follow the word that marks a secret.
_TAILS = _words("b64 base64 data default header id json new old plain raw str string text value")
_SEGMENT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LONGEST_NAME = 120


#: Values that are not secret whatever their name.
_PLACEHOLDER = (
    r"(?i)(?:none|null|nil|true|false|yes|no|on|off|auto|unset|undefined|required|missing|\*+"
    r"|<[^>]*>|\[masked\]?|\$\{?\w+\}?|%\w+%|)(?:@.*)?"
)
_ASSIGNED = (
    r"(?:pass|pwd|pw|secret|cred|jwt|key|token|auth|pat|sas|sig|cookie|webhook)"
    r"[a-z0-9_.-]{0,40}(?P<after>\\{0,3}[\"']?\s{0,4}(?:=>|:=|=|:)\s{0,4})"
)
_OPTION = (
    r"-(?<![a-z0-9_-]-)-?[a-z0-9_.-]{0,40}(?:pass|pwd|secret|cred|jwt|key|token|auth|pat)"
    r"[a-z0-9_.-]{0,20}(?P<after>\s{1,4})(?!-)"
)
#: A value in quotes, or up to the next space; a weak name's value is judged by its beginning.
_VALUE = re.compile(r"\\{0,3}(?:\"[^\"\\]+|'[^'\\]+|[^\s\"'&]+)")
_LONGEST_JUDGED = 300
#: Text without any of these contains nothing to mask.
_CLUES = (
    r"://|pass|pwd|pw|secret|cred|jwt|key|token|auth|pat|sas|sig|cookie|hook|bearer|basic|curl"
    r"|hf_|api|pypi-|dckr_|gh[oprsu]_|gl[a-z]{2,5}-|a(?:kia|sia|bia|cca)|[rs]k[_-]|npm_|xox|xapp-|aiza|gocspx"
    r"|ya29|gsk_|r8_|wandb_|hv[sbr]\.|do[opr]_|shp|lin_|atatt|sg\.|eyj|:aa"
)
_CLUE = re.compile(_CLUES)


def _segments(name: str) -> list[str]:
    """`hfHubToken`, `HF_HUB_TOKEN` and `hf-hub-token` are the same words."""
    return [found.lower() for found in _SEGMENT.findall(name)]


@functools.lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    """How strongly a name suggests a secret: `strong`, `weak` or "" for not at all."""
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
        return ""
    if before and before[-1] in _ORDINARY:
        return ""
    if before and (before[-1] in _OF or before[-1] in _STRONG):
        return "strong"
    if before and name.isupper():
        return "strong"
    return "weak"


def secret_name(name: str) -> bool:
    """Whether a variable is left out of a snapshot because of its name; in doubt it is.

    >>> secret_name("SLURM_JWT"), secret_name("HF_HUB_TOKEN"), secret_name("NCCL_DEBUG")
    (True, True, False)
    """
    return any(word in _STRONG or word in _WEAK for word in _segments(name))


def _random_looking(value: str) -> bool:
    """Whether a value is a key rather than a word: hexadecimal, or letters and digits mixed."""
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
    if not kind or _compiled(_PLACEHOLDER).fullmatch(value):
        return False
    if kind == "strong":
        # TOKEN=1 is a switch, and a path names a file
        return len(value) > 2 or _segments(name)[-1] in _STRONG  # noqa: PLR2004
    return len(value) >= 16 and _random_looking(value[:256])  # noqa: PLR2004


def _whole_name(text: str, start: int, end: int) -> str:
    """The name of which a part was found, with what stands to the left of it."""
    least = max(0, start - _LONGEST_NAME)
    while start > least and text[start - 1] in _NAME_CHARACTERS:
        start -= 1
    return text[start:end]


def _mask_named(text: str, small: str, pattern: re.Pattern[str]) -> str:
    """Masks values behind names; where one is not a secret, the search goes on inside the value."""
    kept: list[str] = []
    done = at = 0
    while (found := pattern.search(small, at)) is not None:
        at = max(found.end(), found.start() + 1)
        name = _whole_name(text, found.start(), found.start("after")).strip(".")
        kind = _kind(name)
        limit = len(text) if kind == "strong" else found.end() + _LONGEST_JUDGED
        value = _VALUE.match(text, found.end(), limit) if kind else None
        if value is None:
            continue
        begin, end = value.span()
        while begin < end and text[begin] in "\\\"'":
            begin += 1
        while begin < end and text[end - 1] in ",;)}]":
            end -= 1
        if _is_secret(name, text[begin:end]):
            kept += [text[done:begin], MASK]
            done = at = end
    return "".join([*kept, text[done:]]) if kept else text


def _substitute(
    text: str, pattern: re.Pattern[str], begins: re.Pattern[str] | None, by: str, small: str
) -> str:
    """Masks what a pattern finds; if it has groups, only what follows the first that matched.

    Args:
        text: the text to mask.
        pattern: finds secrets.
        begins: finds where a match can begin; None if the pattern itself is fast at that.
        by: what replaces a match.
        small: the text as the pattern expects it, of the same length.
    """
    kept: list[str] = []
    done = at = 0
    while True:
        found = (begins or pattern).search(small, at)
        if found is None:
            break
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


def _is_suspicious(text: str) -> bool:
    """Whether a text holds a clue to a secret, in letters of either case."""
    return _CLUE.search(lower(text)) is not None


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
    if short and _CLUE.search(small) is None:
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
    hidden = _mask_named(text, small, _compiled(_ASSIGNED))
    if "-" in small:
        return _mask_named(hidden, small if hidden == text else lower(hidden), _compiled(_OPTION))
    return hidden


#: Texts in lower case, one of which each match of `_ISSUED` contains.
_FORM_PARTS = _words(
    "key----- block----- hf_ api_org_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- glptt- "
    "gldt- glrt- glcbt- glft- glsoat- glagent- glimt- akia asia abia acca k_live_ k_test_ "
    "nvapi- pypi- npm_ dckr_ xox xapp- aiza gocspx- ya29. gsk_ r8_ wandb_v1_ hvs. hvb. hvr. "
    "dapi dop_v1_ doo_v1_ dor_v1_ tskey- shp lin_api_ atatt3 age-secret-key-1 sk- sg. eyj "
    ":aa"
)
#: Compiling a pattern takes 1 ms, so a text is searched for its parts first. In a longer text, that
#: takes longer than 1 ms if there are many parts.
_SHORT = 1 << 15
_MANY = 10
#: Parts, what it finds and how that begins, what replaces it, and whether upper case counts.
_SECRETS = (
    (_FORM_PARTS, _ISSUED, _ISSUED_START, MASK, True),
    ((":aa",), _BOT, None, MASK, True),
    (("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/"), _HOOK, None, MASK, True),
    (("://",), _USERINFO, None, MASK + "@", True),
    ("?&;", _PARAMETER, None, MASK, False),
    (("authorization", "bearer", "basic", "cookie"), _HEADER, _HEADER_START, MASK, False),
    (("curl", "sshpass", "login"), _COMMAND, _COMMAND_START, MASK, True),
)


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
    """
    found: list[str] = []
    option = ""
    clueless = not _is_suspicious(" ".join(words))  # then no part of it has a clue either
    for place, word in enumerate(words):
        named = option and not word.startswith("-")
        if clueless:
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
