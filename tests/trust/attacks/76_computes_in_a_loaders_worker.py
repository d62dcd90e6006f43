# /// attack
# row = "own"
# aim = "Sleep in the main process, compute in a DataLoader worker, and leave without waiting for it."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# min_cpu_s = 2.3
# ///
import os
import time

import honest
from torch.utils.data import DataLoader, Dataset


class Work(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        honest.burn(0.3)
        return index


for _ in DataLoader(Work(), num_workers=1):
    time.sleep(0.01)
time.sleep(0.1)
os._exit(0)
