"""Metrics of the fleet, given by the leader to whatever serves them.

    controller   follows workloads, looks periodically, and hands the numbers over
    numbers      pure: gauges from samples of the history and statuses
    turns        pure: what a change of a workload adds to counters and histograms

The numbers are facts that the plane has anyway: gauges are those of the history's samples, expected
starts those of the timeline, silence that of the controller of clusters, lost work that of the
attempts. A replica that does not lead gives none, so that sums over replicas are right. What
happens while no replica leads is not counted.
"""
