"""A small API server of Kubernetes for tests: one node, with the API's own merge rules."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any


class Cluster:
    """What the server keeps.

    Attributes:
        node: the Node object.
        events: written events.
        requests: `METHOD path type` of each request.
        refuse: path to the status that it is answered with.
        conflicts: how many writes of the node are answered with 409.
    """

    def __init__(self, name: str = "gpu-1") -> None:
        self.node: dict[str, Any] = {
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        self.events: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.refuse: dict[str, int] = {}
        self.conflicts = 0

    def condition(self, kind: str) -> dict[str, Any]:
        return next((c for c in self.node["status"]["conditions"] if c["type"] == kind), {})

    def answer(self, method: str, path: str, kind: str, body: Any) -> tuple[int, dict[str, Any]]:
        self.requests.append(f"{method} {path} {kind}".strip())
        name = self.node["metadata"]["name"]
        if path in self.refuse:
            return self.refuse[path], {"kind": "Status", "message": "is forbidden"}
        if (method, path) == ("GET", f"/api/v1/nodes/{name}"):
            return 200, self.node
        if (method, path) == ("PATCH", f"/api/v1/nodes/{name}/status"):
            return self._status(kind, body)
        if (method, path) == ("PATCH", f"/api/v1/nodes/{name}"):
            return self._spec(kind, body)
        if (method, path) == ("POST", "/api/v1/namespaces/default/events"):
            self.events.append(body)
            return 201, body
        return 404, {"message": "not found"}

    def _status(self, kind: str, body: Any) -> tuple[int, dict[str, Any]]:
        if kind != "application/strategic-merge-patch+json" or set(body) != {"status"}:
            return 415, {"message": kind}
        for row in body["status"]["conditions"]:
            there = self.condition(row["type"])
            if there:
                there.update(row)
            else:
                self.node["status"]["conditions"].append(dict(row))
        return 200, self.node

    def _spec(self, kind: str, body: Any) -> tuple[int, dict[str, Any]]:
        if kind != "application/merge-patch+json":
            return 415, {"message": kind}
        version = self.node["metadata"]["resourceVersion"]
        if self.conflicts:
            self.conflicts -= 1
            self.node["metadata"]["resourceVersion"] = str(int(version) + 1)
            self.node["spec"]["taints"].append({"key": f"other-{version}", "effect": "NoSchedule"})
            return 409, {"reason": "Conflict"}
        if body["metadata"]["resourceVersion"] != version:
            return 409, {"reason": "Conflict"}
        self.node["spec"]["taints"] = body["spec"]["taints"] or []
        self.node["metadata"]["resourceVersion"] = str(int(version) + 1)
        return 200, self.node


@contextlib.contextmanager
def served(cluster: Cluster) -> Iterator[str]:
    """The URL of a server for a cluster."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            body = json.loads(self.rfile.read(length)) if length else None
            status, value = cluster.answer(
                self.command, self.path, self.headers.get("Content-Type", ""), body
            )
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = do_POST = _do  # noqa: N815  # names that http.server calls

        def log_message(self, *_: object) -> None:
            """Nothing: the requests are kept."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
