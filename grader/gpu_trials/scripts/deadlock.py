"""One rank leaves out a sum that the others wait for; they wait where scripts do, for a number on the CPU."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_node_local_rank()
torch.cuda.set_device(rank)
value = torch.ones(8, device="cuda")
dist.all_reduce(value)
print("all ranks have met", value.sum().item(), flush=True)
if rank != 1:
    dist.all_reduce(value)
print("and go on", value.sum().item(), flush=True)
dist.barrier()
