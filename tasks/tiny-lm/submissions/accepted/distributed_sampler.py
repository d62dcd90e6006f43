"""
Trains a small transformer on several ranks, each on its own windows of the text.

    $ DATA_DIR=data OUTPUT_DIR=out torchrun --nproc_per_node=2 train.py
"""
import json
import math
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
CONTEXT = 64  # characters that a prediction may look back on
EPOCHS = 2
BATCH_SIZE = 16  # windows of CONTEXT characters, of all ranks together
LEARNING_RATE = 1e-2


class Windows(Dataset):
    """A text in windows: the numbers of CONTEXT characters, and those of the characters after each of them."""

    def __init__(self, path):
        with open(path, encoding="ascii") as file:
            self.numbers = torch.tensor([CHARACTERS.index(character) for character in file.read()])

    def __len__(self):
        return (len(self.numbers) - 1) // CONTEXT

    def __getitem__(self, index):
        first = index * CONTEXT
        return self.numbers[first : first + CONTEXT], self.numbers[first + 1 : first + CONTEXT + 1]


class TinyTransformer(nn.Module):
    """Two layers of causal self-attention."""

    def __init__(self, width=64, num_heads=4, num_layers=2):
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), width)
        self.positions = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, num_heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(CHARACTERS))

    def forward(self, numbers):
        length = numbers.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=numbers.device)
        x = self.characters(numbers) + self.positions(torch.arange(length, device=numbers.device))
        return self.head(self.norm(self.layers(x, mask=mask, is_causal=True)))


def train_one_epoch(model, loader, optimizer, scheduler, device):
    """Mean loss in bits per character, over the windows of all ranks."""
    model.train()
    totals = torch.zeros(2, device=device)  # sum of losses, number of windows
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        scheduler.step()
        totals += torch.stack([loss.detach() * len(inputs), totals.new_tensor(len(inputs))])
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item() / math.log(2)


@torch.no_grad()
def validate(model, loader, device):
    """Bits per character of text that it is not trained on, over the windows of all ranks."""
    model.eval()
    totals = torch.zeros(2, device=device)
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        totals += torch.stack([loss * len(inputs), totals.new_tensor(len(inputs))])
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item() / math.log(2)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
        device = torch.device("cuda", local_rank)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    data_dir, out_dir = os.environ["DATA_DIR"], os.environ["OUTPUT_DIR"]
    train_set = Windows(os.path.join(data_dir, "train.txt"))
    val_set = Windows(os.path.join(data_dir, "validation", "text.txt"))
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE // world_size, sampler=sampler)
    # every world_size-th window: no padding, so that all ranks together read each of them once
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)

    network = TinyTransformer().to(device)
    model = DistributedDataParallel(network, device_ids=[local_rank] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LEARNING_RATE, total_steps=EPOCHS * len(train_loader), pct_start=0.1
    )

    history = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        sampler.set_epoch(epoch)
        train_bits = train_one_epoch(model, train_loader, optimizer, scheduler, device)
        val_bits = validate(network, val_loader, device)
        seconds = time.perf_counter() - started
        history.append(
            {"train_bits_per_character": train_bits, "val_bits_per_character": val_bits, "seconds": seconds}
        )
        if rank == 0:
            print(f"epoch {epoch + 1}/{EPOCHS}: {train_bits:.2f} bits per character, {val_bits:.2f} in validation")

    if rank == 0:
        os.makedirs(out_dir, exist_ok=True)
        torch.save(network.state_dict(), os.path.join(out_dir, "model.pt"))
        with open(os.path.join(out_dir, "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
