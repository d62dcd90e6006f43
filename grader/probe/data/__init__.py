"""Which samples a rank asked for, was handed, and gave to its model."""
