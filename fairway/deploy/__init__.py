"""What is put on a Kubernetes cluster so that it is a hub, or a member that a hub looks after.

One source, as plain data: `manifests` lists the objects for some settings, `fairway install` prints
them, and `chart` writes the same list down as a Helm chart. Nothing here reads a cluster, and no
object depends on a setting in any other way than by holding its value or by being left out: that is
what lets the chart be the same thing.
"""
