"""The process of a rank: how it joins, what it starts, what it seeds, where it reaches too far."""
