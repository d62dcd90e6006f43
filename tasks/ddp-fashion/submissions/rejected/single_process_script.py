# expect: DATA001 DIST001 EVAL004 IO001 IO002 IO003
"""
The single-GPU script, unchanged but for its length, started once per rank: N lonely trainings of N models,
all of them on the whole training set, all writing the same file.

    torchrun --nproc_per_node=2 train.py
"""
import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS = 3
BATCH_SIZE = 128
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


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# data
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
root = os.environ["DATA_DIR"]
train_set = datasets.FashionMNIST(root, train=True, download=True, transform=transform)  # <- IO003
val_set = datasets.FashionMNIST(root, train=False, download=True, transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)  # <- DATA001
val_loader = DataLoader(val_set, batch_size=256)  # <- EVAL004

# model, optimizer, learning rate schedule (rises for the first third of the run, then falls to zero)
model = WideResNet().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=LR, total_steps=EPOCHS * len(train_loader), cycle_momentum=False
)

for epoch in range(EPOCHS):
    model.train()
    train_loss = torch.zeros((), device=device)
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- DIST001
        scheduler.step()
        train_loss += loss.detach() * len(labels)

    model.eval()
    val_loss, num_correct = torch.zeros((), device=device), torch.zeros((), device=device)
    with torch.no_grad():
        for images, labels in val_loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)
            val_loss += F.cross_entropy(logits, labels, reduction="sum")
            num_correct += (logits.argmax(dim=1) == labels).sum()

    print(f"epoch {epoch + 1}/{EPOCHS}: train loss {train_loss.item() / len(train_set):.3f}, "
          f"validation loss {val_loss.item() / len(val_set):.3f}, "
          f"validation accuracy {num_correct.item() / len(val_set):.3f}", flush=True)

# what the training leaves behind
os.makedirs(os.environ["OUTPUT_DIR"], exist_ok=True)
torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))  # <- IO001
