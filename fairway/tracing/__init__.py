"""Traces in the form of OpenTelemetry, and the collector that they are sent to.

    spans       trace spans as values, and the ids that they always have
    encoding    trace spans as protobuf
    interface   what a collector promises
    collector   a collector that takes OTLP over HTTP

This package knows no store, no kind and no part that decides. `controllers/timeline` makes trace
spans of what it recorded; the composition root chooses the collector.
"""
