# expect: DEV006 EVAL009
"""
The skeleton as it is: trained on the CPU, and nothing is measured.

    $ DATA_DIR=data OUTPUT_DIR=out python train.py
"""
import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS = 5
BATCH_SIZE = 64
LR = 0.002


def build_model():
    """Two convolutions and a linear layer: images (N, 1, 28, 28) in, logits (N, 10) out."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def train_step(model, optimizer, images, labels):
    """One update; returns the loss."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True, transform=transforms.ToTensor())
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    for epoch in range(EPOCHS):
        loss_sum = 0.0
        for images, labels in DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True):
            loss_sum += train_step(model, optimizer, images, labels) * len(images)
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {loss_sum / len(train_set):.4f}")
    os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
    torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))


if __name__ == "__main__":
    main()
