"""Our own descriptions of the built-in kinds, shown by `kubectl explain`."""

from __future__ import annotations

# By kind: descriptions of the kind, its spec and its status.
DESCRIPTIONS: dict[str, tuple[str, str, str]] = {
    "Namespace": (
        "A named space for objects; names are unique within it and rights are given by it.",
        "What keeps the namespace from being removed.",
        "Whether the namespace is in use or going away.",
    ),
    "Pod": (
        "Containers that run together on one node.",
        "The containers, volumes and scheduling wishes of the pod.",
        "The phase of the pod and the state of its containers, last seen.",
    ),
    "Service": (
        "One name and port for a changing set of pods.",
        "Which pods are served, on which ports, and to whom.",
        "Addresses given by a load balancer.",
    ),
    "ServiceAccount": ("An identity for programs in a namespace.", "", ""),
    "PersistentVolumeClaim": (
        "A wish for storage that outlives pods.",
        "How much storage, of which class and with which access.",
        "The storage that was found, and its phase.",
    ),
    "Secret": ("Small confidential values, at most one mebibyte together.", "", ""),
    "ConfigMap": ("Small values for programs to read, at most one mebibyte together.", "", ""),
    "Event": ("Something that happened to an object; kept for a short time.", "", ""),
    "Job": (
        "Pods that run until enough of them succeed.",
        "How many pods, how many at once, what counts as failure, and their template.",
        "How many pods run, succeeded and failed, and whether the job is over.",
    ),
    "Deployment": (
        "Equal pods, replaced step by step when their template changes.",
        "How many replicas, of what template, and how they are replaced.",
        "How many replicas exist, are updated, ready and available.",
    ),
    "StatefulSet": (
        "Pods with stable names and storage, started and replaced in order.",
        "How many replicas, of what template, with which claims and in which order.",
        "How many replicas exist, are updated, ready and available.",
    ),
    "HorizontalPodAutoscaler": (
        "Sets the number of replicas of a service by its load.",
        "Which service, within which limits, by which metrics, and how fast.",
        "The number of replicas now and wanted, the metrics last read, and what limits them.",
    ),
    "ResourceClaim": (
        "Devices that pods ask for together.",
        "Which devices, by class, how many, and how they are to be configured.",
        "The devices that were allocated, and the pods they are reserved for.",
    ),
    "ResourceClaimTemplate": (
        "What each pod that names it asks for in a claim of its own.",
        "The claim to be made for each pod.",
        "",
    ),
    "Lease": ("Who holds a role, and until when.", "The holder and the time it is given.", ""),
    "PriorityClass": ("A name for a pod priority.", "", ""),
    "Role": ("Rights within one namespace.", "", ""),
    "ClusterRole": ("Rights in all namespaces and on objects outside them.", "", ""),
    "RoleBinding": ("Gives a role's rights to subjects within one namespace.", "", ""),
    "ClusterRoleBinding": ("Gives a cluster role's rights to subjects everywhere.", "", ""),
    "CustomResourceDefinition": (
        "A further kind to be served, described by its schema.",
        "The names, scope and versions of the kind.",
        "Whether the kind is served, under which names and stored versions.",
    ),
    "SelfSubjectAccessReview": (
        "Asks whether the caller may do something.",
        "What the caller wants to do.",
        "Whether it is allowed.",
    ),
    "SubjectAccessReview": (
        "Asks whether someone may do something.",
        "Who wants to do what.",
        "Whether it is allowed.",
    ),
    "LocalSubjectAccessReview": (
        "Asks whether someone may do something within one namespace.",
        "Who wants to do what.",
        "Whether it is allowed.",
    ),
    "SelfSubjectRulesReview": (
        "Asks for all that the caller may do within a namespace.",
        "The namespace.",
        "The rules that apply.",
    ),
    "SelfSubjectReview": ("Asks who the caller is.", "", "The caller's identity."),
    "TokenReview": (
        "Asks whose token it is.",
        "The token.",
        "The identity that the token proves.",
    ),
}
