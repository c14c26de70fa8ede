"""Room where there is none: victims of preemption, new nodes of elastic pools."""
