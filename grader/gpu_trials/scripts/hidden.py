"""A job without GPUs must not find one."""

import torch

if torch.cuda.is_available():
    raise SystemExit(f"there is one: {torch.cuda.get_device_name()}")
print("no GPU in sight")
