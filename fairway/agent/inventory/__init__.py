"""Where an agent learns which nodes are available: lists, endpoints, and what its driver finds.

Each source gives stock and price of pools (`interface`). A source that does not answer is asked
less and less often, and its last answer expires.
"""
