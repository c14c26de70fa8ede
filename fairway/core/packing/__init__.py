"""How many pods of a shape fit on which nodes: packings, topology domains, devices."""
