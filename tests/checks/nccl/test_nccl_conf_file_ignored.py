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
        pytest.param("", "ok", id="an empty file"),
        pytest.param("# ours\n\nNCCL_DEBUG=INFO\n", "ok", id="a setting below a comment line"),
        pytest.param("NCCL_DEBUG=INFO # remark\n", "ok", id="a comment behind a setting"),
        pytest.param("NCCL_DEBUG INFO\n", "warn", id="a setting without an equals sign"),
        pytest.param("NCCL_DEBUG = INFO\n", "warn", id="spaces around the equals sign"),
        pytest.param(
            "  # indented remark without the sign\n",
            "warn",
            id="an indented comment is read as a setting",
        ),
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
