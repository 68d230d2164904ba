"""One file per node, named as the node."""
