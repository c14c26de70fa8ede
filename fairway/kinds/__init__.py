"""Native kinds: their pods, how to suspend them, and how to read their status.

Complex kinds are code, one module each; the rest are rules, data files that anyone can add to.
Everything here is a pure function of manifests and objects: plain JSON in, plain values out.

May know the types and expressions (`api`, `schema`); must not know queues, clusters or stores.
"""
