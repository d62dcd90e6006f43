"""The network, as the single-GPU script has it."""
from torch import nn
from torch.nn import functional as F

DEPTH = 10  # convolutions on the longest path: 6 for each block of a group, and 4 besides
WIDTH = 2  # channels, as a multiple of the plain residual network's
BASE_CHANNELS = 8
NUM_CLASSES = 10


class Block(nn.Module):
    """Two 3x3 convolutions around which the input is carried past (pre-activation residual block)."""

    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        same_shape = stride == 1 and in_channels == out_channels
        self.skip = nn.Identity() if same_shape else nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):
        hidden = self.conv1(F.relu(self.norm1(x)))
        hidden = self.conv2(F.relu(self.norm2(hidden)))
        return self.skip(x) + hidden


class WideResNet(nn.Module):
    """Three groups of residual blocks, each at half the resolution of the one before."""

    def __init__(self, depth=DEPTH, width=WIDTH, num_classes=NUM_CLASSES):
        super().__init__()
        self.stem = nn.Conv2d(1, BASE_CHANNELS, 3, padding=1, bias=False)
        blocks, channels = [], BASE_CHANNELS
        for group in range(3):
            for number in range((depth - 4) // 6):
                out_channels = BASE_CHANNELS * width * 2**group
                blocks.append(Block(channels, out_channels, stride=2 if group > 0 and number == 0 else 1))
                channels = out_channels
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))
