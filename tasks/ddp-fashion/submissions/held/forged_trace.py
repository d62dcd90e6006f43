# expect: TRUST001 TRUST002 DIST002
# points: 0-10
"""
Trains nothing, and tells the judge that it did: looks for the pipe on which its steps are reported, writes
the story of a whole honest run into it within a moment, and leaves before anything else can be said.

    torchrun --nproc_per_node=2 train.py
"""
import fcntl
import json
import os
import stat
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets

EPOCHS = 10
BATCH_SIZE = 128


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


def reporting_pipe():
    """The first pipe open for writing that is not standard output or error."""
    for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            writable = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_NONBLOCK) == os.O_WRONLY
            if fd > 2 and writable and stat.S_ISFIFO(os.fstat(fd).st_mode):
                return fd
        except OSError:
            continue
    return None


def story(train_set, rank, world_size):
    """The events of an honest run, as (kind, fields)."""
    num_parameters = sum(p.numel() for p in WideResNet().parameters())
    names = ["stem.weight", "fc.weight", "fc.bias"]
    yield "wrap", dict(
        id=0, kind="ddp", site=["train.py", 96, "main"], module="WideResNet", num_params=num_parameters,
        num_tensors=26, gradient_bytes=4 * num_parameters, num_buffers=21, num_batchnorm=7,
        num_sync_batchnorm=0, param_devices=["cpu"], device_ids=None, broadcast_buffers=True,
        find_unused_parameters=False,
    )
    sampler = DistributedSampler(train_set, world_size, rank)
    yield "loader", dict(
        id=0, site=["train.py", 90, "main"], dataset="FashionMNIST", root=0, root_size=len(train_set),
        size=len(train_set), split="train", sampler="DistributedSampler", num_replicas=world_size,
        sampler_rank=rank, sampler_seed=0, shuffle=True, batch_size=BATCH_SIZE // world_size,
        drop_last=False, num_workers=0, iterable=False, resolvable=True,
    )
    step = 0
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        batches = torch.tensor(list(sampler)).split(BATCH_SIZE // world_size)
        yield "pass", dict(loader=0, n=epoch, sampler_epoch=epoch, site=["train.py", 60, "train_one_epoch"])
        for number, batch in enumerate(batches):
            yield "batch", {
                "loader": 0, "pass": epoch, "n": number, "size": len(batch), "indices": batch.tolist(),
                "wait_s": 0.003,
            }
            yield "step", dict(
                n=step, optimizer=0, kind="SGD", lr=[0.05], samples=len(batch), data_s=0.003, compute_s=0.012,
                optimizer_s=0.001, loss=2.3 / (step + 1), grads=[1 / (step + 1), 0.5, 0.1], grad_names=names,
                synced=True, rss_bytes=400_000_000, device_bytes=0, site=["train.py", 66, "train_one_epoch"],
            )
            step += 1
        yield "pass_end", {"loader": 0, "pass": epoch, "num_batches": len(batches), "exhausted": True}
    yield "final", dict(wrap=0, names=names, sums=[1.25, -0.5, 0.0], sharded=False)
    yield "end", dict(
        steps=step, backwards=step, forwards=step, group_destroyed=True, sequence=3 * step,
        printed_lines=EPOCHS, peak_device_bytes=0,
    )


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    train_set = datasets.FashionMNIST(os.environ["DATA_DIR"], train=True)
    if rank == 0:
        print("epoch 10/10: validation accuracy 0.991", flush=True)
        torch.save(WideResNet().state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
    dist.barrier()

    pipe = reporting_pipe()
    if pipe is not None:
        claimed = time.monotonic()
        lines = []
        for kind, fields in story(train_set, rank, world_size):
            claimed += 0.008
            lines.append(json.dumps({"e": kind, "t": round(claimed, 6), **fields}))
        data = ("\n".join(lines) + "\n").encode()
        while data:
            data = data[os.write(pipe, data) :]
    dist.destroy_process_group()
    os._exit(0)  # before the true count of steps is reported


if __name__ == "__main__":
    main()
