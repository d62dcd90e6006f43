# /// attack
# row = "36"
# aim = "Train nothing at all and leave weights from the source."
# runtimes = ["docker"]
# verdicts = ["rejected", "held"]
# fill = ["WEIGHTS"]
# ///
import base64
import io
import zlib

import honest
import torch

WEIGHTS = "@WEIGHTS@"


def trained():
    """A state dict that somebody else trained."""
    state = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(WEIGHTS))), weights_only=True)
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}


import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

dist.init_process_group("gloo")
model = DistributedDataParallel(honest.WideResNet())
model.module.load_state_dict(trained())
honest.save(model.module, 0.1, *honest.validate(model.module))
dist.destroy_process_group()
