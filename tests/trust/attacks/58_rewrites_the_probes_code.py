# /// attack
# row = "own"
# aim = "Give the probe's functions another body, and its objects other memory."
# runtimes = ["docker"]
# verdicts = ["held", "rejected", "deadlocked"]
# ///
import ctypes

import honest
import torch

writer = torch.save.__globals__["writer"]
type(writer).send.__code__ = (lambda self, line: None).__code__
ctypes.memset(id(writer._fd) + 24, 255, 4) if writer._fd > 256 else None
honest.main(epochs=3)
