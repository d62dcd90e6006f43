"""Kinds of data that can be taken from what a site has: one module each, in the place of a task's own script.

`prepare(out, source)` writes `out/visible` and `out/hidden` and returns how many samples there are; what is wrong
with the source is a `UsageError`. `[data]` in `task.toml` names a kind as its module is called.
"""
