"""Rows of `proxy-package-missing`, and that a proxy's password never enters a snapshot."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Packages
from dsdoctor.probes.environment import select
from dsdoctor.testing import judge
from dsdoctor_checks.python import proxy_package_missing
from tests.checks.python.support import packages

NEW, OLD = packages(huggingface_hub="1.14.0"), packages(huggingface_hub="0.36.0")


@pytest.mark.parametrize(
    ("variables", "installed", "expected"),
    [
        pytest.param({"ALL_PROXY": "socks5://h:1"}, NEW, "warn", id="httpx without socksio"),
        pytest.param({"https_proxy": "socks5h://h:1"}, OLD, "warn", id="requests without PySocks"),
        pytest.param(
            {"ALL_PROXY": "socks5://h:1"}, packages(huggingface_hub="1.14.0", socksio="1.0.0"), "ok",
            id="socksio is installed",
        ),
        pytest.param(
            {"ALL_PROXY": "socks5://h:1"}, packages(huggingface_hub="0.36.0", socksio="1.0.0"),
            "warn", id="socksio is not what requests uses",
        ),
        pytest.param({"HTTPS_PROXY": "http://h:1"}, NEW, "ok", id="an HTTP proxy"),
        pytest.param({}, NEW, "ok", id="no proxy"),
        pytest.param(
            {"ALL_PROXY": "socks5://h:1", "HF_HUB_OFFLINE": "1"}, NEW, "skip", id="offline"
        ),
        pytest.param({"ALL_PROXY": "socks5://h:1"}, packages(torch="2.6.0"), "skip", id="no client"),
    ],
)  # fmt: skip
def test_rows(variables: dict[str, str], installed: Packages, expected: str) -> None:
    judged = judge(
        proxy_package_missing.proxy_is_supported,
        packages=installed,
        environment=Environment(variables=variables),
    )
    assert judged.status == expected


def test_the_password_of_a_proxy_is_masked() -> None:
    kept = select({"all_proxy": "socks5://me:secret@proxy:1080"})
    assert kept == {"all_proxy": "socks5://[masked]@proxy:1080"}
