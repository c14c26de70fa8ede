"""What is checked of a workload when it is written, beyond its schema: who submits what, and where.

Every object that is a workload, or becomes one, is checked by the same code on every store: by the
embedded store itself, and on Kubernetes by the hub, which the API server asks. The checks read
queues, namespaces and policies through a function that they are given. They know types, kinds,
governance and the store's interface; they store nothing and must not know who decides.

    submissions       who may submit to a queue, and whether it has a place for another workload
    fleet_policies    what fleet policies allow
    pending           how many workloads are pending in each queue
    refusals          errors, worded like those of a kube-apiserver
"""
