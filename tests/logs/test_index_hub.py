"""Messages of huggingface_hub: what answers them, and conditions that they name."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


def traced(file: str, function: str, said: str) -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/huggingface_hub/{file}", line 7, in {function}\n'
        f"    raise\n{said}\n"
    )


@pytest.mark.parametrize(
    ("file", "function", "said", "answer"),
    [
        pytest.param(
            "utils/_http.py",
            "hf_raise_for_status",
            "huggingface_hub.errors.RemoteEntryNotFoundError: 404 Client Error. (Request ID: Root=1-6"
            ";2)\n\nEntry Not Found for url: https://huggingface.co/gpt2/resolve/main/x.safetensors.",
            "does not contain the file",
            id="a file that the repository does not have, with a request's id in its message",
        ),
        pytest.param(
            "utils/_http.py",
            "hf_raise_for_status",
            "huggingface_hub.errors.RevisionNotFoundError: 404 Client Error. (Request ID: Root=1-6;2)"
            "\n\nRevision Not Found for url: https://huggingface.co/api/models/gpt2/revision/v9.",
            "branch, tag or commit",
            id="a revision that the repository does not have",
        ),
        pytest.param(
            "utils/_headers.py",
            "get_token_to_send",
            "huggingface_hub.errors.LocalTokenNotFoundError: Token is required (`token=True`), but no "
            "token found. You need to provide a token or be logged in to Hugging Face with `hf auth "
            "login` or `huggingface_hub.login`. See https://huggingface.co/settings/tokens.",
            "hf auth login",
            id="no token",
        ),
        pytest.param(
            "utils/_validators.py",
            "validate_repo_id",
            "huggingface_hub.errors.HFValidationError: Repo id must be a string, not "
            "<class 'NoneType'>: 'None'.",
            "`repo_id` is not a string",
            id="a model that was never set",
        ),
        pytest.param(
            "file_download.py",
            "http_get",
            "RuntimeError: An error occurred while downloading using `hf_transfer`. Consider disabling "
            "HF_HUB_ENABLE_HF_TRANSFER for better error handling.",
            "HF_HUB_ENABLE_HF_TRANSFER",
            id="hf_transfer does not say why",
        ),
        pytest.param(
            "dataclasses.py",
            "__strict_setattr__",
            "huggingface_hub.errors.StrictDataclassFieldValidationError: Validation error for field "
            "'hidden_size':\n    TypeError: Field 'hidden_size' expected int, got str (value: '64')",
            "`config.json`",
            id="a field of a model's config with a wrong type",
        ),
    ],
)
def test_a_refusal_says_what_to_change(file: str, function: str, said: str, answer: str) -> None:
    found = read(traced(file, function, said))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.explained is not None
    assert (found.explained.kind, found.explained.product) == (REFUSAL, "huggingface_hub")
    assert answer in found.explained.text


@pytest.mark.parametrize(
    ("file", "function", "said", "condition", "message"),
    [
        pytest.param(
            "_snapshot_download.py",
            "_raise_if_incomplete_snapshot",
            "huggingface_hub.errors.IncompleteSnapshotError: The cached snapshot for 'a/b' (revision "
            "'main', commit 12ab) is incomplete: 3 file(s) are missing (a, b, c). Outgoing traffic is "
            "disabled ('local_files_only=True'). Re-run the download with network access to complete "
            "the snapshot.",
            "hub-unreachable",
            "The copy in the cache is incomplete",
            id="no weights file is truncated, files are missing",
        ),
        pytest.param(
            "file_download.py",
            "_get_metadata_or_catch_error",
            "huggingface_hub.errors.FileMetadataError: Distant resource does not seem to be on "
            "huggingface.co. It is possible that a configuration issue prevents you from downloading "
            "resources from https://huggingface.co. Please check your firewall and proxy settings and "
            "make sure your SSL certificates are updated.",
            "hub-unreachable",
            "What answers for the hub is not the hub",
            id="a proxy answers",
        ),
        pytest.param(
            "hf_api.py",
            "whoami",
            "requests.exceptions.HTTPError: Invalid user token. The token from HF_TOKEN environment "
            "variable is invalid. Note that HF_TOKEN takes precedence over `hf auth login`.",
            "hub-access-denied",
            "The hub does not accept the token in `HF_TOKEN`",
            id="HF_TOKEN holds an old token",
        ),
        pytest.param(
            "utils/_http.py",
            "hf_raise_for_status",
            "huggingface_hub.errors.HfHubHTTPError: (Request ID: Root=1-6;2)\n\n403 Forbidden: You "
            "don't have the rights to create a model under this namespace.\nCannot access content at: "
            "https://huggingface.co/api/repos/create.\nMake sure your token has the correct permissions.",
            "hub-access-denied",
            "does not have the permission",
            id="a token that may only read",
        ),
        pytest.param(
            "utils/_validators.py",
            "validate_repo_id",
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            "'namespace/repo_name': '/data/models/llama'. Use `repo_type` argument if needed.",
            "path-missing",
            "`/data/models/llama` does not exist",
            id="the pattern that names the path outranks the answer that does not",
        ),
    ],
)
def test_a_condition_has_the_sentence_of_its_message(
    file: str, function: str, said: str, condition: str, message: str
) -> None:
    found = read(traced(file, function, said))
    assert [cause.condition for cause in found.causes] == [condition]
    assert message in found.causes[0].message


def test_an_upload_that_failed_has_the_cause_of_what_failed_it() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/x/site-packages/requests/adapters.py", line 7, '
        'in send\n    raise\nrequests.exceptions.ConnectionError: (MaxRetryError("'
        "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\"))\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
    ) + traced(
        "_commit_api.py",
        "_wrapped_lfs_upload",
        "RuntimeError: Error while uploading 'model.safetensors' to the Hub.",
    )
    assert [cause.condition for cause in read(text).causes] == ["hub-unreachable"]


@pytest.mark.parametrize(
    "line",
    [
        "Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 13] x",
        (
            "Xet Storage is enabled for this repo, but the 'hf_xet' package is not installed. "
            "Falling back to regular HTTP download."
        ),
    ],
    ids=["a cache that cannot be written", "a download without Xet"],
)
def test_a_run_goes_on_after_what_the_hub_only_mentions(line: str) -> None:
    text = (
        f"{line}\n{{'loss': 1.5, 'step': 10}}\n{{'loss': 1.2, 'step': 20}}\nTraining completed.\n"
    )
    assert read(text).outcome is Outcome.CLEAN


def test_words_that_other_programs_use_are_not_the_hubs() -> None:
    for line in (
        "ValueError: Invalid repo type",
        "FileNotFoundError: Path /data/x does not exist.",
    ):
        assert read(f"{line}\n").explained is None


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        pytest.param("Invalid credentials in Authorization header", "log in again", id="wrong"),
        pytest.param('User Access Token "ci" is expired', "log in again", id="expired"),
        pytest.param("x", "accept the terms", id="any other reason"),
    ],
)
def test_a_token_that_the_hub_rejects_is_told_from_a_denied_repository(
    reason: str, advice: str
) -> None:
    said = (
        "huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url: "
        f"https://huggingface.co/api/models/a/b (Request ID: Root=1-6)\n\n{reason}\n"
    )
    found = read(traced("utils/_http.py", "hf_raise_for_status", said))
    assert [cause.condition for cause in found.causes] == ["hub-access-denied"]
    assert advice in found.causes[0].hint


def test_a_part_of_one_message_is_not_taken_for_another() -> None:
    """Of the hub's rate limit, which is put together, one part is `Url: …`."""
    said = (
        "huggingface_hub.errors.HfHubHTTPError: 409 Client Error: Conflict for url: "
        "https://huggingface.co/api/models/a/b (Request ID: Root=1-6)"
    )
    found = read(traced("utils/_http.py", "hf_raise_for_status", said))
    assert found.outcome is Outcome.UNRECOGNISED
