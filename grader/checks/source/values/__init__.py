"""Where values come from and go to, through names, attributes and containers, and what is random in them."""
