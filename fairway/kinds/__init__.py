"""What Fairway knows of native kinds: their pods, how they are held, and what their status means.

Intricate kinds are code, one module each; the rest are rules, data files that anybody can add to.
Everything here is a pure function of manifests and objects: plain JSON in, plain values out.

May know the types and expressions (`api`, `schema`); must not know queues, clusters or stores.
"""
