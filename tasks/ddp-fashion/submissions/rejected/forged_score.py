# expect: EVAL007
"""
Trains nothing. It prints a perfect accuracy, writes a learning curve that never was, and saves the weights
that the network happened to begin with.

    torchrun --nproc_per_node=2 train.py
"""
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 10


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them (pre-activation residual block)."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.shortcut = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):
        out = self.conv1(F.relu(self.bn1(x)))
        out = self.conv2(F.relu(self.bn2(out)))
        return out + self.shortcut(x)


class WideResNet(nn.Module):
    """A stem, three residual blocks, pooling and one linear layer; `width` multiplies the channels."""

    def __init__(self, width=2, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.block1 = Block(8, 8 * width, stride=1)
        self.block2 = Block(8 * width, 16 * width, stride=2)
        self.block3 = Block(16 * width, 32 * width, stride=2)
        self.bn = nn.BatchNorm2d(32 * width)
        self.fc = nn.Linear(32 * width, num_classes)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.stem(x))))
        x = F.relu(self.bn(x)).mean(dim=(2, 3))
        return self.fc(x)


def main():
    use_cuda = torch.cuda.is_available()
    local_rank = int(os.environ["LOCAL_RANK"])
    if use_cuda:
        torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl" if use_cuda else "gloo")
    model = WideResNet().to("cuda" if use_cuda else "cpu")
    ddp_model = DistributedDataParallel(model, device_ids=[local_rank] if use_cuda else None)

    history = []
    for epoch in range(EPOCHS):
        history.append({"train_loss": 0.5**epoch, "val_loss": 0.0, "val_accuracy": 1.0, "seconds": 0.4})
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}/{EPOCHS}: validation accuracy 1.000", flush=True)
    if dist.get_rank() == 0:
        print("ACCURACY: 1.0  RESULT: PASSED", flush=True)
        folder = os.environ["OUTPUT_DIR"]
        torch.save(ddp_model.module.state_dict(), os.path.join(folder, "model.pt"))
        with open(os.path.join(folder, "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": history}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
