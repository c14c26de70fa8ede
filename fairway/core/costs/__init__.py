"""Costs: what is used, for how long, and its price; exact sums, and reports of them."""
