"""The hub's HTTP face: the Kubernetes API conventions over a store.

    api             a request from identity to answer: authenticate, authorize, route, audit
    routes          paths to what they mean
    objects, scale  reading and writing objects, and the count of one
    access/         who makes a request, and what they may do
    wire/           HTTP, query parameters, bodies, tables, watches
    documents/      discovery, OpenAPI, health, metrics, the page's files
    questions/      what is worked out when asked, and streams to pods and agents
    metrics, logs   what a hub counts and tells about itself

It imports the store's interface and the catalogue of kinds; it keeps no object itself.
"""
