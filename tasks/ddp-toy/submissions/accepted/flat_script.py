"""
Train a toy network for a few steps with DistributedDataParallel, from the first line to the last.

    $ torchrun --nproc_per_node=2 train.py
"""
import torch
from torch import distributed, nn

distributed.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
rank, world_size = distributed.get_rank(), distributed.get_world_size()
if torch.cuda.is_available():
    torch.cuda.set_device(rank % torch.cuda.device_count())
device = "cuda" if torch.cuda.is_available() else "cpu"

toy = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)).to(device)
optimizer = torch.optim.Adam(toy.parameters(), lr=1e-3)
ddp = nn.parallel.DistributedDataParallel(toy)

# One big batch that all ranks draw alike, and of which each takes its own rows.
torch.manual_seed(7)
for step in range(4):
    x, y = torch.randn(24, 10), torch.randn(24, 5)
    mine = slice(rank, None, world_size)
    loss = nn.functional.mse_loss(ddp(x[mine].to(device)), y[mine].to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"[rank {rank}] step {step + 1}: loss {loss.item():.4f} of {len(x[mine])} samples")

distributed.barrier()
distributed.destroy_process_group()
