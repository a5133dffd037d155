"""The protocols: ways to train one model on ratings in several hands."""
