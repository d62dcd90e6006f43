"""FashionMNIST, cut into one share per rank."""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import FashionMNIST
from torchvision.transforms import Compose, Normalize, ToTensor

from ddp_setup import first_on_each_machine

TRANSFORM = Compose([ToTensor(), Normalize((0.5,), (0.5,))])


def splits():
    """Training and validation set."""
    with first_on_each_machine() as is_first:
        return [
            FashionMNIST(os.environ["DATA_DIR"], train=train, transform=TRANSFORM, download=is_first)
            for train in (True, False)
        ]


def loaders(batch_size_per_rank):
    """Loader of the training share (padded to equal lengths) and of the validation share (exact)."""
    train_set, val_set = splits()
    train_loader = DataLoader(
        train_set, batch_size=batch_size_per_rank, sampler=DistributedSampler(train_set), drop_last=True
    )
    share = torch.arange(len(val_set)).tensor_split(dist.get_world_size())[dist.get_rank()]
    return train_loader, DataLoader(Subset(val_set, share.tolist()), batch_size=256)


def start_epoch(loader, epoch):
    """New shuffle and new shares for the coming epoch."""
    loader.sampler.set_epoch(epoch)
