# /// attack
# row = "15"
# aim = "Leave symbolic links in place of results, to files of the judge."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# says = ["model.pt"]
# ///
import os

out = os.environ["OUTPUT_DIR"]
if os.environ["RANK"] == "0":
    os.symlink("/etc/passwd", os.path.join(out, "model.pt"))
    os.symlink("/etc/hostname", os.path.join(out, "metrics.json"))
    os.symlink("/does/not/exist", os.path.join(out, "dangling.pt"))
    os.symlink("/", os.path.join(out, "root"))
    os.symlink(".", os.path.join(out, "loop"))
    os.symlink("/record/record.json", os.path.join(out, "record.json"))
