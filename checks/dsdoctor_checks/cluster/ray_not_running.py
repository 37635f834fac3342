"""The Ray cluster is not running, or this process cannot reach it.

## Why it matters
`ray.init` connects to the head's control store (GCS), and each node starts a raylet that registers
with it. If the head is not running, if it was started with another version of Ray, or if a node's
processes do not come up in time, no task and no rank starts.

## What to do
Run `ray status` on the head. Start the head first (`ray start --head`), and the other nodes with its address. Ports
must be open between the nodes, and every node needs the same versions of Ray and Python. If the processes do not
come up in time, look into `/tmp/ray/session_latest/logs` (`gcs_server.out`, `raylet.out`, `dashboard_agent.log`):
few CPUs, a full `/tmp` or a package that the agent cannot import are the usual reasons. `ray stop` removes what an
earlier run left.

## References
- Ray python/ray/_private/services.py, python/ray/_private/node.py, python/ray/_private/utils.py
- https://docs.ray.io/en/latest/ray-core/starting-ray.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("ray-not-running", id="DSD1660", scope=Scope.JOB, since="0.1")

HINT = "run `ray status` on the head node; start the head with `ray start --head` and the others with its address, and look into `/tmp/ray/session_latest/logs` for what did not start"

SIGNATURES = (
    Signature(
        pattern="Could not find any running Ray instance",
        source="ray 0.8-2.52 python/ray/_private/services.py",
        message="No Ray cluster runs where the program looks for it",
        hint="start one with `ray start --head`, or set `RAY_ADDRESS` to the head's address; without a cluster, do not pass `address='auto'`",
        examples=(
            "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag or `RAY_ADDRESS` environment variable.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?:Exception|RuntimeError): The current node timed out during startup",
        source="ray 2.0-2.52 python/ray/_private/node.py",
        message="Ray's processes on this node did not come up in time",
        examples=(
            "Exception: The current node timed out during startup. This could happen because some of the raylet failed to startup or the GCS has become overloaded.",
            "RuntimeError: The current node timed out during startup. This could happen because some of the Ray processes failed to startup.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Version mismatch: The cluster was started with:",
        source="ray 0.7-2.52 python/ray/_private/utils.py",
        message="The Ray cluster was started with a different version of Ray or Python than this process uses",
        hint="install the same versions of Ray and Python on the head, on the other nodes and where the program starts",
        examples=("RuntimeError: Version mismatch: The cluster was started with:",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"Failed to connect to GCS(?: at address \S{1,100})? within \d+ seconds|ray\.exceptions\.RpcError: .{0,80}failed to connect to all addresses",
        source="ray 2.0-2.52 src/ray/gcs_rpc_client, python/ray/_private/gcs_utils.py",
        message="The head of the Ray cluster does not answer",
        examples=(
            "gcs_rpc_client.h:179: Failed to connect to GCS within 60 seconds. GCS may have been killed.",
            "Failed to connect to GCS at address 10.0.0.1:6379 within 5 seconds.",
            "ray.exceptions.RpcError: failed to connect to all addresses; last error: UNKNOWN",
        ),
        not_examples=(
            "Failed to connect to GCS within a minute",
            "grpc: failed to connect to all addresses",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\[RayletClient\] Unable to register worker with raylet",
        source="ray 0.8-2.40 src/ray/raylet_client/raylet_client.cc",
        message="A worker of Ray could not register with its node's raylet",
        examples=(
            "core_worker.cc:201: Failed to register worker 01 to Raylet. IOError: [RayletClient] Unable to register worker with raylet. Failed to read data from the socket: End of file",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\bFailed to connect to Ray at address: (?P<address>\S{1,200}?)\.?$",
        source="ray 1.9-2.54 dashboard/modules/dashboard_sdk.py",
        message="No Ray dashboard answers at {address}",
        hint="start the cluster (`ray start --head`), or set `RAY_ADDRESS` to the address of its dashboard, port 8265",
        examples=(
            "requests.exceptions.ConnectionError: Failed to connect to Ray at address: http://127.0.0.1:8265.",
        ),
        not_examples=("Failed to connect to Ray at address: see the log",),
        level=Level.STRONG,
        masks=("hub-unreachable",),
    ),
)
