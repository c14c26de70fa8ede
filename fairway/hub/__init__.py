"""What a hub does beside deciding: reaches agents and replicas, answers questions, keeps logs.

    agent_lines     how a hub reaches agents: in its process, or by the lines they opened
    replicas        the other replicas of a hub, and lines to them
    answers         who answers questions; `pod_lists` and `pod_usage` ask agents
    decision_log, history_log, span_log   what is kept on disk
    on_kubernetes, conversion   a hub whose objects are on a kube-apiserver

`app` chooses the parts and puts them together.
"""
