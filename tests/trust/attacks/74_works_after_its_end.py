# /// attack
# row = "own"
# aim = "End well, and let a daemon write the real results a moment later."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# fill = ["WEIGHTS"]
# ///
import base64
import io
import os
import time
import zlib

import honest
import torch

WEIGHTS = "@WEIGHTS@"


def trained():
    """A state dict that somebody else trained."""
    state = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(WEIGHTS))), weights_only=True)
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}


import torch.distributed as dist  # noqa: E402

if os.environ["RANK"] == "0" and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(3, 4096)
        parent = time.monotonic()
        state = trained()
        while time.monotonic() - parent < 3:
            time.sleep(0.05)
        torch.save(state, honest.out("model.pt"))
    os._exit(0)
dist.init_process_group("gloo")
dist.barrier()
dist.destroy_process_group()
