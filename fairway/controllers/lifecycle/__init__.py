"""What becomes of workloads: from what agents report and what people ask to the next status.

`next_status` is a pure function of a LifecycleCase: a workload, what is seen of its works and
clusters, the settings that hold for it, and now. Nothing else is remembered, so that a hub that
starts again goes on as if nothing had happened.

    controller        looks at each workload when something about it changed
    case, inputs      what is looked at, and the change that comes of it; how it is gathered
    next_status       next_status: the life of a workload in one screen
    troubles          why a part of a claim can't stay where it is
    attempt_ends      how attempts end: history, receipt, what is released, when it is retried
    counts            pods, replicas, feedback and conditions of all clusters together
    tasks             the tasks of an Independent workload
    leaving_replicas  replicas that leave a place, and run on there for a while
    resize            fewer or more pods than a claim has, while it runs
    recovery          causes of failures and the verdict on each (causes.yaml)
"""
