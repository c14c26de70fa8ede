"""What becomes of workloads: from what agents report and what people ask to the next status.

`next_status` is a pure function of a LifecycleCase: a workload, what is seen of its works and
clusters, the settings that hold for it, and now. Nothing else is remembered, so that a hub that
starts again goes on as if nothing had happened.

    case            what is looked at, and the change that comes of it
    next_status     next_status: the life of a workload in one screen
    troubles        why a part of a claim can't stay where it is
    attempt_ends    how attempts end: history, receipt, what is released, when it is tried again
    counts          pods, replicas, feedback and conditions of all clusters together
    tasks           the tasks of an Independent workload
    recovery        causes of failures and the verdict on each (causes.yaml)
"""
