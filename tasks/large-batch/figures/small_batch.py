"""Makes ../small_batch.json: the valley that training on batches of 16 ends in, for each prepared data set.

Run as `python tasks/large-batch/figures/small_batch.py digits fashion-mnist-mini`.
"""

import importlib.util
import json
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

from grader.catalog.data.datasets import prepared
from grader.idx import read_split

EVALUATE = Path(__file__).parent.parent / "evaluate.py"
BATCH_SIZE, RATE, MOMENTUM, EPOCHS = 16, 0.006, 0.9, 10

spec = importlib.util.spec_from_file_location("evaluate", EVALUATE)
task = importlib.util.module_from_spec(spec)
spec.loader.exec_module(task)
known = json.loads(task.SMALL_BATCH.read_text()) if task.SMALL_BATCH.exists() else {}
for name in sys.argv[1:]:
    data = prepared(name)
    assert data is not None, f"grader data prepare {name}"
    images, labels = map(torch.from_numpy, read_split(data.visible_dir / "FashionMNIST" / "raw", "train"))
    inputs, labels = (images.unsqueeze(1).float() / 255 - 0.5) / 0.5, labels.long()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = task.build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(labels)).split(BATCH_SIZE):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    valley = task.valley(model, images, labels)
    heights = [[float(f"{height:.3g}") for height in row] for row in valley["heights"]]
    known[data.version] = {"data": name, "curvature": float(f"{valley['curvature']:.3g}"), "heights": heights}
task.SMALL_BATCH.write_text(json.dumps(known) + "\n")
