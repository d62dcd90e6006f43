"""Containers without an engine or an administrator: what the `apptainer` runtime is made of."""
