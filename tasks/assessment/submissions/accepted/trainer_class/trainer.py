"""A trainer that knows of ranks, so that what uses it need not: in the manner of Fabric, Accelerate and the like."""
import csv
import json
import os
import time

import torch
from torch import nn, optim
from torch.nn import functional as F

from comparison import write_comparison
from launch import on_rank_zero


class Trainer:
    def __init__(self, ranks, network, epochs, peak_lr, warmup_share=0.2):
        self.ranks, self.epochs, self.peak_lr, self.warmup_share = ranks, epochs, peak_lr, warmup_share
        self.network = network.to(ranks.device)
        device_ids = [ranks.local_rank] if ranks.device.type == "cuda" else None
        self.ddp = nn.parallel.DistributedDataParallel(self.network, device_ids=device_ids)
        self.optimizer = optim.SGD(self.ddp.parameters(), lr=peak_lr, momentum=0.9, weight_decay=5e-4)
        self.rows, self.best = [], 0.0

    def fit(self, train_loader, val_loader):
        self.num_steps, self.step, started = self.epochs * len(train_loader), 0, time.time()
        for epoch in range(self.epochs):
            train_loader.sampler.set_epoch(epoch)
            began = time.time()
            row = {"train_loss": self.train(train_loader)}
            row["val_loss"], row["val_accuracy"] = self.validate(val_loader)
            row["seconds"] = time.time() - began
            self.rows.append(row)
            self.report(epoch)
            if row["val_accuracy"] > self.best:
                self.best = row["val_accuracy"]
                self.save()
        self.write_logs(train_loader.batch_size, time.time() - started)
        self.ranks.wait()

    def set_learning_rate(self):
        """A straight line up and a straight line down."""
        done = (self.step + 1) / self.num_steps
        share = min(done / self.warmup_share, (1 - done) / (1 - self.warmup_share))
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak_lr * share
        self.step += 1

    def train(self, loader):
        self.ddp.train()
        totals = torch.zeros(2, device=self.ranks.device)
        for images, labels in loader:
            self.set_learning_rate()
            images, labels = images.to(self.ranks.device), labels.to(self.ranks.device)
            loss = F.cross_entropy(self.ddp(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            totals += torch.stack([loss.detach() * len(labels), totals.new_tensor(len(labels))])
        loss_sum, num_samples = self.ranks.add_up(totals).tolist()
        return loss_sum / num_samples

    @torch.no_grad()
    def validate(self, loader):
        # BatchNorm's running statistics are not averaged with the gradients: score those that are saved
        self.ranks.take_from_rank_zero(self.network.buffers())
        self.network.eval()
        totals = torch.zeros(3, device=self.ranks.device)
        for images, labels in loader:
            images, labels = images.to(self.ranks.device), labels.to(self.ranks.device)
            logits = self.network(images)
            totals[0] += F.cross_entropy(logits, labels, reduction="sum")
            totals[1] += (logits.argmax(dim=1) == labels).sum()
            totals[2] += len(labels)
        loss_sum, num_correct, num_samples = self.ranks.add_up(totals).tolist()
        return loss_sum / num_samples, num_correct / num_samples

    @on_rank_zero
    def report(self, epoch):
        shown = "  ".join(f"{name}={value:.3f}" for name, value in self.rows[-1].items())
        print(f"epoch {epoch}  {shown}", flush=True)

    @on_rank_zero
    def save(self):
        torch.save(self.network.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))

    @on_rank_zero
    def write_logs(self, batch_size, seconds):
        folder = os.environ["OUTPUT_DIR"]
        with open(os.path.join(folder, "log.csv"), "w", newline="") as file:
            log = csv.DictWriter(file, fieldnames=list(self.rows[0]))
            log.writeheader()
            log.writerows(self.rows)
        with open(os.path.join(folder, "metrics.json"), "w") as file:
            json.dump({"schema": 1, "epochs": self.rows}, file)
        write_comparison(folder, self.ranks.world_size, batch_size, self.peak_lr, self.epochs, seconds, self.best)
