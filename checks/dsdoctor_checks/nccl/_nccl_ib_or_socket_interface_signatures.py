"""Messages of `nccl-ib-or-socket-interface`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

_NO_NETWORK = (
    "unset `NCCL_NET`, or put the folder of the plugin that it needs on `LD_LIBRARY_PATH`; for `IB`,"
    " start the container with `--device /dev/infiniband` and check `ibstat`"
)

SIGNATURES = (
    Signature(
        # it takes any free port, unless NCCL_COMM_ID names one
        pattern=r"NCCL WARN Call to bind failed ?: Address already in use",
        source="nccl 2.4-2.32 src/misc/socket.cc, include/checks.h SYSCHECK, with glibc's words",
        message="NCCL found no free port for its own connections",
        hint="stop old runs on the node, which hold ports (`ss -s` counts the connections), and widen"
        " `net.ipv4.ip_local_port_range`; with `NCCL_COMM_ID` set, name another port",
        examples=(
            "host3:140:140 [0] include/socket.h:333 NCCL WARN Call to bind failed : Address already in use",
            "host3:140:140 [0] misc/socket.cc:512 NCCL WARN Call to bind failed: Address already in use",
        ),
        not_examples=(),
        level=Level.CERTAIN,
        masks=("rendezvous-timeout",),
    ),
    Signature(
        pattern="socketStartConnect: Connect to .{0,80}failed",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "misc/socket.cc:480 NCCL WARN socketStartConnect: Connect to 10.0.0.2<3> failed : No route to host",
        ),
        not_examples=("misc/socket.cc:480 NCCL WARN socketStartConnect: Connect to 10.0.0.2<3>",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A rank could not connect to the address of another one",
        hint="set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes "
        "(not `docker0` or `lo`), and open the ports between the nodes",
    ),
    Signature(
        pattern=r"Call to ibv_modify_qp failed with error (?P<error>[A-Z][\w ]{2,60})",
        source="nccl 2.8-2.32 src/misc/ibvwrap.cc",
        examples=(
            "NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
            "misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable",
        ),
        not_examples=('WARN("Call to ibv_modify_qp failed with error %s", strerror(ret));',),
        level=Level.STRONG,
        message="NCCL could not connect the adapters of two ranks ({error})",
        hint="with RoCE, unset `NCCL_IB_GID_INDEX`, or set it to an entry of `show_gids` that the"
        " other nodes can reach; check `ibstat` on both nodes and the switch",
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Call to ibv_\w+ failed",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("NCCL WARN Call to ibv_reg_mr failed",),
        not_examples=("NCCL WARN Call to ibv_reg_mr",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A call to an InfiniBand or RoCE adapter failed",
        hint="check `ibstat`, `ulimit -l` in the job, and that a container has `/dev/infiniband`",
    ),
    Signature(
        pattern=r"ibv_\w+(?:\(\))? (?:failed|:).{0,40}",
        source="nccl 2.4-2.32 src/misc/ibvwrap.cc; openucx 1.5-1.19 src/uct/ib/base",
        examples=(
            "NCCL WARN Call to ibv_reg_mr failed",
            "UCX  ERROR mlx5_1: ibv_create_cq() failed: Cannot allocate memory",
            "ibv_name :",
        ),
        not_examples=("NCCL WARN Call to ibv_reg_mr",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A call to an InfiniBand or RoCE adapter failed",
        hint="check `ibstat`, `ulimit -l` in the job, and that a container has `/dev/infiniband`",
    ),
    Signature(
        pattern="NET/IB(?: |/GIN)?: Got completion from peer .{0,160}(?:error|status=)",
        source="nccl 2.18.1-2.32.3 libnccl.so.2",
        examples=(
            "NET/IB : Got completion from peer 10.0.3.2<44120> with error 12, opcode 32600, len 0, vendor err 129",
            "a:1:2 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : Got completion from peer 10.0.3.2<44120> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::1",
            "NET/IB: Got completion from peer 10.0.3.2<44120> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 Send hca mlx5_3",
            "NET/IB/GIN: Got completion from peer 10.0.3.2<44120> with status=5 opcode=0 len=0 vendor err 244 (Recv) hca mlx5_0",
        ),
        not_examples=("NET/IB: Got completion from peer 10.0.3.2<44120>",),
        level=Level.STRONG,
        message="An InfiniBand or RoCE transfer to another node failed",
        hint="check the HCA's port and cable (`ibstat`, `perfquery`) on both nodes, that the peer is"
        " still up, and with RoCE `NCCL_IB_GID_INDEX` and the switch's flow control",
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "peer-connection-lost",
            "rendezvous-timeout",
        ),
        echo=True,  # the adapter also gives up on a rank that has ended
    ),
    Signature(
        pattern=r"Transport retry count exceeded on (?P<port>\S{1,60}) \(synd 0x",
        source="UCX 1.6-1.19 src/uct/ib/mlx5/ib_mlx5_log.c",
        examples=(
            "[1717402200.114511] [node7:21231:0]  ib_mlx5_log.c:171  UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
            "[node7:21231:0:21231] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_1:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
        ),
        not_examples=("Transport retry count exceeded on mlx5_0:1/IB",),
        level=Level.STRONG,
        message="The other node did not answer over InfiniBand or RoCE in time (UCX, {port})",
        hint="find the rank that ended first; if all were running, check the port and cable on both nodes (`ibstat`, `perfquery`), with RoCE the switch's flow control, or raise `UCX_RC_TIMEOUT` and `UCX_RC_RETRY_COUNT`",
        masks=("native-crash", "peer-connection-lost", "rank-killed", "rendezvous-timeout"),
        echo=True,  # the adapter also gives up on a rank that has ended
    ),
    Signature(
        pattern=r"UCX {1,2}ERROR [Nn]o usable transports/devices,? \(?asked (?P<what>.{1,200}?)\)?$",
        source="UCX 1.2-1.19 src/ucp/core/ucp_context.c",
        examples=(
            "ucp_context.c:1112 UCX  ERROR no usable transports/devices (asked rc_mlx5 on network:mlx5_9:1)",
            "ucp_context.c:700  UCX  ERROR No usable transports/devices, asked tcp on network:ib9",
        ),
        not_examples=("FATAL ERROR no usable transports/devices (asked rc_mlx5)",),
        level=Level.STRONG,
        message="UCX finds none of the networks that it is told to use: {what}",
        hint="compare `UCX_NET_DEVICES` and `UCX_TLS` with what `ucx_info -d` lists on that node, or unset them",
    ),
    Signature(
        pattern=r"\bmlx5: \S{1,255}: got completion with error:",
        source="rdma-core 13-60 providers/mlx5/cq.c, Mellanox OFED 3-5 libmlx5",
        examples=("mlx5: gpu-12: got completion with error:",),
        not_examples=("mlx5 of rank 3: got completion with error: 5",),
        message="The InfiniBand adapter reports that a transfer to another node failed",
        hint="find the rank that ended first; if all were running, check the port and cable of the adapter on both nodes (`ibstat`, `perfquery`) and `dmesg`",
        masks=(
            "nccl-timeout-watchdog",
            "nccl-unhandled-cuda-error",
            "peer-connection-lost",
            "rendezvous-timeout",
        ),
        echo=True,  # the adapter also gives up on a rank that has ended
    ),
    Signature(
        # since 2.30 a failed device may be replaced; NCCL says when it cannot be
        pattern=r"NET/IB: .{0,60}The error is fatal \(",
        source="nccl 2.32.3 libnccl.so.2",
        examples=(
            "NET/IB: ncclIbResiliencyHandleError: The error is fatal (no device left). Cannot continue.",
        ),
        not_examples=("The error is fatal (no device left). Cannot continue.",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="[Nn]o (?:socket |network )?interface found",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "w-0:88:99 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "No interface found",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="NCCL finds no network interface that it may use",
        hint="unset `NCCL_SOCKET_IFNAME`, or set it to an interface that `ip -br addr`"
        " lists on every node",
    ),
    Signature(
        pattern="Socket creation failed",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("Socket creation failed",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="(?:[Uu]nable to find (?:address|interface)|Unable to find interface)",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth9",
            "Unable to find interface",
        ),
        hint="set `GLOO_SOCKET_IFNAME` to an interface that `ip -br addr` lists, or unset it",
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="no socket interface",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("w-0:88:99 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="NCCL finds no network interface that it may use",
        hint="unset `NCCL_SOCKET_IFNAME`, or set it to an interface that `ip -br addr`"
        " lists on every node",
    ),
    Signature(
        pattern="socketPollConnect: ",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "NCCL WARN socketPollConnect: Connect to 172.17.0.1<41113> returned 113(No route to host) errno 115(Operation now in progress)",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A rank could not connect to the address of another one",
        hint="set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes "
        "(not `docker0` or `lo`), and open the ports between the nodes",
    ),
    Signature(
        pattern=r"NCCL WARN \S+ ?: [Cc]onnect(?: to \S+)? (?:returned|failed)",
        source="nccl 2.12-2.32 src/misc/socket.cc",
        examples=(
            "misc/socket.cc:480 NCCL WARN socketStartConnect: Connect to 10.0.0.2<3> failed : No route to host",
            "NCCL WARN socketPollConnect: Connect to 172.17.0.1<41113> returned 113(No route to host) errno 115(Operation now in progress)",
        ),
        not_examples=("NCCL WARN NET/IB : mlx5_0:1 Got async event : GID table change",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A rank could not connect to the address of another one",
        hint="set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes "
        "(not `docker0` or `lo`), and open the ports between the nodes",
    ),
    Signature(
        pattern="No usable listening interface",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("No usable listening interface",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"NET/IB : \S+ (?:Got async (?:error )?event: ?(?!GID|client)|async fatal event)",
        source="nccl 2.18-2.32 src/transport/net_ib.cc",
        examples=(
            "NET/IB : x1 Got async event:",
            "NET/IB : x1 async fatal event",
        ),
        not_examples=(": x1 Got async event:",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="An InfiniBand or RoCE adapter reported an event that ends connections",
        hint="check cable and switch port (`ibstat`, `mlxlink`), and `dmesg`",
    ),
    Signature(
        pattern="NET/IB : .{0,30}Got async event : (?:port error|local catastrophic|device fatal)",
        source="nccl 2.4-2.32 src/transport/net_ib.cc",
        examples=(
            "NCCL WARN NET/IB : mlx5_1:1 Got async event : port error",
            "NET/IB : Got async event : local catastrophic",
            "NET/IB : Got async event : device fatal",
        ),
        not_examples=(": mlx5_1:1 Got async event : port error",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="An InfiniBand or RoCE adapter reported an event that ends connections",
        hint="check cable and switch port (`ibstat`, `mlxlink`), and `dmesg`",
    ),
    Signature(
        pattern="Gloo connectFullMesh failed",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="gloo could not connect all ranks",
        hint="set `GLOO_SOCKET_IFNAME` to the interface that reaches the other nodes, "
        "and make each node's name resolve to its address",
    ),
    Signature(
        pattern=r"ncclOsSocket\w+(?::| to) .{0,80}(?:failed|error)",
        source="nccl 2.32.3 libnccl.so.2",
        examples=(
            "ncclOsSocketTryAccept: Accept failed: Too many open files",
            "ncclOsSocketTryAccept: exceeded error retry count after 34 attempts, Connection reset by peer",
            "ncclOsSocketPollConnect to 10.0.0.2<41113> failed with error No route to host",
        ),
        not_examples=("ncclOsSocketPollConnect to 10.0.0.2<41113>",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="NET/IB : Unable to open device",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "n:1:1 [0] transport/net_ib.cc:210 NCCL WARN NET/IB : Unable to open device mlx5_0",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="NCCL cannot open an InfiniBand or RoCE adapter",
        hint="give the container `/dev/infiniband`, or leave the adapter out with `NCCL_IB_HCA`",
    ),
    Signature(
        pattern=r"\bWARN (?:Net : )?(?:Connect|Call to connect|connect).{0,100}(?:refused|timed out|No route|unreachable|failed)",
        source="nccl 2.4-2.32 src/misc/socket.cc, src/include/socket.h",
        examples=(
            "NCCL WARN Net : Connect to 1.2.3.4<5> failed : Connection refused",
            "NCCL WARN Call to connect returned Connection timed out",
            "WARN connect ... refused",
            "WARN Connect ... No route",
            "WARN Connect ... unreachable",
        ),
        not_examples=("NCCL WARN Net : Connect to 1.2.3.4<5>",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="A rank could not connect to the address of another one",
        hint="set `NCCL_SOCKET_IFNAME` to the interface that reaches the other nodes "
        "(not `docker0` or `lo`), and open the ports between the nodes",
    ),
    Signature(
        pattern="ncclSystemError",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
            "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
        ),
        level=Level.HINT,
        # it has a client of the store: the ranks had met
        masks=("rendezvous-timeout", "peer-connection-lost"),
        echo=True,
    ),
    Signature(
        pattern=r"NET/OFI .{0,60}(?:completed with error|[Cc]ouldn't|failed|[Ee]rror)|gloo/transport/tcp/pair\.cc:\d+\] ?(?:connect \[|Connect timeout|timed out|\w+\.ss_family == )",
        source=(
            "aws-ofi-nccl 1.0-1.16 src/nccl_ofi_net.c; gloo transport/tcp/pair.cc, torch 1.5-2.13"
        ),
        examples=(
            "NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113.",
            "RuntimeError: [/x/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:41017: Connection refused",
            "[enforce fail at /x/gloo/transport/tcp/pair.cc:200] ss1.ss_family == ss2.ss_family. 10 vs 2",
        ),
        not_examples=(
            "NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.7.4",
            "RuntimeError: [x/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:1",
        ),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        hint="look for the rank that ended first, and check that the nodes reach each "
        "other on all ports (on AWS, the security group has to allow all traffic "
        "between them, in and out)",
    ),
    Signature(
        pattern=r"misc/ibv\w+\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source=(
            "nccl 2.4-2.32 src/misc/ibvwrap.cc, src/debug.cc, which heads a warning with its file"
        ),
        examples=(
            "a:1:2 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
            "misc/ibvname.cu:7 WARN ",
            "misc/ibvname.h:7 WARN ",
        ),
        not_examples=("n1:9:12 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"net_ib\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source=(
            "nccl 2.0-2.32 src/transport/net_ib.cc, src/debug.cc, which heads a warning with its "
            "file"
        ),
        examples=(
            "n1:9:12 [0] transport/net_ib.cc:1102 NCCL WARN NET/IB : Unable to register memory region, 4096 bytes",
            "net_ib.cu:7 WARN ",
            "net_ib.h:7 WARN ",
        ),
        not_examples=(
            "n1:9:12 [0] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_0:1 Got async event : GID table change",
        ),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"net_ib/\w+\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source="nccl 2.32 src/transport/net_ib, src/debug.cc",
        examples=(
            "net_ib/name.cc:7 WARN ",
            "net_ib/name.cu:7 WARN ",
            "net_ib/name.h:7 WARN ",
        ),
        not_examples=("net_ib/name.cc:7 WARN",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"net_socket\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source=(
            "nccl 2.0-2.32 src/transport/net_socket.cc, src/debug.cc, which heads a warning with "
            "its file"
        ),
        examples=(
            "net_socket.cc:7 WARN ",
            "net_socket.cu:7 WARN ",
            "net_socket.h:7 WARN ",
        ),
        not_examples=("n1:411:460 [0] INFO transport/net_socket.cu:118 -> 2",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"misc/socket\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source=(
            "nccl 2.12-2.32 src/misc/socket.cc, src/debug.cc, which heads a warning with its file"
        ),
        examples=(
            "n1:9:12 [0] misc/socket.cc:441 NCCL WARN socketFinalizeAccept: wrong type 4 != 3",
            "misc/socket.cu:7 WARN ",
            "misc/socket.h:7 WARN ",
        ),
        not_examples=("n1:9:12 [0] misc/socket.cc:441 NCCL WARN",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"include/socket\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source=(
            "nccl 2.4-2.11 src/include/socket.h, src/debug.cc, which heads a warning with its file"
        ),
        examples=(
            "n1:9:12 [0] include/socket.h:344 WARN Socket creation failed : Address family not supported by protocol",
            "include/socket.cc:7 WARN ",
            "include/socket.cu:7 WARN ",
        ),
        not_examples=("n1:9:12 [0] include/socket.h:344 WARN",),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"bootstrap\.(?:cc|cu|h):\d+ (?:NCCL )?WARN (?!.{0,40}(?:Failed to open libib|libibverbs|async event|dlvsym|dlopen|plugin|Plugin|[Cc]onnection closed by remote|No device found|NCCL_\w+ set|Magic|magic|could not get|PCI_ORDERING|Adaptive|adaptive|GID table|client rereg))",
        source="nccl 2.0-2.32 src/bootstrap.cc, src/debug.cc, which heads a warning with its file",
        examples=(
            "w-0:88:99 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "bootstrap.cu:7 WARN ",
            "bootstrap.h:7 WARN ",
        ),
        not_examples=("n1:9:12 [0] NCCL INFO bootstrap.cc:130 -> 2",),
        level=Level.HINT,
        echo=True,
    ),
    # torch repeats NCCL's warning below `Last error:`, without the file and line that name its part
    Signature(
        pattern=r"connecting to address .{0,80}with family -?\d+ is neither AF_INET",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "Net : connecting to address  with family 0 is neither AF_INET(2) nor AF_INET6(10)",
        ),
        not_examples=("Net : connecting to address  with family 0 is neither",),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"Invalid NCCL_COMM_ID\b",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("n1:9:12 [0] NCCL WARN Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>",),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="`NCCL_COMM_ID` is not an address and a port",
        hint="unset `NCCL_COMM_ID`, or set it to `ADDRESS:PORT` of rank 0",
    ),
    Signature(
        pattern=r"No valid (?:<IPv4_or_hostname>:<port>|\[IPv6\]:port) pair found",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "Net : No valid <IPv4_or_hostname>:<port> pair found",
            "No valid [IPv6]:port pair found",
        ),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Net : (?:error encountered when getting address info|unsupported IP family)",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "Net : error encountered when getting address info : Name or service not known",
            "Net : unsupported IP family",
        ),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="socketFinalizeAccept(?: from .{0,80})?: wrong type",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("socketFinalizeAccept from 10.0.0.2<4>: wrong type 3 != 4",),
        not_examples=("from 10.0.0.2<4>: wrong type 3 != 4",),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
        message="Something that speaks another protocol connected to a port of NCCL",
        hint="make the NCCL version the same on all nodes; port scanners cause this too",
    ),
    Signature(
        pattern="ncclSocketReady: unexpected socket state",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("ncclSocketReady: unexpected socket state 8",),
        level=Level.STRONG,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\bError: network (?P<network>\S{0,40}) ?not found\.",
        source="nccl 2.21.5 libnccl.so.2",
        examples=("Error: network IBext not found.",),
        not_examples=("Error: network bridge not found in the compose file",),
        level=Level.STRONG,
        message="NCCL_NET selects a network that NCCL does not find ({network})",
        hint=_NO_NETWORK,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Failed to initialize any NET plugin",
        source="nccl 2.26-2.32 src/plugin/net.cc",
        examples=("Failed to initialize any NET plugin",),
        level=Level.STRONG,
        message="NCCL finds no network that `NCCL_NET` and its plugins allow",
        hint=_NO_NETWORK,
        near=("NCCL", "nccl"),
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"NCCL WARN \[Proxy Service \d+\] Failed to execute operation",
        source="nccl 2.21.5 libnccl.so.2",
        examples=(
            "proxy.cc:1519 NCCL WARN [Proxy Service 1] Failed to execute operation Connect from rank 1, retcode 2",
            "proxy.cc:1495 NCCL WARN [Proxy Service 9] Failed to execute operation Setup from rank 9, retcode 3",
        ),
        not_examples=(
            "WARN [Proxy Service 1] Failed to execute operation Connect from rank 1, retcode 2",
        ),
        level=Level.HINT,
        echo=True,
    ),
    Signature(
        pattern=r"[Ff]ailed to (?:modify|create) (?:QP|qp)\b|[Uu]nable to (?:modify|create) (?:QP|qp)\b",
        source="perftest 4-24 src/perftest_resources.c; openucx 1.5-1.19 src/uct/ib",
        examples=(
            "Failed to modify QP to RTR: Connection timed out",
            "Unable to create QP.",
        ),
        message="Two InfiniBand or RoCE adapters could not be connected",
        hint="with RoCE, check the GID index (`show_gids`); check `ibstat` on both "
        "nodes and the switch",
    ),
)
