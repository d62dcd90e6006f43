"""What ranks held: whether their models stayed equal, where they came apart, and what no wrapper looks after."""
