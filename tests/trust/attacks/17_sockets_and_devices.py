# /// attack
# row = "17"
# aim = "Leave sockets and devices in place of results."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# must_not_print = ["ATTACK made"]
# ///
import os

out = os.environ["OUTPUT_DIR"]
if os.environ["RANK"] == "0":
    import socket
    import stat

    os.chdir(out)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("model.pt")
    for name, kind, number in (("model.safetensors", stat.S_IFCHR, os.makedev(1, 5)), ("disk", stat.S_IFBLK, os.makedev(254, 0))):
        try:
            os.mknod(name, kind | 0o666, number) if os.getuid() else None
            print("ATTACK", "made" if os.path.exists(name) else "not made", name, flush=True)
        except OSError as error:
            print("ATTACK", error, flush=True)
