# /// attack
# row = "21"
# aim = "Print NUL, surrogates, terminal codes, bidirectional text; raise with them, and name things after them."
# runtimes = ["process", "docker"]
# verdicts = ["crashed"]
# endings = ["crashed"]
# ///
import os
import sys

HOSTILE = b"\x00\x1b[2J\x1b]0;owned\x07\xed\xa0\x80\xff\xfe\xe2\x80\xae moc.evil \x08\x08\r0;<script>alert(1)</script>\n"
os.write(1, HOSTILE * 100)
os.write(2, HOSTILE * 100)
kind = type("Bad\x00\x1b[31mError\ud800", (Exception,), {"__str__": lambda self: "\x00\ud800\u202e</script>"})
namespace = {"kind": kind}
exec(compile("raise kind()", "\x1b[2J\x00.py".replace("\x00", ""), "exec"), namespace)
