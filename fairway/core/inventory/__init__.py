"""What is known of nodes that can be had: stock that ran out, and nodes that nobody needs."""
