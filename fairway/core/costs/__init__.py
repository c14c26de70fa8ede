"""What is used, for how long, and what it costs: exact sums, and reports of them."""
