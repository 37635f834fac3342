"""The network interfaces that `ip` and `ifconfig` list."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)

IP = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: ens1f0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    link/ether 0c:42:a1:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 10.0.0.5/24 brd 10.0.0.255 scope global ens1f0
    inet6 fe80::e42:a1ff:fe00:1/64 scope link
3: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN group default qlen 256
"""
BRIEF = """\
lo               UNKNOWN        127.0.0.1/8 ::1/128
ens1f0           UP             10.0.0.5/24 fe80::e42:a1ff:fe00:1/64
ib0              DOWN
"""
IFCONFIG = """\
ens1f0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.0.0.5  netmask 255.255.255.0  broadcast 10.0.0.255
        inet6 fe80::e42:a1ff:fe00:1  prefixlen 64  scopeid 0x20<link>
        RX packets 1  bytes 1 (1.0 B)

ib0: flags=4098<BROADCAST,MULTICAST>  mtu 4092

lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536
        inet 127.0.0.1  netmask 255.0.0.0
"""
OLD = """\
ens1f0    Link encap:Ethernet  HWaddr 0c:42:a1:00:00:01
          inet addr:10.0.0.5  Bcast:10.0.0.255  Mask:255.255.255.0
          inet6 addr: fe80::e42:a1ff:fe00:1/64 Scope:Link
          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1

ib0       Link encap:InfiniBand  HWaddr 80:00:00:48
          BROADCAST MULTICAST  MTU:4092  Metric:1

lo        Link encap:Local Loopback
          inet addr:127.0.0.1  Mask:255.0.0.0
          UP LOOPBACK RUNNING  MTU:65536  Metric:1
"""
LISTS = [
    pytest.param(IP, id="ip addr"),
    pytest.param(BRIEF, id="ip -br addr"),
    pytest.param(IFCONFIG, id="ifconfig"),
    pytest.param(OLD, id="ifconfig of net-tools 1"),
]


@pytest.mark.parametrize("text", LISTS)
def test_the_interfaces_of_a_node(text: str) -> None:
    items = value(stated(f"```\n{text}```\n"), "network/interfaces")
    found = {item["name"]: item for item in items}
    assert set(found) == {"lo", "ens1f0", "ib0"}
    assert found["lo"]["loopback"]
    assert not found["ens1f0"]["loopback"]
    assert found["ens1f0"]["up"]
    assert found["ens1f0"]["addresses"] == ["10.0.0.5", "fe80::e42:a1ff:fe00:1"]
    assert not found["ib0"]["up"]
    assert found["ib0"]["addresses"] == []


@pytest.mark.parametrize("text", LISTS)
def test_a_variable_that_selects_no_interface(text: str) -> None:
    launch = "export NCCL_SOCKET_IFNAME={}\ntorchrun --nproc_per_node 8 train.py"
    whole = f"```\n{text}```\n```\n{launch}\n```\n"

    def messages(name: str) -> dict[str, str]:
        snapshot = stated(whole.replace("{}", name))
        found = judge(snapshot, list(REGISTRY), REGISTRY).findings
        return {one.condition: one.message for one in found if one.status.value == "fail"}

    assert "matches no interface" in messages("eth0")["nccl-ib-or-socket-interface"]
    assert "is down" in messages("ib0")["nccl-ib-or-socket-interface"]
    assert messages("ens") == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(IP, id="the end of the text"),
        pytest.param("```\n" + IP.partition("2: ")[2] + "```\n", id="without the loopback"),
        pytest.param(f"```\n{IP}```\n```\n{IFCONFIG}```\n", id="two nodes"),
        pytest.param("eth0: flags are set and mtu is 1500\nlo: is up\n", id="sentences"),
    ],
)
def test_what_is_no_whole_list(text: str) -> None:
    assert environment_of(text) is None
