"""The collectives of the ranks, checked and measured; in the patient, Python 3.8 and later."""

from __future__ import annotations

import math
import time
from typing import Any

from dsdsmoke_report import CheckError

#: Sizes of the measured all-reduce, in bytes.
CPU_SIZES = (1 << 16, 1 << 20, 1 << 22)
GPU_SIZES = (1 << 20, 1 << 24, 1 << 28, 1 << 30)
#: Maximum seconds for the measurement at one size, estimated from the previous size.
SERIES_SECONDS = 8.0
P2P_ELEMENTS = 1024


class Communication:
    """The phase of collectives; the class of a rank inherits from it."""

    torch: Any
    device: Any
    report: Any
    rank: Any
    world: Any
    on_gpu: Any

    def fault(self, kind: Any, phase: Any) -> Any:
        raise NotImplementedError

    def synchronize(self) -> Any:
        raise NotImplementedError

    def collectives(self, found: Any) -> Any:
        torch, dist, world, rank = self.torch, self.torch.distributed, self.world, self.rank
        done = found["checked"] = []
        absent = found["unsupported"] = []
        total = world * (world + 1) // 2

        def expect(name: Any, tensor: Any, value: Any) -> Any:
            want = torch.as_tensor(value, dtype=torch.float32)
            if not torch.equal(tensor.float().cpu().flatten(), want.expand(tensor.numel())):
                raise CheckError(
                    "wrong-values",
                    "%s gave %g on rank %d, expected %g"
                    % (name, tensor.float().flatten()[0].item(), rank, want.flatten()[0].item()),
                    operation=name,
                )
            done.append(name)

        def ones(count: Any = 1000) -> Any:
            return torch.full((count,), float(rank + 1), device=self.device)

        self.report.note(operation="all_reduce")
        self.fault("sleep", "collectives")
        x = ones()
        dist.all_reduce(x)
        if self.fault("corrupt", "collectives"):
            x[0] += 1
        expect("all_reduce", x, total)
        self.report.note(operation="broadcast")
        x = ones()
        dist.broadcast(x, src=world - 1)
        expect("broadcast", x, world)
        self.report.note(operation="all_gather")
        parts = [torch.zeros(1000, device=self.device) for _ in range(world)]
        dist.all_gather(parts, ones())
        expect("all_gather", torch.stack(parts).sum(0), total)
        self.report.note(operation="reduce_scatter")
        try:
            y = torch.zeros(1000, device=self.device)
            dist.reduce_scatter_tensor(y, ones(1000 * world))
            expect("reduce_scatter", y, total)
        except (NotImplementedError, RuntimeError) as error:
            if isinstance(error, CheckError) or "support" not in str(error):
                raise
            absent.append("reduce_scatter")
        if world > 1:
            self.report.note(operation="p2p")
            got = torch.zeros(P2P_ELEMENTS, device=self.device)
            sent = torch.full((P2P_ELEMENTS,), float(rank + 1), device=self.device)
            requests = dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, sent, (rank + 1) % world),
                    dist.P2POp(dist.irecv, got, (rank - 1) % world),
                ]
            )
            for request in requests:
                request.wait()
            self.synchronize()
            expect("p2p", got, (rank - 1) % world + 1)
            self.report.note(operation="all_reduce")
            found["bandwidth"] = self.bandwidth()

    def bandwidth(self) -> Any:
        """Bus bandwidth of all-reduce: the better of two series, as one retry is allowed."""
        torch, dist, rows, rounds = self.torch, self.torch.distributed, [], 5
        share, spent, before = 2 * (self.world - 1) / self.world, 0.0, 0
        for size in GPU_SIZES if self.on_gpu else CPU_SIZES:
            too_much = bool(before) and spent * size / before * 2 * (rounds + 1) > SERIES_SECONDS
            if self.on_gpu:
                too_much = too_much or torch.cuda.mem_get_info()[0] < 2 * size
            # all ranks must skip the same sizes
            flag = torch.full((1,), float(too_much), device=self.device)
            dist.all_reduce(flag)
            if flag.item():
                break
            x = torch.zeros(size // 4, device=self.device)
            spent, before = math.inf, size
            for _ in range(2):
                dist.all_reduce(x)
                self.synchronize()
                begun = time.perf_counter()
                for _ in range(rounds):
                    dist.all_reduce(x)
                self.synchronize()
                spent = min(spent, (time.perf_counter() - begun) / rounds)
            rows.append([size, round(size / spent * share / 1e9, 3)])
            del x
        if self.on_gpu:
            torch.cuda.empty_cache()
        return rows
