# /// attack
# row = "23"
# aim = "Claim a header of eight exabytes, and tensors that reach beyond the file."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["model.safetensors"]
# ///
import json
import os
import struct

if os.environ["RANK"] == "0":
    header = json.dumps({"fc.bias": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 1 << 62]}}).encode()
    with open(os.path.join(os.environ["OUTPUT_DIR"], "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"x" * 64)
