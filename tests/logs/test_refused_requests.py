"""Requests that a server refuses: the server goes on, so its log shows no failure."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = diagnose([Source(name="serve.log", data=text.encode())], KNOWN)
    return found.causes[0].condition if found.causes else found.outcome.value


REJECTED = (
    "ERROR 08-18 10:00:00 [serving_chat.py:203] Traceback (most recent call last):\n"
    f'ERROR 08-18 10:00:00 [serving_chat.py:203]   File "{SITE}vllm/entrypoints/openai/'
    'serving_engine.py", line 626, in _validate_input\n'
    "ERROR 08-18 10:00:00 [serving_chat.py:203] ValueError: the request has too many tokens\n"
)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("400 Bad Request", "clean"), ("500 Internal Server Error", "unrecognised")],
    ids=["the request was wrong", "the server failed"],
)
def test_a_request_that_a_server_rejects_is_no_failure_of_the_server(
    status: str, outcome: str
) -> None:
    line = f'INFO:     127.0.0.1:59064 - "POST /v1/chat/completions HTTP/1.1" {status}\n'
    assert said(f"{REJECTED}{line}INFO:     Application shutdown complete.\n") == outcome


def test_a_server_that_serves_others_after_a_refused_request_has_not_failed() -> None:
    line = 'INFO:     127.0.0.1:59064 - "POST /v1/chat/completions HTTP/1.1" {0}\n'
    others = line.format("200 OK") * 3
    assert said(REJECTED + others) == "clean"
    assert said(REJECTED + others + line.format("500 Internal Server Error")) == "unrecognised"
    dead = REJECTED.replace("ValueError: the request has too many tokens", "EngineDeadError: gone")
    assert said(dead + others) == "unrecognised"
    own = REJECTED.replace(f"{SITE}vllm/entrypoints/openai/serving_engine.py", "/home/u/app.py")
    own = own.replace(f"{SITE}vllm/entrypoints/openai/", "/home/u/")
    assert said(own + others) == "user-code"
