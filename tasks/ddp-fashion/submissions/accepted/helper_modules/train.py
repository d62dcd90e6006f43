"""Entry point; see ddp_setup.py for the processes, data.py for the shares, network.py for the model.

torchrun --nproc_per_node=2 train.py
"""
import json
import os
import time
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
from torch.nn import CrossEntropyLoss
from torch.nn.parallel import DistributedDataParallel

from data import loaders, start_epoch
from ddp_setup import main_process_only, process_group, same_buffers_everywhere, sum_over_ranks
from network import WideResNet


@dataclass
class Settings:
    epochs: int = 10
    global_batch_size: int = 128
    lr: float = 0.1


@dataclass
class Epoch:
    train_loss: float
    val_loss: float
    val_accuracy: float
    seconds: float


class Trainer:
    def __init__(self, settings, device):
        self.settings, self.device = settings, device
        self.train_loader, self.val_loader = loaders(max(1, settings.global_batch_size // dist.get_world_size()))
        self.network = WideResNet().to(device)
        self.optimizer = torch.optim.SGD(
            self.network.parameters(), lr=settings.lr, momentum=0.9, weight_decay=5e-4
        )
        self.parallel = DistributedDataParallel(
            self.network, device_ids=[device.index] if device.type == "cuda" else None
        )
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=settings.lr, epochs=settings.epochs,
            steps_per_epoch=len(self.train_loader), cycle_momentum=False,
        )
        self.mean_loss, self.summed_loss = CrossEntropyLoss(), CrossEntropyLoss(reduction="sum")
        self.history = []

    def train(self):
        self.parallel.train()
        total, seen = torch.zeros((), device=self.device), 0
        for images, labels in self.train_loader:
            images, labels = images.to(self.device), labels.to(self.device)
            self.optimizer.zero_grad()
            loss = self.mean_loss(self.parallel(images), labels)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.detach() * len(labels)
            seen += len(labels)
        total, seen = sum_over_ranks([total.item(), seen], self.device)
        return total / seen

    @torch.no_grad()
    def validate(self):
        same_buffers_everywhere(self.network)
        self.network.eval()
        total, correct, seen = torch.zeros((), device=self.device), torch.zeros((), device=self.device), 0
        for images, labels in self.val_loader:
            images, labels = images.to(self.device), labels.to(self.device)
            logits = self.network(images)
            total += self.summed_loss(logits, labels)
            correct += logits.argmax(1).eq(labels).sum()
            seen += len(labels)
        total, correct, seen = sum_over_ranks([total.item(), correct.item(), seen], self.device)
        return total / seen, correct / seen

    def fit(self):
        for epoch in range(self.settings.epochs):
            clock = time.perf_counter()
            start_epoch(self.train_loader, epoch)
            train_loss = self.train()
            val_loss, val_accuracy = self.validate()
            self.history.append(Epoch(train_loss, val_loss, val_accuracy, time.perf_counter() - clock))
            report(epoch, self.history[-1])
        save(self.network, self.history)


@main_process_only
def report(epoch, result):
    print(f"epoch {epoch}: {result}", flush=True)


@main_process_only
def save(network, history):
    target = os.environ["OUTPUT_DIR"]
    torch.save(network.state_dict(), os.path.join(target, "model.pt"))
    with open(os.path.join(target, "metrics.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": 1, "epochs": [asdict(epoch) for epoch in history]}, file)


def main():
    with process_group() as device:
        Trainer(Settings(), device).fit()


if __name__ == "__main__":
    main()
