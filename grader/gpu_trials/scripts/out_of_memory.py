"""Asks for twice what the GPU has."""

import torch

_free, total = torch.cuda.mem_get_info()
torch.empty(2 * total, dtype=torch.uint8, device="cuda")
