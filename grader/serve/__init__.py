"""The whole service on one machine: web, worker and relay as processes of one command, SQLite, no Redis.

The very processes that a larger site runs apart (`grader web`, `grader worker`, `grader relay`); only the addresses of
database and broker differ. `first_start` makes what a first start lacks, `service_processes` keeps the
processes running.
"""
