"""From facts to the machine to plan for: busy, mixed, sliced and hidden GPUs; ports and hosts."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.host import LocalHost
from dsdoctor.job import launch_site
from dsdoctor.model.facts.gpu import Gpu, GpuProcess, Gpus, MigDevice
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.model.units import GIB
from dsdoctor.recommend.machine import Machine, capability, machine_from
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.planning import PlanOptions, recommend
from dsdoctor.testing import FakeHost

OS = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
RAM = Resources(
    cpus_logical=64, cpus_usable=32, memory_total_bytes=1 << 40, memory_available_bytes=900 * GIB
)


def gpu(index: int, name: str = "NVIDIA A100", **changes: Any) -> Gpu:
    values: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{index:08d}-aaaa",
        "name": name,
        "cc_major": 8,
        "cc_minor": 0,
        "memory_total_bytes": 80 * GIB,
        "memory_free_bytes": 79 * GIB,
    }
    return Gpu(**(values | changes))


def read(*gpus: Gpu, asked: tuple[str, ...] = (), visible: str | None = None) -> Machine:
    return machine_from(Gpus(gpus=gpus), RAM, RunNeeds(gpus=asked), OS, visible)


def notes(plan: LaunchPlan, subject: str) -> str:
    return "\n".join(reason.text for reason in plan.reasons if reason.subject == subject)


def test_a_gpu_that_others_use_sets_the_limit_and_is_named() -> None:
    busy = gpu(1, memory_free_bytes=20 * GIB, processes=(GpuProcess(pid=77, kind="compute"),))
    plan = recommend(read(gpu(0), busy), resolve("gpt2"))
    assert {row.gpu_limit_bytes for row in plan.memory.options} == {20 * GIB}
    said = notes(plan, "machine")
    assert (
        "GPU 1 has 20.0 GiB of 80.0 GiB free now, 60.0 GiB are used by 1 process (pid 77)" in said
    )
    assert "limits all GPUs" in said
    alone = recommend(read(gpu(0), busy, asked=("0",)), resolve("gpt2"))
    assert notes(alone, "machine") == ""


def test_a_screen_on_a_gpu_is_no_news() -> None:
    plan = recommend(read(gpu(0, memory_free_bytes=79 * GIB)), resolve("gpt2"))
    assert notes(plan, "machine") == ""


def test_a_mixed_box_goes_by_its_smallest_and_oldest() -> None:
    old = gpu(1, "Tesla V100", cc_major=7, memory_total_bytes=32 * GIB, memory_free_bytes=31 * GIB)
    plan = recommend(read(gpu(0), old), resolve("gpt2"))
    assert plan.precision == "fp16"
    assert "7.0, the lowest here" in notes(plan, "precision")
    assert "the GPUs differ: NVIDIA A100 (8.0), Tesla V100 (7.0)" in notes(plan, "machine")
    assert plan.memory.options[0].gpu_limit_bytes == 31 * GIB


SLICES = (
    MigDevice(index=0, uuid="MIG-a1", profile="3g.40gb", memory_total_bytes=40 * GIB),
    MigDevice(index=1, uuid="MIG-b2", profile="3g.40gb", memory_mib=20 * 1024),
)
SLICED = gpu(0, mig_mode=True, mig_devices=SLICES)


@pytest.mark.parametrize(
    ("asked", "uuid", "gib"), [((), "MIG-a1", 40), (("MIG-b2",), "MIG-b2", 20)]
)
def test_one_mig_slice_is_planned_for(asked: tuple[str, ...], uuid: str, gib: int) -> None:
    """Its size is the slice's, not the card's; only torchrun passes its name on."""
    plan = recommend(read(SLICED, asked=asked), resolve("gpt2"))
    assert (plan.world, plan.launcher) == (1, "torchrun")
    assert plan.env["CUDA_VISIBLE_DEVICES"] == uuid
    assert plan.gpu_uuids == (uuid,)
    assert plan.memory.options[0].gpu_limit_bytes == gib * GIB
    assert "NCCL cannot connect several" in notes(plan, "machine")


def test_mig_slices_cannot_be_joined() -> None:
    with pytest.raises(UsageError, match="expected one MIG device"):
        read(SLICED, asked=("MIG-a1", "MIG-b2"))
    with pytest.raises(UsageError, match="MIG-zz` does not exist"):
        read(SLICED, asked=("MIG-zz",))
    with pytest.raises(UsageError, match="split into MIG devices"):
        read(SLICED, asked=("0",))
    with pytest.raises(UsageError, match="--launcher torchrun"):
        recommend(read(SLICED), resolve("gpt2"), PlanOptions(launcher="deepspeed"))
    with pytest.raises(UsageError, match="--nodes 1"):
        recommend(read(SLICED), resolve("gpt2"), PlanOptions(nodes=2))


def test_sliced_and_whole_gpus_together() -> None:
    machine = read(SLICED, gpu(1))
    assert [device.index for device in machine.devices] == [1]
    assert "GPU 0 is left out: it is split into MIG devices" in machine.notes[0]


def test_cuda_visible_devices_bounds_the_plan() -> None:
    gpus = tuple(gpu(index) for index in range(4))
    assert [device.index for device in read(*gpus, visible="2,1").devices] == [1, 2]
    assert [device.index for device in read(*gpus, visible="GPU-00000003").devices] == [3]
    assert read(*gpus, visible="1,9,2").devices[-1].index == 1  # CUDA stops at what it lacks
    assert read(*gpus, visible="").devices == ()
    assert "leaves these GPUs visible: 1" in read(*gpus, visible="1").notes[0]
    assert read(*gpus, visible="0,1,2,3").notes == ()
    with pytest.raises(UsageError, match="`--gpus 3` is GPU 3 of `nvidia-smi`, but"):
        read(*gpus, asked=("3",), visible="0,1")


def test_gpus_that_cannot_be_read() -> None:
    broken = gpu(1, memory_total_bytes=None)
    assert [device.index for device in read(gpu(0), broken).devices] == [0]
    with pytest.raises(UsageError, match="GPU 1 cannot be used in the plan: it could not be read"):
        read(gpu(0), broken, asked=("1",))
    with pytest.raises(UsageError, match="expected one of 0"):
        read(gpu(0), asked=("7",))


@pytest.mark.parametrize("text", ["", "8", "8.x", "sm_80", "8.0.0", "-8.0"])
def test_what_is_no_capability(text: str) -> None:
    with pytest.raises(UsageError, match="not a compute capability"):
        capability(text)


# ---- hosts, ports, launchers -------------------------------------------------------------------


def test_hosts_come_from_the_option_or_the_file() -> None:
    host = FakeHost(files={"/h": "# ours\nnode-a slots=8\nnode-b slots=8\n"})
    assert launch_site.host_names(host, "a, b", None, None) == ("a", "b")
    assert launch_site.host_names(host, None, "/h", 2) == ("node-a", "node-b")
    assert launch_site.host_names(host, None, None, 4) == ()


@pytest.mark.parametrize(
    ("names", "hostfile", "nodes", "words"),
    [
        ("a", "/h", None, "pass one of them"),
        (None, "/nowhere", None, "`--hostfile /nowhere` cannot be read"),
        (None, "/bad", None, "`--hostfile /bad` line 2"),
        ("a,b", None, 3, "lists 2 hosts for `--nodes 3`"),
        ("a;rm", None, None, "not a host name"),
        ("-oProxyCommand=x", None, None, "not a host name"),
        (" , ", None, None, "lists no host"),
    ],
)
def test_hosts_that_are_refused(
    names: str | None, hostfile: str | None, nodes: int | None, words: str
) -> None:
    host = FakeHost(files={"/h": "node-a slots=8\n", "/bad": "node-a slots=8\nnode-b 8\n"})
    with pytest.raises(UsageError, match=words):
        launch_site.host_names(host, names, hostfile, nodes)


def test_a_taken_port_is_passed_over() -> None:
    """A real listener; the kernel's table is read, nothing is bound."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        taken = int(listener.getsockname()[1])
        port, said = launch_site.port(LocalHost(), taken, (), look=True)
        assert port == taken
        assert f"port {taken}, which was requested, is now in use" in said[0]
    assert launch_site.port(LocalHost(), taken, (), look=True) == (taken, ())


