"""What an honest script does, in pieces: handed in beside attacks that must look like training."""

import copy
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

BATCH_SIZE = 128  # of all ranks together
LR = 0.1


class Block(nn.Module):
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


def out(name):
    """A path in the output folder."""
    return os.path.join(os.environ["OUTPUT_DIR"], name)


def load(train):
    """One split."""
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    return datasets.FashionMNIST(os.environ["DATA_DIR"], train=train, transform=transform)


def shard(dataset):
    """This rank's loader over a split, and its sampler."""
    sampler = DistributedSampler(dataset, dist.get_world_size(), dist.get_rank(), shuffle=True)
    return DataLoader(dataset, batch_size=BATCH_SIZE // dist.get_world_size(), sampler=sampler), sampler


def learn(model, loader, sampler, epochs, step=None):
    """Train; `step` takes the place of the optimizer's step. Returns the mean loss of each epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LR, total_steps=max(2, epochs * len(loader)), cycle_momentum=False
    )
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        totals = torch.zeros(2)
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step() if step is None else step(optimizer)
            scheduler.step()
            totals[0] += loss.detach() * len(labels)
            totals[1] += len(labels)
        dist.all_reduce(totals)
        losses.append((totals[0] / totals[1]).item())
    return losses


@torch.no_grad()
def validate(model):
    """Mean loss and accuracy over the validation samples of all ranks."""
    model.eval()
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)
    val_set = load(train=False)
    mine = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
    totals = torch.zeros(3)
    for images, labels in DataLoader(mine, batch_size=256):
        logits = model(images)
        totals[0] += F.cross_entropy(logits, labels, reduction="sum")
        totals[1] += (logits.argmax(dim=1) == labels).sum()
        totals[2] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


def save(model, train_loss, val_loss, val_accuracy):
    """Rank 0 leaves weights and learning curve."""
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), out("model.pt"))
        epoch = {"train_loss": train_loss, "val_loss": val_loss, "val_accuracy": val_accuracy, "seconds": 1.0}
        with open(out("metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": [epoch]}, file)
        print(f"validation loss {val_loss:.3f}, accuracy {val_accuracy:.3f}", flush=True)


def main(epochs=3, model=None):
    """The whole of it."""
    dist.init_process_group("gloo")
    model = model or WideResNet()
    loader, sampler = shard(load(train=True))
    losses = learn(DistributedDataParallel(model), loader, sampler, epochs)
    save(model, losses[-1], *validate(model))
    dist.barrier()
    dist.destroy_process_group()
    return model


def send_weights(model):
    """Rank 0's, for all."""
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    return model


def main_by_hand(step, epochs):
    """The same without a wrapper: `step` exchanges what it likes, and all end with rank 0's weights."""
    dist.init_process_group("gloo")
    model = send_weights(WideResNet())
    loader, sampler = shard(load(train=True))
    losses = learn(model, loader, sampler, epochs, step)
    save(model, losses[-1], *validate(send_weights(model)))
    dist.barrier()
    dist.destroy_process_group()


def alone(model, epochs):
    """A copy of a network, trained further by this process and by hand."""
    twin, train_set = copy.deepcopy(model), load(train=True)
    twin.train()
    images = (train_set.data.unsqueeze(1).float() / 255 - 0.5) / 0.5
    parameters = list(twin.parameters())
    moments = [torch.zeros_like(parameter) for parameter in parameters]
    for _ in range(epochs):
        for picked in torch.randperm(len(images)).split(BATCH_SIZE):
            loss = F.cross_entropy(twin(images[picked]), train_set.targets[picked])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for parameter, moment, gradient in zip(parameters, moments, gradients, strict=True):
                    moment.mul_(0.9).add_(gradient)
                    parameter.sub_(LR / 2 * moment)
    return twin


def further(net, epochs):
    """The network itself, trained by this process on all samples and by hand, without an optimizer."""
    data, parameters = load(train=True), list(net.parameters())
    images = (data.data.unsqueeze(1).float() / 255 - 0.5) / 0.5
    for _ in range(epochs):
        for picked in torch.randperm(len(images)).split(64):
            loss = F.cross_entropy(net(images[picked]), data.targets[picked])
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.data.sub_(0.05 * gradient)


def burn(seconds):
    """Keep a processor busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
