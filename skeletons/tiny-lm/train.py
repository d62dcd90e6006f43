"""
Train a small transformer to foretell the next character of a text, on one GPU, or on the CPU.

    $ DATA_DIR=data OUTPUT_DIR=out python train.py

DATA_DIR holds
    train.txt               the text to train on: Python's own reference, 96 different characters
    validation/text.txt     text that it is not trained on
OUTPUT_DIR receives
    model.pt        the weights after the last epoch
    metrics.json    bits per character after each epoch, on what it trained on and on what it did not

Your assignment: make it train on several GPUs at once.
"""
import json
import math
import os
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
CONTEXT = 64  # characters that a prediction may look back on
EPOCHS = 2
BATCH_SIZE = 16  # windows of CONTEXT characters
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
    """Mean loss in bits per character."""
    model.train()
    loss_sum, num_windows = torch.zeros((), device=device), 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        scheduler.step()
        loss_sum += loss.detach() * len(inputs)
        num_windows += len(inputs)
    return loss_sum.item() / num_windows / math.log(2)


@torch.no_grad()
def validate(model, loader, device):
    """Bits per character of text that it is not trained on."""
    model.eval()
    loss_sum, num_windows = torch.zeros((), device=device), 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        loss_sum += F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()) * len(inputs)
        num_windows += len(inputs)
    return loss_sum.item() / num_windows / math.log(2)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data_dir, out_dir = os.environ["DATA_DIR"], os.environ["OUTPUT_DIR"]
    train_set = Windows(os.path.join(data_dir, "train.txt"))
    val_set = Windows(os.path.join(data_dir, "validation", "text.txt"))
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = TinyTransformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LEARNING_RATE, total_steps=EPOCHS * len(train_loader), pct_start=0.1
    )

    history = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        train_bits = train_one_epoch(model, train_loader, optimizer, scheduler, device)
        val_bits = validate(model, val_loader, device)
        seconds = time.perf_counter() - started
        history.append(
            {"train_bits_per_character": train_bits, "val_bits_per_character": val_bits, "seconds": seconds}
        )
        print(f"epoch {epoch + 1}/{EPOCHS}: {train_bits:.2f} bits per character in training, {val_bits:.2f} in validation")

    os.makedirs(out_dir, exist_ok=True)
    torch.save(model.state_dict(), os.path.join(out_dir, "model.pt"))
    with open(os.path.join(out_dir, "metrics.json"), "w") as file:
        json.dump({"schema": 1, "epochs": history}, file)


if __name__ == "__main__":
    main()
