"""The supervisor: forks ranks from a warm process, watches them, and writes down how they ended.

Runs inside the runtime (a container, or here a plain process). Imports only `grader.probe`; never trusts what a rank
wrote and never unpickles anything.
"""
