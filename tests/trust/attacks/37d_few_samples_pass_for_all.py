# /// attack
# row = "37"
# aim = "Deal all samples out, and feed a hundred of them again and again."
# runtimes = ["docker"]
# verdicts = ["rejected", "held"]
# codes = ["TRUST002"]
# ///
import honest
import torch
from torch.utils.data import Dataset


class Few(Dataset):
    """Whatever index is asked for, one of the first hundred samples comes."""

    def __init__(self, base):
        self.base, self.train = base, True

    def __len__(self):
        return len(self.base)

    def __getitem__(self, index):
        return self.base[int(torch.randint(100, (1,)))]


load = honest.load
honest.load = lambda train: Few(load(train)) if train else load(train)
honest.main(epochs=3)
