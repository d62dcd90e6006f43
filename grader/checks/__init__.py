"""Compare what a submission says and did with what data-parallel training demands.

Reads text, traces and records; never runs a submission and never imports torch.
"""
