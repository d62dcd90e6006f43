# /// attack
# row = "own"
# aim = "Take the pipe from the probe's own writer and tell the story of an honest run, in the right order, at the right pace."
# runtimes = ["docker"]
# verdicts = ["held"]
# codes = ["TRUST001", "TRUST002"]
# says = ["were not written by its probe"]
# fill = ["TRACE"]
# ///
import os
import time

import forging
import honest
import torch

TRACE = "@TRACE@"

rank = int(os.environ["RANK"])
# Functions that the probe has wrapped still know where they were written.
writer = torch.save.__globals__["writer"]
descriptor, writer._fd = writer._fd, -1
began = time.monotonic() - 0.5
sums = forging.train_alone() if rank == 0 else honest.burn(2.0)
forging.tell(lambda line: os.write(descriptor, line + b"\n"), forging.story(TRACE, rank), sums, 1.0, began)
