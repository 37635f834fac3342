r"""Collect what can be read on a node; sent to it as one file, runs with any Python from 3.8 on.

    python3 - [--python PATH] [--resolve NAME,…] [--connect HOST:PORT,…] [--live] [--seconds N]

Prints one recording: what was read, not yet parsed. When the reports of all nodes are merged,
dsdoctor's own probes read the recording as if they ran on this node. It is split into short lines,
because some ways of starting a program on many nodes interleave their lines:

    \x1edsdoctor-node <host> <number>/<count> <piece of base64 of zlib of JSON>

Nothing here changes the machine or judges it. Scripts that may hang run as children with a
deadline. Standard library only; PAYLOAD holds those scripts (see `dsdoctor fleet bundle`).

Over 400 lines because it is sent to a node as one file.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import json
import os
import platform
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SENTINEL = "\x1edsdoctor-node"
PIECE = 900
READ_LIMIT = 1 << 20
#: Name of a script to its compressed text; filled in by `dsdoctor fleet bundle`.
PAYLOAD: dict[str, str] = {}
#: Names, and beginnings of names, of variables that are reported; filled in likewise.
VARIABLES: dict[str, list[str]] = {"names": [], "prefixes": []}
VERSION = ""
#: Source text of dsdoctor's own masking, filled in likewise.
MASKING = ""

FILES = (
    "/proc/driver/nvidia/version", "/proc/modules", "/proc/meminfo", "/proc/self/cgroup",
    "/proc/self/mountinfo", "/proc/1/cgroup", "/etc/os-release",
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
)  # fmt: skip
EXIST = (
    "/dev/dxg", "/dev/shm", "/run/secrets/kubernetes.io", "/.singularity.d", "/run/.containerenv",
    "/.dockerenv", "/run/systemd/container", "/proc/driver/nvidia",
)  # fmt: skip
CGROUP_FILES = (
    "memory.max", "memory.current", "memory.stat", "memory.limit_in_bytes", "memory.usage_in_bytes",
    "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "pids.max", "pids.current",
)  # fmt: skip
RDMA_DEVICES = "/sys/class/infiniband"
MOUNTS = "/proc/self/mounts"
#: A node with many containers has hundreds of mounts.
MOUNTS_LIMIT = 4 << 20
NETWORK_FILE_SYSTEMS = (
    "nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "wekafs", "9p", "fuse.sshfs",
)  # fmt: skip


class Recording:
    """The answers to what dsdoctor's probes ask a host."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def put(self, value: Any, *key: str) -> None:
        self.answers[json.dumps(list(key))] = {"ok": value}

    def lack(self, error: Exception, *key: str) -> None:
        number = getattr(error, "errno", None)
        why = "denied" if number in (1, 13) else "absent"
        text = "`%s` %s" % (key[1], "may not be read" if why == "denied" else "does not exist")
        self.answers[json.dumps(list(key))] = {"missing": {"why": why, "detail": text}}

    def read(self, path: str) -> str:
        try:
            with open(path, "rb") as file:
                data = file.read(READ_LIMIT)
        except OSError as error:
            self.lack(error, "read", path)
            return ""
        self.put({"base64": base64.b64encode(data).decode()}, "read", path)
        return data.decode("utf-8", "replace")

    def stat(self, path: str) -> None:
        try:
            info = os.stat(path)
        except OSError as error:
            self.lack(error, "stat", path)
            return
        mode = info.st_mode
        kind = "file" if stat.S_ISREG(mode) else "dir" if stat.S_ISDIR(mode) else "other"
        self.put(
            {
                "kind": kind,
                "size": info.st_size,
                "mtime": info.st_mtime,
                "mode": stat.S_IMODE(mode),
                "uid": info.st_uid,
                "writable": os.access(path, os.W_OK),
            },
            "stat",
            path,
        )

    def glob(self, pattern: str) -> list[str]:
        found = sorted(glob.glob(pattern))
        self.put(found, "glob", pattern)
        return found


def read_host(record: Recording) -> None:
    for path in FILES:
        record.read(path)
    for path in EXIST:
        record.stat(path)
    for path in record.glob("/sys/bus/pci/devices/*"):
        if record.read(path + "/vendor").strip().lower() == "0x10de":
            record.read(path + "/class")
            record.read(path + "/device")
            record.put(os.path.realpath(path + "/driver"), "readlink", path + "/driver")
        else:
            del record.answers[json.dumps(["read", path + "/vendor"])]  # hundreds of others
    record.glob("/dev/nvidia*")
    record.glob("/dev/nvidia-caps-imex-channels/channel*")
    for folder in cgroup_folders():
        for name in CGROUP_FILES:
            if os.path.exists(folder + "/" + name):
                record.read(folder + "/" + name)
    try:
        usage = shutil.disk_usage("/dev/shm")
        record.put({"total": usage.total, "free": usage.free}, "disk", "/dev/shm")
    except OSError as error:
        record.lack(error, "disk", "/dev/shm")
    for name, value in queries().items():
        record.put(value, "query", name)


