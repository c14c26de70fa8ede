"""Sign-in with a company's identity provider, by OpenID Connect.

    settings    which provider, and how its claims become names; named as kube-apiserver names them
    provider    requests to the provider: its endpoints, its keys, and tokens for codes
    claims      from the claims of a token to an identity
    id_tokens   whether a token is from the provider, for us, and valid now; and its identity
    flow        the sign-in of a person on the provider's page

It only authenticates: it knows nothing of rights, nor of HTTP requests to the hub. It uses the HTTP
library through the client's transport.
"""
