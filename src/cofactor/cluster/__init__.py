"""Private k-means over users whose columns lie with several parties."""
