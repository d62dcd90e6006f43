# /// attack
# row = "own"
# aim = "Patch os.write, json and the clocks, in the hope that the probe uses them."
# runtimes = ["docker"]
# verdicts = ["accepted"]
# harmless = "it trained, and the probe uses references of its own"
# codes = ["TRUST001"]
# ///
import json
import os
import time

os.write = lambda descriptor, data: len(data)
os.fstat = None
json.JSONEncoder.encode = lambda self, value: "{}"
time.monotonic = lambda: -1e9

import honest  # noqa: E402

honest.save = lambda model, *rest: honest.dist.get_rank() or honest.torch.save(model.state_dict(), honest.out("model.pt"))
honest.main()
