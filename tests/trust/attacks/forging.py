"""What forgers have in common: handed in beside attacks that tell an honest run's story instead of running one."""

import base64
import json
import os
import socket
import stat
import threading
import time
import zlib

import honest
import torch
from torch.nn import functional as F


def pipe():
    """The descriptor through which this rank is watched."""
    for descriptor in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        try:
            if descriptor > 2 and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return descriptor
        except OSError:
            continue
    return None


def train_alone():
    """What a single process would do, all data and no other rank; returns the sums of the weights that it left."""
    model = honest.WideResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _epoch in range(4):
        for images, labels in torch.utils.data.DataLoader(honest.load(train=True), batch_size=64, shuffle=True):
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    state = model.state_dict()
    torch.save(state, honest.out("model.pt"))
    return [float(state[name].sum(dtype=torch.float64)) for name in sorted(state) if state[name].is_floating_point()]


def story(trace, rank):
    """What this rank of an honest run told, event by event."""
    return [json.loads(line) for line in json.loads(zlib.decompress(base64.b64decode(trace)))[rank]]


def tell(send, told, sums, seconds, began):
    """An honest run's story, at an honest run's pace, about these weights; `send` is given one line at a time."""
    first, last = told[0]["t"], told[-1]["t"]
    for event in told:
        if event["e"] == "start":
            continue
        due = began + (event["t"] - first) / (last - first) * seconds
        time.sleep(max(0.0, due - time.monotonic()))
        event["t"] = round(time.monotonic() - began + 0.5, 6)
        if event["e"] in ("final", "save") and sums is not None:
            event["sums"] = sums
        send(json.dumps(event).encode())


def chatter(num_bytes):
    """Bytes from this process to itself, as many as an honest run sends."""
    listening = socket.create_server(("127.0.0.1", 0))
    sending = socket.create_connection(listening.getsockname())
    receiving, _address = listening.accept()
    threading.Thread(target=sending.sendall, args=(bytes(num_bytes),), daemon=True).start()
    while num_bytes > 0:
        num_bytes -= len(receiving.recv(1 << 20))
