"""Plug-ins: modules that are found by where they lie and held against a declared shape before anything uses them.

`sources` says where plug-ins of a kind come from, `shape` what a module of that kind holds, `loader` brings both
together. A plug-in that does not fit is refused with file, line and what was meant; all that is wrong in one message.
"""
