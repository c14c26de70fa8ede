"""How many replicas a service needs: Kubernetes' HPA v2 algorithm, over a fleet.

    decide        one decision: observation and memory in, a count and why out
    model         observations, targets and memory, as plain values
    proposals     how many replicas one metric asks for
    limits        stabilisation windows, rates and limits
    cron          when a schedule was last due

Numbers are whole thousandths, as HPA's are, and are divided and rounded as it does, so that the
same numbers give the same counts; `tests/kubernetes/test_autoscaling.py` compares them with the
real controller. Beyond HPA are scaling to and from zero, and pods of silent clusters, which count
as pods whose metrics are missing.
"""
