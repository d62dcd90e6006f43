"""What travels into the untrusted process: hooks that write down what a rank did.

Imports nothing of the grader and nothing from torch at import time; works with torch 2.6 and newer.
It never changes what the script computes, never adds a collective and never raises into the script.
"""
