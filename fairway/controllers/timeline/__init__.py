"""The timeline: which workload had which GPUs when, and which are expected next.

Spans are kept as claims come and go, so that deleted workloads are not forgotten at once; the
planner works out what is ahead when the timeline is read.
"""
