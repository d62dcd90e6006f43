"""Loaders that give every rank its own part of the images."""
import os

from torch.utils.data import DataLoader, DistributedSampler, Subset
from torchvision import datasets, transforms


def splits(ranks):
    folder = os.environ["DATA_DIR"]
    tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    crop = transforms.Compose([transforms.RandomCrop(28, padding=2), tensor])
    if ranks.local_rank == 0:
        datasets.FashionMNIST(folder, train=True, download=True)
        datasets.FashionMNIST(folder, train=False, download=True)
    ranks.wait()
    return (
        datasets.FashionMNIST(folder, train=True, transform=crop),
        datasets.FashionMNIST(folder, train=False, transform=tensor),
    )


def loaders(ranks, batch_size):
    train_set, val_set = splits(ranks)
    sampler = DistributedSampler(train_set, ranks.world_size, ranks.rank, shuffle=True)
    train = DataLoader(train_set, batch_size=batch_size, sampler=sampler)
    mine = list(range(ranks.rank, len(val_set), ranks.world_size))
    return train, DataLoader(Subset(val_set, mine), batch_size=256)
