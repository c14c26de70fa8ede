"""What no plan may do: asked of every plan in tests and simulation, of some in a running hub."""
