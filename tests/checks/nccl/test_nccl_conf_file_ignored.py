"""Rows of `nccl-conf-file-ignored`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, NcclFiles
from dsdoctor.probes.network import parse_settings
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import nccl_conf_file_ignored

CHECK = nccl_conf_file_ignored.files_are_read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "ok"),
        ("# ours\n\nNCCL_DEBUG=INFO\n", "ok"),
        ("NCCL_DEBUG=INFO # remark\n", "ok"),
        ("NCCL_DEBUG INFO\n", "warn"),
        ("NCCL_DEBUG = INFO\n", "warn"),
        ("  # indented remark without the sign\n", "warn"),
    ],
)
def test_rows(text: str, expected: str) -> None:
    files = NcclFiles(files=(parse_settings(text, "/etc/nccl.conf"),))
    assert judge(CHECK, nccl_files=files, environment=Environment()).status == expected


def test_a_named_file_that_is_not_there() -> None:
    files = NcclFiles(named="/x/nccl.conf", named_exists=False, home_hidden="/root/.nccl.conf")
    assert judge(CHECK, nccl_files=files, environment=Environment()).status == "warn"
    assert (
        judge(CHECK, nccl_files=NcclFiles(named="/x/nccl.conf"), environment=Environment()).status
        == "ok"
    )


def test_the_environment_wins_and_that_is_said() -> None:
    files = NcclFiles(files=(parse_settings("NCCL_DEBUG=INFO\n", "/etc/nccl.conf"),))
    env = Environment(variables={"NCCL_DEBUG": "WARN"})
    assert any(
        "is overridden by" in finding.message
        for finding in judge(CHECK, nccl_files=files, environment=env).findings
    )
