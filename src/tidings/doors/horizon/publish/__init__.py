"""Publishing through the Horizon door: the hot path, its checks in the order of the documents, and their refusals."""
