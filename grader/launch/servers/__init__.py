"""Warm processes that runs are forked from, on this machine and inside a container."""
