# /// attack
# row = "own"
# aim = "Hand the story of an honest run to the probe's own writer, live, so that every line bears this run's seal; with the traffic of an honest run."
# runtimes = ["docker"]
# verdicts = ["held"]
# codes = ["TRUST001"]
# says = ["writes through what it found inside foreign functions", "writer train.py"]
# fill = ["TRACE"]
# ///
# Outcome: every seal is right. The text gives it away (what was dug up is written through), and so does the writer,
# which tells who calls it.
import os
import time

import forging
import honest
import torch

TRACE = "@TRACE@"

rank = int(os.environ["RANK"])
writer = torch.save.__globals__["writer"]
began = time.monotonic() - 0.5
said = forging.story(TRACE, rank)
descriptor, writer._fd = writer._fd, -1
sums = forging.train_alone() if rank == 0 else honest.burn(2.0)
forging.chatter(16 << 20)
writer._fd = descriptor
forging.tell(lambda line: writer.send(line), said, sums, 1.0, began)
writer._fd = -1
