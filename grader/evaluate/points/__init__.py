"""From findings and measures to items, points and a verdict."""
