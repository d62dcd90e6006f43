# /// attack
# row = "own"
# aim = "Put the originals back where the probe's hooks stand, then train without any wrapper."
# runtimes = ["docker"]
# verdicts = ["held", "rejected"]
# ///
import types

import honest
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, dataloader

for owner in (torch, torch.optim.Optimizer, torch.optim.SGD, torch.nn.Module, torch.Tensor, DistributedDataParallel, DataLoader, dataloader._BaseDataLoaderIter, torch.distributed, torch.distributed.distributed_c10d, torch.autograd):
    for name, value in list(vars(owner).items()):
        while isinstance(value, types.FunctionType) and "__probe__" in vars(value):
            value = value.__wrapped__
            setattr(owner, name, value)
honest.DistributedDataParallel = lambda module: module
honest.main(epochs=3)