def cgroup_folders() -> list[str]:
    found: list[str] = []
    try:
        with open("/proc/self/cgroup") as file:
            lines = file.read().splitlines()
        with open("/proc/self/mountinfo") as file:
            mounts = [line.split(" ") for line in file if " - cgroup" in line]
    except OSError:
        return found
    for line in lines:
        path = line.split(":", 2)[-1]
        for fields in mounts:
            root, point = fields[3].rstrip("/"), fields[4]
            inside = path[len(root) :] if path == root or path.startswith(root + "/") else ""
            names = [name for name in inside.split("/") if name]
            for count in range(len(names) + 1):
                folder = "/".join([point, *names[:count]])
                if folder not in found and os.path.isdir(folder):
                    found.append(folder)
    return found


def queries() -> dict[str, Any]:
    limits: dict[str, Any] = {}
    try:
        import resource

        for name, constant in (
            ("memlock", "RLIMIT_MEMLOCK"),
            ("nofile", "RLIMIT_NOFILE"),
            ("stack", "RLIMIT_STACK"),
            ("address_space", "RLIMIT_AS"),
            ("nproc", "RLIMIT_NPROC"),
        ):
            soft = resource.getrlimit(getattr(resource, constant))[0]
            limits[name] = None if soft == resource.RLIM_INFINITY else soft
    except (ImportError, OSError, ValueError):
        pass
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "release": platform.release(),
        "machine": platform.machine(),
        "hostname": socket.gethostname().split(".")[0],
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "cpu_count": os.cpu_count() or 1,
        "affinity": usable or 1,
        "limits": limits,
        "clock": time.time(),
        "euid": os.geteuid() if hasattr(os, "geteuid") else -1,
        "home": os.path.expanduser("~"),
        "cwd": os.getcwd(),
        "executable": sys.executable,
    }


def masking() -> dict[str, Any]:
    """The functions of dsdoctor's masking: secrets stay on the node."""
    functions: dict[str, Any] = {"__name__": "dsdoctor_masking"}
    exec(zlib.decompress(base64.b64decode(MASKING)), functions)
    return functions


def environment(functions: dict[str, Any]) -> dict[str, str]:
    names, prefixes = set(VARIABLES["names"]), tuple(VARIABLES["prefixes"])
    return {
        name: functions["mask_value"](name, value)
        for name, value in os.environ.items()
        if (name in names or name.startswith(prefixes)) and not functions["secret_name"](name)
    }


def masked(document: dict[str, Any], functions: dict[str, Any]) -> dict[str, Any]:
    """The recording without secrets, including those in what children printed and files contain."""

    def plain(text: str) -> str:
        data = base64.b64decode(text).decode("utf-8", "surrogateescape")
        data = functions["mask"](data)
        return base64.b64encode(data.encode("utf-8", "surrogateescape")).decode()

    for child in document["children"].values():
        for name in ("stdout", "stderr"):
            child[name] = plain(child[name])
    for answer in document["answers"].values():
        value = answer.get("ok")
        if isinstance(value, dict) and "base64" in value:
            value["base64"] = plain(value["base64"])
    found: dict[str, Any] = functions["mask_tree"](document)
    return found


def run_child(argv: list[str], seconds: float) -> dict[str, Any]:
    """How a script ended, as dsdoctor's `process.Result` would report it."""
    begun = time.time()
    result: dict[str, Any] = {
        "argv": argv,
        "returncode": None,
        "timed_out": False,
        "stdout": "",
        "stderr": "",
    }
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
        )
    except OSError as error:
        result["error"] = error.strerror or str(error)
        return result
    pieces: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

    def pump(name: str, stream: Any) -> None:
        try:
            for chunk in iter(lambda: os.read(stream.fileno(), 65536), b""):
                pieces[name].append(chunk)
        except (OSError, ValueError):
            pass

    threads = [
        threading.Thread(target=pump, args=(name, stream), daemon=True)
        for name, stream in (("stdout", child.stdout), ("stderr", child.stderr))
    ]
    for thread in threads:
        thread.start()
    try:
        result["returncode"] = child.wait(seconds)
    except subprocess.TimeoutExpired:
        result["timed_out"] = True
    with contextlib.suppress(OSError):
        os.killpg(child.pid, 9)
    for thread in threads:
        thread.join(0.3)
    for name in pieces:
        result[name] = base64.b64encode(b"".join(pieces[name])[:READ_LIMIT]).decode()
    result["seconds"] = round(time.time() - begun, 3)
    return result


def unpack(folder: str) -> None:
    for name, text in PAYLOAD.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(zlib.decompress(base64.b64decode(text)))


