"""Touches a Kubernetes cluster: watches what is there, and applies what should be.

    driver, open_driver    the driver itself: what an agent calls
    picture                the last known nodes, pods and objects, and the observation made of them
    nodes, pods            what is kept of a node and of a pod
    accelerators           the accelerator model of a node, by the usual labels
    devices                devices that drivers publish in resource slices
    elastic_pools          elastic pools: those listed, and those of the cluster's autoscalers
    nodepools              node pools of a cluster's own autoscaler, as elastic pools
    provisioning_requests  nodes by ProvisioningRequest, before there are pods
    keys, marks            which object, and whose it is
    works                  what each work should be, and which objects are its own
    objects                the objects of a work as they should be
    writes                 writes, in the right name and at a limited rate
    object_ends            how pods and objects are ended
    placeholders           placeholder pods that hold places for a gang
    watches                watches of the kinds in use
    streams                output of pods, commands in them and their ports
    pod_usage              what pods use, by the cluster's metrics API
    rights                 in whose name things are done, and the rights that takes
    scores                 how much is free, under the names that others use
    survey                 what a cluster that joins has, and drafts made of it

It reaches the API server by `fairway.kubeapi` alone, keeps only the reported part of each pod, and
costs what changed. Labels say what belongs to a work, so a driver that starts anywhere finds what
another one left.
"""
