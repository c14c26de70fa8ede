"""The driver of a Kubernetes cluster: watches what exists, and applies what should exist.

    driver, open_driver    the driver itself: what an agent calls
    picture                the last known nodes, pods and objects
    namespaces             quotas and limits of namespaces, and what others use of them
    nodes, pods            what is kept of a node and of a pod
    accelerators           the accelerator model of a node, by the usual labels
    devices                devices that drivers publish in resource slices
    device_classes         which devices a device class selects
    elastic_pools          elastic pools: those listed, and those of the cluster's autoscalers
    nodepools              node pools of a cluster's own autoscaler, as elastic pools
    provisioning_requests  nodes by ProvisioningRequest, before there are pods
    keys, marks            which object it is, and which work it belongs to
    works                  the desired state of each work, and its objects
    objects                makes the objects of a work
    writes                 writes, under the right identity and at a limited rate
    object_ends            ends pods and objects
    placeholders           placeholder pods that hold places for a gang
    watches                watches of the kinds in use
    streams                logs of pods, commands in them and their ports
    pod_usage              what pods use, by the cluster's metrics API
    rights                 the identities that write, and the rights that they need
    scores                 how much is free, as scores with OCM's names
    survey                 what a joining cluster has, and drafts made from that

The driver reaches the API server only by `fairway.kubeapi`, keeps only the reported part of each
pod, and does work in proportion to what changed. Labels say what belongs to a work, so a driver
that starts anywhere finds what another driver left.
"""
