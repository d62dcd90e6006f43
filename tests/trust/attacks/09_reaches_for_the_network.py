# /// attack
# row = "9"
# aim = "Reach anything that is not this attempt."
# runtimes = ["docker"]
# verdicts = ["rejected"]
# must_print = ["\"reached\": []"]
# must_not_print = ["\"reached\": [\""]
# ///
import json
import os
import socket

reached = []
for address in ("169.254.169.254", "192.0.2.1", "198.51.100.7", "203.0.113.9", "2001:db8::1", "fe80::1%lo"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind, port in ((socket.SOCK_STREAM, 80), (socket.SOCK_DGRAM, 53)):
        with socket.socket(family, kind) as one:
            one.settimeout(0.5)
            try:
                one.connect((address.partition("%")[0], port))
                one.send(b"anybody there?")
                reached.append(f"{address} {port}")
            except OSError as error:
                print(address, port, error)
try:
    reached.append(socket.getaddrinfo("example.com", 80)[0][4][0])
except OSError as error:
    print("example.com", error)
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket"):
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
            reached.append(path)
        except OSError as error:
            print(path, error)
reached += [name for _index, name in socket.if_nameindex() if name != "lo"]
with open("/proc/net/unix") as file:
    reached += [line.split()[-1] for line in file if "@" in line]
print("ATTACK", json.dumps({"rank": os.environ["RANK"], "reached": reached}), flush=True)
