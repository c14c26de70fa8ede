"""Metrics that show how a service performs, queried from sources such as Prometheus.

`interface.py` is what every part that decides by metrics knows: a source answers a query with
samples, or fails in one of a few typed ways. `prometheus.py` is a source that speaks Prometheus'
HTTP API; `presets.py` has queries for model servers. This package knows no store, no kind and no
part that decides; the composition root chooses the sources.
"""
