"""The training loop knows nothing of ranks: a small `Engine` (in the manner of Accelerate or Fabric) carries it all.

    torchrun --nproc_per_node=2 train.py
"""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler
from torchvision import datasets, transforms


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

class ShardedBatches(BatchSampler):
    """Cuts every batch of the whole job into one piece per rank.

    All ranks walk through the same global batches (their shuffle is seeded by the epoch), so the pieces of one
    step together are exactly the batch that a single process would have taken.
    """

    def __init__(self, length: int, global_batch: int, engine: Engine, shuffle: bool) -> None:
        self.length, self.global_batch, self.engine, self.shuffle = length, global_batch, engine, shuffle
        self.passes = 0

    def __len__(self) -> int:
        full, rest = divmod(self.length, self.global_batch)
        return full + (rest > 0 and not self.shuffle)

    def __iter__(self) -> Iterator[list[int]]:
        order: list[int] = list(range(self.length))
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.passes)
            order = list(RandomSampler(order, generator=generator))
            self.passes += 1
        for number in range(len(self)):
            batch = order[number * self.global_batch : (number + 1) * self.global_batch]
            piece = batch[self.engine.rank :: self.engine.world_size]
            if piece:  # the last batch of a validation pass may be smaller than the number of ranks
                yield piece


class Engine:
    """Owns the process group and hands out distributed versions of ordinary things."""

    def __init__(self) -> None:
        self.local_rank = int(os.environ.get("LOCAL_RANK", 0))
        on_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda", self.local_rank) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(self.device)
        dist.init_process_group("nccl" if on_gpu else "gloo")
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def print(self, *args: object) -> None:
        if self.is_main:
            print(*args, flush=True)

    def fashion(self, train: bool) -> Dataset:
        root = os.environ["DATA_DIR"]
        normalise = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
        if self.local_rank == 0:
            datasets.FashionMNIST(root, train=train, download=True)
        dist.barrier()
        return datasets.FashionMNIST(root, train=train, transform=normalise)

    def loader(self, dataset: Dataset, global_batch: int, shuffle: bool) -> DataLoader:
        return DataLoader(dataset, batch_sampler=ShardedBatches(len(dataset), global_batch, self, shuffle))

    def batches(self, loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in loader:
            yield images.to(self.device), labels.to(self.device)

    def setup(self, model: nn.Module) -> nn.Module:
        model = model.to(self.device)
        ids = [self.local_rank] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=ids)

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def share_buffers(self, model: nn.Module) -> None:
        """BatchNorm statistics of rank 0 to all ranks, so that everyone validates what will be saved."""
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)

    def sum(self, *values: Tensor) -> list[float]:
        stacked = torch.stack([value.to(self.device, torch.float64) for value in values])
        dist.all_reduce(stacked)
        return stacked.tolist()

    def save(self, model: nn.Module, history: list[dict[str, float]]) -> None:
        bare = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        if self.is_main:
            folder = Path(os.environ["OUTPUT_DIR"])
            save_file({name: value.cpu().contiguous() for name, value in bare.state_dict().items()},
                      folder / "model.safetensors")
            (folder / "metrics.json").write_text(json.dumps({"schema": 1, "epochs": history}))
        dist.barrier()


def fit(engine: Engine, epochs: int = 10, batch_size: int = 128, lr: float = 0.1) -> None:
    train_loader = engine.loader(engine.fashion(train=True), batch_size, shuffle=True)
    val_loader = engine.loader(engine.fashion(train=False), 512, shuffle=False)
    model = engine.setup(WideResNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
    total = epochs * len(train_loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(  # up for a fifth of the run, then down to nothing
        optimizer, lambda step: min((step + 1) / (0.2 * total), (total - step) / (0.8 * total))
    )

    history: list[dict[str, float]] = []
    for epoch in range(epochs):
        began = time.perf_counter()
        model.train()
        loss_sum, num_seen = torch.zeros(()), torch.zeros(())
        for images, labels in engine.batches(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            engine.backward(loss)
            optimizer.step()
            schedule.step()
            loss_sum, num_seen = loss_sum + loss.detach().cpu() * len(labels), num_seen + len(labels)
        train_loss, num_trained = engine.sum(loss_sum, num_seen)

        model.eval()
        engine.share_buffers(model)
        val_loss, correct, count = torch.zeros(()), torch.zeros(()), torch.zeros(())
        with torch.no_grad():
            for images, labels in engine.batches(val_loader):
                logits = model.module(images)
                val_loss = val_loss + F.cross_entropy(logits, labels, reduction="sum").cpu()
                correct = correct + (logits.argmax(1) == labels).sum().cpu()
                count = count + len(labels)
        val_loss, correct, count = engine.sum(val_loss, correct, count)

        history.append({
            "train_loss": train_loss / num_trained,
            "val_loss": val_loss / count,
            "val_accuracy": correct / count,
            "seconds": time.perf_counter() - began,
        })
        engine.print(f"epoch {epoch + 1}", {name: round(value, 4) for name, value in history[-1].items()})
    engine.save(model, history)


if __name__ == "__main__":
    with Engine() as engine:
        fit(engine)
