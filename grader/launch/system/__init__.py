"""What the kernel tells of a run: processes, processor time, memory, bytes on the network."""
