"""Sign-in by a company's provider, by OpenID Connect.

    settings    which provider, and how its claims become names; named as kube-apiserver names them
    provider    what is asked of it: where its parts are, its keys, and tokens for codes
    claims      from the claims of a token to an identity
    id_tokens   whether a token is the provider's, for us, and in its time; who it stands for
    flow        the way of a person through the provider's own page and back

It knows nothing of rights, nor of HTTP requests to the hub: who somebody is is all that is found
out here. The HTTP library is reached by the client's transport.
"""
