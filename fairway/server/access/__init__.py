"""Who makes a request, and what they may do: tokens, sign-in, RBAC, certificates, audit."""
