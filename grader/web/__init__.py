"""The service as people and programs see it: pages, API and uploads over the store.

Every route lies in a module of `pages/` or `api/` and says by a dependency of `security.access` whom it lets in;
nothing is listed anywhere. Never judges and never runs anything: it writes to the store, and reads what workers left.
"""
