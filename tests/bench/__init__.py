"""What the judge costs, measured: `make bench`. No test here; speed is never asserted, only shown against its bar."""
