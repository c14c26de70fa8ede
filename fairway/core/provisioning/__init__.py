"""New nodes of elastic pools: which pool and how many nodes, stock-outs, idle nodes."""
