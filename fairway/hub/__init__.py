"""What a hub does beside deciding: reaches agents and replicas, answers questions, keeps logs.

    backing                     the store behind a hub, and what the API needs beyond it
    agent_lines                 how a hub reaches agents: in its process, or by lines they opened
    replicas                    the other replicas of a hub, and lines to them
    answers                     answers to questions
    pod_lists, pod_usage        the pods of a workload and what they use, asked of agents
    decision_log, history_log, line_log  what is kept on disk
    upkeep                      backs up what a hub keeps, and encrypts it with another key
    trace_collector             where traces are sent, and with which headers
    encryption_keys             where keys come from that encrypt what is on disk
    tenants                     whether a hub has users besides its administrators
    background                  work on a thread of its own
    on_kubernetes, authority    a hub whose objects are on a kube-apiserver, and what replicas share
    webhooks, admission         what such a server asks the hub: where, and whether a write is right

`app` chooses the parts and puts them together.
"""
