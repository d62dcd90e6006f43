"""How runs end: deadlocks, crashes and limits, and what each rank was doing then."""
