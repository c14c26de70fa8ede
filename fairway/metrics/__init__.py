"""Numbers that say how a service does: asked of whoever measures, such as a Prometheus.

`interface.py` is what everybody who decides by numbers knows: a source answers a query with
samples, or fails in one of a few typed ways. `prometheus.py` is a source that speaks Prometheus'
HTTP API. The room knows no store, no kind and nobody who decides; which sources there are is
chosen by the composition root.
"""
