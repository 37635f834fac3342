"""Rows of `tls-certificates-missing`, what its probe reads, and what the products print."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import RunNeeds
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome
from dsdoctor.probes.certificates import certificate_paths
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import FakeHost, judge, missing
from dsdoctor_checks.python import tls_certificates_missing

SITE = "/opt/conda/lib/python3.12/site-packages"
HTTPX = f"""Traceback (most recent call last):
  File "/job/train.py", line 3, in <module>
    tok = AutoTokenizer.from_pretrained("gpt2")
  File "{SITE}/httpx/_config.py", line 40, in create_ssl_context
    ctx = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
  File "/opt/conda/lib/python3.12/ssl.py", line 707, in create_default_context
    context.load_verify_locations(cafile, capath, cadata)
FileNotFoundError: [Errno 2] No such file or directory
"""


@pytest.mark.parametrize(
    ("variables", "line", "gone"),
    [
        pytest.param({}, "", (), id="no variable is set"),
        pytest.param({"SSL_CERT_FILE": ""}, "", (), id="an empty one counts as unset"),
        pytest.param({"SSL_CERT_FILE": "/etc/ca.pem"}, "", (), id="the file exists"),
        pytest.param({"REQUESTS_CA_BUNDLE": "/etc"}, "", (), id="requests takes a folder too"),
        pytest.param({"CURL_CA_BUNDLE": "ca.pem"}, "", (), id="relative to the job's folder"),
        pytest.param({"SSL_CERT_FILE": "/a"}, "", ("SSL_CERT_FILE",), id="httpx finds no file"),
        pytest.param(
            {"REQUESTS_CA_BUNDLE": "/b"}, "", ("REQUESTS_CA_BUNDLE",), id="requests finds no file"
        ),
        pytest.param({}, "SSL_CERT_FILE=/c python t.py", ("SSL_CERT_FILE",), id="the command"),
        pytest.param({}, "SSL_CERT_FILE=$C python t.py", (), id="a shell expands it"),
    ],
)
def test_rows(variables: dict[str, str], line: str, gone: tuple[str, ...]) -> None:
    host = FakeHost(files={"/etc/ca.pem": "", "/job/ca.pem": ""}, env=variables)
    command = parse_command(line.split()) if line else missing()
    fact = certificate_paths.function(host, RunNeeds(cwd="/job"), command)
    assert fact.missing == gone
    judged = judge(tls_certificates_missing.certificates_exist, certificate_paths=fact)
    assert judged.statuses == (["warn"] * len(gone) or ["ok"])
    for name in gone:
        assert (
            judged.findings[0].message == f"`{name}` is `{fact.paths[name]}`, which does not exist"
        )


def test_the_library_that_stops_before_it_connects_is_not_the_script() -> None:
    found = diagnose(
        [Source(name="log", data=HTTPX.encode())], signatures_of(packs.load(builtin_only=True))
    )
    assert found.outcome is Outcome.CAUSE
    assert found.causes[0].condition == "tls-certificates-missing"


def test_a_file_that_the_script_does_not_find_is_no_certificate() -> None:
    text = HTTPX.replace("httpx/_config.py", "httpx/_client.py")
    found = diagnose(
        [Source(name="log", data=text.encode())], signatures_of(packs.load(builtin_only=True))
    )
    assert [cause.condition for cause in found.causes] == ["path-missing"]
