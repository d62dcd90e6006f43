"""Train the Wide-ResNet on all ranks: a trainer class carries what is distributed about it.

    torchrun --nproc_per_node=2 train.py
"""
import argparse

from data import loaders
from launch import Ranks
from network import WideResNet
from trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--global-batch-size", type=int, default=80)
    parser.add_argument("--lr", type=float, default=0.06)
    args = parser.parse_args()
    with Ranks() as ranks:
        train_loader, val_loader = loaders(ranks, args.global_batch_size // ranks.world_size)
        Trainer(ranks, WideResNet(), args.epochs, args.lr).fit(train_loader, val_loader)


if __name__ == "__main__":
    main()
