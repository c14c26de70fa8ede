"""The lifecycle of workloads: the next status, from agents' reports and users' requests.

`next_status` is a pure function of a LifecycleCase: a workload, the observed state of its works and
clusters, its settings, and the time. There is no other state, so a hub that restarts continues as
if nothing had happened.

    controller         reconciles each workload when something about it changed
    case, inputs       the inputs of a decision and the resulting change; how inputs are gathered
    next_status        one function for each phase of a workload
    takeovers          what agents brought back to a hub that had lost it
    troubles           why a placement of a claim cannot stay
    policy_conditions  rules of fleet policies that a running workload breaks
    refusals           the condition of a workload whose template some cluster refused
    attempt_ends       how attempts end: history, placements to release, retry
    counts             pods, replicas, feedback and conditions over all clusters
    tasks              the tasks of an Independent workload
    copies             copies that run to completion, such as a Job in each of several clusters
    leaving_replicas   replicas that leave a cluster, and keep running there for a while
    allowance          the condition of a workload that runs where its policy no longer allows it
    resize             changes to the number of pods of a running workload
    recovery           causes of failures, and the verdict on each (causes.yaml)
"""
