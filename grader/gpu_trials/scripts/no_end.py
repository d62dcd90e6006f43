"""Fills most of the GPU's memory and computes without end: the time limit ends it."""

import torch

free, _total = torch.cuda.mem_get_info()
held = torch.ones(int(free * 0.8), dtype=torch.uint8, device="cuda")
square = torch.ones(4096, 4096, device="cuda")
print("holds", held.numel(), "bytes", flush=True)
while True:
    square @ square
