"""Touches a Kubernetes cluster: watches what is there, and applies what is to be.

    driver, open_driver   the driver itself: what an agent asks for
    picture         what was last told of nodes, pods and objects, and the observation made of it
    nodes, pods     what is kept of a node and of a pod
    accelerators    which model of accelerator a node has, by the labels that are usual
    devices         devices that drivers publish in resource slices
    keys, marks     which object, and whose it is
    works           what each work is to be, and what of it is ours
    objects         objects as they are to be
    writes          writes, in the right name and at a bearable rate
    object_ends     how pods and objects are ended
    placeholders    placeholder pods that hold places for a gang
    watches         watches of the kinds that are in use
    rights          in whose name things are done, and which rights that takes
    scores          how much is free, under the names that others use

It knows the API server by `fairway.kubeapi` alone, keeps of each pod only what is told, and costs
what changed. What belongs to a work is known by labels, so that a driver that starts anywhere finds
what another one left.
"""
