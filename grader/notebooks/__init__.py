"""Notebooks: a lab that is given out as one, and what is handed in as one, read as the scripts that it holds.

Nothing of a notebook is ever run, and its outputs are never looked at.
"""
