"""Where an agent learns which nodes can be had: lists, endpoints, and what its driver finds.

Each source says the same of the same pools (`interface`): stock, price, time to provision. A
source that does not answer is asked less and less often, and what it said expires.
"""
