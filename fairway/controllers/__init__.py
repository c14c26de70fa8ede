"""Controllers carry out: they read the store, call the core, check again, and write the store.

They never touch a cluster. Each is a loop over keys that changed: an event only marks a key, the
reconciler reads the latest and makes it so; twice is harmless.

May know the types, kinds, view, core, clock and the store's interface; must not know a concrete
store, a driver or HTTP.
"""
