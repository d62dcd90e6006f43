"""What a script counts, brings together over the ranks and reports, and what a scorer finds to be otherwise."""
