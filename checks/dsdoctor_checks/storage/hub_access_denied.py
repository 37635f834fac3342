"""A model or dataset on the hub is gated or private, or its name is wrong.

## Why it matters
The hub answers 401, 403 or 404 to anyone who may not see a repository. Every rank fails while it loads
the model, and the traceback looks like an error in the script.

## What to do
Check the spelling of the name. For a gated model, accept the terms on its page. Then run `hf auth
login` (before huggingface_hub 0.34: `huggingface-cli login`), or set `HF_TOKEN` on every node.

## References
- https://huggingface.co/docs/hub/models-gated
- huggingface_hub utils/_http.py (GatedRepoError, RepositoryNotFoundError)
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("hub-access-denied", id="DSD1555", scope=Scope.JOB, since="0.1")

HINT = "accept the terms on the repository's page, set `HF_TOKEN` on every node, and check the name"

#: What to do about a token that the hub does not accept.
_LOGIN = "log in again (`hf auth login`, or `huggingface-cli login`) with a token from https://huggingface.co/settings/tokens; a variable `HF_TOKEN` takes precedence, so update it on every node, or unset it for public files"

SIGNATURES = (
    Signature(
        # the server's reason, below the client's message
        pattern=r"^(?:\{\"error\":\")?Invalid credentials in Authorization header\b",
        source="the server of the Hugging Face hub (2022-2026), printed by huggingface_hub 0.10-2.4",
        examples=(
            "Invalid credentials in Authorization header",
            '{"error":"Invalid credentials in Authorization header"}',
        ),
        not_examples=("see Invalid credentials in Authorization header",),
        level=Level.CERTAIN,
        message="The hub does not accept the token: it is wrong, expired or revoked",
        hint=_LOGIN,
        masks=("hub-unreachable",),
    ),
    Signature(
        pattern=r"^User Access Token \".{1,100}\" is expired\b",
        source="the server of the Hugging Face hub (2024-2026), printed by huggingface_hub 0.10-2.4",
        examples=('User Access Token "ci" is expired',),
        not_examples=('his User Access Token "ci" is expired',),
        level=Level.CERTAIN,
        message="The hub does not accept the token: it has expired",
        hint=_LOGIN,
    ),
    Signature(
        pattern=r"Error: (?:Invalid user token\.|Invalid token passed!)",
        source="huggingface_hub 0.14-2.4 hf_api.py whoami; 0.14-0.25 _login.py",
        examples=(
            "requests.exceptions.HTTPError: Invalid user token. If you didn't pass a user token, make sure you are properly logged in.",
            "ValueError: Invalid token passed!",
        ),
        level=Level.CERTAIN,
        hint=_LOGIN,
    ),
    Signature(
        pattern=r"\b(?:GatedRepoError|RepositoryNotFoundError): ",
        source="huggingface_hub 0.14-1.0 errors.py",
        examples=(
            "huggingface_hub.errors.GatedRepoError: 403 Client Error.",
            "huggingface_hub.utils._errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-6)",
        ),
        not_examples=("class MyGatedRepoError: pass", "MyRepositoryNotFoundError: x"),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"Access to (?:model|dataset) \S+ is restricted|Cannot access gated repo for url|You are trying to access a gated repo|Your request to access (?:model|dataset) \S+ is awaiting|is not in the authorized list",
        source="huggingface_hub 0.14-1.0; transformers 4.30-5 utils/hub.py",
        examples=(
            "Access to model meta-llama/Llama-2-7b-hf is restricted and you are not in the authorized list.",
            "Access to dataset a/b is restricted",
            "Cannot access gated repo for url https://huggingface.co/x",
            "OSError: You are trying to access a gated repo.",
            "Your request to access model a/b is awaiting a review",
            "Your request to access dataset a/b is awaiting a review",
            "he is not in the authorized list",
        ),
        not_examples=(
            "Access to model x",
            "Your request to access model x",
            "Access to dataset x",
            "Your request to access dataset x",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"40[13] Client Error: \w+ for url: https://(?:huggingface\.co|hf-mirror\.com|cdn-lfs)",
        source="requests 2 models.py",
        examples=(
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/a/b",
            "403 Client Error: Forbidden for url: https://hf-mirror.com/a/b",
            "403 Client Error: Forbidden for url: https://cdn-lfs.hf.co/a",
        ),
        not_examples=(
            "404 Client Error: NotFound for url: https://huggingface.co/a/b",
            "404 Client Error: x for url: https://hf-mirror.com/a",
            "404 Client Error: x for url: https://cdn-lfs.x",
        ),
        level=Level.STRONG,
    ),
    Signature(
        # the line above it is the hub's own reason, which it words as it likes
        pattern=r"^Cannot access content at: https?://\S{1,300}\.$",
        source="huggingface_hub 0.22-2.4 utils/_errors.py, utils/_http.py hf_raise_for_status",
        message="The token does not have the permission that this needs (HTTP 403)",
        hint="pass a token that may do this: its permissions are set at https://huggingface.co/settings/tokens",
        examples=("Cannot access content at: https://huggingface.co/api/repos/create.",),
        not_examples=(
            "Cannot access content at: https://huggingface.co/api/repos/create, and went on",
            "see Cannot access content at: https://huggingface.co/api/repos/create.",
        ),
        level=Level.STRONG,
    ),
)
