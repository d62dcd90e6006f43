"""Foretells temperatures, on one device."""

print("start here")