def table(*ports: int) -> str:
    rows = "".join(
        f" {n}: 00000000:{p:04X} 00000000:0000 0A 0:0 00:0 0 0 0 {n}\n" for n, p in enumerate(ports)
    )
    return f"  sl  local rem st\n{rows}"


def test_the_first_free_port_from_the_default() -> None:
    files = {"/proc/net/tcp": table(29500, 29501, 22), "/proc/net/tcp6": table(29502)}
    port, said = launch_site.port(FakeHost(files=files), None, (), look=True)
    assert port == 29503
    assert said == ("port 29500 is in use on this host, so 29503 is used",)
    free = FakeHost(files={"/proc/net/tcp": table(22)})
    assert launch_site.port(free, None, (), look=True) == (29500, ())
    assert launch_site.port(free, None, (), look=False) == (29500, ())


def test_a_machine_full_of_listeners_is_not_searched_for_ever() -> None:
    host = FakeHost(files={"/proc/net/tcp": table(*range(29500, 29700))})
    port, said = launch_site.port(host, None, (), look=True)
    assert port == 29500
    assert "are all in use" in said[0]


def test_the_patients_launcher_is_named_where_path_finds_another(tmp_path: Path) -> None:
    for folder in ("venv", "other"):
        (tmp_path / folder / "bin").mkdir(parents=True)
        for name in ("python", "deepspeed"):
            path = tmp_path / folder / "bin" / name
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    venv = tmp_path / "venv" / "bin"
    other = LocalHost({"PATH": str(tmp_path / "other" / "bin"), "HOME": str(tmp_path)})
    own = LocalHost({"PATH": str(venv), "HOME": str(tmp_path)})
    python = str(venv / "python")
    found, said = launch_site.programs(other, python, "deepspeed", look=True)
    assert (dict(found), said) == ({"deepspeed": str(venv / "deepspeed")}, ())
    assert launch_site.programs(own, python, "deepspeed", look=True) == ((), ())
    _, said = launch_site.programs(own, python, "torchrun", look=True)
    assert said == (f"`torchrun` is not installed next to {python}",)
    with pytest.raises(UsageError):
        launch_site.programs(own, str(tmp_path / "nowhere"), "torchrun", look=True)
