"""Which ranks get to a line, and what may differ between them there: tests of the rank, guards, early ways out."""
