"""The timeline: who had which GPUs when, and who is expected next.

Spans are kept as claims come and go, so that workloads which are deleted are not forgotten at once;
what is ahead is worked out by the planner when somebody looks.
"""
