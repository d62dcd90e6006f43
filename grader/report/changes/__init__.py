"""What changed between two attempts, two grades, two texts."""
