"""Questions, whose answers are worked out when asked, and streams to pods and agents."""
