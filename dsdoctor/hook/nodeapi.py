"""The parts of the Kubernetes API that report a node's health: condition, taint and event.

Standard library only. Paths, patch types and merge keys are those of the API reference of
Kubernetes 1.30 to 1.34: conditions of a node merge by `type`, taints are replaced as a whole.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import re
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: Where the kubelet mounts a service account.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS = 10.0
#: Another client may change the node between reading and writing it.
_TRIES = 4
_CONFLICT = 409
_MOST_BYTES = 8 << 20
_TAINT_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


class ApiError(Exception):
    """The API rejected a request or did not answer; the text is one line."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def is_taint_key(key: str) -> bool:
    """Whether a taint can have this key.

    >>> [is_taint_key(key) for key in ("dsdoctor/unhealthy", "a b", "x/y/z")]
    [True, False, False]
    """
    return _TAINT_KEY.fullmatch(key) is not None


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer of the API: the HTTP status and the JSON object."""

    status: int
    body: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Api:
    """One API server.

    Attributes:
        url: such as `https://10.96.0.1:443`.
        account: folder with `token` and `ca.crt`, read for every request since tokens rotate.
    """

    url: str
    account: Path = ACCOUNT

    @classmethod
    def in_cluster(cls, env: Mapping[str, str]) -> Api:
        """The server whose address the kubelet sets in every container.

        Raises:
            ApiError: this is not a pod.
        """
        host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ApiError(
                "`KUBERNETES_SERVICE_HOST` is not set; expected to run in a pod, or `--api URL`"
            )
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}")

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Answer:
        """Sends a request.

        Raises:
            ApiError: no answer within the deadline, or a status other than 2xx.
        """
        try:
            answer = self._ask(method, path, body, kind)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiError(f"{method} {path}: {type(error).__name__}: {error}") from None
        if not 200 <= answer.status < 300:  # noqa: PLR2004  # HTTP's own classes
            said = str(answer.body.get("message") or answer.body.get("reason") or "")
            raise ApiError(f"{method} {path}: HTTP {answer.status} {said[:300]}", answer.status)
        return answer

    def _ask(self, method: str, path: str, body: object, kind: str) -> Answer:
        url = urllib.parse.urlsplit(self.url)
        host, port = url.hostname or "", url.port
        connection: http.client.HTTPConnection
        headers = {"Accept": "application/json", "User-Agent": "dsdoctor"}
        if url.scheme == "https":
            trust = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
            connection = http.client.HTTPSConnection(
                host, port, timeout=TIMEOUT_SECONDS, context=trust
            )
            token = (self.account / "token").read_text(encoding="ascii").strip()
            headers["Authorization"] = f"Bearer {token}"
        else:  # `kubectl proxy`, which needs no token
            connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        try:
            data = None if body is None else json.dumps(body).encode()
            headers |= {"Content-Type": kind} if data is not None else {}
            connection.request(method, path, data, headers)
            found = connection.getresponse()
            value = json.loads(found.read(_MOST_BYTES) or b"{}")
        finally:
            connection.close()
        return Answer(found.status, value if isinstance(value, dict) else {})


def node(api: Api, name: str) -> dict[str, Any]:
    """The Node object.

    Raises:
        ApiError: see `Api.ask`.
    """
    return api.ask("GET", f"/api/v1/nodes/{name}").body


def condition_of(found: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """A node's condition of a type; empty if it has none.

    >>> condition_of({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready")
    {'type': 'Ready', 'status': 'True'}
    """
    for row in found.get("status", {}).get("conditions") or ():
        if row.get("type") == kind:
            return dict(row)
    return {}


def set_condition(api: Api, name: str, condition: Mapping[str, Any]) -> None:
    """Sets one condition and does not change the others.

    Raises:
        ApiError: see `Api.ask`.
    """
    api.ask(
        "PATCH",
        f"/api/v1/nodes/{name}/status",
        {"status": {"conditions": [dict(condition)]}},
        "application/strategic-merge-patch+json",
    )


def set_taint(api: Api, name: str, taint: Mapping[str, str], *, present: bool) -> bool:
    """Adds or removes one taint and keeps all others; returns whether the node was changed.

    Raises:
        ApiError: see `Api.ask`; also if others keep changing the node.
    """
    same = {"key": taint["key"], "effect": taint["effect"]}
    for number in range(_TRIES):
        found = node(api, name)
        taints = list(found.get("spec", {}).get("taints") or ())
        others = [row for row in taints if {k: row.get(k) for k in same} != same]
        if (len(others) != len(taints)) == present:
            return False
        wanted = [*others, dict(taint)] if present else others
        # with the version that was read: a taint that was added meanwhile makes this a conflict
        version = found.get("metadata", {}).get("resourceVersion")
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted or None}}
        try:
            api.ask("PATCH", f"/api/v1/nodes/{name}", patch, "application/merge-patch+json")
        except ApiError as error:
            if error.status == _CONFLICT and number < _TRIES - 1:
                continue
            raise
        return True
    return False  # pragma: no cover  # the last try returns or raises


def write_event(api: Api, name: str, event: Mapping[str, str], now: str) -> None:
    """Writes an event about a node, as `kubectl describe node` shows it.

    Args:
        api: where.
        name: of the node.
        event: `type` (Normal or Warning), `reason` and `message`.
        now: RFC 3339.

    Raises:
        ApiError: see `Api.ask`.
    """
    api.ask(
        "POST",
        "/api/v1/namespaces/default/events",  # events of objects without a namespace
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name}.dsdoctor-"[:240], "namespace": "default"},
            # as in the kubelet's own events
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name},
            **event,
            "source": {"component": "dsdoctor", "host": name},
            "reportingComponent": "dsdoctor",
            "reportingInstance": name,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        },
    )


def attempt(action: Callable[[], Any], report: Callable[[str], None]) -> bool:
    """Runs an action with the API; False if it failed, which is reported."""
    try:
        action()
    except ApiError as error:
        report(str(error))
        return False
    return True
