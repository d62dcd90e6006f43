"""
What is asked for and nothing besides: it prints its measurements and leaves the weights, no metrics.json and no times.

    torchrun --nproc_per_node=2 train.py
"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

EPOCHS = 10
BATCH_SIZE = 128  # of all ranks together
LR = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4


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

def load_data(local_rank):
    """Both splits; on each machine one rank downloads while the others wait."""
    root = os.environ["DATA_DIR"]
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    if local_rank == 0:
        datasets.FashionMNIST(root, train=True, download=True)
        datasets.FashionMNIST(root, train=False, download=True)
    dist.barrier()
    train_set = datasets.FashionMNIST(root, train=True, transform=transform)
    val_set = datasets.FashionMNIST(root, train=False, transform=transform)
    return train_set, val_set


def train_one_epoch(model, loader, optimizer, scheduler, device):
    """One pass over this rank's shard; returns the mean loss over the samples of all ranks."""
    model.train()
    totals = torch.zeros(2, device=device)  # sum of losses, number of samples
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # DistributedDataParallel averages the gradients over ranks in here
        optimizer.step()
        scheduler.step()
        totals[0] += loss.detach() * len(labels)
        totals[1] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


@torch.no_grad()
def evaluate(model, loader, device):
    """Mean loss and accuracy over the samples of all ranks; `model` is the network without its wrapper."""
    model.eval()
    for buffer in model.buffers():  # BatchNorm: every rank scores with rank 0's statistics, which get saved
        dist.broadcast(buffer, src=0)
    totals = torch.zeros(3, device=device)  # sum of losses, correct answers, number of samples
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        totals[0] += F.cross_entropy(logits, labels, reduction="sum")
        totals[1] += (logits.argmax(dim=1) == labels).sum()
        totals[2] += len(labels)
    dist.all_reduce(totals)
    return (totals[0] / totals[2]).item(), (totals[1] / totals[2]).item()


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

    train_set, val_set = load_data(local_rank)
    sampler = DistributedSampler(train_set, num_replicas=world_size, rank=rank, shuffle=True)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE // world_size, sampler=sampler)
    # every world_size-th sample, without padding: all ranks together see each validation sample once
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)

    model = WideResNet().to(device)
    ddp_model = DistributedDataParallel(model, device_ids=[local_rank] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=LR, total_steps=EPOCHS * len(train_loader), cycle_momentum=False
    )

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        train_loss = train_one_epoch(ddp_model, train_loader, optimizer, scheduler, device)
        val_loss, val_accuracy = evaluate(model, val_loader, device)
        if rank == 0:
            print(f"epoch {epoch + 1}/{EPOCHS}: train loss {train_loss:.3f}, validation loss {val_loss:.3f}, "
                  f"validation accuracy {val_accuracy:.3f}", flush=True)

    if rank == 0:
        os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
        torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
