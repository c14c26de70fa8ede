"""Objects that are applied to a Kubernetes cluster to make it a hub, or a member of a hub's fleet.

There is one source, as plain data: `manifests` lists the objects for some settings, `fairway
install` prints them, and `chart` writes the same list as a Helm chart. Nothing here reads a
cluster. An object depends on a setting only by containing its value or by being left out; this
keeps the chart equivalent.
"""
