"""Autoscaling: FleetAutoscalers, looked at every 15 seconds and when they change.

    controller         one look at one autoscaler: read, decide, write what changed
    adopted            HorizontalPodAutoscalers of an embedded hub, as FleetAutoscalers
    services           what is scaled: a workload or its native object, and how its count is set
    other_autoscalers  autoscalers that the object has beside ours, and how they give way
    bounds             limits, rules and schedules of an autoscaler, as the core takes them
    pods               the pods of a service, as last reported by agents
    readings           the readings of metrics
    autoscaler_status  the status that says what was decided

The decision itself is `serving.scaling`. Nothing here touches a cluster: counts are written to the
hub's objects, and the scheduler does the rest.
"""