def run_children(arguments: dict[str, Any], recording: Recording) -> dict[str, Any]:
    children: dict[str, Any] = {}
    folder = tempfile.mkdtemp(prefix="dsdoctor-")
    try:
        unpack(folder)
        seconds = arguments["seconds"]
        jobs = {
            "nvml": [sys.executable, os.path.join(folder, "nvml.py")],
            "static": [arguments["python"], os.path.join(folder, "static.py")],
        }
        if arguments["live"]:
            jobs["torch_live"] = [arguments["python"], os.path.join(folder, "torch_live.py")]

        def work(name: str) -> None:
            limit = seconds if name == "torch_live" else min(seconds, 30.0)
            children[name] = run_child(jobs[name], limit)

        threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in jobs]
        for thread in threads:
            thread.start()
        read_host(recording)
        for thread in threads:
            thread.join(seconds + 5)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return children


def resolve(names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        try:
            rows = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM)
            found[name] = sorted({str(row[4][0]) for row in rows})
        except OSError as error:
            found[name] = "error: %s" % (error.strerror or error)
    return found


def connect(places: list[str], seconds: float = 3.0) -> dict[str, str]:
    """`connected` or `refused` if packets go both ways, else the reason why they do not."""
    found: dict[str, str] = {}
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), seconds).close()
            found[place] = "connected"
        except ConnectionRefusedError:
            found[place] = "refused"
        except socket.timeout:
            found[place] = "no answer within %g s" % seconds
        except (OSError, ValueError) as error:
            found[place] = str(getattr(error, "strerror", None) or error)
    return found


def text_of(path: str, limit: int = 4096) -> str:
    try:
        with open(path) as file:
            return file.read(limit).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def node_facts(arguments: dict[str, Any]) -> dict[str, Any]:
    interfaces = {}
    for path in sorted(glob.glob("/sys/class/net/*")):
        interfaces[os.path.basename(path)] = text_of(path + "/operstate")
    firmware = {}
    for path in sorted(glob.glob(RDMA_DEVICES + "/*")):
        firmware[os.path.basename(path)] = text_of(path + "/fw_ver")
    mounts = {}
    for line in text_of(MOUNTS, MOUNTS_LIMIT).splitlines():
        fields = line.split(" ")
        if fields[2:] and fields[2] in NETWORK_FILE_SYSTEMS:
            mounts[fields[1]] = "%s %s" % (fields[2], fields[0])
    return {
        "interfaces": interfaces,
        "addresses": own_addresses(),
        "firmware": firmware,
        "mounts": mounts,
        "resolved": resolve(arguments["resolve"]),
        "connected": connect(arguments["connect"]),
    }


def own_addresses() -> list[str]:
    """IPv4 addresses of this host, as the kernel's routing table has them."""
    found: set[str] = set()
    last = ""
    try:
        with open("/proc/net/fib_trie") as file:
            for line in file:
                words = line.split()
                if words[:1] == ["|--"]:
                    last = words[1]
                elif words[:2] == ["/32", "host"] and words[2:] == ["LOCAL"]:
                    found.add(last)
    except OSError:
        pass
    return sorted(found)


def parse(argv: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "python": sys.executable, "resolve": [], "connect": [], "live": False, "seconds": 60.0,
        "name": "",
    }  # fmt: skip
    words = list(argv)
    while words:
        word = words.pop(0)
        name = word[2:]
        if word == "--live":
            arguments["live"] = True
        elif not word.startswith("--") or name not in arguments or not words:
            sys.stderr.write("dsdoctor: collector: `%s` is not an option, or has no value\n" % word)
            raise SystemExit(2)
        elif name in ("resolve", "connect"):
            arguments[name] = [item for item in words.pop(0).split(",") if item]
        elif name == "seconds":
            arguments[name] = float(words.pop(0))
        else:
            arguments[name] = words.pop(0)
    return arguments


def main(argv: list[str]) -> None:
    arguments = parse(argv)
    recording = Recording()
    functions = masking()
    begun = time.time()
    children = run_children(arguments, recording)
    document = {
        "schema": "dsdoctor/recording",
        "version": 1,
        "dsdoctor": VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "env": environment(functions),
        "answers": recording.answers,
        "patient": arguments["python"],
        "children": children,
        "node": node_facts(arguments),
        "seconds": round(time.time() - begun, 3),
        "clock": time.time(),
    }
    document = masked(document, functions)
    data = base64.b64encode(zlib.compress(json.dumps(document).encode(), 6)).decode()
    pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
    # Slurm may use another name for a node than the node itself
    host = arguments["name"] or os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    for number, piece in enumerate(pieces, 1):
        sys.stdout.write("%s %s %d/%d %s\n" % (SENTINEL, host, number, len(pieces), piece))
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
