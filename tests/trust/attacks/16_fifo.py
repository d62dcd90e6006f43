# /// attack
# row = "16"
# aim = "Leave FIFOs that never deliver in place of results."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# ///
import os

out = os.environ["OUTPUT_DIR"]
if os.environ["RANK"] == "0":
    os.mkfifo(os.path.join(out, "model.pt"))
    os.mkfifo(os.path.join(out, "metrics.json"))
    os.mkfifo(os.path.join(out, "model.safetensors"))
