from __future__ import annotations

import socket
import struct
import sys

import psutil
import pytest

from dsdoctor.host import addresses


def attribute(kind: int, data: bytes) -> bytes:
    padding = b"\0" * (-len(data) % 4)
    return struct.pack("=HH", 4 + len(data), kind) + data + padding


def message(family: int, *attributes: bytes) -> bytes:
    return struct.pack("=BBBBI", family, 24, 0, 0, 7) + b"".join(attributes)


V4 = socket.inet_aton("10.0.0.1")
PEER = socket.inet_aton("10.0.0.2")
V6 = socket.inet_pton(socket.AF_INET6, "fe80::1")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            message(socket.AF_INET, attribute(1, V4), attribute(3, b"eth0\0")),
            "10.0.0.1",
            id="an address with a label",
        ),
        pytest.param(
            message(socket.AF_INET, attribute(1, PEER), attribute(2, V4)),
            "10.0.0.1",
            id="of a point-to-point link its own",
        ),
        pytest.param(message(socket.AF_INET6, attribute(1, V6)), "fe80::1", id="IPv6"),
        pytest.param(message(5, attribute(1, b"\x10")), "", id="another family"),
        pytest.param(message(socket.AF_INET), "", id="no address"),
    ],
)
def test_messages_of_the_kernel(data: bytes, expected: str) -> None:
    assert addresses.parse(data) == (7, expected)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        message(socket.AF_INET, b"\0\0\0\0"),
        message(socket.AF_INET, attribute(1, b"x")),
    ],
)
def test_what_is_not_a_message_is_an_error_that_is_caught(data: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        addresses.parse(data)


def test_this_machine_has_the_addresses_that_psutil_names() -> None:
    families = (socket.AF_INET, socket.AF_INET6)
    expected = {
        name: {row.address for row in rows if row.family in families}
        for name, rows in psutil.net_if_addrs().items()
    }
    found = {name: set(rows) for name, rows in addresses.by_interface().items()}
    assert {name: rows for name, rows in found.items() if rows} == {
        name: rows for name, rows in expected.items() if rows
    }


def test_without_netlink_psutil_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name for name, rows in addresses.by_interface().items() if rows}

    def refused(*_: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("dsdoctor.host.addresses.socket.socket", refused)
    assert {name for name, rows in addresses.by_interface().items() if rows} == expected
    assert sys.platform != "linux" or expected
