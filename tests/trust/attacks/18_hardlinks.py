# /// attack
# row = "18"
# aim = "Leave one file under many names, and a link to a file of the machine."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["hard link"]
# ///
import os

out = os.environ["OUTPUT_DIR"]
if os.environ["RANK"] == "0":
    with open(os.path.join(out, "weights"), "wb") as file:
        file.write(b"x" * (1 << 20))
    os.link(os.path.join(out, "weights"), os.path.join(out, "model.pt"))
    for number in range(200):
        os.link(os.path.join(out, "weights"), os.path.join(out, f"again{number}"))
    try:
        os.link("/etc/passwd", os.path.join(out, "metrics.json"))
    except OSError as error:
        print("ATTACK", error, flush=True)
