# /// attack
# row = "20"
# aim = "Report a gigabyte of nothing."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# ///
import os

if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
        file.truncate(1000 << 20)
