"""Where what ranks told disagrees with what was seen from outside, or with itself."""
