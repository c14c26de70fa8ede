"""Forecasts: expected starts, and workloads that can never start.

starts          when workloads are expected to start: the planner, run forward
ever_possible   whether a workload could start on the empty fleet
judge           which of those that wait can never start, at a bounded cost per plan
"""
