"""Files that authors write: where in them something stands, what is wrong with it, and how they are described."""
