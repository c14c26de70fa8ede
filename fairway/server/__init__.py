"""The hub's HTTP face: the Kubernetes API conventions over a store.

    http            the one module that knows the HTTP library; turns its requests into `Request`
    api             a request from identity to answer: authenticate, authorize, route, audit
    routes          paths to what they mean
    options         query parameters and bodies
    objects         reading and writing objects; `watching`, `scaling`, `reviewing` beside it
    rendering       lists, tables and partial objects
    discovery, openapi   what is served
    identity, tokens, rbac, …   who may do what

It imports the store's interface and the catalogue of kinds; it keeps no object itself.
"""
