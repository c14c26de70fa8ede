"""CEL expressions, the language of `x-kubernetes-validations`.

May know CEL's runtime and schemas as Nodes; must not know kinds, stores or HTTP. This is the only
room that imports the runtime, a C++ library, so that it can be replaced in one place.
"""
