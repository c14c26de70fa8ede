"""Controllers carry out decisions: they read the store, call the core, check again, and write.

They never touch a cluster. Each is a loop over changed keys: an event only marks a key; the
reconciler reads the latest state and acts on it. Reconciling twice is harmless.

May know the types, kinds, view, core, clock and the store's interface; must not know a concrete
store, a driver or HTTP.
"""
