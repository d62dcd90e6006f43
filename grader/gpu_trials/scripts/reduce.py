"""Every rank takes its GPU and adds to a sum over all of them; prints what it saw as one line of JSON."""

import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

BYTES = 64 << 20
ROUNDS = 10

start = time.monotonic()
dist.init_process_group("nccl")
rank = dist.get_node_local_rank()
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
size = dist.get_world_size()
values = torch.ones(BYTES // 4, device=device)
dist.all_reduce(values)
torch.cuda.synchronize()
first_s = time.monotonic() - start
exact = bool((values == size).all())
start = time.monotonic()
for _ in range(ROUNDS):
    dist.all_reduce(values)
torch.cuda.synchronize()
round_s = (time.monotonic() - start) / ROUNDS
properties = torch.cuda.get_device_properties(device)
free, total = torch.cuda.mem_get_info(device)
print(
    json.dumps(
        {
            "uuid": f"GPU-{properties.uuid}",
            "name": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "num_devices": torch.cuda.device_count(),
            "peers": [
                torch.cuda.can_device_access_peer(rank, other)
                for other in range(torch.cuda.device_count())
                if other != rank
            ],
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "free_bytes": free,
            "total_bytes": total,
            "exact": exact,
            "first_s": round(first_s, 3),
            # What each GPU sends and receives, as NCCL's own tests count it.
            "bus_gb_s": round(BYTES * 2 * (size - 1) / size / round_s / 1e9, 1),
            "cores": len(os.sched_getaffinity(0)),
            "files": sorted(path.name for path in Path("/dev").glob("nvidia*")),
        }
    )
)
dist.destroy_process_group()
