"""The hub's HTTP face: the Kubernetes API conventions over a store.

    api             from a request to its response: authenticate, authorize, route, audit
    routes          from paths to resources and verbs
    objects, scale  reading and writing objects, and their replica count
    access/         who makes a request, and what they may do
    wire/           HTTP, query parameters, bodies, tables, watches
    documents/      discovery, OpenAPI, health, metrics, the page's files
    questions/      questions, and streams to pods and agents
    upkeep          backups, and another key for what is on disk
    metrics, logs   what a hub counts and logs about itself
    fleet_metrics   what the leader's controllers count of the fleet, as Prometheus reads it

It imports the store's interface and the catalogue of kinds; it stores no object itself.
"""
