"""The way out of a rank: the words of its trace, its writer, and the seals on each line."""
