# /// attack
# row = "38"
# aim = "Train on rank 0 alone, and hand the weights to the idle other one."
# runtimes = ["docker"]
# verdicts = ["rejected", "held"]
# ///
import honest
import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
ddp = DistributedDataParallel(honest.WideResNet())
if dist.get_rank() == 0:
    model = honest.WideResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _epoch in range(3):
        for images, labels in torch.utils.data.DataLoader(honest.load(train=True), batch_size=64, shuffle=True):
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ddp.module.load_state_dict(model.state_dict())
for tensor in ddp.module.state_dict().values():
    dist.broadcast(tensor, src=0)
honest.save(ddp.module, 0.1, *honest.validate(ddp.module))
dist.destroy_process_group()
