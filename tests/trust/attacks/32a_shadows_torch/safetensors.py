"""Leaves a trace where it is imported by anybody but a rank."""

import os

if "RANK" not in os.environ:
    open(f"/tmp/grader-trust-{__name__.replace('.', '-')}", "w").close()
