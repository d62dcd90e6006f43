"""
Train a toy network for a few steps with one process, on one GPU or on the CPU.

    $ python train.py

The data is made up: batches of random numbers, 10 going in and 5 coming out. There is nothing to learn from
them, and that is the point: all there is to see is what a training step does.

Your assignment is to make this file train on N GPUs at once, started like this:

    $ torchrun --nproc_per_node=N train.py
"""
import torch
from torch import nn

STEPS = 10
BATCH_SIZE = 20
LR = 0.001


class ToyModel(nn.Module):
    """Two linear layers with a ReLU in between: 10 numbers in, 5 numbers out."""

    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model = ToyModel().to(device)
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=LR)

for step in range(STEPS):
    inputs = torch.randn(BATCH_SIZE, 10, device=device)
    targets = torch.randn(BATCH_SIZE, 5, device=device)
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}/{STEPS}: loss {loss.item():.4f}")
