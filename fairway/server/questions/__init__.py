"""Questions, whose answers are computed on request, and streams to pods and agents."""
