"""Messages of `rendezvous-timeout`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern=r"shutdown the rendezvous '[^']{1,200}' due to an error of type Rendezvous(?:Connection|Timeout)Error",
        source="torch 1.9-2.13 distributed/elastic/rendezvous/dynamic_rendezvous.py",
        examples=(
            "The node 'w-1_17_0' has failed to shutdown the rendezvous 'none' due to an error of type RendezvousConnectionError.",
            "The node 'a' has failed to shutdown the rendezvous 'r' due to an error of type RendezvousTimeoutError.",
        ),
        not_examples=(
            "shutdown the rendezvous '' due to an error of type RendezvousConnectionError",
            "shutdown the rendezvous '' due to an error of type RendezvousTimeoutError",
        ),
        level=Level.WEAK,
        masks=("nccl-timeout-watchdog",),
        # the ranks had met, and the node of the store ended before this one
        unless=(
            "Rendezvous complete for workers",
            "keep-alive heartbeat to the rendezvous",
            "process group has NOT been destroyed before",
            "destroy_process_group() was not called before",
        ),
        echo=True,
    ),
    Signature(
        pattern="client socket has (?:timed out|failed to connect to any)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 10.0.0.1:1234",
            "[E1121 04:43:00.914205340 socket.cpp:818] [c10d] The client socket has failed to connect to any network address of (10.0.0.1, 29500).",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"(?:^|\.)Rendezvous(?:Timeout|Connection)Error",
        source="torch 2.13.0 distributed/elastic/rendezvous/api.py, distributed/elastic/rendezvous/__init__.py",
        examples=(
            "RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        ),
        not_examples=("raise RendezvousTimeoutError",),
        unless=("keep-alive heartbeat to the rendezvous",),  # see above
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"\d+/\d+ clients joined",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "DistStoreError: Timed out after 11 seconds waiting for clients. 1/2 clients joined.",
        ),
        not_examples=(" clients joined ",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="IPv[46] network addresses of .{0,80}cannot be retrieved",
        source="torch 1.11-2.13 csrc/distributed/c10d/socket.cpp",
        examples=(
            "[W socket.cpp:601] [c10d] The IPv6 network addresses of (worker-0, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
        ),
        not_examples=(
            "[W socket.cpp:601] [c10d] The IPv6 network addresses of (worker-0, 29500) cannot be",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
        hint="correct the name of the master address, or add it to DNS or /etc/hosts, until `getent hosts NAME` prints an address on every node",
    ),
    Signature(
        pattern="torch.*getaddrinfo",
        source="python 3.3-3.14 Lib/traceback.py: a frame of Lib/socket.py below one of torch",
        examples=("torch ... getaddrinfo",),
        not_examples=("... getaddrinfo",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="in store based barrier on rank",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"^RuntimeError: connect\(\) timed out\.?$",
        source="torch 1.0-1.7 c10d/Utils.cpp",
        near=("rendezvous", "TCPStore", "init_process_group"),
        examples=("RuntimeError: connect() timed out.",),
        not_examples=("RuntimeError: connect() timed out. Original was a socket",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"connect\(\) timed out\. Original timeout",
        source="torch 1.9-2.13 csrc/distributed/c10d/socket.cpp, exception.h",
        examples=("RuntimeError: connect() timed out. Original timeout was 1800000 ms.",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="hostname of the rendezvous",
        source="torch 2.13.0 distributed/elastic/rendezvous/utils.py",
        examples=(
            "File \"x\", RuntimeError: The hostname of the rendezvous endpoint 'head:29400' must resolve",
        ),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="connection to the C10d store has failed",
        source="torch 2.13.0 distributed/elastic/rendezvous/c10d_rendezvous_backend.py",
        examples=(
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
        ),
        unless=("keep-alive heartbeat to the rendezvous",),  # see above
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern="client socket has failed to (?:connect|get)(?!.{0,200}system error: 10049)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [node-0]:29500 (errno: 110 - Connection timed out).",
            "[W socket.cpp:401] [c10d] The client socket has failed to connect to 10.0.0.1:1 (errno: 113 - No route to host).",
            "client socket has failed to get",
        ),
        masks=("nccl-timeout-watchdog",),
        unless=("exits successfully",),
        echo=True,
    ),
    Signature(
        # "with error: " are the words of NCCL's watchdog, which asks a store whose rank has gone
        pattern="(?<!with )[Ee]rror: (?:Connection (?:timed out|refused|reset by peer)|Broken pipe|No route to host|.{0,40}(?:[Tt]emporary failure in name resolution|Name or service not known))",
        source=(
            "glibc 2.17-2.41 strerror and gai_strerror, as torch 1.0-2.13 "
            "csrc/distributed/c10d/Utils.hpp and socket.cpp print them"
        ),
        examples=(
            "RuntimeError: Connection timed out",
            "RuntimeError: Connection refused",
            "ValueError: host not found: Name or service not known",
            "RuntimeError: Broken pipe",
            "RuntimeError: No route to host",
        ),
        not_examples=(
            "mirror 2: Connection timed out, trying mirror 3",
            '[W1 ProcessGroupNCCL.cpp:1771] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe',
        ),
        masks=("nccl-timeout-watchdog",),
        near=(
            "TCPStore",
            "rendezvous.py",
            "rendezvous_handler",
            "_create_c10d_store",
            "rendezvous_backend",
            "_create_tcp_store",
            "rendezvous_iterator",
            "in init_process_group",
        ),
        not_near=("in _call_store",),  # the ranks had met: a peer is lost
        echo=True,
    ),
    Signature(
        pattern=r"(?:^|\.)RendezvousClosedError",
        source="torch 2.13.0 distributed/elastic/rendezvous/api.py, distributed/elastic/rendezvous/__init__.py",
        examples=(
            "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
            "RendezvousClosedError",
        ),
        not_examples=("raise RendezvousClosedError()",),
        level=Level.WEAK,
        echo=True,
    ),
    Signature(
        pattern=r"Timed out after \d+ seconds waiting for (?:workers|clients|members)|Stop_waiting response is expected|timed out waiting for (?:the )?(?:other )?(?:nodes|peers|workers) to join",
        source=(
            "torch 1.9-2.13 distributed/distributed_c10d.py, distributed/elastic/utils/store.py, "
            "csrc/distributed/c10d/TCPStore.cpp"
        ),
        examples=(
            "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for workers. 1/4 workers joined.",
            "RuntimeError: Stop_waiting response is expected",
            "timed out waiting for nodes to join",
        ),
        not_examples=("out after 61 seconds waiting for workers. 1/4 workers joined.",),
        masks=("nccl-timeout-watchdog",),
        echo=True,
    ),
    Signature(
        pattern=r"Waiting in store based barrier to initialize process group for (?:rank|\d+ seconds)",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)",
            "Waiting in store based barrier to initialize process group for 20 seconds",
        ),
        not_examples=("Waiting in store based barrier to initialize process group for 20",),
        level=Level.WEAK,
        final=True,
        echo=True,
    ),
    Signature(
        pattern=r"host not found: Name or service",
        source="torch 1.11-2.13 csrc/distributed/c10d/socket.cpp",
        examples=("ValueError: host not found: Name or service not known",),
        level=Level.HINT,
        echo=True,
    ),
)
