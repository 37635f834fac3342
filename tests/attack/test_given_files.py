"""Files that a command line names: what is no file is refused, and nothing private is quoted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsdoctor import examine, hostfile, packs, profiles, reading
from dsdoctor.cli import elsewhere
from dsdoctor.cli.main import group
from dsdoctor.errors import UsageError
from dsdoctor.host import LocalHost
from dsdoctor.host.door import HostError
from dsdoctor.recommend import models
from dsdoctor.smoke import request as smoke_request
from tests.attack.conftest import Trap

REGISTRY = packs.load(builtin_only=True)
READERS: dict[str, Callable[[str], object]] = {
    "--hostfile": hostfile.read,
    "--model": models.resolve,
    "smoke --config": smoke_request._read_config,
    "check --config": examine.read_config,
    "--profile": profiles.load,
}
by_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@by_reader
@pytest.mark.parametrize("kind", ["fifo", "zero"])
@pytest.mark.any_user
def test_what_is_no_file_is_neither_waited_for_nor_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[str], object], kind: str
) -> None:
    monkeypatch.setattr(reading, "PIPE_SECONDS", 0.2)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    begun = time.monotonic()
    with pytest.raises(UsageError):
        read(str(fifo) if kind == "fifo" else "/dev/zero")
    assert time.monotonic() - begun < 30


@by_reader
def test_root_does_not_quote_what_another_accounts_link_leads_to(
    trap: Trap, read: Callable[[str], object]
) -> None:
    trap.victim.write_text("roots-hash:x:1\n")
    try:
        with pytest.raises(UsageError) as caught:
            read(str(trap.link("given")))
    finally:
        trap.victim.write_text("root's own\n")
    assert "roots-hash" not in str(caught.value)
    assert "belongs to" in str(caught.value) or "is a link of" in str(caught.value)


def test_nor_on_a_network_mount(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a child reads, which can be abandoned: it judges as this process does."""
    monkeypatch.setattr(LocalHost, "file_system", lambda *_: "nfs")
    host = LocalHost({"PATH": "/usr/bin:/bin"})
    for name, target in (("direct", trap.victim), ("by way of another", trap.home / "direct")):
        with pytest.raises(HostError) as caught:
            host.read(str(trap.link(name, target)))
        assert "may not be read" in caught.value.missing.detail
    inside = trap.home / "inside"
    inside.symlink_to(trap.folder)
    trap.give(inside)
    with pytest.raises(HostError):
        host.read(f"{inside}/../{trap.folder.name}/victim")
    own = trap.file("own", "A=1\n", 0o600)
    assert host.read(str(trap.link("link", own))) == b"A=1\n"
    assert host.read(str(trap.victim)) == b"root's own\n", "no link is on the way"
    fifo = trap.home / "fifo"
    os.mkfifo(fifo)
    assert host.read(str(fifo)) == b""


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "vocab_size": 32000, "intermediate_size": 11008,
}  # fmt: skip


@pytest.mark.any_user
@pytest.mark.parametrize(
    "words",
    [
        ["--model", "7" * 5000 + "B"],
        ["--model", "7B", "--nodes", "9" * 30],
        ["--model", "7B", "--nodes", str(10**9)],
        ["--model", "7B", "--seq-len", "9" * 400],
        ["--model", "7B", "--layers", str(10**7)],
        ["--model", "7B", "--finetune", "lora", "--lora-rank", "9" * 30],
        ["--model", "{config}"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_number_that_no_job_has_is_misuse_at_once(tmp_path: Path, words: list[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**LLAMA, "num_hidden_layers": 10**7}))
    argv = [word.format(config=config) for word in words]
    begun = time.process_time()
    done = CliRunner().invoke(group, ["recommend", "--like", "8xH100-SXM", "--no-measure", *argv])
    assert done.exit_code != 0
    assert type(done.exception).__name__ in ("UsageError", "SystemExit"), done.exception
    assert time.process_time() - begun < 20


def test_a_pipe_that_never_ends_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(reading, "PIPE_SECONDS", 0.1)
    pipe = reading._pipe

    def counted(handle: int, size: int) -> bytes:
        waits.append(handle)
        return pipe(handle, size)

    monkeypatch.setattr(reading, "_pipe", counted)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="did not end"):
        elsewhere._saved(str(tmp_path / "pipe"), REGISTRY)
    assert len(waits) == 1
